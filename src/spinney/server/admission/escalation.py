"""Nobody grants what they do not have: the checks when roles and bindings are written.

A user who holds everything that a role allows may write it; others need the verb ``escalate`` on it. The same holds for
binding a role, with the verb ``bind``.
"""

import msgspec

from spinney.api.rbac import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE, ROLE_BINDING, PolicyRule, RoleRef
from spinney.api.resource import Resource
from spinney.api.struct import JSON
from spinney.server.admission.attributes import Attributes
from spinney.server.authorization.action import AccessRequest
from spinney.server.authorization.authorizer import Rbac, RuleList
from spinney.server.authorization.rules import described, uncovered
from spinney.server.exchange.message import MASTERS, User
from spinney.server.exchange.status import StatusError, not_found

_ROLES = (str(ROLE), str(CLUSTER_ROLE))
_FOR_GARBAGE = ("ownerReferences", "finalizers", "managedFields", "resourceVersion")
_BINDINGS = (str(ROLE_BINDING), str(CLUSTER_ROLE_BINDING))


def check_escalation(rbac: Rbac, attributes: Attributes) -> None:
    """Refuse a role or binding that would give more than its author has."""
    storage, obj = attributes.kind.storage, attributes.obj
    if obj is None or MASTERS in attributes.user.groups or (storage not in _ROLES and storage not in _BINDINGS):
        return
    if attributes.old is not None and _differs_only_in_owners(obj, attributes.old):
        return
    if storage in _ROLES:
        _check_role(rbac, attributes, obj)
    else:
        _check_binding(rbac, attributes, obj)


def _differs_only_in_owners(obj: JSON, old: JSON) -> bool:
    """Tell whether an update changes nothing but what garbage collection needs.

    Everything else is checked, labels too: with a label a role becomes part of others that are bound already.
    """
    kept = {name: value for name, value in obj["metadata"].items() if name not in _FOR_GARBAGE}
    kept |= {name: old["metadata"][name] for name in _FOR_GARBAGE if name in old["metadata"]}
    return {**obj, "metadata": kept} == old


def _check_role(rbac: Rbac, attributes: Attributes, obj: JSON) -> None:
    user, resource = attributes.user, attributes.kind.resource
    if _may(rbac, "escalate", resource, attributes.name, attributes):
        return
    everything = PolicyRule(verbs=("*",), api_groups=("*",), resources=("*",))
    anywhere = PolicyRule(verbs=("*",), non_resource_urls=("*",))
    if obj.get("aggregationRule") and (missing := _missing(rbac, user, [everything, anywhere], "")):
        why = f"must have cluster-admin privileges to use the aggregationRule: {_lacks(user, missing)}"
        raise attributes.refused(why)
    rules = msgspec.convert({"rules": obj.get("rules") or []}, RuleList).rules or ()
    if missing := _missing(rbac, user, rules, attributes.namespace):
        raise attributes.refused(_lacks(user, missing))


def _check_binding(rbac: Rbac, attributes: Attributes, obj: JSON) -> None:
    user, resource = attributes.user, attributes.kind.resource
    reference = msgspec.convert(obj["roleRef"], RoleRef)
    role = CLUSTER_ROLE if reference.kind == CLUSTER_ROLE.kind else ROLE
    if _may(rbac, "bind", role, reference.name, attributes):
        return
    try:
        rules = rbac.rules_of(reference, attributes.namespace)
    except StatusError as error:
        raise not_found(resource, reference.name) from error
    if missing := _missing(rbac, user, rules, attributes.namespace):
        raise attributes.refused(_lacks(user, missing))


def _may(rbac: Rbac, verb: str, resource: Resource, name: str, attributes: Attributes) -> bool:
    return rbac.decide(AccessRequest.on(attributes.user, verb, resource, attributes.namespace, name)).allowed


def _missing(
    rbac: Rbac, user: User, wanted: list[PolicyRule] | tuple[PolicyRule, ...], namespace: str
) -> list[PolicyRule]:
    held, _ = rbac.rules(user, namespace)
    return uncovered(wanted, held)


def _lacks(user: User, missing: list[PolicyRule]) -> str:
    groups = " ".join(f'"{group}"' for group in user.groups)
    who = f'user "{user.name}" (groups=[{groups}])'
    return f"{who} is attempting to grant RBAC permissions not currently held:\n{described(missing)}"
