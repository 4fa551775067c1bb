"""Requests that are not about storing what they send: bindings, evictions and reviews."""

from typing import Any

from spinney.api.struct import JSON
from spinney.server.authentication.token_requests import request_token, review_self, review_token
from spinney.server.authorization.reviews import review_access, review_rules
from spinney.server.exchange.message import Response
from spinney.server.exchange.responding import reply_json
from spinney.server.exchange.status import bad_request, created, method_not_allowed
from spinney.server.exchange.user import User
from spinney.server.operations.context import Context, Target
from spinney.server.operations.pods.binding import bind
from spinney.server.operations.pods.eviction import evict
from spinney.server.operations.write import WriteOptions


async def serve_action(context: Context, target: Target, body: Any, options: WriteOptions) -> Response:
    """Do what a POST to a subresource, or to a kind that is never stored, asks for."""
    if target.subresource == "binding":
        bind(context, target, body, options)
        return reply_json(created(), status=201, warnings=options.warnings)
    if target.subresource == "eviction":
        await evict(context, target, body, options)
        return reply_json(created(), status=201, warnings=options.warnings)
    if not isinstance(body, dict):
        raise bad_request("the body is not an object")
    if target.resource.plural == "bindings":
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
