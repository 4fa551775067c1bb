"""Telling what may be done: access reviews (``kubectl auth can-i``) and the list of one's rights."""

from spinney.api.field_error import FieldError, invalid
from spinney.api.rbac import PolicyRule
from spinney.api.resource import Resource
from spinney.api.struct import JSON
from spinney.server.authorization.action import AccessRequest
from spinney.server.authorization.authorizer import Authorizer
from spinney.server.exchange.message import User
from spinney.server.exchange.status import bad_request, invalid_object

_RESOURCE, _PATH = "resourceAttributes", "nonResourceAttributes"
_ASKED = ("verb", "group", "version", "resource", "subresource", "namespace", "name")


def review_access(authorizer: Authorizer, kind: Resource, body: JSON, user: User, namespace: str | None) -> JSON:
    """Return the status of an access review of any of the three kinds."""
    spec = body.get("spec") or {}
    causes: list[FieldError] = []
    if bool(spec.get(_RESOURCE)) is bool(spec.get(_PATH)):
        detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        causes.append(invalid("spec", spec.get(_PATH), detail))
    if kind.kind != "SelfSubjectAccessReview":
        if not spec.get("user") and not spec.get("groups"):
            causes.append(invalid("spec.user", "", "at least one of user or group must be specified"))
        extra = {name: tuple(values or ()) for name, values in (spec.get("extra") or {}).items()}
        user = User(spec.get("user", ""), spec.get("uid", ""), tuple(spec.get("groups") or ()), extra)
    if namespace is not None:
        causes += _local_causes(spec, namespace)
    if causes:
        raise invalid_object(Resource(kind.group, kind.version, "", ""), "", causes)
    decision = authorizer.decide(_action(spec, user))
    status: JSON = {"allowed": decision.allowed}
    if decision.reason:
        status["reason"] = decision.reason
    return status


def review_rules(authorizer: Authorizer, body: JSON, user: User) -> JSON:
    """Return the status of a SelfSubjectRulesReview."""
    namespace = (body.get("spec") or {}).get("namespace")
    if not namespace:
        raise bad_request("no namespace on request")
    rules, missing = authorizer.rules(user, namespace)
    status: JSON = {
        "resourceRules": [_resource_rule(rule) for rule in rules if rule.resources],
        "nonResourceRules": [
            {"verbs": list(rule.verbs), "nonResourceURLs": list(rule.non_resource_urls)}
            for rule in rules
            if rule.non_resource_urls
        ],
        "incomplete": bool(missing),
    }
    if missing:
        status["evaluationError"] = missing[0] if len(missing) == 1 else f"[{', '.join(missing)}]"
    return status


def _local_causes(spec: JSON, namespace: str) -> list[FieldError]:
    given = (spec.get(_RESOURCE) or {}).get("namespace", "")
    if given == namespace:
        return []
    detail = f"must match metadata.namespace: {namespace}"
    return [invalid("spec.resourceAttributes.namespace", given, detail)]


def _action(spec: JSON, user: User) -> AccessRequest:
    path = spec.get(_PATH)
    if path:
        return AccessRequest(user, path.get("verb", ""), path=path.get("path", ""))
    wanted = spec[_RESOURCE]
    return AccessRequest(user, *(wanted.get(name) or "" for name in _ASKED))


def _resource_rule(rule: PolicyRule) -> JSON:
    shown: JSON = {"verbs": list(rule.verbs), "apiGroups": list(rule.api_groups), "resources": list(rule.resources)}
    if rule.resource_names:
        shown["resourceNames"] = list(rule.resource_names)
    return shown
