"""Objects of built-in kinds that use many of their fields, of every type there is."""

from collections.abc import Mapping

from spinney.api.struct import JSON

_PROBE = {"httpGet": {"path": "/up", "port": "http", "httpHeaders": [{"name": "a", "value": "b"}]}, "periodSeconds": 3}
_CONTAINER: JSON = {
    "name": "main",
    "image": "registry.example/train:1",
    "command": ["sh", "-c"],
    "args": ["echo; sleep 1"],
    "ports": [{"name": "http", "containerPort": 80}],
    "env": [
        {"name": "A", "value": "1"},
        {"name": "EMPTY", "value": ""},
        {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "C", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k", "optional": True}}},
    ],
    "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}, "limits": {"nvidia.com/gpu": "2", "memory": "2Gi"}},
    "livenessProbe": _PROBE,
    "readinessProbe": {"tcpSocket": {"port": 80}},
    "volumeMounts": [{"name": "e", "mountPath": "/e"}, {"name": "s", "mountPath": "/s", "readOnly": True}],
    "securityContext": {"runAsUser": 0, "privileged": False, "capabilities": {"add": ["NET_ADMIN"]}},
}
_IN_ZONE = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}]
POD_SPEC: JSON = {
    "initContainers": [{"name": "first", "image": "i:1", "restartPolicy": "Always"}],
    "containers": [_CONTAINER],
    "volumes": [
        {"name": "e", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
        {"name": "s", "secret": {"secretName": "s", "defaultMode": 0o400, "items": [{"key": "k", "path": "p"}]}},
        {"name": "p", "projected": {"sources": [{"downwardAPI": {"items": []}}, {"configMap": {"name": "c"}}]}},
        {"name": "h", "hostPath": {"path": "/h"}},
    ],
    "nodeSelector": {"disk": "ssd"},
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": _IN_ZONE},
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 3, "preference": _IN_ZONE[0]}],
        },
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": "kubernetes.io/hostname"}
            ]
        },
    },
    "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}],
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
    ],
    "schedulingGates": [{"name": "example.com/wait"}],
    "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["h"]}],
    "terminationGracePeriodSeconds": 0,
    "automountServiceAccountToken": False,
}
_LABELS = {"matchLabels": {"app": "x"}}
_TEMPLATE: JSON = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [_CONTAINER | {"volumeMounts": []}]}}
_SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "additionalProperties": {"type": "string"},
            "description": "words",
        },
        "flag": {"type": "boolean", "default": False},
        "any": {"x-kubernetes-preserve-unknown-fields": True, "type": "object"},
        "size": {"type": "number", "minimum": 0.5, "maximum": 3, "enum": [0.5, 1, 3]},
        "list": {"type": "array", "items": {"type": "integer"}, "maxItems": 0},
    },
}


def _meta(name: str, **more: object) -> JSON:
    return {"name": name, "labels": {"app": "x"}, "annotations": {"note": "ä\n"}, **more}


