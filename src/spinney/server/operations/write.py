"""What every write has in common: its options, and the way through admission and validation."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from spinney.api.builtin_fields.checking import WrongType, conform, conform_metadata
from spinney.api.field_error import not_supported
from spinney.api.struct import JSON
from spinney.server.admission.attributes import Attributes, Operation
from spinney.server.authorization.action import AccessRequest
from spinney.server.builtin.warnings import warnings_about
from spinney.server.exchange.bodies import cannot_be_handled
from spinney.server.exchange.message import ADMIN, User
from spinney.server.exchange.status import (
    StatusError,
    bad_request,
    forbidden,
    invalid_object,
    invalid_options,
    undecodable_patch,
    untyped_patch,
)
from spinney.server.operations.context import Context, Target
from spinney.server.operations.metadata import drop_empty, validate_metadata

_DEFAULT_MANAGER = "unknown"
_OPTIONS = {"create": "CreateOptions", "update": "UpdateOptions", "patch": "PatchOptions"}
_VALIDATIONS = ("Ignore", "Warn", "Strict")


@dataclass(slots=True)
class WriteOptions:
    """How a write was asked for. ``warnings`` collects what the client is told besides the answer."""

    dry_run: bool = False
    manager: str = _DEFAULT_MANAGER
    field_validation: str = "Warn"
    force: bool = False
    patching: bool = False  # the object is what a patch makes of the present one
    merging: bool = False  # the patch is merged into it, and changes nothing in place
    applying: bool = False  # or what an applied configuration makes of it
    user: User = ADMIN
    repeated: list[str] = field(default_factory=list)  # what is to be said about fields that stand twice in the body
    warnings: list[str] = field(default_factory=list)


def write_options(verb: str, query: Mapping[str, str], headers: Mapping[str, str], user: User) -> WriteOptions:
    """Read the parameters of a write."""
    kind = _OPTIONS.get(verb, "DeleteOptions")
    dry_run = query.get("dryRun", "")
    if dry_run not in {"", "All"}:
        raise invalid_options(kind, not_supported("dryRun", dry_run, ("All",)))
    validation = query.get("fieldValidation") or "Warn"
    if validation not in _VALIDATIONS:
        raise invalid_options(kind, not_supported("fieldValidation", validation, _VALIDATIONS))
    manager = query.get("fieldManager") or headers.get("user-agent", "").partition("/")[0] or _DEFAULT_MANAGER
    return WriteOptions(
        dry_run=dry_run == "All",
        manager=manager[:128],
        field_validation=validation,
        force=query.get("force") in {"true", "1"},
        user=user,
    )


def check_may_create(context: Context, target: Target, options: WriteOptions) -> None:
    """Raise a 403 for a user who updates or applies what is not there and may not create it."""
    resource = target.resource
    wanted = AccessRequest.on(options.user, "create", resource, target.namespace or "", target.key.name)
    decision = context.authorizer.decide(wanted)
    if not decision.allowed:
        raise forbidden(resource, target.key.name, decision.reason)


def attributes_of(
    target: Target, operation: Operation, options: WriteOptions, *, sent: str, obj: JSON | None, old: JSON | None = None
) -> Attributes:
    """Return what admission is asked about a write; ``sent`` is the kind of its options."""
    return Attributes(
        kind=target.kind,
        operation=operation,
        namespace=target.namespace or "",
        name=target.name or (obj or {})["metadata"].get("name", ""),
        obj=obj,
        old=old,
        subresource=target.subresource,
        dry_run=options.dry_run,
        user=options.user,
        options={"kind": sent, "apiVersion": "meta.k8s.io/v1"},
        warnings=options.warnings,
    )


async def admit(context: Context, attributes: Attributes) -> None:
    """Take a create or update through admission and validation; raise if it is refused."""
    await context.admission.admit(attributes, _validate)
    obj, kind = attributes.obj, attributes.kind
    assert obj is not None, "only a deletion has no object"
    if not attributes.subresource:
        attributes.warnings += kind.behaviour.warnings(obj)
        attributes.warnings += warnings_about(kind.storage, obj, attributes.old)
        if attributes.operation == "CREATE" and (inert := context.options.inert.get(kind.storage)):
            attributes.warnings.append(inert)


def _validate(attributes: Attributes) -> None:
    """Undo what the client may not change; raise a 422 for what breaks the rules of the kind."""
    obj, old, kind = attributes.obj, attributes.old, attributes.kind
    assert obj is not None, "only a deletion has no object"
    if attributes.operation == "UPDATE" and old is not None:
        kind.behaviour.prepare_update(obj, old, attributes.subresource)
    causes = [*validate_metadata(kind, obj, old), *kind.behaviour.validate(obj, old, attributes.subresource)]
    if causes:
        raise invalid_object(kind.resource, attributes.name or obj["metadata"].get("name", ""), causes)


def check_unknown_fields(context: Context, attributes: Attributes, options: WriteOptions) -> None:
    """Drop fields that the kind does not have, and say so as the client asked."""
    obj = attributes.obj
    if obj is None:
        return
    unknown = _drop_unknown(context, attributes, obj, options)
    if unknown and options.applying:
        told = [f".{path}: field not declared in schema" for path in unknown]
        why = told[0] if len(told) == 1 else "errors:\n" + "\n".join(f"  {each}" for each in told)
        raise untyped_patch(attributes.kind.resource, attributes.namespace, attributes.name, why)
    texts = [
        *options.repeated,
        *(f'unknown field "{path}"' for path in unknown),
    ]
    if not texts or options.field_validation == "Ignore":
        return
    if options.field_validation == "Strict":
        raise _undecodable(attributes, options, f"strict decoding error: {', '.join(texts)}")
    options.warnings += texts


def _drop_unknown(context: Context, attributes: Attributes, obj: JSON, options: WriteOptions) -> list[str]:
    kind = attributes.kind
    try:
        if not kind.custom:
            return conform(context.fields, obj, attributes.old)
        drop_empty(obj)
        return [*_unknown_to_schema(attributes, obj), *conform_metadata(context.fields, obj, attributes.old)]
    except WrongType as error:
        raise _undecodable(attributes, options, str(error)) from error


def _unknown_to_schema(attributes: Attributes, obj: JSON) -> list[str]:
    """Drop what the schema of a custom kind does not have; what a write of the status leaves alone is not searched."""
    behaviour, old = attributes.kind.behaviour, attributes.old
    if attributes.subresource != "status" or old is None:
        return behaviour.unknown_fields(obj)
    touched = {name: value for name, value in obj.items() if name not in old or value != old[name]}
    unknown = behaviour.unknown_fields(touched)
    for name in unknown:
        obj.pop(name, None)
    return unknown


def _undecodable(attributes: Attributes, options: WriteOptions, why: str) -> StatusError:
    """Blame the body for what cannot be decoded; or the patch, since the body of a patch could be."""
    resource = attributes.kind.resource
    message = cannot_be_handled(resource.api_version, resource.kind, why)
    return undecodable_patch(message) if options.patching else bad_request(message)
