"""Further stories, about what the kinds have in common and where they are special."""

from collections.abc import Mapping
from typing import Any

from spinney.api.struct import JSON
from tests.fidelity.exchanges import (
    BUDGETS,
    CLASSES,
    EVENTS,
    LEASES,
    MAPS,
    PODS,
    Exchange,
    applying,
    deleting,
    getting,
    json_patching,
    merging,
    posting,
    putting,
    strategically,
    tabulating,
)

_CORE = "/api/v1/namespaces/{ns}"
SECRETS, SERVICES, ACCOUNTS = f"{_CORE}/secrets", f"{_CORE}/services", f"{_CORE}/serviceaccounts"
CLAIMS, QUOTAS = f"{_CORE}/persistentvolumeclaims", f"{_CORE}/resourcequotas"
DEPLOYMENTS, SETS = "/apis/apps/v1/namespaces/{ns}/deployments", "/apis/apps/v1/namespaces/{ns}/statefulsets"
JOBS = "/apis/batch/v1/namespaces/{ns}/jobs"
ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles"
NODES = "/api/v1/nodes"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices"


def _pod(name: str, **spec: Any) -> JSON:
    return {
        "metadata": {"name": name, "labels": {"app": "x"}},
        "spec": {"containers": [{"name": "c", "image": "i:1"}], **spec},
    }


def _controller(name: str, **spec: Any) -> JSON:
    template = {"metadata": {"labels": {"app": "y"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}
    content = {"replicas": 0, "selector": {"matchLabels": {"app": "y"}}, "template": template, **spec}
    return {"metadata": {"name": name}, "spec": content}


_FIELDS = [
    posting(MAPS, {"metadata": {"name": "f"}, "daat": {}}, fieldValidation="Strict"),
    posting(MAPS, {"metadata": {"name": "f", "lables": {}}}, fieldValidation="Strict"),
    posting(MAPS, {"metadata": {"name": "f"}, "daat": {}}, fieldValidation="Warn"),
    posting(MAPS, {"metadata": {"name": "g"}, "daat": {}}, fieldValidation="Ignore"),
    posting(MAPS, {"metadata": {"name": "h"}}, fieldValidation="Sloppy"),
    posting(MAPS, {"metadata": {"name": "h"}, "data": {"a": 1}}),
    posting(MAPS, {"metadata": {"name": "h"}, "data": []}),
    posting(MAPS, {"metadata": {"name": "h"}, "data": None}),
    posting(MAPS, {"metadata": {"name": "i", "labels": None, "annotations": {"a": "b"}}}),
    posting(MAPS, {"metadata": {"name": "j", "labels": {"a": 1}}}),
    posting(MAPS, {"metadata": {"name": 5}}),
    posting(MAPS, {"metadata": "x"}),
    posting(MAPS, []),
    posting(MAPS, {"metadata": {"name": "k", "finalizers": "x"}}),
    posting(MAPS, {"metadata": {"name": "k", "finalizers": ["not qualified"]}}),
    posting(MAPS, {"metadata": {"name": "k", "annotations": {"a b": "c"}}}),
    posting(PODS, _pod("k", nodeSelektor={}), fieldValidation="Strict"),
    posting(PODS, _pod("k", nodeSelektor={"a": "b"})),
    posting(PODS, _pod("l", containers="c")),
    posting(PODS, _pod("l", containers=[{"name": 5}])),
    posting(PODS, _pod("l", priority="high")),
    posting(PODS, _pod("l", hostNetwork="yes")),
    posting(PODS, _pod("l", nodeSelector=None, affinity=None)),
    merging(f"{MAPS}/f", {"daat": {}}, fieldValidation="Strict"),
    merging(f"{MAPS}/f", {"daat": {}}),
    merging(f"{MAPS}/f", {"data": {"a": 5}}),
    merging(f"{MAPS}/f", []),
    strategically(f"{MAPS}/f", {"daat": {}}, fieldValidation="Strict"),
    json_patching(f"{MAPS}/f", {"op": "add", "path": "/daat", "value": {}}, fieldValidation="Strict"),
    json_patching(f"{MAPS}/f", {"op": "weird", "path": "/data"}),
    json_patching(f"{MAPS}/f", {"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}),
    json_patching(f"{MAPS}/f", {"op": "copy", "from": "/metadata/labels/a", "path": "/metadata/labels/c"}),
    json_patching(f"{MAPS}/f", {"op": "move", "from": "/metadata/labels/a", "path": "/metadata/labels/d"}),
    putting(f"{MAPS}/f", {"metadata": {"name": "f"}, "data": {"only": "this"}}),
    putting(f"{MAPS}/f", {"metadata": {"name": "f"}, "more": 1}, fieldValidation="Strict"),
    applying(f"{MAPS}/f", "v1", "ConfigMap", manager="m", force="true", daat={}),
    getting(f"{MAPS}/f"),
    getting(MAPS, fieldSelector="metadata.name=f"),
    getting(MAPS, fieldSelector="metadata.name!=f,metadata.name!=kube-root-ca.crt"),
    getting(MAPS, labelSelector="c"),
    getting(MAPS, labelSelector="c in (b),d notin (x)"),
    getting(MAPS, labelSelector="c in b"),
    getting(MAPS, labelSelector="!c,d"),
    getting(MAPS, resourceVersion="abc"),
    getting(MAPS, resourceVersion="99999999999"),
    getting(MAPS, limit="x"),
    getting(MAPS, resourceVersionMatch="Sometimes", resourceVersion="1"),
    deleting(MAPS, labelSelector="d=b"),
    getting(MAPS, labelSelector="d=b"),
]
_SMALL_KINDS = [
    posting(SECRETS, {"metadata": {"name": "s"}, "stringData": {"a": "b"}}),
    posting(SECRETS, {"metadata": {"name": "t"}, "data": {"a": "not base64!"}}),
    merging(f"{SECRETS}/s", {"type": "example.com/other"}),
    merging(f"{SECRETS}/s", {"immutable": True}),
    merging(f"{SECRETS}/s", {"data": {"a": "Yg=="}}),
    posting(ACCOUNTS, {"metadata": {"name": "robot"}}),
    deleting(f"{ACCOUNTS}/robot"),
    posting(SERVICES, {"metadata": {"name": "s"}, "spec": {"clusterIP": "None", "ports": [{"port": 80}]}}),
    posting(SERVICES, {"metadata": {"name": "1s"}, "spec": {"ports": [{"port": 80}]}}),
    posting(
        ROLES, {"metadata": {"name": "r"}, "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}
    ),
    posting(ROLES, {"metadata": {"name": "a/b"}, "rules": []}),
    posting(LEASES, {"metadata": {"name": "l"}, "spec": {"holderIdentity": "a", "leaseDurationSeconds": 0}}),
    posting(
        LEASES, {"metadata": {"name": "m"}, "spec": {"holderIdentity": "a", "renewTime": "2026-01-02T03:04:05.6Z"}}
    ),
    putting(f"{LEASES}/new", {"metadata": {"name": "new"}, "spec": {"holderIdentity": "a"}}),
    posting(QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "5k"}}}),
    posting(QUOTAS, {"metadata": {"name": "q2"}, "spec": {"hard": {"pods": "many"}}}),
    posting(QUOTAS, {"metadata": {"name": "q3"}, "spec": {"hard": {"cpu": "1000m"}}}),
    posting(NODES, {"metadata": {"name": "n-{ns}"}, "status": {"capacity": {"cpu": "4"}}}),
    merging(f"{NODES}/n-{{ns}}", {"spec": {"unschedulable": True}}),
    getting(NODES, fieldSelector="spec.unschedulable=true,metadata.name=n-{ns}"),
    merging(f"{NODES}/n-{{ns}}/status", {"status": {"capacity": {"cpu": "8"}}}),
    strategically(f"{NODES}/n-{{ns}}/status", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}),
    deleting(f"{NODES}/n-{{ns}}"),
    posting("/api/v1/namespaces", {"metadata": {"name": "Bad_Name"}}),
    posting("/api/v1/namespaces", {"metadata": {"name": "default"}}),
    putting("/api/v1/namespaces/nope-{ns}", {"metadata": {"name": "nope-{ns}"}}),
    getting("/api/v1/namespaces/{ns}"),
    merging("/api/v1/namespaces/{ns}", {"metadata": {"labels": {"team": "a"}}}),
    merging("/api/v1/namespaces/{ns}", {"spec": {"finalizers": []}}),
    deleting("/api/v1/namespaces/kube-system"),
    getting(CLASSES, fieldSelector="metadata.name=system-node-critical", known="descriptions of system classes"),
    posting(SLICES, {"metadata": {"name": "e"}, "addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"]}]}),
]