RICH: Mapping[str, JSON] = {
    "/api/v1/namespaces/{ns}/pods": {"metadata": _meta("rich", finalizers=["example.com/hold"]), "spec": POD_SPEC},
    "/api/v1/namespaces/{ns}/configmaps": {
        "metadata": _meta("rich"),
        "data": {"a": "", "b": "c"},
        "binaryData": {"z": "AAEC"},
        "immutable": True,
    },
    "/api/v1/namespaces/{ns}/secrets": {"metadata": _meta("rich"), "data": {"k": "cGFzcw=="}, "type": "example.com/t"},
    "/api/v1/namespaces/{ns}/services": {
        "metadata": _meta("rich"),
        "spec": {
            "selector": {"app": "x"},
            "ports": [{"name": "h", "port": 80, "targetPort": "http"}, {"port": 81, "name": "i"}],
        },
    },
    "/api/v1/namespaces/{ns}/persistentvolumeclaims": {
        "metadata": _meta("rich"),
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1.5Gi"}}},
    },
    "/api/v1/persistentvolumes": {
        "metadata": _meta("rich-{ns}"),
        "spec": {
            "capacity": {"storage": "1Ti"},
            "accessModes": ["ReadWriteMany"],
            "nfs": {"server": "s", "path": "/p"},
        },
    },
    "/api/v1/namespaces/{ns}/resourcequotas": {"metadata": _meta("rich"), "spec": {"hard": {"pods": "100"}}},
    "/api/v1/namespaces/{ns}/limitranges": {
        "metadata": _meta("rich"),
        "spec": {"limits": [{"type": "Pod", "max": {"cpu": "100"}}]},
    },
    "/api/v1/namespaces/{ns}/events": {
        "metadata": {"name": "rich", "namespace": "{ns}"},
        "involvedObject": {"kind": "Pod", "namespace": "{ns}", "name": "rich"},
        "firstTimestamp": "2026-01-02T03:04:05Z",
        "lastTimestamp": "2026-01-02T03:04:05Z",
        "count": 3,
        "type": "Normal",
        "reason": "R",
        "message": "m",
    },
    "/api/v1/nodes": {
        "metadata": _meta("rich-{ns}"),
        "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]},
        "status": {
            "capacity": {"cpu": "8", "memory": "1Ti"},
            "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-02T03:04:05Z"}],
            "images": [{"names": ["a:1"], "sizeBytes": 5_000_000_000}],
        },
    },
    "/apis/apps/v1/namespaces/{ns}/deployments": {
        "metadata": _meta("rich"),
        "spec": {
            "replicas": 0,
            "selector": _LABELS,
            "template": _TEMPLATE,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 0}},
        },
    },
    "/apis/apps/v1/namespaces/{ns}/statefulsets": {
        "metadata": _meta("rich"),
        "spec": {"replicas": 0, "selector": _LABELS, "template": _TEMPLATE, "serviceName": "x"},
    },
    "/apis/apps/v1/namespaces/{ns}/daemonsets": {
        "metadata": _meta("rich"),
        "spec": {"selector": _LABELS, "template": _TEMPLATE},
    },
    "/apis/apps/v1/namespaces/{ns}/controllerrevisions": {
        "metadata": _meta("rich"),
        "revision": 7,
        "data": {"spec": {"deep": [1, {"a": None}]}},
    },
    "/apis/batch/v1/namespaces/{ns}/jobs": {
        "metadata": _meta("rich"),
        "spec": {
            "suspend": True,
            "parallelism": 2,
            "completionMode": "Indexed",
            "completions": 2,
            "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}},
        },
    },
    "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers": {
        "metadata": _meta("rich"),
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "rich"},
            "maxReplicas": 3,
            "metrics": [
                {
                    "type": "Resource",
                    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
                }
            ],
        },
    },
    "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets": {
        "metadata": _meta("rich"),
        "spec": {"maxUnavailable": "30%", "selector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}},
    },
    "/apis/scheduling.k8s.io/v1/priorityclasses": {
        "metadata": _meta("rich-{ns}"),
        "value": -5,
        "preemptionPolicy": "Never",
        "description": "d",
    },
    "/apis/scheduling.k8s.io/v1beta1/namespaces/{ns}/podgroups": {
        "metadata": _meta("rich"),
        "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
    },
    "/apis/scheduling.k8s.io/v1beta1/namespaces/{ns}/workloads": {
        "metadata": _meta("rich"),
        "spec": {"podGroupTemplates": [{"name": "a", "schedulingPolicy": {"basic": {}}}]},
    },
    "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases": {
        "metadata": _meta("rich"),
        "spec": {"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": "2026-01-02T03:04:05.600007Z"},
    },
    "/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices": {
        "metadata": _meta("rich"),
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.1.2.3"], "conditions": {"ready": False}}],
        "ports": [{"name": "", "port": 0, "protocol": "TCP"}],
    },
    "/apis/node.k8s.io/v1/runtimeclasses": {
        "metadata": _meta("rich-{ns}"),
        "handler": "h",
        "overhead": {"podFixed": {"cpu": "250m"}},
    },
    "/apis/networking.k8s.io/v1/namespaces/{ns}/networkpolicies": {
        "metadata": _meta("rich"),
        "spec": {
            "podSelector": {},
            "ingress": [{"ports": [{"port": 80}, {"port": "http"}]}],
            "policyTypes": ["Ingress"],
        },
    },
    "/apis/rbac.authorization.k8s.io/v1/clusterroles": {
        "metadata": _meta("rich-{ns}"),
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
    },
    "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/rolebindings": {
        "metadata": _meta("rich"),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "User", "name": "u", "apiGroup": "rbac.authorization.k8s.io"}],
    },
    "/apis/storage.k8s.io/v1/storageclasses": {
        "metadata": _meta("rich-{ns}"),
        "provisioner": "example.com/p",
        "parameters": {"a": "b"},
        "allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}],
    },
    "/apis/resource.k8s.io/v1/namespaces/{ns}/resourceclaims": {
        "metadata": _meta("rich"),
        "spec": {
            "devices": {
                "requests": [{"name": "r", "exactly": {"deviceClassName": "gpu.example.com", "count": 2}}],
                "config": [{"opaque": {"driver": "example.com", "parameters": {"kind": "X", "n": 1.5}}}],
            }
        },
    },
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations": {
        "metadata": _meta("rich-{ns}"),
        "webhooks": [
            {
                "name": "w.example.com",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "clientConfig": {"url": "https://127.0.0.1:1/x"},
                "objectSelector": {"matchLabels": {"never": "{ns}"}},
                "failurePolicy": "Ignore",
                "rules": [
                    {"apiGroups": ["x.example.com"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}
                ],
            }
        ],
    },
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions": {
        "metadata": _meta("riches.{ns}.example.com"),
        "spec": {
            "group": "{ns}.example.com",
            "scope": "Namespaced",
            "names": {"plural": "riches", "kind": "Rich"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": _SCHEMA}}],
        },
    },
}
