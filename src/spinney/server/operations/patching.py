"""Patch requests: from the media type of a patch to the change it makes."""

from collections.abc import Callable
from typing import Any

from spinney.api.field_error import required
from spinney.api.merge_patch import merge
from spinney.api.struct import JSON, without_nulls
from spinney.server.exchange.bodies import from_json, from_yaml, media_type
from spinney.server.exchange.duplicates import repeated_fields
from spinney.server.exchange.message import Request
from spinney.server.exchange.status import (
    StatusError,
    bad_request,
    conflict,
    invalid_options,
    not_found,
    unsupported_media_type,
    untyped_patch,
)
from spinney.server.operations.context import Context, Target
from spinney.server.operations.creating import create
from spinney.server.operations.metadata import check_envelope
from spinney.server.operations.updating import Change, update
from spinney.server.operations.write import WriteOptions, check_may_create
from spinney.server.patches.apply import apply, apply_to_nothing
from spinney.server.patches.fieldset import repeated_item, shown
from spinney.server.patches.json import PatchFailed, PatchTooLong, apply_json_patch
from spinney.server.patches.strategic import strategic_merge
from spinney.server.store import Record

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


async def patch(context: Context, target: Target, request: Request, options: WriteOptions) -> tuple[Record, bool]:
    """Patch an object; return it as stored, and whether it was created (which only an apply does)."""
    if media_type(request) == APPLY_PATCH:
        return await _apply(context, target, request, options)
    return await update(context, target, patch_change(target, request, options), options), False


def patch_change(target: Target, request: Request, options: WriteOptions) -> Change:
    """Return the change that a JSON, merge or strategic merge patch asks for."""
    options.patching = True
    kind = media_type(request)
    accepted = [JSON_PATCH, MERGE_PATCH] + ([] if target.kind.custom else [STRATEGIC_MERGE_PATCH])
    if kind not in accepted:
        raise unsupported_media_type([*accepted, APPLY_PATCH])
    body: Any = from_json(request.body)
    if options.field_validation != "Ignore":
        options.repeated = repeated_fields(request, body)
    if kind == JSON_PATCH:
        return lambda obj: _json_patched(target, obj, body)
    if not isinstance(body, dict):
        raise bad_request(f"a patch of type {kind} is an object")
    options.merging = True
    if kind == MERGE_PATCH:
        return lambda obj: merge(obj, body)
    return lambda obj: strategic_merge(obj, body, target.kind.shape)


def _json_patched(target: Target, obj: JSON, body: Any) -> JSON:
    try:
        patched: JSON = apply_json_patch(obj, body)
    except PatchTooLong as error:
        raise StatusError(413, "RequestEntityTooLarge", str(error)) from error
    except PatchFailed as error:
        raise StatusError(422, "Invalid", f"the server rejected the patch of {target.key.name}: {error}") from error
    return patched


async def _apply(context: Context, target: Target, request: Request, options: WriteOptions) -> tuple[Record, bool]:
    if not request.query.get("fieldManager"):
        raise invalid_options("PatchOptions", required("fieldManager", "is required for apply patch"))
    body = from_yaml(request.body)
    repeated = repeated_fields(request, body) if options.field_validation == "Strict" else ()
    if repeated:
        raise bad_request(f"error strict decoding patch: error converting YAML to JSON: {repeated[0]}")
    config = _configuration(target, body)
    metadata = config["metadata"]
    if metadata.get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    if repeated_at := repeated_item(config, target.kind.shape):
        path, step = repeated_at
        why = f"{shown(path)}: duplicate entries for key {shown((step,))}"
        raise untyped_patch(target.resource, metadata.get("namespace", ""), metadata["name"], why)
    options.applying = True
    if context.collection(target.kind).get(target.key) is None:
        return await _create_by_apply(context, target, config, options), True
    return await update(context, target, _applying(context, target, config, options), options), False


def _configuration(target: Target, body: Any) -> JSON:
    """Return an applied configuration; it must say itself what it is about."""
    if not isinstance(body, dict) or not body.get("apiVersion") or not body.get("kind"):
        raise bad_request("an applied configuration needs apiVersion and kind")
    config = check_envelope(target.kind, body)
    name = config["metadata"].get("name")
    if not name:
        raise bad_request(f"the name of the object ({target.name} based on URL) was undeterminable: it must be given")
    if name != target.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({target.name})")
    return config


async def _create_by_apply(context: Context, target: Target, config: JSON, options: WriteOptions) -> Record:
    if target.subresource:
        raise not_found(target.resource, target.key.name)
    if config["metadata"].get("uid"):
        why = "uid mismatch: the provided object specified a uid, and no existing object was found"
        raise conflict(target.resource, target.key.name, why)
    if not target.kind.custom:
        config = without_nulls(config)
    check_may_create(context, target, options)
    managed = apply_to_nothing(target.kind, config, options.manager, context.runtime.clock.now())
    config["metadata"].pop("resourceVersion", None)
    return await create(context, target, config, options, managed=managed)


def _applying(context: Context, target: Target, config: JSON, options: WriteOptions) -> Callable[[JSON], JSON]:
    def change(live: JSON) -> JSON:
        applied = apply(
            target.kind,
            live,
            config,
            options.manager,
            context.runtime.clock.now(),
            force=options.force,
            subresource=target.subresource,
        )
        for field in ("uid", "resourceVersion"):
            if config["metadata"].get(field):
                applied["metadata"][field] = config["metadata"][field]
        return applied

    return change
