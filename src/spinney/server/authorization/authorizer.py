"""Deciding whether an action is allowed: every action of every user, or by roles.

Roles and bindings are decoded when first asked about after one of them changed, and kept until the next change. What
is allowed says by which binding, so that a review can tell.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from spinney.api.keys import Key
from spinney.api.rbac import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE, ROLE_BINDING, PolicyRule, RoleRef, Subject
from spinney.api.struct import Struct, decode
from spinney.server.authorization.action import AccessRequest
from spinney.server.authorization.rules import allows
from spinney.server.exchange.message import MASTERS, User, account_name
from spinney.server.exchange.status import StatusError, not_found
from spinney.server.store import Collection, Store, StoreEvent


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether something is allowed, and why."""

    allowed: bool
    reason: str = ""


class Authorizer(Protocol):
    """Decides on actions."""

    restricts: bool  # False: everything is allowed, nobody needs to ask

    def decide(self, wanted: AccessRequest) -> Decision:
        """Tell whether an action is allowed."""
        ...

    def rules(self, user: User, namespace: str) -> tuple[list[PolicyRule], list[str]]:
        """Return everything that a user may do in a namespace, and what of it could not be found out."""
        ...


class AlwaysAllow:
    """Every authenticated user may do everything."""

    restricts = False

    def decide(self, wanted: AccessRequest) -> Decision:
        """Allow it."""
        return Decision(allowed=True)

    def rules(self, user: User, namespace: str) -> tuple[list[PolicyRule], list[str]]:
        """Return the two rules that allow everything."""
        everything = PolicyRule(verbs=("*",), api_groups=("*",), resources=("*",))
        return [everything, PolicyRule(verbs=("*",), non_resource_urls=("*",))], []


class RuleList(Struct, frozen=True):
    """The part of a role that says what it allows."""

    rules: tuple[PolicyRule, ...] | None = ()


class Grant(Struct, frozen=True, kw_only=True):
    """The part of a binding that says who gets which role."""

    subjects: tuple[Subject, ...] | None = ()
    role_ref: RoleRef


class Rbac:
    """Roles and their bindings, as the store has them; keeps what it has decoded until one of them changes."""

    restricts = True

    def __init__(self, store: Store) -> None:
        self._store = store
        self._bindings: dict[str, list[tuple[str, Grant]]] = {}  # by namespace, "" for the cluster's
        self._roles: dict[tuple[str, Key], tuple[PolicyRule, ...] | None] = {}
        store.listen(self._on_write)

    def decide(self, wanted: AccessRequest) -> Decision:
        """Tell whether some binding allows it; the reason names it, or the roles that are missing."""
        if MASTERS in wanted.user.groups:
            return Decision(allowed=True)
        missing: list[str] = []
        for rule, through in self._grants(wanted.user, wanted.namespace, missing):
            if allows(rule, wanted):
                return Decision(allowed=True, reason=f"RBAC: allowed by {through}")
        if not missing:
            return Decision(allowed=False)
        told = missing[0] if len(missing) == 1 else f"[{', '.join(missing)}]"
        return Decision(allowed=False, reason=f"rbac: RBAC: {told}")

    def rules(self, user: User, namespace: str) -> tuple[list[PolicyRule], list[str]]:
        """Return the rules of every role that is bound to a user here."""
        missing: list[str] = []
        return [rule for rule, _ in self._grants(user, namespace, missing)], missing

    def rules_of(self, reference: RoleRef, namespace: str) -> tuple[PolicyRule, ...]:
        """Return the rules of a role that a binding names; raise a 404 if there is none."""
        resource = CLUSTER_ROLE if reference.kind == CLUSTER_ROLE.kind else ROLE
        place = (str(resource), Key("" if resource is CLUSTER_ROLE else namespace, reference.name))
        if place not in self._roles:
            found = self._store.get(*place)
            self._roles[place] = None if found is None else decode(RuleList, found.raw).rules or ()
        rules = self._roles[place]
        if rules is None:
            raise not_found(replace(resource, plural=resource.kind.lower()), reference.name)
        return rules

    def _grants(self, user: User, namespace: str, missing: list[str]) -> Iterator[tuple[PolicyRule, str]]:
        """Yield each rule that a user has, and through what; note the roles that are missing."""
        for scope in ("", namespace) if namespace else ("",):
            for name, binding in self._bindings_in(scope):
                subject = next((each for each in binding.subjects or () if _is(each, user, scope)), None)
                if subject is None:
                    continue
                try:
                    rules = self.rules_of(binding.role_ref, scope)
                except StatusError as error:
                    missing.append(error.message)
                    continue
                kind = ROLE_BINDING.kind if scope else CLUSTER_ROLE_BINDING.kind
                shown = f"{name}/{scope}" if scope else name
                role, whom = binding.role_ref, f'{subject.kind} "{_shown(subject)}"'
                through = f'{kind} "{shown}" of {role.kind} "{role.name}" to {whom}'
                yield from ((rule, through) for rule in rules)

    def _bindings_in(self, namespace: str) -> list[tuple[str, Grant]]:
        found = self._bindings.get(namespace)
        if found is None:
            resource = ROLE_BINDING if namespace else CLUSTER_ROLE_BINDING
            records = self._store.records(str(resource), namespace)
            found = [(record.key.name, decode(Grant, record.raw)) for record in records]
            self._bindings[namespace] = found
        return found

    def _on_write(self, collection: Collection, event: StoreEvent) -> None:
        if collection.name in {str(ROLE), str(CLUSTER_ROLE)}:
            self._roles.pop((collection.name, event.record.key), None)
        elif collection.name in {str(ROLE_BINDING), str(CLUSTER_ROLE_BINDING)}:
            self._bindings.pop(event.record.key.namespace, None)


def _is(subject: Subject, user: User, namespace: str) -> bool:
    match subject.kind:
        case "User":
            return subject.name == user.name
        case "Group":
            return subject.name in user.groups
        case "ServiceAccount":
            return account_name(subject.namespace or namespace, subject.name) == user.name
    return False


def _shown(subject: Subject) -> str:
    return f"{subject.name}/{subject.namespace}" if subject.kind == "ServiceAccount" else subject.name
