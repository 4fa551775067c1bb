"""What every cluster has from the start: its namespaces, the system priority classes, and the first roles."""

from spinney.api.rbac import GROUP
from spinney.api.struct import JSON
from spinney.server.authorization.bootstrap import first_bindings, first_roles
from spinney.server.operations.context import Context
from spinney.server.operations.metadata import begin
from spinney.server.store import Key

NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_PRIORITIES = (
    ("system-cluster-critical", 2_000_000_000, "for pods that the cluster needs, but that may move to another node"),
    ("system-node-critical", 2_000_001_000, "for pods that a node cannot do without"),
)


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


def _put(context: Context, api_version: str, kind_name: str, content: JSON) -> None:
    kind = context.registry.find_kind(api_version, kind_name)
    assert kind is not None, f"{kind_name} is built in"
    obj: JSON = {"apiVersion": api_version, "kind": kind_name, **content}
    begin(kind, obj, None, context.runtime)
    kind.behaviour.fill_defaults(obj)
    kind.behaviour.prepare_create(obj, context.runtime.clock.now())
    key = Key("", obj["metadata"]["name"])
    if context.collection(kind).get(key) is None:
        context.store.write(context.collection(kind), key, obj)
