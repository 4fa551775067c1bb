"""Requests that both servers refuse, or answer in a way that is easily got wrong, with what the refusal names.

The embedded server is held to the second column in the fast suite; ``test_side_by_side`` holds the column to
kube-apiserver. ``{ns}`` stands for the namespace of a run.
"""

from collections.abc import Mapping
from typing import Any

from spinney.api.struct import JSON

_NEEDED = "requiredDuringSchedulingIgnoredDuringExecution"
_TERMS = f"spec.affinity.nodeAffinity.{_NEEDED}.nodeSelectorTerms"
_PORT = "spec.containers[0].ports[0]"
_LONG = "a" * 64
_CLAIM = {"name": "a", "resourceClaimName": "x"}
_VOLUME = {"name": "v", "emptyDir": {}}


def _container(**fields: Any) -> JSON:
    return {"containers": [{"name": "c", "image": "i:1", **fields}]}


def _port(**fields: Any) -> JSON:
    return _container(ports=[{"containerPort": 80, **fields}])


def _asking(*claims: JSON) -> JSON:
    return {**_container(resources={"claims": list(claims)}), "resourceClaims": [_CLAIM]}


def _node_terms(*terms: JSON) -> JSON:
    return {"affinity": {"nodeAffinity": {_NEEDED: {"nodeSelectorTerms": list(terms)}}}}


def _term(**requirement: Any) -> JSON:
    return _node_terms({"matchExpressions": [{"key": "a", **requirement}]})


