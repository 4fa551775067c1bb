"""What people apply every day, a manifest of each kind: kept as kube-apiserver keeps it, and shown as it shows it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from spinney.api.struct import JSON
from tests.fidelity.exchanges import Exchange, deleting, getting, merging, posting, putting, tabulating

_CORE = "/api/v1/namespaces/{ns}"
_LABELS = {"app": "web"}
_SELECTOR = {"matchLabels": _LABELS}
_PROBE = {"httpGet": {"path": "/ready", "port": 8080}}
_CONTAINER: JSON = {
    "name": "web",
    "image": "nginx:1.27",
    "ports": [{"containerPort": 8080, "name": "http"}],
    "env": [
        {"name": "A", "value": "1"},
        {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
    ],
    "envFrom": [{"configMapRef": {"name": "c"}}],
    "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}},
    "readinessProbe": _PROBE,
    "livenessProbe": {"tcpSocket": {"port": "http"}, "periodSeconds": 5},
    "startupProbe": {"exec": {"command": ["true"]}},
    "lifecycle": {"preStop": {"exec": {"command": ["sleep", "1"]}}},
    "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    "securityContext": {"runAsNonRoot": True},
}
_VOLUMES = [
    {"name": "data", "emptyDir": {}},
    {"name": "config", "configMap": {"name": "c"}},
    {"name": "secret", "secret": {"secretName": "s"}},
    {"name": "host", "hostPath": {"path": "/tmp"}},
    {"name": "down", "downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
    {"name": "claim", "persistentVolumeClaim": {"claimName": "p"}},
]
_POD: JSON = {"containers": [_CONTAINER], "initContainers": [{"name": "init", "image": "busybox"}], "volumes": _VOLUMES}
_TEMPLATE: JSON = {"metadata": {"labels": _LABELS}, "spec": _POD}
_ONCE: JSON = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
_RULE = {"host": "a.example.com", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": {}}]}}


def _named(name: str, **content: Any) -> JSON:
    return {"metadata": {"name": name}, **content}


def _backend(service: str, **port: Any) -> JSON:
    return {"service": {"name": service, "port": port}}


_CONTROLLED = ("status", "deployment.kubernetes.io/revision")


def _life(collection: str, obj: JSON, change: JSON | None = None, *, unlike: str = "") -> list[Exchange]:
    """Return the life of an object: created, shown (but for a column that controllers fill), changed, deleted."""
    path = f"{collection}/{obj['metadata']['name']}"
    only = {"fieldSelector": f"metadata.name={obj['metadata']['name']}"}
    later = [
        merging(path, {"metadata": {"labels": {"changed": "yes"}}, **(change or {})}),
        getting(path),
        deleting(path, {"propagationPolicy": "Background"}),
    ]
    return [
        posting(collection, obj, fieldValidation="Strict"),
        replace(tabulating(collection, **only), ignoring=(unlike,) if unlike else ()),
        *(replace(each, ignoring=_CONTROLLED) for each in later),
    ]


_APPS, _BATCH = "/apis/apps/v1/namespaces/{ns}", "/apis/batch/v1/namespaces/{ns}"
_NETWORK = "/apis/networking.k8s.io/v1"
_INGRESSES, _POLICIES = f"{_NETWORK}/namespaces/{{ns}}/ingresses", f"{_NETWORK}/namespaces/{{ns}}/networkpolicies"
_CRON_JOBS = f"{_BATCH}/cronjobs"
_HPAS = "/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers"
_STORAGE = "/apis/storage.k8s.io/v1"
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}}}
_TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}

_WORKLOADS = [
    *_life(
        f"{_APPS}/deployments",
        _named("web", spec={"replicas": 0, "selector": _SELECTOR, "template": _TEMPLATE}),
        {"spec": {"minReadySeconds": 3}},
    ),
    *_life(
        f"{_APPS}/statefulsets",
        _named(
            "db",
            spec={
                "replicas": 0,
                "serviceName": "db",
                "selector": _SELECTOR,
                "template": _TEMPLATE,
                "volumeClaimTemplates": [
                    {
                        "metadata": {"name": "data"},
                        "spec": {
                            "accessModes": ["ReadWriteOnce"],
                            "resources": {"requests": {"storage": "1Gi"}},
                        },
                    }
                ],
            },
        ),
    ),
    *_life(
        f"{_APPS}/daemonsets",
        _named(
            "agent",
            spec={
                "selector": _SELECTOR,
                "template": {**_TEMPLATE, "spec": {**_POD, "nodeSelector": {"no": "node"}}},
            },
        ),
    ),
    *_life(f"{_APPS}/replicasets", _named("rs", spec={"replicas": 0, "selector": _SELECTOR, "template": _TEMPLATE})),
    *_life(f"{_CORE}/replicationcontrollers", _named("rc", spec={"replicas": 0, "template": _TEMPLATE})),
    *_life(f"{_CORE}/podtemplates", _named("t", template=_TEMPLATE)),
    *_life(f"{_BATCH}/jobs", _named("once", spec={"suspend": True, "template": _ONCE}), unlike="Status"),
    *_life(
        _CRON_JOBS,
        _named(
            "nightly", spec={"schedule": "0 3 * * *", "suspend": True, "jobTemplate": {"spec": {"template": _ONCE}}}
        ),
        {"spec": {"schedule": "@daily"}},
    ),
    posting(_CRON_JOBS, _named("bad", spec={"schedule": "never", "jobTemplate": {"spec": {"template": _ONCE}}})),
    posting(_CRON_JOBS, _named("bad", spec={"jobTemplate": {"spec": {"template": _ONCE}}})),
    posting(
        _CRON_JOBS,
        _named(
            "bad",
            spec={"schedule": "@daily", "concurrencyPolicy": "Maybe", "jobTemplate": {"spec": {"template": _ONCE}}},
        ),
    ),
]
_NETWORKING = [
    *_life(f"{_CORE}/services", _named("web", spec={"selector": _LABELS, "ports": [{"port": 80}]})),
    *_life(
        f"{_CORE}/services",
        _named("none", spec={"clusterIP": "None", "ports": [{"port": 80, "targetPort": "http", "name": "http"}]}),
    ),
    *_life(f"{_CORE}/services", _named("other", spec={"type": "ExternalName", "externalName": "example.com"})),
    posting(f"{_CORE}/services", _named("bad", spec={})),
    posting(f"{_CORE}/services", _named("bad", spec={"ports": [{"port": 80}, {"port": 81}]})),
    posting(f"{_CORE}/services", _named("bad", spec={"type": "Wrong", "ports": [{"port": 80}]})),
    posting(f"{_CORE}/services", _named("bad", spec={"ports": [{"port": 80000}]})),
    *_life(
        _INGRESSES,
        _named(
            "web",
            spec={
                "ingressClassName": "nginx",
                "tls": [{"hosts": ["a.example.com"], "secretName": "s"}],
                "rules": [
                    {
                        "host": "a.example.com",
                        "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": _backend("w", number=80)}]},
                    }
                ],
            },
        ),
        {"spec": {"ingressClassName": "other"}},
    ),
    *_life(_INGRESSES, _named("plain", spec={"defaultBackend": _backend("w", name="http")})),
    posting(_INGRESSES, _named("bad", spec={})),
    posting(_INGRESSES, _named("bad", spec={"rules": [_RULE]})),
    *_life(f"{_NETWORK}/ingressclasses", _named("c-{ns}", spec={"controller": "example.com/c"})),
    *_life(
        _POLICIES,
        _named(
            "deny",
            spec={
                "podSelector": {},
                "ingress": [{"from": [{"podSelector": _SELECTOR}], "ports": [{"port": 80}]}],
            },
        ),
        {"spec": {"egress": [{}], "policyTypes": ["Ingress", "Egress"]}},
    ),
    *_life(
        "/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices",
        _named("s", addressType="IPv4", endpoints=[{"addresses": ["10.1.2.3"]}], ports=[{"port": 80}]),
    ),
    *_life(
        f"{_CORE}/endpoints",
        _named("e", subsets=[{"addresses": [{"ip": "10.1.2.3"}], "ports": [{"port": 80}]}]),
    ),
]
_POLICY = [
    *_life(
        "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets",
        _named("b", spec={"maxUnavailable": "50%", "selector": _SELECTOR}),
        {"spec": {"maxUnavailable": 1}},
    ),
    *_life(_HPAS, _named("h", spec={"maxReplicas": 5, "scaleTargetRef": _TARGET, "metrics": [_CPU]})),
    *_life(_HPAS, _named("default", spec={"maxReplicas": 5, "scaleTargetRef": _TARGET})),
    posting(_HPAS, _named("bad", spec={"maxReplicas": 0, "scaleTargetRef": _TARGET})),
    posting(_HPAS, _named("bad", spec={"minReplicas": 3, "maxReplicas": 2, "scaleTargetRef": _TARGET})),
    # What a quota's columns show is a controller's work, and comes when it comes.
    posting(f"{_CORE}/resourcequotas", _named("q", spec={"hard": {"pods": "10", "requests.cpu": "4"}})),
    *_life(
        f"{_CORE}/limitranges",
        _named("l", spec={"limits": [{"type": "Container", "default": {"cpu": "1"}, "max": {"cpu": "2"}}]}),
    ),
    *_life(
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        {**_named("p-{ns}", value=10, description="ten"), "globalDefault": False},
    ),
    *_life("/apis/node.k8s.io/v1/runtimeclasses", _named("r-{ns}", handler="runc")),
    *_life(f"{_CORE}/configmaps", _named("c", data={"a": "1"}, binaryData={"b": "AAAA"})),
    *_life(f"{_CORE}/secrets", _named("s", stringData={"a": "1"}, type="Opaque")),
    *_life(f"{_CORE}/serviceaccounts", _named("robot", secrets=[{"name": "s"}])),
    *_life(
        f"{_RBAC}/namespaces/{{ns}}/roles",
        _named("r", rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]),
    ),
    *_life(
        f"{_RBAC}/namespaces/{{ns}}/rolebindings",
        _named(
            "b",
            roleRef={"kind": "Role", "name": "r", "apiGroup": "rbac.authorization.k8s.io"},
            subjects=[
                {"kind": "ServiceAccount", "name": "robot", "namespace": "{ns}"},
                {"kind": "User", "name": "bob"},
            ],
        ),
    ),
    *_life(f"{_RBAC}/clusterroles", _named("r-{ns}", rules=[{"nonResourceURLs": ["/x"], "verbs": ["get"]}])),
    *_life(
        f"{_RBAC}/clusterrolebindings",
        _named(
            "b-{ns}",
            roleRef={"kind": "ClusterRole", "name": "view", "apiGroup": "rbac.authorization.k8s.io"},
            subjects=[{"kind": "Group", "name": "dev"}],
        ),
    ),
    posting(f"{_RBAC}/namespaces/{{ns}}/roles", _named("bad", rules=[{"apiGroups": [""], "resources": ["pods"]}])),
    posting(f"{_RBAC}/namespaces/{{ns}}/roles", _named("bad", rules=[{"nonResourceURLs": ["/x"], "verbs": ["get"]}])),
    posting(
        f"{_RBAC}/namespaces/{{ns}}/rolebindings",
        _named("bad", roleRef={"kind": "Rule", "name": ""}, subjects=[{"kind": "Robot", "name": "b"}]),
    ),
    *_life(
        "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases",
        _named("l", spec={"holderIdentity": "me", "leaseDurationSeconds": 15}),
    ),
]
_VOLUME_KINDS = [
    *_life(
        f"{_CORE}/persistentvolumeclaims",
        _named(
            "p",
            spec={
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "none",
                "resources": {"requests": {"storage": "1Gi"}},
            },
        ),
    ),
    posting(f"{_CORE}/persistentvolumeclaims", _named("bad", spec={})),
    *_life(
        "/api/v1/persistentvolumes",
        _named(
            "v-{ns}",
            spec={"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}},
        ),
        unlike="Status",
    ),
    *_life(f"{_STORAGE}/storageclasses", _named("c-{ns}", provisioner="example.com/p")),
    *_life(f"{_STORAGE}/csidrivers", _named("d-{ns}", spec={})),
    *_life(
        f"{_STORAGE}/csinodes",
        _named("n-{ns}", spec={"drivers": [{"name": "d", "nodeID": "n", "topologyKeys": None}]}),
    ),
    *_life(
        f"{_STORAGE}/volumeattachments",
        _named("a-{ns}", spec={"attacher": "d", "nodeName": "n", "source": {"persistentVolumeName": "v"}}),
    ),
    *_life(
        "/apis/resource.k8s.io/v1/namespaces/{ns}/resourceclaims",
        _named("r", spec={"devices": {"requests": [{"name": "g", "exactly": {"deviceClassName": "gpu"}}]}}),
    ),
    *_life(
        "/apis/resource.k8s.io/v1/namespaces/{ns}/resourceclaimtemplates",
        _named("r", spec={"spec": {"devices": {"requests": [{"name": "g", "exactly": {"deviceClassName": "gpu"}}]}}}),
    ),
    *_life("/apis/resource.k8s.io/v1/deviceclasses", _named("d-{ns}", spec={})),
    *_life(
        f"{_CORE}/pods",
        {"metadata": {"name": "p", "labels": _LABELS}, "spec": {**_POD, "schedulerName": "nobody"}},
        {"spec": {"activeDeadlineSeconds": 9}},
    ),
    putting(f"{_CORE}/pods/gone", _named("gone", spec=_POD)),
]

MANIFEST_STORIES: Mapping[str, list[Exchange]] = {
    "workload manifests": _WORKLOADS,
    "network manifests": _NETWORKING,
    "policy manifests": _POLICY,
    "volume manifests": _VOLUME_KINDS,
}
