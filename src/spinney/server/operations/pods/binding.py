"""Binding: the one way a pod gets its node."""

from spinney.api.field_error import required
from spinney.api.resource import Resource
from spinney.api.struct import JSON
from spinney.api.time import timestamp
from spinney.server.exchange.status import another, bad_request, conflict, invalid_object
from spinney.server.operations.context import Context, Target
from spinney.server.operations.reading import get
from spinney.server.operations.write import WriteOptions

_BINDING = Resource("", "v1", "Binding", "pods/binding")  # what conflicts are said to be about


def bind(context: Context, target: Target, body: JSON, options: WriteOptions) -> None:
    """Assign a pod to a node, once; raise a 409 if it is bound, gated, being deleted or another pod by that name."""
    wanted = body.get("target") or {}
    if wanted.get("kind") not in {None, "", "Node"}:
        raise bad_request(f'target.kind: Unsupported value: "{wanted.get("kind")}": supported values: "Node"')
    metadata = body.get("metadata") or {}
    if metadata.get("name") != target.name:
        raise bad_request("name in URL does not match name in Binding object")
    node = wanted.get("name")
    if not node:
        raise invalid_object(target.resource, target.key.name, [required("target.name")])
    found = get(context, target)
    now = timestamp(context.runtime.clock.now())
    pod = bound(target, found.decode(), str(node), metadata, now)
    if not options.dry_run:
        context.store.write(target.kind.storage, target.key, pod)


def bound(target: Target, pod: JSON, node: str, binding: JSON, now: str) -> JSON:
    """Return ``pod`` on its node; ``pod`` is changed in place."""
    metadata, spec, status = pod["metadata"], pod["spec"], pod.setdefault("status", {})
    name = metadata["name"]
    uid = binding.get("uid")
    if uid and uid != metadata["uid"]:
        raise another(target.resource, name, uid, metadata["uid"])
    if "deletionTimestamp" in metadata:
        raise conflict(_BINDING, name, f"pod {name} is being deleted, cannot be assigned to a host")
    if spec.get("nodeName"):
        raise conflict(_BINDING, name, f'pod {name} is already assigned to node "{spec["nodeName"]}"')
    if spec.get("schedulingGates"):
        raise conflict(_BINDING, name, f"pod {name} has non-empty .spec.schedulingGates")
    spec["nodeName"] = node
    status.pop("nominatedNodeName", None)
    conditions = [each for each in status.get("conditions") or () if each.get("type") != "PodScheduled"]
    scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
    status["conditions"] = [*conditions, scheduled]
    for field in ("annotations", "labels"):
        if binding.get(field):
            metadata[field] = {**(metadata.get(field) or {}), **binding[field]}
    return pod