# What is wrong with the spec of a pod, by a name for it: the spec, and the causes.
POD_SPECS: Mapping[str, tuple[JSON, tuple[str, ...]]] = {
    "an ephemeral container": (
        {"ephemeralContainers": [{"name": "e", "image": "i"}]},
        ("spec.ephemeralContainers FieldValueForbidden",),
    ),
    "a host name with dots": ({"hostname": "a.b"}, ("spec.hostname FieldValueInvalid",)),
    "a subdomain with dots": ({"subdomain": "a.b"}, ("spec.subdomain FieldValueInvalid",)),
    "a long host name": ({"hostname": _LONG}, ("spec.hostname FieldValueInvalid",)),
    "a long override": ({"hostnameOverride": "a" * 65}, ("spec.hostnameOverride FieldValueTooLong",)),
    "an override on the host": (
        {"hostnameOverride": "a", "hostNetwork": True},
        ("spec.hostnameOverride FieldValueForbidden",),
    ),
    "a long claim name": (
        {"resourceClaims": [{**_CLAIM, "name": _LONG}]},
        ("spec.resourceClaims[0].name FieldValueInvalid",),
    ),
    "a long name of a claim": (
        {"resourceClaims": [{**_CLAIM, "resourceClaimName": "x" * 254}]},
        ("spec.resourceClaims[0].resourceClaimName FieldValueInvalid",),
    ),
    "a claim of nothing": ({"resourceClaims": [{"name": "a"}]}, ("spec.resourceClaims[0] FieldValueInvalid",)),
    "a claim of two": (
        {"resourceClaims": [{**_CLAIM, "resourceClaimTemplateName": "x"}]},
        ("spec.resourceClaims[0] FieldValueInvalid",),
    ),
    "a claim twice": ({"resourceClaims": [_CLAIM, _CLAIM]}, ("spec.resourceClaims[1].name FieldValueDuplicate",)),
    "an unknown claim": (
        _container(resources={"claims": [{"name": "z"}]}),
        ("spec.containers[0].resources.claims[0] FieldValueNotFound",),
    ),
    "a claim asked for twice": (
        _asking({"name": "a", "request": "x"}, {"name": "a"}),
        ("spec.containers[0].resources.claims[1] FieldValueDuplicate",),
    ),
    "a volume with dots": (
        {"volumes": [{"name": "a.b", "emptyDir": {}}]},
        ("spec.volumes[0].name FieldValueInvalid",),
    ),
    "a volume of two kinds": (
        {"volumes": [{**_VOLUME, "hostPath": {"path": "/x"}}]},
        ("spec.volumes[0].hostPath FieldValueForbidden",),
    ),
    "a volume of no claim": (
        {"volumes": [{"name": "v", "persistentVolumeClaim": {}}]},
        ("spec.volumes[0].persistentVolumeClaim.claimName FieldValueRequired",),
    ),
    "a mount of no volume": (
        _container(volumeMounts=[{"name": "v", "mountPath": "/x"}]),
        ("spec.containers[0].volumeMounts[0].name FieldValueNotFound",),
    ),
    "two mounts at one place": (
        {**_container(volumeMounts=[{"name": "v", "mountPath": "/x"}] * 2), "volumes": [_VOLUME]},
        ("spec.containers[0].volumeMounts[1].mountPath FieldValueInvalid",),
    ),
    "a variable without a name": (
        _container(env=[{"value": "x"}]),
        ("spec.containers[0].env[0].name FieldValueRequired",),
    ),
    "a port that is none": (
        _container(ports=[{"containerPort": 70000}]),
        ("spec.containers[0].ports[0].containerPort FieldValueInvalid",),
    ),
    "a mount of nothing at no place": (
        _container(volumeMounts=[{}]),
        (
            "spec.containers[0].volumeMounts[0].mountPath FieldValueRequired",
            "spec.containers[0].volumeMounts[0].name FieldValueNotFound",
            "spec.containers[0].volumeMounts[0].name FieldValueRequired",
        ),
    ),
    "a blank before the image": (_container(image=" i:1"), ("spec.containers[0].image FieldValueInvalid",)),
    "a blank behind the image": (_container(image="i:1 "), ("spec.containers[0].image FieldValueInvalid",)),
    "a port of a long name": (_port(name="a-very-long-name-of-a-port"), (f"{_PORT}.name FieldValueInvalid",)),
    "a port of two faults": (_port(name="WEB_1"), (f"{_PORT}.name FieldValueInvalid",) * 2),
    "a port of hyphens": (_port(name="-a--b"), (f"{_PORT}.name FieldValueInvalid",) * 2),
    "a port without a letter": (_port(name="80"), (f"{_PORT}.name FieldValueInvalid",)),
    "two ports of a name": (
        _container(ports=[{"containerPort": 80, "name": "a"}, {"containerPort": 81, "name": "a"}]),
        ("spec.containers[0].ports[1].name FieldValueDuplicate",),
    ),
    "a host port that is none": (_port(hostPort=-1), (f"{_PORT}.hostPort FieldValueInvalid",)),
    "a host port twice": (
        _container(ports=[{"containerPort": 80, "hostPort": 80}, {"containerPort": 81, "hostPort": 80}]),
        ("spec.containers[0].ports[1].hostPort FieldValueDuplicate",),
    ),
    "another port of the host": (
        {**_port(hostPort=81), "hostNetwork": True},
        (f"{_PORT}.hostPort FieldValueInvalid",),
    ),
    "huge pages without a limit": (
        _container(resources={"requests": {"hugepages-2Mi": "4Mi", "cpu": "1"}}),
        ("spec.containers[0].resources.limits FieldValueRequired",),
    ),
    "more huge pages than asked for": (
        _container(resources={"requests": {"hugepages-2Mi": "2Mi", "cpu": "1"}, "limits": {"hugepages-2Mi": "4Mi"}}),
        ("spec.containers[0].resources.requests FieldValueInvalid",),
    ),
    "huge pages alone": (
        _container(resources={"limits": {"hugepages-2Mi": "4Mi"}}),
        ("spec.containers[0].resources FieldValueForbidden",),
    ),
    "half a huge page": (
        _container(resources={"limits": {"hugepages-2Mi": "3Mi", "cpu": "1"}}),
        (
            "spec.containers[0].resources.limits[hugepages-2Mi] FieldValueInvalid",
            "spec.containers[0].resources.requests[hugepages-2Mi] FieldValueInvalid",
        ),
    ),
    "a comparing toleration": (
        {"tolerations": [{"key": "a", "operator": "Gt", "value": "5"}]},
        ("spec.tolerations[0].operator FieldValueNotSupported",),
    ),
    "an unknown pull policy": (
        _container(imagePullPolicy="X"),
        ("spec.containers[0].imagePullPolicy FieldValueNotSupported",),
    ),
    "an unknown DNS policy": ({"dnsPolicy": "X"}, ("spec.dnsPolicy FieldValueNotSupported",)),
    "less than nothing": (
        _container(resources={"requests": {"cpu": "-1"}}),
        ("spec.containers[0].resources.requests[cpu] FieldValueInvalid",),
    ),
    "a resource of nobody": (
        _container(resources={"requests": {"foo": "1"}}),
        ("spec.containers[0].resources.requests[foo] FieldValueInvalid",) * 2,
    ),
    "a device without a limit": (
        _container(resources={"requests": {"nvidia.com/gpu": "1"}}),
        ("spec.containers[0].resources.limits FieldValueRequired",),
    ),
    "half a device": (
        _container(resources={"limits": {"nvidia.com/gpu": "500m"}}),
        (
            "spec.containers[0].resources.limits[nvidia.com/gpu] FieldValueInvalid",
            "spec.containers[0].resources.requests[nvidia.com/gpu] FieldValueInvalid",
        ),
    ),
    "more devices than asked for": (
        _container(resources={"requests": {"nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "2"}}),
        ("spec.containers[0].resources.requests FieldValueInvalid",),
    ),
    "a selector of no label": ({"nodeSelector": {"a b": "c"}}, ("spec.nodeSelector FieldValueInvalid",)),
    "a node of no name": ({"nodeName": "A_"}, ("spec.nodeName FieldValueInvalid",)),
    "a gate of no name": ({"schedulingGates": [{"name": "a b"}]}, ("spec.schedulingGates[0] FieldValueInvalid",)),
    "a group of no name": (
        {"schedulingGroup": {"podGroupName": "A_"}},
        ("spec.schedulingGroup.podGroupName FieldValueInvalid",),
    ),
    "an unknown operator": (
        {"tolerations": [{"key": "a", "operator": "X"}]},
        ("spec.tolerations[0].operator FieldValueNotSupported",),
    ),
    "a toleration of no key": (
        {"tolerations": [{"operator": "Equal"}]},
        ("spec.tolerations[0].operator FieldValueInvalid",),
    ),
    "a toleration for a while": (
        {"tolerations": [{"key": "a", "operator": "Exists", "tolerationSeconds": 5, "effect": "NoSchedule"}]},
        ("spec.tolerations[0].effect FieldValueInvalid",),
    ),
    "affinity to nothing": (_node_terms(), (f"{_TERMS} FieldValueRequired",)),
    "affinity to no value": (_term(operator="In"), (f"{_TERMS}[0].matchExpressions[0].values FieldValueRequired",)),
    "affinity by no operator": (
        _term(operator="X"),
        (f"{_TERMS}[0].matchExpressions[0].operator FieldValueInvalid",),
    ),
    "spread over nothing": (
        {"topologySpreadConstraints": [{"maxSkew": 0, "topologyKey": "a", "whenUnsatisfiable": "X"}]},
        (
            "spec.topologySpreadConstraints[0].maxSkew FieldValueInvalid",
            "spec.topologySpreadConstraints[0].whenUnsatisfiable FieldValueNotSupported",
        ),
    ),
}


# Specs that look wrong and are not.
ACCEPTED: Mapping[str, JSON] = {
    "an empty policy is the default": {"restartPolicy": "", "dnsPolicy": "", "schedulerName": ""},
    "two sizes of huge pages": _container(
        resources={"limits": {"hugepages-2Mi": "4Mi", "hugepages-1Gi": "1Gi", "memory": "1Gi"}}
    ),
    "a variable twice": _container(env=[{"name": "A"}, {"name": "A"}]),
    "a host port that an init container has, too": {
        **_port(hostPort=80),
        "initContainers": [{"name": "first", "image": "i:1", "ports": [{"containerPort": 80, "hostPort": 80}]}],
    },
    "a part of a resource of Kubernetes' own": _container(resources={"limits": {"kubernetes.io/x": "500m"}}),
}


def a_refused_pod(spec: JSON) -> JSON:
    return {"metadata": {"name": "p"}, "spec": {**_container(), **spec}}


# Merge patches of a config map that is there: the patch, the status code and the causes.
PATCHES: tuple[tuple[Any, int, tuple[str, ...]], ...] = (
    ({"metadata": {"labels": {"a": 1}}}, 422, ("patch FieldValueInvalid",)),
    ({"metadata": {"labels": "x"}}, 422, ("patch FieldValueInvalid",)),
    ({"metadata": {"annotations": {"a": {}}}}, 422, ("patch FieldValueInvalid",)),
    ({"metadata": {"annotations": {"a": "\u00e9" * 140_000}}}, 422, ("metadata.annotations FieldValueTooLong",)),
    ({"metadata": {"ownerReferences": {"a": 1}}}, 422, ("patch FieldValueInvalid",)),
    ({"metadata": {"resourceVersion": 5}}, 422, ("patch FieldValueInvalid",)),
    ({"metadata": {"managedFields": "x"}}, 422, ("patch FieldValueInvalid",)),
    ({"metadata": "x"}, 422, ("patch FieldValueInvalid",)),
    ({"kind": "Secret"}, 422, ("patch FieldValueInvalid",)),
    ({"apiVersion": "v2"}, 422, ("patch FieldValueInvalid",)),
    ({"metadata": {"uid": "x"}}, 422, ("metadata.uid FieldValueInvalid",)),
    ({"apiVersion": None}, 400, ()),
    ({"metadata": None}, 400, ()),
    ({"metadata": {"name": None}}, 400, ()),
    ({"metadata": {"namespace": "other"}}, 400, ()),
    ({"metadata": {"resourceVersion": "1"}}, 409, ()),
    ({"metadata": {"resourceVersion": "0"}}, 200, ()),
    ({"metadata": {"resourceVersion": None}}, 200, ()),
    ({"metadata": {"uid": None}}, 200, ()),
    ({"kind": None}, 200, ()),
)

# What is wrong with the spec of a disruption budget, and the causes.
BUDGETS = "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets"
BUDGET_SPECS: tuple[tuple[JSON, tuple[str, ...]], ...] = (
    ({"minAvailable": "x"}, ("spec.minAvailable FieldValueInvalid",)),
    ({"minAvailable": "5"}, ("spec.minAvailable FieldValueInvalid",)),
    ({"minAvailable": -1}, ("spec.minAvailable FieldValueInvalid",)),
    ({"maxUnavailable": "101%"}, ("spec.maxUnavailable FieldValueInvalid",)),
    ({"minAvailable": 1, "maxUnavailable": 1}, ("spec FieldValueInvalid",)),
    ({"unhealthyPodEvictionPolicy": "Never"}, ("spec.unhealthyPodEvictionPolicy FieldValueNotSupported",)),
)

# Deletions and actions with values of wrong types, on the objects below: the request, its body and parameters.
_PODS = "/api/v1/namespaces/{ns}/pods"
_ACCOUNTS = "/api/v1/namespaces/{ns}/serviceaccounts"
_DEPLOYMENTS = "/apis/apps/v1/namespaces/{ns}/deployments"
_ACCESS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_POD_SPEC = {"containers": [{"name": "c", "image": "i"}]}
_TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": _POD_SPEC}
_DEPLOYMENT = {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": _TEMPLATE}
ACTED_ON: Mapping[str, JSON] = {
    _ACCOUNTS: {"metadata": {"name": "a"}},
    _PODS: {"metadata": {"name": "a"}, "spec": _POD_SPEC},
    _DEPLOYMENTS: {"metadata": {"name": "a"}, "spec": _DEPLOYMENT},
}
ACTIONS: tuple[tuple[str, str, Any, Mapping[str, str], int], ...] = (
    ("DELETE", f"{_PODS}/a", None, {"gracePeriodSeconds": "--5"}, 400),
    ("DELETE", f"{_PODS}/a", None, {"gracePeriodSeconds": "9" * 5000}, 400),
    ("DELETE", f"{_PODS}/a", {"gracePeriodSeconds": []}, {}, 400),
    ("DELETE", f"{_PODS}/a", {"orphanDependents": "x"}, {}, 400),
    ("DELETE", f"{_PODS}/a", {"preconditions": {"uid": 3}}, {}, 400),
    ("DELETE", f"{_PODS}/a", {"dryRun": 3}, {}, 400),
    ("DELETE", _PODS, {"gracePeriodSeconds": "5"}, {}, 400),
    ("PUT", f"{_DEPLOYMENTS}/a/scale", "x", {}, 400),
    ("PUT", f"{_DEPLOYMENTS}/a/scale", {"spec": {"replicas": 1.5}}, {}, 400),
    ("PUT", f"{_DEPLOYMENTS}/a/scale", {"spec": "x"}, {}, 400),
    ("PATCH", f"{_DEPLOYMENTS}/a/scale", {"metadata": "x"}, {}, 422),
    ("POST", f"{_PODS}/a/eviction", {"metadata": "a"}, {}, 400),
    ("POST", f"{_PODS}/a/eviction", {"deleteOptions": "x"}, {}, 400),
    ("POST", f"{_PODS}/a/eviction", {"deleteOptions": {"dryRun": "All"}}, {}, 400),
    ("POST", f"{_PODS}/a/binding", {"metadata": {"name": "a"}, "target": "n"}, {}, 400),
    ("POST", f"{_PODS}/a/binding", {"metadata": {"name": "a", "labels": "x"}, "target": {"name": "n"}}, {}, 400),
    ("POST", "/api/v1/namespaces/{ns}/bindings", {"metadata": ["a"]}, {}, 400),
    ("POST", f"{_ACCOUNTS}/a/token", {"spec": "x"}, {}, 400),
    ("POST", f"{_ACCOUNTS}/a/token", {"spec": {"boundObjectRef": "x"}}, {}, 400),
    ("POST", f"{_ACCOUNTS}/a/token", ["x"], {}, 400),
    ("POST", _ACCESS, {"spec": {"resourceAttributes": "x"}}, {}, 400),
    ("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": 3}}, {}, 400),
)

# Kinds whose objects are only replaced in the state that was read, and an object of each, by its collection.
_VERSIONED_SPEC = {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}
VERSIONED: Mapping[str, JSON] = {
    "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases": {"spec": {"holderIdentity": "a"}},
    "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets": {"spec": _VERSIONED_SPEC},
    "/apis/scheduling.k8s.io/v1beta1/namespaces/{ns}/podgroups": {"spec": {"schedulingPolicy": {"basic": {}}}},
    "/apis/node.k8s.io/v1/runtimeclasses": {"handler": "x"},
    "/apis/storage.k8s.io/v1/csidrivers": {"spec": {}},
    "/apis/storage.k8s.io/v1/csinodes": {"spec": {"drivers": []}},
    "/apis/storage.k8s.io/v1/namespaces/{ns}/csistoragecapacities": {"storageClassName": "a"},
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations": {},
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations": {},
}
