"""Pods and nodes as a production API server sends them, about 6 KB of JSON each."""

import json
import random
from typing import Any

ZONES = ("a", "b", "c")
IMAGES = [f"registry.example.com/team-{n % 12}/service-{n}:v{n % 40}.{n % 7}" for n in range(50)]


def a_pod(number: int, version: int, chance: random.Random) -> dict[str, Any]:
    """Return a pod of a training job: one GPU container, a sidecar, the usual tolerations and status."""
    job = number // 16
    name = f"train-{job:05d}-worker-{number % 16:03d}"
    uid = f"{chance.getrandbits(32):08x}-1111-4222-8333-{number:012x}"
    node = f"gpu-node-{number % 10_000:05d}"
    moments = [_moment(chance.randrange(864_000)) for _ in range(3)]
    start = moments[0]
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "generateName": f"train-{job:05d}-worker-",
            "namespace": f"team-{job % 100}",
            "uid": uid,
            "resourceVersion": str(version),
            "creationTimestamp": start,
            "labels": {
                "app.kubernetes.io/name": f"train-{job:05d}",
                "app.kubernetes.io/managed-by": "grove-operator",
                "app.kubernetes.io/part-of": f"train-{job:05d}",
                "grove.io/podgang": f"train-{job:05d}-0",
                "grove.io/podclique": f"train-{job:05d}-0-worker",
                "grove.io/podcliqueset-replica-index": "0",
                "kai.scheduler/queue": f"team-{job % 100}",
            },
            "annotations": {
                "cni.projectcalico.org/podIP": f"10.{number % 250}.{number // 250 % 250}.7/32",
                "cni.projectcalico.org/containerID": f"{chance.getrandbits(256):064x}",
                "prometheus.io/scrape": "true",
            },
            "ownerReferences": [
                {
                    "apiVersion": "grove.io/v1alpha1",
                    "kind": "PodClique",
                    "name": f"train-{job:05d}-0-worker",
                    "uid": f"{job:08x}-aaaa-4bbb-8ccc-{job:012x}",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
            "managedFields": [_managed_fields("grove-operator"), _managed_fields("kubelet")],
        },
        "spec": {
            "volumes": [
                {"name": "data", "persistentVolumeClaim": {"claimName": f"train-{job:05d}-data"}},
                {"name": "shm", "emptyDir": {"medium": "Memory"}},
                {
                    "name": f"kube-api-access-{number % 100_000:05d}",
                    "projected": {"sources": [{"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}]},
                },
            ],
            "containers": [_container("main", job, gpus=8), _container("logs", job, gpus=0)],
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "nodeSelector": {"node.kubernetes.io/instance-type": "h100.8"},
            "serviceAccountName": "trainer",
            "nodeName": node,
            "securityContext": {},
            "schedulerName": "kai-scheduler",
            "tolerations": [
                {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
                {
                    "key": "node.kubernetes.io/not-ready",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                },
                {
                    "key": "node.kubernetes.io/unreachable",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                },
            ],
            "priority": 50,
            "priorityClassName": "train",
            "preemptionPolicy": "PreemptLowerPriority",
        },
        "status": {
            "phase": "Running",
            "conditions": [
                {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": moments[n % 3]}
                for n, kind in enumerate(
                    ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
                )
            ],
            "hostIP": "10.0.0.1",
            "podIP": f"10.{number % 250}.{number // 250 % 250}.7",
            "startTime": start,
            "containerStatuses": [
                {
                    "name": container,
                    "state": {"running": {"startedAt": start}},
                    "lastState": {},
                    "ready": True,
                    "restartCount": 0,
                    "image": IMAGES[job % len(IMAGES)],
                    "imageID": f"registry.example.com@sha256:{chance.getrandbits(256):064x}",
                    "containerID": f"containerd://{chance.getrandbits(256):064x}",
                    "started": True,
                }
                for container in ("main", "logs")
            ],
            "qosClass": "Guaranteed",
        },
    }


def a_node(number: int, version: int, chance: random.Random) -> dict[str, Any]:
    """Return a GPU node with its labels, capacity, conditions and the images it has."""
    name = f"gpu-node-{number:05d}"
    quantities = {
        "cpu": "192", "memory": "2113411308Ki", "ephemeral-storage": "7499362648Ki", "pods": "110",
        "nvidia.com/gpu": "8", "hugepages-1Gi": "0", "hugepages-2Mi": "0", "rdma/ib": "8",
    }  # fmt: skip
    return {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "uid": f"{chance.getrandbits(32):08x}-5555-4222-8333-{number:012x}",
            "resourceVersion": str(version),
            "creationTimestamp": "2026-10-01T00:00:00Z",
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/os": "linux",
                "node.kubernetes.io/instance-type": "h100.8",
                "topology.kubernetes.io/region": "north",
                "topology.kubernetes.io/zone": f"north-{ZONES[number % 3]}",
                "topology.example.com/block": f"block-{number // 256}",
                "topology.example.com/rack": f"rack-{number // 16}",
                "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
                "nvidia.com/gpu.count": "8",
                "nvidia.com/gpu.memory": "81559",
            },
            "annotations": {
                "node.alpha.kubernetes.io/ttl": "0",
                "volumes.kubernetes.io/controller-managed-attach-detach": "true",
            },
            "managedFields": [_managed_fields("kubelet"), _managed_fields("gpu-feature-discovery")],
        },
        "spec": {
            "providerID": f"example:///north/{name}",
            "taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}],
        },
        "status": {
            "capacity": quantities,
            "allocatable": {**quantities, "cpu": "188", "memory": "2100000000Ki"},
            "conditions": [
                {
                    "type": kind,
                    "status": "True" if kind == "Ready" else "False",
                    "reason": f"Kubelet{kind}",
                    "message": "kubelet says so",
                    "lastHeartbeatTime": "2026-11-14T00:00:00Z",
                    "lastTransitionTime": "2026-10-01T00:00:00Z",
                }
                for kind in ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
            ],
            "images": [
                {"names": [image, f"{image}@sha256:{'ab' * 32}"], "sizeBytes": 10**9 + n}
                for n, image in enumerate(IMAGES[:20])
            ],
            "nodeInfo": {"kubeletVersion": "v1.37.1", "osImage": "Ubuntu 24.04", "architecture": "amd64"},
        },
    }


def encoded(obj: dict[str, Any]) -> bytes:
    """Return an object as an API server writes it."""
    return json.dumps(obj, separators=(",", ":")).encode()


def _moment(second: int) -> str:
    return f"2026-11-{second // 86_400 + 1:02d}T{second // 3600 % 24:02d}:{second // 60 % 60:02d}:{second % 60:02d}Z"


def _container(name: str, job: int, *, gpus: int) -> dict[str, Any]:
    amounts = {"cpu": "16", "memory": "256Gi"} | ({"nvidia.com/gpu": str(gpus)} if gpus else {})
    return {
        "name": name,
        "image": IMAGES[job % len(IMAGES)],
        "command": ["python", "-m", "train", "--config", f"/etc/train/{job}.yaml"],
        "env": [{"name": f"SETTING_{n}", "value": f"value-{n}"} for n in range(8)],
        "ports": [{"name": "rdzv", "containerPort": 29500, "protocol": "TCP"}] if gpus else [],
        "resources": {"limits": amounts, "requests": amounts},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}, {"name": "shm", "mountPath": "/dev/shm"}],
        "terminationMessagePath": "/dev/termination-log",
        "imagePullPolicy": "IfNotPresent",
    }


def _managed_fields(manager: str) -> dict[str, Any]:
    fields = {"f:metadata": {"f:labels": {".": {}, "f:app": {}}}, "f:spec": {f"f:field{n}": {} for n in range(20)}}
    return {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-11-14T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
