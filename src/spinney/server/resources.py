"""Serving resource requests: from the verb of a request to the operation, and back to a response."""

from spinney.api.struct import JSON
from spinney.server.actions import serve_action
from spinney.server.bodies import read_object, read_options
from spinney.server.context import Context, Target
from spinney.server.exchange import Request, Response
from spinney.server.operations.creating import create
from spinney.server.operations.deleting import delete, delete_options, dry_run_of
from spinney.server.operations.patching import patch
from spinney.server.operations.reading import get, list_objects
from spinney.server.operations.updating import replace
from spinney.server.operations.watching import watch, watch_request
from spinney.server.operations.write import WriteOptions, write_options
from spinney.server.representation import Plain, Representation
from spinney.server.responding import reply, reply_json
from spinney.server.routing import resolve, verb
from spinney.server.status import success


async def serve_resource(context: Context, request: Request) -> Response:
    """Answer a request for a built-in or custom resource."""
    target = resolve(context.registry, request.path)
    watching = request.query.get("watch") in {"true", "1"}
    asked = verb(request.method, target, watch=watching)
    representation = _representation(target, request)
    match asked:
        case "get":
            return reply(representation.single(get(context, target)))
        case "list":
            return _list(context, target, request, representation)
        case "watch":
            wanted = watch_request(context, target, request.query)
            headers = {"content-type": "application/json;stream=watch", "cache-control": "no-cache, private"}
            return Response(200, headers, watch(context, target, wanted, representation))
    options = write_options(request.query, request.headers, request.user)
    match asked:
        case "create" if target.subresource or target.kind.verbs == ("create",):
            return await serve_action(context, target, read_object(request), options)
        case "create":
            record = await create(context, target, read_object(request), options)
            return reply(representation.single(record), status=201, warnings=options.warnings)
        case "update":
            record = await replace(context, target, read_object(request), options)
            return reply(representation.single(record), warnings=options.warnings)
        case "patch":
            record, made = await patch(context, target, request, options)
            return reply(representation.single(record), status=201 if made else 200, warnings=options.warnings)
        case "delete":
            return await _delete(context, target, request, options, representation)
        case _:
            return await _delete_collection(context, target, request, options, representation)


def _representation(target: Target, request: Request) -> Representation:
    return Plain(target.kind)


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
    body = read_options(request)
    options.dry_run = dry_run_of(body, request.query)
    deleted = await delete(context, target, delete_options(body, request.query), options)
    if deleted.gone and not target.kind.returns_deleted:
        status = success(target.resource, target.key.name, deleted.record.uid)
        return reply_json(status, warnings=options.warnings)
    return reply(representation.single(deleted.record), warnings=options.warnings)


async def _delete_collection(
    context: Context, target: Target, request: Request, options: WriteOptions, representation: Representation
) -> Response:
    body = read_options(request)
    options.dry_run = dry_run_of(body, request.query)
    wanted = delete_options(body, request.query)
    listed = list_objects(context, target, request.query)
    deleted = []
    for record in listed.records:
        each = Target(target.kind, record.key.namespace or None, record.key.name)
        if context.collection(target.kind).get(record.key) is not None:
            deleted.append((await delete(context, each, wanted, options)).record)
    metadata: JSON = {"resourceVersion": str(context.store.revision)}
    return reply(representation.many(deleted, metadata), warnings=options.warnings)
