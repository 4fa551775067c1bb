"""What is there from the start: in a cluster its namespaces, priority classes and roles; in a namespace its account.

A namespace has the service account ``default`` and the certificate authority of the API server in the moment it is
there, so that pods may follow at once.
"""

from typing import Final

from spinney.api.keys import Key
from spinney.api.rbac import GROUP
from spinney.api.struct import JSON
from spinney.server.admission.service_accounts import ROOT_CERTIFICATES
from spinney.server.authorization.bootstrap import first_bindings, first_roles
from spinney.server.operations.context import Context
from spinney.server.operations.metadata import begin

NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_PRIORITIES = (
    ("system-cluster-critical", 2_000_000_000, "for pods that the cluster needs, but that may move to another node"),
    ("system-node-critical", 2_000_001_000, "for pods that a node cannot do without"),
)
_ACCOUNT: Final = "default"
_DESCRIPTION = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the"
    " internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes"
    " clusters."
)
IN_NAMESPACES: Final = {"serviceaccounts": _ACCOUNT, "configmaps": ROOT_CERTIFICATES}  # collection -> name


def bootstrap(context: Context) -> None:
    """Write the first objects."""
    for name in NAMESPACES:
        _put(context, "v1", "Namespace", {"metadata": {"name": name}})
    for name, value, description in _PRIORITIES:
        obj = {"metadata": {"name": name}, "value": value, "description": f"Used {description}."}
        _put(context, "scheduling.k8s.io/v1", "PriorityClass", obj)


def bootstrap_roles(context: Context) -> None:
    """Write the first roles and bindings, as far as they are not there."""
    for role in first_roles():
        _put(context, f"{GROUP}/v1", "ClusterRole", role)
    for binding in first_bindings():
        _put(context, f"{GROUP}/v1", "ClusterRoleBinding", binding)


def bootstrap_namespace(context: Context, namespace: str) -> None:
    """Put into a namespace what it lacks, or has with another certificate authority."""
    _put(context, "v1", "ServiceAccount", {"metadata": {"name": _ACCOUNT}}, namespace)
    metadata = {"name": ROOT_CERTIFICATES, "annotations": {"kubernetes.io/description": _DESCRIPTION}}
    data = {"ca.crt": context.trust.authority}
    _put(context, "v1", "ConfigMap", {"metadata": metadata, "data": data}, namespace)


def _put(context: Context, api_version: str, kind_name: str, content: JSON, namespace: str = "") -> None:
    """Write an object that is not there; of one that is there, keep all but its ``data``."""
    kind = context.registry.find_kind(api_version, kind_name)
    assert kind is not None, f"{kind_name} is built in"
    key = Key(namespace, content["metadata"]["name"])
    found = context.store.get(kind.storage, key)
    if found is None:
        obj: JSON = {"apiVersion": api_version, "kind": kind_name, **content}
        begin(kind, obj, namespace or None, context.runtime)
        kind.behaviour.fill_defaults(obj)
        kind.behaviour.prepare_create(obj, context.runtime.clock.now())
        context.store.write(kind.storage, key, obj)
    elif "data" in content and not found.deleting and (obj := found.decode()).get("data") != content["data"]:
        context.store.write(kind.storage, key, {**obj, "data": content["data"]})
