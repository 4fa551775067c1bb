"""Deleting objects: grace for pods that run, finalizers, preconditions, and what becomes of dependents.

Unless something holds it, an object is removed at once. A bound pod waits for its kubelet, which deletes it again
with a grace of zero; an object with finalizers waits until the last one is removed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import replace as replace_fields
from typing import Any, Literal

from spinney.api.field_error import invalid, not_supported
from spinney.api.keys import Key
from spinney.api.struct import JSON
from spinney.server.exchange.status import another, invalid_options, modified
from spinney.server.kinds import Kind
from spinney.server.operations.context import Context, Target
from spinney.server.operations.metadata import mark_deleted
from spinney.server.operations.reading import get, whole_number
from spinney.server.operations.write import WriteOptions, attributes_of
from spinney.server.store import Record
from spinney.server.store.record import record

Propagation = Literal["Background", "Foreground", "Orphan"]

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
_LONGEST_GRACE = (1 << 63) // 10**9
"""292 years: what Kubernetes can add to a time, which counts nanoseconds in 64 bits."""
_POLICIES = ("Background", "Foreground", "Orphan")


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """How a deletion was asked for."""

    grace_seconds: int | None = None
    propagation: Propagation | None = None
    uid: str | None = None
    revision: str | None = None


@dataclass(frozen=True, slots=True)
class Deleted:
    """What a deletion did: the object's last or present state, and whether it is gone."""

    record: Record
    gone: bool


def delete_options(body: Mapping[str, Any], query: Mapping[str, str]) -> DeleteOptions:
    """Read DeleteOptions from a body, or from parameters where the body has none."""
    grace = body.get("gracePeriodSeconds")
    if grace is None and (given := query.get("gracePeriodSeconds")) is not None:
        grace = whole_number("gracePeriodSeconds", given)
    policy = body.get("propagationPolicy", query.get("propagationPolicy"))
    if policy is not None and policy not in _POLICIES:
        raise invalid_options("DeleteOptions", not_supported("propagationPolicy", policy, _POLICIES))
    orphan = body.get("orphanDependents")
    if policy is not None and orphan is not None:
        detail = "orphanDependents and deletionPropagation cannot be both set"
        raise invalid_options("DeleteOptions", invalid("propagationPolicy", policy, detail))
    if policy is None and orphan is not None:
        policy = "Orphan" if orphan else "Background"
    preconditions = body.get("preconditions") or {}
    return DeleteOptions(grace, policy, preconditions.get("uid"), preconditions.get("resourceVersion"))


def is_dry_run(body: Mapping[str, Any], query: Mapping[str, str]) -> bool:
    """Tell whether a deletion is only to be tried."""
    return query.get("dryRun") == "All" or "All" in (body.get("dryRun") or ())


async def delete(context: Context, target: Target, options: DeleteOptions, write: WriteOptions) -> Deleted:
    """Delete an object, or mark it as being deleted."""
    old = get(context, target).decode()
    attributes = attributes_of(target, "DELETE", write, sent="DeleteOptions", obj=None, old=old)
    await context.admission.admit_deletion(attributes)
    found = get(context, target)  # it may have changed while webhooks were asked
    return delete_now(context, target.kind, found, options, dry_run=write.dry_run)


def delete_now(
    context: Context, kind: Kind, found: Record, options: DeleteOptions, *, dry_run: bool = False
) -> Deleted:
    """Delete without asking admission: what garbage collection does."""
    _check_preconditions(kind, found, options)
    obj = found.decode()
    metadata = obj["metadata"]
    now = context.runtime.clock.now()
    grace = _grace(kind, obj, options)
    finalizers = _finalizers(metadata.get("finalizers") or [], options.propagation)
    held = bool(finalizers) or grace > 0 or _is_namespace_in_use(kind, obj)
    if not held:
        if kind.storage == "pods":
            mark_deleted(obj, 0, now)
        if dry_run:
            return Deleted(found, gone=True)
        return Deleted(context.store.remove(kind.storage, found.key, obj), gone=True)
    if found.deleting:
        sooner = grace < metadata.get("deletionGracePeriodSeconds", 0)
        if not sooner and finalizers == (metadata.get("finalizers") or []):
            return Deleted(found, gone=False)
        if sooner:
            mark_deleted(obj, grace, now)
    else:
        mark_deleted(obj, grace, now)
    if finalizers:
        metadata["finalizers"] = finalizers
    if kind.storage == "namespaces":
        obj["status"] = {**(obj.get("status") or {}), "phase": "Terminating"}
    if dry_run:
        return Deleted(record(found.key, found.revision, obj, kind.field_values(obj)), gone=False)
    return Deleted(context.store.write(kind.storage, found.key, obj), gone=False)


def let_go(obj: JSON, finalizer: str) -> None:
    """Take a finalizer off an object."""
    metadata = obj["metadata"]
    metadata["finalizers"] = [each for each in metadata.get("finalizers") or () if each != finalizer]
    if not metadata["finalizers"]:
        del metadata["finalizers"]


def finish_if_released(context: Context, kind: Kind, key: Key, obj: JSON) -> Record | None:
    """Remove an object that is being deleted and that nothing holds any more; otherwise do nothing."""
    metadata = obj["metadata"]
    if "deletionTimestamp" not in metadata or metadata.get("finalizers"):
        return None
    if metadata.get("deletionGracePeriodSeconds") or _is_namespace_in_use(kind, obj):
        return None
    last = context.store.get(kind.storage, key)
    assert last is not None, f"{kind.storage} {key} is not there to be released"
    removed = context.store.remove(kind.storage, key, last.decode())  # watchers are sent what was stored last
    return record(key, removed.revision, obj, kind.field_values(obj))


def store_released(context: Context, kind: Kind, key: Key, obj: JSON) -> Record:
    """Write an object that a finalizer was taken off, or remove it if nothing holds it any more."""
    return finish_if_released(context, kind, key, obj) or context.store.write(kind.storage, key, obj)


def _check_preconditions(kind: Kind, found: Record, options: DeleteOptions) -> None:
    resource = replace_fields(kind.resource, plural=kind.resource.kind)  # which is what the real server names here
    if options.uid is not None and options.uid != found.uid:
        raise another(resource, found.key.name, options.uid, found.uid)
    if options.revision is not None and options.revision != str(found.revision):
        raise modified(resource, found.key.name)


def _grace(kind: Kind, obj: JSON, options: DeleteOptions) -> int:
    """Return how long the object may go on; only pods that run on a node have such a time."""
    if kind.storage != "pods":
        return 0
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    if not spec.get("nodeName") or status.get("phase") in {"Succeeded", "Failed"}:
        return 0
    wanted = options.grace_seconds
    if wanted is None:
        wanted = obj["metadata"].get("deletionGracePeriodSeconds", spec.get("terminationGracePeriodSeconds", 30))
    return 1 if wanted < 0 else min(int(wanted), _LONGEST_GRACE)


def _finalizers(present: list[str], propagation: Propagation | None) -> list[str]:
    if propagation is None:
        return present
    wanted = {"Foreground": FOREGROUND, "Orphan": ORPHAN}.get(propagation)
    kept = [each for each in present if each not in {FOREGROUND, ORPHAN}]
    return [*kept, wanted] if wanted else kept


def _is_namespace_in_use(kind: Kind, obj: JSON) -> bool:
    return kind.storage == "namespaces" and bool((obj.get("spec") or {}).get("finalizers"))
