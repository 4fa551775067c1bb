"""Serving resource requests: from the verb of a request to the operation, and back to a response.

Some are not about storing what they send: bindings, evictions and reviews.
"""

from collections.abc import Sequence
from dataclasses import replace as replace_fields
from typing import Any

from spinney.api.struct import JSON
from spinney.server.authentication.token_requests import request_token, review_self, review_token
from spinney.server.authorization.reviews import review_access, review_rules
from spinney.server.exchange.bodies import held_to, read_object, read_options
from spinney.server.exchange.duplicates import repeated_fields
from spinney.server.exchange.message import Request, Response, User
from spinney.server.exchange.responding import accepted, reply, reply_json, warning_header
from spinney.server.exchange.status import (
    StatusError,
    bad_request,
    created,
    method_not_allowed,
    not_acceptable,
    success,
)
from spinney.server.operations.context import Context, Target
from spinney.server.operations.creating import create
from spinney.server.operations.deleting import delete, delete_options, is_dry_run
from spinney.server.operations.patching import patch, patch_change
from spinney.server.operations.pods.binding import bind
from spinney.server.operations.pods.eviction import evict
from spinney.server.operations.pods.logs import INSIDE, nothing_inside, serve_log
from spinney.server.operations.reading import get, list_objects
from spinney.server.operations.representation import MetadataOnly, Plain, Representation
from spinney.server.operations.scaling import scale_of, set_scale
from spinney.server.operations.updating import replace
from spinney.server.operations.watching import watch, watch_request
from spinney.server.operations.write import WriteOptions, write_options
from spinney.server.rest.routing import resolve, verb
from spinney.server.rest.tables.table import Table

_ACTIONS = {  # what a POST to a subresource sends
    "binding": ("v1", "Binding"),
    "eviction": ("policy/v1", "Eviction"),
    "token": ("authentication.k8s.io/v1", "TokenRequest"),
}


async def serve_resource(context: Context, request: Request) -> Response:
    """Answer a request for a built-in or custom resource."""
    target = resolve(context.registry, request.path)
    watching = request.query.get("watch") in {"true", "1"}
    asked = verb(request.method, target, watch=watching)
    representation = _representation(context, target, request)
    if target.subresource in INSIDE:
        raise nothing_inside(context, target)
    told = [target.kind.deprecation] if target.kind.deprecation else []
    try:
        if asked in {"get", "list", "watch"}:
            response = _read(context, target, request, asked, representation)
            return response if not told else replace_fields(response, headers={**response.headers, **_telling(told)})
        options = write_options(asked, request.query, request.headers, request.user)
        told = options.warnings = [*told]
        return await _write(context, target, request, asked, representation=representation, options=options)
    except StatusError as error:
        if told:
            error.headers |= _telling(told)
        raise


def _telling(warnings: Sequence[str]) -> dict[str, str]:
    return {"warning": warning_header(warnings)}


async def _write(
    context: Context,
    target: Target,
    request: Request,
    asked: str,
    *,
    representation: Representation,
    options: WriteOptions,
) -> Response:
    match asked:
        case "create" if target.subresource or target.kind.verbs == ("create",):
            return await serve_action(context, target, read_object(request, context.fields), options)
        case "create":
            record = await create(context, target, _object(context, request, options), options)
            return reply(representation.single(record), status=201, warnings=options.warnings)
        case "update" if target.subresource == "scale":
            body = read_object(request, context.fields)
            return reply_json(await set_scale(context, target, lambda _: body, options), warnings=options.warnings)
        case "patch" if target.subresource == "scale":
            change = patch_change(target, request, options)
            return reply_json(await set_scale(context, target, change, options), warnings=options.warnings)
        case "update":
            record, made = await replace(context, target, _object(context, request, options), options)
            return reply(representation.single(record), status=201 if made else 200, warnings=options.warnings)
        case "patch":
            record, made = await patch(context, target, request, options)
            return reply(representation.single(record), status=201 if made else 200, warnings=options.warnings)
        case "delete":
            return await _delete(context, target, request, options, representation)
        case _:
            return await _delete_collection(context, target, request, options, representation)


def _object(context: Context, request: Request, options: WriteOptions) -> Any:
    """Return the object in a body, and note what of it stands there twice."""
    body = read_object(request, context.fields)
    if options.field_validation != "Ignore":
        options.repeated = repeated_fields(request, body)
    return body


