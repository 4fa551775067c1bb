"""Creating objects."""

from typing import Any

import msgspec

from spinney.api.keys import Key
from spinney.api.struct import JSON
from spinney.server.exchange.status import already_exists, bad_request
from spinney.server.operations.bootstrap import bootstrap_namespace
from spinney.server.operations.context import Context, Target
from spinney.server.operations.metadata import begin, check_envelope, generated_name
from spinney.server.operations.write import WriteOptions, admit, attributes_of, check_unknown_fields
from spinney.server.patches.ownership import own_created
from spinney.server.store import Record
from spinney.server.store.record import record

_NAME_ATTEMPTS = 8


async def create(
    context: Context, target: Target, body: Any, options: WriteOptions, *, managed: list[JSON] | None = None
) -> Record:
    """Create the object that ``body`` describes and return it as stored. An apply says what is ``managed``."""
    kind = target.kind
    obj = kind.stored(check_envelope(kind, body))
    if kind.resource.namespaced and target.namespace is None:
        raise bad_request(f"an object of kind {kind.resource.kind} can only be created inside a namespace")
    metadata = obj["metadata"]
    attributes = attributes_of(Target(kind, target.namespace), "CREATE", options, sent="CreateOptions", obj=obj)
    check_unknown_fields(context, attributes, options)
    begin(kind, obj, target.namespace, context.runtime)
    collection = context.collection(kind)
    generated = not metadata.get("name") and metadata.get("generateName")
    if generated:
        metadata["name"] = _free_name(context, target, str(generated))
        attributes.name = metadata["name"]
    if kind.status and not kind.status_at_create:
        obj.pop("status", None)
    kind.behaviour.fill_defaults(obj)
    now = context.runtime.clock.now()
    own_created(
        kind, obj, options.manager, now, always=context.options.track_all_managers
    )  # what admission adds is not
    if managed:
        obj["metadata"]["managedFields"] = managed
    await admit(context, attributes)
    assert attributes.obj is not None, "only a deletion has no object"
    obj = attributes.obj
    kind.behaviour.prepare_create(obj, now)
    key = Key(target.namespace or "", obj["metadata"]["name"])
    if collection.get(key) is not None:
        raise already_exists(kind.resource, key.name)
    if options.dry_run:
        tried = record(key, context.store.revision, obj, kind.field_values(obj))
        del obj["metadata"]["resourceVersion"]  # what was not stored has none
        return msgspec.structs.replace(tried, raw=msgspec.json.encode(obj))
    written = context.store.write(kind.storage, key, obj)
    if kind.storage == "namespaces":
        bootstrap_namespace(context, key.name)
    return written


def _free_name(context: Context, target: Target, base: str) -> str:
    collection = context.collection(target.kind)
    name = ""
    for _ in range(_NAME_ATTEMPTS):
        name = generated_name(base, context.runtime)
        if collection.get(Key(target.namespace or "", name)) is None:
            return name
    raise already_exists(target.resource, name)
