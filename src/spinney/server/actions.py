"""Requests that are not about storing what they send: bindings, evictions and reviews."""

from typing import Any

from spinney.api.core import POD
from spinney.api.struct import JSON
from spinney.server.context import Context, Target
from spinney.server.exchange import Response
from spinney.server.operations.write import WriteOptions
from spinney.server.pods.binding import bind
from spinney.server.pods.eviction import evict
from spinney.server.responding import reply_json
from spinney.server.status import bad_request, created, method_not_allowed


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
        kind = context.registry.find(POD.group, POD.version, POD.plural)
        assert kind is not None, "pods are built in"
        name = (body.get("metadata") or {}).get("name")
        if not name or target.namespace is None:
            raise bad_request("metadata.name: Required value: a Binding names its pod")
        bind(context, Target(kind, target.namespace, name, "binding"), body, options)
        return reply_json(created(), status=201, warnings=options.warnings)
    return reply_json(_reviewed(target, body, options), status=201)


def _reviewed(target: Target, review: JSON, options: WriteOptions) -> JSON:
    """Answer an access or identity review: whoever got in may do everything."""
    resource = target.resource
    answer = {**review, "apiVersion": resource.api_version, "kind": resource.kind}
    answer.setdefault("metadata", {})
    user = {"username": options.user, "groups": ["system:masters", "system:authenticated"]}
    match resource.kind:
        case "SelfSubjectAccessReview" | "SubjectAccessReview" | "LocalSubjectAccessReview":
            answer["status"] = {"allowed": True, "reason": "the embedded server allows everything"}
        case "SelfSubjectRulesReview":
            everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
            paths = {"verbs": ["*"], "nonResourceURLs": ["*"]}
            answer["status"] = {"resourceRules": [everything], "nonResourceRules": [paths], "incomplete": False}
        case "SelfSubjectReview":
            answer["status"] = {"userInfo": user}
        case "TokenReview":
            answer["status"] = {"authenticated": True, "user": user}
        case _:
            raise method_not_allowed()
    return answer