def _representation(context: Context, target: Target, request: Request) -> Representation:
    """Return the first representation that the client accepts and the server has."""
    for media in accepted(request.headers.get("accept", "")):
        if not media.as_kind:
            return Plain(target.kind)
        if media.group != "meta.k8s.io" or media.version not in {"v1", "v1beta1"}:
            continue
        if media.as_kind == "Table" and not target.subresource:
            include = request.query.get("includeObject", "Metadata")
            if include not in {"None", "Metadata", "Object"}:
                raise bad_request(f'includeObject: Unsupported value: "{include}"')
            return Table(target.kind, include, context.runtime.clock.now, media.version)  # type: ignore[arg-type]
        if media.as_kind in {"PartialObjectMetadata", "PartialObjectMetadataList"}:
            return MetadataOnly(target.kind)
    raise not_acceptable(("application/json", "application/json;as=Table;v=v1;g=meta.k8s.io"))


def _read(context: Context, target: Target, request: Request, asked: str, representation: Representation) -> Response:
    match asked:
        case "get" if target.subresource == "scale":
            return reply_json(scale_of(target, get(context, target).decode()))
        case "get" if target.subresource == "log":
            return serve_log(context, target, request.query)
        case "get":
            return reply(representation.single(get(context, target)))
        case "list":
            return _list(context, target, request, representation)
        case _:
            wanted = watch_request(context, target, request.query)
            headers = {"content-type": "application/json;stream=watch", "cache-control": "no-cache, private"}
            return Response(200, headers, watch(context, target, wanted, representation))


def _list(context: Context, target: Target, request: Request, representation: Representation) -> Response:
    listed = list_objects(context, target, request.query)
    metadata: JSON = {"resourceVersion": str(listed.revision)}
    if listed.token:
        metadata["continue"] = listed.token
        if listed.remaining is not None:
            metadata["remainingItemCount"] = listed.remaining
    return reply(representation.many(listed.records, metadata))


async def _delete(
    context: Context, target: Target, request: Request, options: WriteOptions, representation: Representation
) -> Response:
    body = read_options(request, context.fields)
    options.dry_run = is_dry_run(body, request.query)
    deleted = await delete(context, target, delete_options(body, request.query), options)
    if deleted.gone and not target.kind.returns_deleted:
        status = success(target.resource, target.key.name, deleted.record.uid)
        return reply_json(status, warnings=options.warnings)
    return reply(representation.single(deleted.record), warnings=options.warnings)


async def _delete_collection(
    context: Context, target: Target, request: Request, options: WriteOptions, representation: Representation
) -> Response:
    body = read_options(request, context.fields)
    options.dry_run = is_dry_run(body, request.query)
    wanted = delete_options(body, request.query)
    listed = list_objects(context, target, request.query)
    deleted = []
    for record in listed.records:
        each = Target(target.kind, record.key.namespace or None, record.key.name)
        if context.collection(target.kind).get(record.key) is not None:
            await delete(context, each, wanted, options)
            deleted.append(record)  # as it was listed, not as deletion has left it
    metadata: JSON = {"resourceVersion": str(context.store.revision)}
    return reply(representation.many(deleted, metadata), warnings=options.warnings)


async def serve_action(context: Context, target: Target, body: Any, options: WriteOptions) -> Response:
    """Do what a POST to a subresource, or to a kind that is never stored, asks for."""
    resource = target.resource
    body = held_to(body, context.fields, *_ACTIONS.get(target.subresource, (resource.api_version, resource.kind)))
    if target.subresource == "binding":
        bind(context, target, body, options)
        return reply_json(created(), status=201, warnings=options.warnings)
    if target.subresource == "eviction":
        await evict(context, target, body, options)
        return reply_json(created(), status=201, warnings=options.warnings)
    if resource.plural == "bindings":
        kind = context.registry.built_in("pods")
        name = (body.get("metadata") or {}).get("name")
        if not name or target.namespace is None:
            raise bad_request("metadata.name: Required value: a Binding names its pod")
        bind(context, Target(kind, target.namespace, name, "binding"), body, options)
        return reply_json(created(), status=201, warnings=options.warnings)
    if target.subresource == "token":
        answer = request_token(context.runtime, context.store, context.tokens, target.key, body)
        return reply_json(answer, status=201, warnings=options.warnings)
    return reply_json(_reviewed(context, target, body, options.user), status=201)


def _reviewed(context: Context, target: Target, body: JSON, user: User) -> JSON:
    """Answer an access or identity review."""
    resource = target.resource
    answer: JSON = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": body.get("metadata") or {}}
    match resource.kind:
        case "SelfSubjectAccessReview" | "SubjectAccessReview" | "LocalSubjectAccessReview":
            status = review_access(context.authorizer, resource, body, user, target.namespace)
            return {**answer, "spec": body["spec"], "status": status}
        case "SelfSubjectRulesReview":
            return {**answer, "spec": {}, "status": review_rules(context.authorizer, body, user)}
        case "SelfSubjectReview":
            return review_self(user, context.runtime.clock.now())
        case "TokenReview":
            status = review_token(context.authenticator, body)
            return {**answer, "spec": body["spec"], "status": status}
    raise method_not_allowed()