def _service(name: str, **spec: Any) -> JSON:
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], "selector": {"a": "b"}, **spec}}


_SERVICES = [
    posting(SERVICES, _service("plain")),
    posting(SERVICES, _service("headless", clusterIP="None")),
    posting(SERVICES, _service("unselected", clusterIP="None", selector=None)),
    posting(SERVICES, _service("zero", ports=[{"port": 80, "targetPort": 0}])),
    posting(SERVICES, _service("nameless", ports=[{"port": 80, "targetPort": ""}])),
    posting(SERVICES, _service("own", clusterIP="10.0.77.77")),
    posting(SERVICES, _service("same", clusterIP="10.0.77.77")),
    posting(SERVICES, _service("ports", type="NodePort")),
    posting(SERVICES, _service("port", type="NodePort", ports=[{"port": 80, "nodePort": 31234}])),
    posting(SERVICES, _service("taken", type="NodePort", ports=[{"port": 80, "nodePort": 31234}])),
    posting(SERVICES, _service("low", type="NodePort", ports=[{"port": 80, "nodePort": 80}])),
    posting(SERVICES, _service("balanced", type="LoadBalancer")),
    posting(SERVICES, _service("bare", type="LoadBalancer", allocateLoadBalancerNodePorts=False)),
    posting(SERVICES, {"metadata": {"name": "name"}, "spec": {"type": "ExternalName", "externalName": "a.b"}}),
    tabulating(SERVICES),
    putting(f"{SERVICES}/plain", _service("plain")),
    putting(f"{SERVICES}/port", _service("port", type="NodePort")),
    merging(f"{SERVICES}/plain", {"spec": {"clusterIP": "10.0.77.78", "clusterIPs": ["10.0.77.78"]}}),
    merging(f"{SERVICES}/plain", {"spec": {"type": "NodePort"}}),
    merging(f"{SERVICES}/plain", {"spec": {"type": "ClusterIP"}}),
    merging(f"{SERVICES}/ports", {"metadata": {"labels": {"a": "b"}}}),
    deleting(f"{SERVICES}/port"),
    posting(SERVICES, _service("taken", type="NodePort", ports=[{"port": 80, "nodePort": 31234}]), dryRun="All"),
    *(deleting(f"{SERVICES}/{name}") for name in ("own", "ports", "balanced")),
]
_CONTROLLERS = [
    posting(JOBS, {"metadata": {"name": "j"}, "spec": {"template": {"spec": {"containers": []}}}}),
    posting(DEPLOYMENTS, {"metadata": {"name": "d"}, "spec": {}}),
    posting(DEPLOYMENTS, _controller("d", replicas=-1)),
    posting(DEPLOYMENTS, _controller("d", replicas="3")),
    posting(DEPLOYMENTS, _controller("d", template=[])),
    posting(SETS, _controller("s", replicas=-1, serviceName="x")),
    posting(f"{DEPLOYMENTS}", _controller("d", selector=None)),
    getting(f"{DEPLOYMENTS}/nope/scale"),
    getting(f"{DEPLOYMENTS}/nope/nothing"),
    deleting(f"{DEPLOYMENTS}/nope"),
    deleting(f"{DEPLOYMENTS}/nope", {"propagationPolicy": "Foreground"}),
    posting(
        BUDGETS, {"metadata": {"name": "z"}, "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"a": "z"}}}}
    ),
    deleting(f"{BUDGETS}/z"),
]
_LIVES = [
    posting(PODS, _pod("e")),
    posting(f"{PODS}/e/eviction", {"metadata": {"name": "e"}}, dryRun="All"),
    posting(f"{PODS}/e/eviction", {"metadata": {"name": "other"}}),
    posting(f"{PODS}/nope/eviction", {"metadata": {"name": "nope"}}),
    posting(f"{PODS}/e/eviction", {"metadata": {"name": "e"}, "deleteOptions": {"preconditions": {"uid": "x"}}}),
    posting(f"{PODS}/e/eviction", {"metadata": {"name": "e"}}),
    getting(f"{PODS}/e"),
    posting(MAPS, {"metadata": {"name": "held", "finalizers": ["example.com/hold"]}}),
    deleting(f"{MAPS}/held", {"preconditions": {"uid": "wrong"}}),
    deleting(f"{MAPS}/held", {"preconditions": {"resourceVersion": "1"}}),
    deleting(f"{MAPS}/held"),
    deleting(f"{MAPS}/held"),
    merging(f"{MAPS}/held", {"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}}),
    merging(f"{MAPS}/held", {"data": {"still": "there"}}),
    merging(f"{MAPS}/held", {"metadata": {"finalizers": None}}),
    getting(f"{MAPS}/held"),
    posting(MAPS, {"metadata": {"name": "orphaning"}}),
    deleting(f"{MAPS}/orphaning", {"propagationPolicy": "Background", "orphanDependents": True}),
    deleting(f"{MAPS}/orphaning", propagationPolicy="Background"),
    posting(MAPS, {"metadata": {"generateName": "gen-", "resourceVersion": "5"}}, known="resourceVersion on create"),
    posting(MAPS, {"metadata": {"name": "tried"}}, dryRun="All"),
    getting(f"{MAPS}/tried"),
    posting(MAPS, {"metadata": {"name": "tried"}}, dryRun="Some"),
    posting(f"{MAPS}/tried", {"metadata": {"name": "tried"}}),
    posting(EVENTS, {"metadata": {"name": "v"}, "involvedObject": {"kind": "Pod", "name": "p", "namespace": "{ns}"}}),
    posting(EVENTS, {"metadata": {"name": "w"}, "involvedObject": {"kind": "Pod", "name": "p", "namespace": "zzz"}}),
    getting(EVENTS, fieldSelector="involvedObject.name=p,involvedObject.kind=Pod"),
    getting(EVENTS, fieldSelector="involvedObject.colour=red"),
    deleting(EVENTS),
    getting("/apis/nothing.example.com/v1/things", known="groups that are not served"),
    getting("/apis/apps/v9/deployments"),
    Exchange("PUT", MAPS, {}),
    Exchange("PATCH", MAPS, {}, "application/merge-patch+json"),
    Exchange("POST", f"{MAPS}", {"metadata": {"name": "x"}}, "text/plain"),
    posting("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"spec": {}}),
]

KIND_STORIES: Mapping[str, list[Exchange]] = {
    "fields": _FIELDS,
    "small kinds": _SMALL_KINDS,
    "services": _SERVICES,
    "workload controllers": _CONTROLLERS,
    "lives": _LIVES,
}
