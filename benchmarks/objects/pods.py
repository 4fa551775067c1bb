"""Realistic pods, as an API server returns them: about 6.6 KB of JSON each, all different.

The size and make-up are those of an inference worker in a busy cluster: two containers and a sidecar with probes,
environment and mounts, projected volumes, node affinity, conditions, container statuses, and the managed fields that
four writers leave behind.
"""

from random import Random
from typing import Any

import msgspec

JSON = dict[str, Any]


def pod(number: int, random: Random) -> JSON:
    """Return the pod of this number; the same seed gives the same pods."""
    clique = f"serve-{number // 64}-worker"
    name = f"{clique}-{random.getrandbits(25):05x}"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "generateName": f"{clique}-",
            "namespace": f"team-{number % 17}",
            "uid": f"{random.getrandbits(128):032x}",
            "resourceVersion": str(10_000_000 + number),
            "generation": 2,
            "creationTimestamp": "2026-03-01T08:15:30Z",
            "labels": {
                "app.kubernetes.io/managed-by": "grove-operator",
                "app.kubernetes.io/name": clique,
                "app.kubernetes.io/part-of": "serve",
                "grove.io/podclique": clique,
                "grove.io/podgang": f"serve-{number // 64}",
                "grove.io/podclique-pod-index": str(number % 64),
                "grove.io/pod-template-hash": f"{random.getrandbits(32):08x}",
                "kai.scheduler/queue": f"team-{number % 17}",
            },
            "annotations": {
                "prometheus.io/scrape": "true",
                "pod-group-name": f"serve-{number // 64}",
                "cni.projectcalico.org/podIP": f"10.{number % 200}.{number // 200 % 250}.7/32",
            },
            "ownerReferences": [
                {
                    "apiVersion": "grove.io/v1alpha1",
                    "kind": "PodClique",
                    "name": clique,
                    "uid": f"{random.getrandbits(128):032x}",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
            "managedFields": [_managed(manager) for manager in ("spinney", "kubelet", "spinney-scheduler")],
        },
        "spec": _spec(number),
        "status": _status(number, random),
    }


def pods(count: int, seed: int = 0) -> list[bytes]:
    """Return the JSON texts of this many pods."""
    random = Random(seed)
    return [msgspec.json.encode(pod(number, random)) for number in range(count)]


def _managed(manager: str) -> JSON:
    fields = {f"f:{name}": {} for name in ("containers", "initContainers", "nodeName", "tolerations", "volumes")}
    return {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-03-01T08:15:31Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": {"f:labels": {".": {}, "f:grove.io/podgang": {}}}, "f:spec": fields},
    }


def _container(name: str, number: int) -> JSON:
    probe = {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 10, "failureThreshold": 3}
    return {
        "name": name,
        "image": f"registry.example.com/models/{name}:v1.{number % 9}.0",
        "command": ["/bin/serve"],
        "args": ["--model", "/models/llm", "--port", "8080"],
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "env": [
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}},
            {"name": "GROVE_PCS_NAME", "value": "serve"},
            {"name": "GROVE_PCLQ_POD_INDEX", "value": str(number % 64)},
            {"name": "NCCL_DEBUG", "value": "WARN"},
            {"name": "OTEL_TRACES_EXPORTER", "value": "none"},
        ],
        "resources": {
            "requests": {"cpu": "16", "memory": "128Gi", "nvidia.com/gpu": "4"},
            "limits": {"memory": "128Gi", "nvidia.com/gpu": "4"},
        },
        "volumeMounts": [
            {"name": "models", "mountPath": "/models", "readOnly": True},
            {"name": "token", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": True},
        ],
        "livenessProbe": probe,
        "readinessProbe": probe,
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }


def _spec(number: int) -> JSON:
    return {
        "nodeName": f"gpu-node-{number // 2:05}",
        "schedulerName": "spinney-scheduler",
        "priority": 100,
        "priorityClassName": "inference",
        "preemptionPolicy": "PreemptLowerPriority",
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": "serve",
        "hostname": f"worker-{number % 64}",
        "subdomain": f"serve-{number // 64}",
        "nodeSelector": {"nvidia.com/gpu.product": "H100"},
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {
                            "matchExpressions": [
                                {"key": "pool", "operator": "In", "values": ["inference", "shared"]},
                                {"key": "topology.kubernetes.io/zone", "operator": "NotIn", "values": ["zone-x"]},
                            ]
                        }
                    ]
                }
            }
        },
        "tolerations": [
            {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
            {
                "key": "node.kubernetes.io/not-ready",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 300,
            },
        ],
        "initContainers": [{**_container("agent", number), "restartPolicy": "Always"}],
        "containers": [_container("server", number)],
        "volumes": [
            {"name": "models", "persistentVolumeClaim": {"claimName": "models", "readOnly": True}},
            {
                "name": "token",
                "projected": {
                    "defaultMode": 420,
                    "sources": [
                        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                    ],
                },
            },
        ],
    }


def _status(number: int, random: Random) -> JSON:
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    address = f"10.{number % 200}.{number // 200 % 250}.7"
    return {
        "phase": "Running",
        "conditions": [
            {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": "2026-03-01T08:15:35Z"}
            for kind in kinds
        ],
        "hostIP": f"192.168.{number // 250 % 250}.{number % 250}",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": "2026-03-01T08:15:32Z",
        "qosClass": "Burstable",
        "initContainerStatuses": [_container_status("agent", number, random)],
        "containerStatuses": [_container_status("server", number, random)],
    }


def _container_status(name: str, number: int, random: Random) -> JSON:
    return {
        "name": name,
        "state": {"running": {"startedAt": "2026-03-01T08:15:34Z"}},
        "lastState": {},
        "ready": True,
        "started": True,
        "restartCount": 0,
        "image": f"registry.example.com/models/{name}:v1.{number % 9}.0",
        "imageID": f"registry.example.com/models/{name}@sha256:{random.getrandbits(256):064x}",
        "containerID": f"containerd://{random.getrandbits(256):064x}",
    }
