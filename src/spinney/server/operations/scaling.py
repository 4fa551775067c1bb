"""The ``scale`` subresource: replicas of any kind that says where it keeps them."""

from typing import Any

from spinney.api.field_error import invalid
from spinney.api.resource import Resource
from spinney.api.selectors import LabelSelector
from spinney.api.struct import JSON, convert
from spinney.server.exchange.bodies import held_to
from spinney.server.exchange.status import StatusError, invalid_object, modified, undecodable_patch
from spinney.server.kinds import ScalePaths
from spinney.server.operations.context import Context, Target
from spinney.server.operations.updating import Change, update
from spinney.server.operations.write import WriteOptions

_SCALE = Resource("autoscaling", "v1", "Scale", "scales")
_KEPT = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


async def set_scale(context: Context, target: Target, change: Change, options: WriteOptions) -> JSON:
    """Change an object's replicas through its scale, and return the new scale."""
    paths = _paths(target)
    whole = Target(target.kind, target.namespace, target.name)

    def rescale(obj: JSON) -> JSON:
        try:
            wanted = held_to(change(scale_of(target, obj)), context.fields, _SCALE.api_version, _SCALE.kind)
        except StatusError as error:
            raise undecodable_patch(error.message) if options.patching else error from error
        version = (wanted.get("metadata") or {}).get("resourceVersion")
        if version and version != obj["metadata"]["resourceVersion"]:
            raise modified(target.resource, target.key.name)
        replicas = (wanted.get("spec") or {}).get("replicas", 0)
        if replicas < 0:
            cause = invalid("spec.replicas", replicas, "must be greater than or equal to 0")
            raise invalid_object(_SCALE, target.key.name, [cause])
        at = obj
        for step in paths.spec_replicas[:-1]:
            at = at.setdefault(step, {})
        at[paths.spec_replicas[-1]] = replicas
        return obj

    return scale_of(target, (await update(context, whole, rescale, options)).decode())


def scale_of(target: Target, obj: JSON) -> JSON:
    """Return the Scale of an object."""
    paths = _paths(target)
    metadata = {name: obj["metadata"][name] for name in _KEPT if name in obj["metadata"]}
    status: JSON = {"replicas": _at(obj, paths.status_replicas) or 0}
    selector = _at(obj, paths.selector) if paths.selector else None
    if isinstance(selector, dict):
        selector = str(convert(LabelSelector, selector))
    if isinstance(selector, str):
        status["selector"] = selector
    replicas = _at(obj, paths.spec_replicas)
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": {"replicas": replicas if replicas is not None else 0},
        "status": status,
    }


def _paths(target: Target) -> ScalePaths:
    assert target.kind.scale is not None, "routing only lets kinds with a scale through"
    return target.kind.scale


def _at(obj: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        obj = obj.get(step) if isinstance(obj, dict) else None
    return obj
