"""Replacing and patching objects, whole or through a subresource.

An update is a function from the present object to the wanted one. If another client writes while a webhook is being
asked, a patch is computed again on the new state; a replace that named a resourceVersion is refused.
"""

from collections.abc import Callable
from dataclasses import replace as replace_fields
from typing import Any

from spinney.api.field_error import invalid
from spinney.api.struct import JSON
from spinney.server.exchange.status import (
    StatusError,
    another,
    bad_request,
    invalid_object,
    modified,
    undecodable_patch,
)
from spinney.server.kinds import Kind
from spinney.server.kinds.endpoints import OF_STATUS, keep_other_endpoints
from spinney.server.operations.context import Context, Target
from spinney.server.operations.creating import create
from spinney.server.operations.deleting import store_released
from spinney.server.operations.metadata import bump_generation, check_envelope, keep_system_fields
from spinney.server.operations.reading import get
from spinney.server.operations.write import WriteOptions, admit, attributes_of, check_may_create, check_unknown_fields
from spinney.server.patches.ownership import own_updated
from spinney.server.store import Record
from spinney.server.store.record import copied, record

Change = Callable[[JSON], JSON]

_ATTEMPTS = 5
_ANY_VERSION = "0"


async def replace(context: Context, target: Target, body: Any, options: WriteOptions) -> tuple[Record, bool]:
    """Replace the object (or the part of it that the subresource covers) by ``body``.

    Return it, and whether it was created: some kinds are when they are not there.
    """
    kind = target.kind
    wanted = check_envelope(kind, body)
    name = wanted["metadata"].get("name")
    if not name:
        wanted["metadata"]["name"] = target.name
    elif name != target.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({target.name})")
    given = wanted["metadata"].get("namespace")
    if given and target.namespace is not None and given != target.namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    if kind.create_on_update and not target.subresource and context.collection(kind).get(target.key) is None:
        check_may_create(context, target, options)
        return await create(context, target, wanted, options), True
    return await update(context, target, lambda _: wanted, options, attempts=1), False


async def update(
    context: Context, target: Target, change: Change, options: WriteOptions, *, attempts: int = _ATTEMPTS
) -> Record:
    """Change an object and return it as stored. ``change`` gets a private copy, in the version of the request."""
    told = len(options.warnings)
    for attempt in range(attempts):
        written = await _update_once(context, target, get(context, target), change, options)
        if written is not None:
            return written
        if attempt + 1 < attempts:
            del options.warnings[told:]
    raise modified(target.resource, target.key.name)


async def _update_once(
    context: Context, target: Target, current: Record, change: Change, options: WriteOptions
) -> Record | None:
    """Return the new record, or ``None`` if another client wrote meanwhile."""
    kind = target.kind
    old = current.decode()
    wanted = change(kind.served(_present(target, current, old, options)))
    obj = kind.stored(_patched(kind, wanted, old) if options.patching else check_envelope(kind, wanted))
    _check_preconditions(target, obj, old, patching=options.patching)
    managed = obj["metadata"].get("managedFields")
    keep_system_fields(obj, old)
    sent = "PatchOptions" if options.applying else "UpdateOptions"
    attributes = attributes_of(target, "UPDATE", options, sent=sent, obj=obj, old=old)
    check_unknown_fields(context, attributes, options)
    keep_other_endpoints(kind, target.subresource, obj, old)
    _fill_defaults(target, obj)
    if not options.applying:
        own_updated(
            kind,
            obj,
            old,
            given=managed,
            manager=options.manager,
            now=context.runtime.clock.now(),
            subresource=target.subresource,
        )
    await admit(context, attributes)
    admitted = attributes.obj
    assert admitted is not None
    bump_generation(kind, admitted, old)
    admitted["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
    if admitted == old:
        return current
    if context.store.get(kind.storage, target.key) is not current:
        return None
    if options.dry_run:
        return record(target.key, current.revision, admitted, kind.field_values(admitted))
    return store_released(context, kind, target.key, admitted)


def _present(target: Target, current: Record, old: JSON, options: WriteOptions) -> JSON:
    """Return the object as it is, for a change to be made of it.

    It is a copy. Of an object whose status is written the rest is as it was in the end, so a merge, which changes
    nothing in place, is given that itself: the references of a large gang are neither copied nor compared, nor is what
    the metadata consists of.
    """
    kind = target.kind
    if target.subresource != "status" or not options.merging or kind.from_storage is not None:
        return current.decode()
    present = {**old, "metadata": {**old["metadata"]}}
    if "status" in old:
        present["status"] = copied(old["status"])
    return present


def _fill_defaults(target: Target, obj: JSON) -> None:
    """Fill in what was left out. Of a custom object whose status is written the rest is as it was stored, filled."""
    behaviour = target.kind.behaviour
    if not target.kind.custom or target.subresource != "status":
        behaviour.fill_defaults(obj)
        return
    written = {name: obj[name] for name in OF_STATUS if name in obj}
    behaviour.fill_defaults(written)
    if "status" in written:
        obj["status"] = written["status"]


def _patched(kind: Kind, obj: JSON, old: JSON) -> JSON:
    """Return what a patch has made as an object of ``kind``; what it is not is the fault of the patch."""
    if not kind.custom and not obj.get("apiVersion"):
        raise bad_request(f"the patch leaves no apiVersion; it stays {kind.resource.api_version}")
    try:
        return check_envelope(kind, obj, old if kind.from_storage is None else None)
    except StatusError as error:
        raise undecodable_patch(error.message) from error


def _check_preconditions(target: Target, obj: JSON, old: JSON, *, patching: bool) -> None:
    kind, metadata, before = target.kind, obj["metadata"], old["metadata"]
    name = metadata.get("name")
    if name != before["name"]:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({before['name']})")
    if (given := metadata.get("namespace")) and given != before.get("namespace", given):
        raise bad_request(f"the namespace of the object ({given}) does not match the one of the request")
    uid = metadata.get("uid")
    if uid and uid != before.get("uid"):
        if patching:
            raise invalid_object(kind.resource, before["name"], [invalid("metadata.uid", uid, "field is immutable")])
        raise another(target.resource, before["name"], uid, before.get("uid"))
    version = metadata.get("resourceVersion") or _ANY_VERSION
    if version == _ANY_VERSION:
        if not kind.unconditional_update:
            cause = invalid("metadata.resourceVersion", 0, "must be specified for an update")
            raise invalid_object(replace_fields(kind.resource, kind=kind.resource.plural), before["name"], [cause])
    elif version != before["resourceVersion"]:
        raise modified(target.resource, before["name"])
