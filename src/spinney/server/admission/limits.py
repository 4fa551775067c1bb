"""Limit ranges: what a container gets that does not say what it needs, and how little or much may be asked for.

Defaults are filled in before webhooks see a pod; the bounds are checked after all of them, as Kubernetes does.
"""

from collections.abc import Callable, Iterator
from typing import Any

from spinney.api.quantity import ZERO, Quantity
from spinney.api.struct import JSON
from spinney.server.admission.attributes import Attributes
from spinney.server.quota.amounts import Amounts, amounts, of_pod
from spinney.server.store import Store

_ANNOTATION = "kubernetes.io/limit-ranger"
_RANGES, _PODS, _CLAIMS = "limitranges", "pods", "persistentvolumeclaims"

Bound = Callable[[str, str, Quantity, Amounts, Amounts], str | None]


def fill_limits(store: Store, attributes: Attributes) -> None:
    """Give the containers of a new pod the defaults of the namespace's limit ranges."""
    obj = attributes.obj
    if obj is None or attributes.kind.storage != _PODS or attributes.operation != "CREATE" or attributes.subresource:
        return
    for spec in _ranges(store, attributes.namespace):
        requests: JSON = {}
        limits: JSON = {}
        for limit in spec.get("limits") or ():
            if limit.get("type") == "Container":
                requests |= limit.get("defaultRequest") or {}
                limits |= limit.get("default") or {}
        filled = [
            text
            for what, field in (("container", "containers"), ("init container", "initContainers"))
            for container in (obj.get("spec") or {}).get(field) or ()
            for text in _filled(container, what, requests, limits)
        ]
        if filled:
            metadata = obj["metadata"]
            told = f"LimitRanger plugin set: {'; '.join(filled)}"
            metadata["annotations"] = {**(metadata.get("annotations") or {}), _ANNOTATION: told}


def check_limits(store: Store, attributes: Attributes) -> None:
    """Refuse a pod or claim that asks for less or more than a limit range of its namespace allows."""
    obj, old = attributes.obj, attributes.old
    if obj is None or (old is not None and "deletionTimestamp" in old["metadata"]):
        return
    storage, operation, subresource = attributes.kind.storage, attributes.operation, attributes.subresource
    resized = (operation, subresource) == ("UPDATE", "resize")
    if storage == _PODS and (resized or (operation == "CREATE" and not subresource)):
        bounds = _broken_by_pod
    elif storage == _CLAIMS and not subresource:
        bounds = _broken_by_claim
    else:
        return
    for spec in _ranges(store, attributes.namespace):
        broken = [text for limit in spec.get("limits") or () for text in bounds(limit, obj.get("spec") or {})]
        if broken:
            why = broken[0] if len(broken) == 1 else f"[{', '.join(dict.fromkeys(broken))}]"
            raise attributes.refused(why)


def _ranges(store: Store, namespace: str) -> Iterator[JSON]:
    for record in store.records(_RANGES, namespace) if namespace else ():
        yield record.decode().get("spec") or {}


def _filled(container: JSON, what: str, requests: JSON, limits: JSON) -> Iterator[str]:
    """Fill what a container leaves open; say what was filled."""
    resources = container.get("resources") or {}
    for field, defaults in (("requests", requests), ("limits", limits)):
        given = resources.get(field) or {}
        added = sorted(name for name in defaults if name not in given)
        if added:
            resources[field] = {**given, **{name: defaults[name] for name in added}}
            container["resources"] = resources
            yield f"{', '.join(added)} {field.removesuffix('s')} for {what} {container.get('name', '')}"


def _broken_by_pod(limit: JSON, spec: JSON) -> Iterator[str]:
    kind = limit.get("type", "")
    if kind == "Container":
        for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
            resources = container.get("resources") or {}
            yield from _broken(limit, kind, amounts(resources.get("requests")), amounts(resources.get("limits")))
    elif kind == "Pod":
        yield from _broken(limit, kind, of_pod(spec, "requests"), of_pod(spec, "limits"))


def _broken_by_claim(limit: JSON, spec: JSON) -> Iterator[str]:
    kind = limit.get("type", "")
    if kind == "PersistentVolumeClaim":
        requests = amounts((spec.get("resources") or {}).get("requests"))
        yield from _each(limit.get("min"), _too_little, kind, requests, {})
        yield from _each(limit.get("max"), _asks_too_much, kind, requests, {})


def _broken(limit: JSON, kind: str, requests: Amounts, limits: Amounts) -> Iterator[str]:
    yield from _each(limit.get("min"), _too_little, kind, requests, limits)
    yield from _each(limit.get("max"), _too_much, kind, requests, limits)
    yield from _each(limit.get("maxLimitRequestRatio"), _too_far_apart, kind, requests, limits)


def _each(bounds: Any, bound: Bound, kind: str, requests: Amounts, limits: Amounts) -> Iterator[str]:
    for name, enforced in sorted(amounts(bounds).items()):
        if text := bound(kind, name, enforced, requests, limits):
            yield text


def _too_little(kind: str, name: str, least: Quantity, requests: Amounts, limits: Amounts) -> str | None:
    prefix = f"minimum {name} usage per {kind} is {least}"
    if name not in requests:
        return f"{prefix}.  No request is specified"
    if requests[name] < least:
        return f"{prefix}, but request is {requests[name]}"
    if name in limits and limits[name] < least:
        return f"{prefix}, but limit is {limits[name]}"
    return None


def _too_much(kind: str, name: str, most: Quantity, requests: Amounts, limits: Amounts) -> str | None:
    prefix = f"maximum {name} usage per {kind} is {most}"
    if name not in limits:
        return f"{prefix}.  No limit is specified"
    if limits[name] > most:
        return f"{prefix}, but limit is {limits[name]}"
    return _asks_too_much(kind, name, most, requests, limits) if name in requests else None


def _asks_too_much(kind: str, name: str, most: Quantity, requests: Amounts, limits: Amounts) -> str | None:
    prefix = f"maximum {name} usage per {kind} is {most}"
    if name not in requests:
        return f"{prefix}.  No request is specified"
    return f"{prefix}, but request is {requests[name]}" if requests[name] > most else None


def _too_far_apart(kind: str, name: str, ratio: Quantity, requests: Amounts, limits: Amounts) -> str | None:
    prefix = f"{name} max limit to request ratio per {kind} is {ratio}"
    request, limit = requests.get(name, ZERO), limits.get(name, ZERO)
    if not request:
        return f"{prefix}, but no request is specified or request is 0"
    if not limit:
        return f"{prefix}, but no limit is specified or limit is 0"
    found = limit.nano / request.nano
    return f"{prefix}, but provided ratio is {found:.6f}" if limit.nano > request.nano * ratio.nano / 10**9 else None
