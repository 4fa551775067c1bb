"""ValidatingAdmissionPolicies: rules in CEL that writes are held to, where a binding says so.

A policy is compiled when it is written and is refused then if it cannot be, so that what is stored is enforced. Each
binding of a policy whose rules and selectors a write meets is evaluated, once per parameter object where it names some.
What cannot be evaluated denies, unless the policy says that failures are ignored.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Final

from spinney.api.keys import Key
from spinney.api.selectors import LabelSelector
from spinney.api.struct import JSON, convert
from spinney.server.admission.attributes import Attributes
from spinney.server.admission.expressions import Expression, Expressions, NotCompiled
from spinney.server.admission.matching import Matching, matching
from spinney.server.admission.review import request_of, shown_as
from spinney.server.exchange.status import StatusError
from spinney.server.kinds import Kind, KindRegistry
from spinney.server.store import Collection, Store, StoreEvent

POLICIES: Final = "validatingadmissionpolicies.admissionregistration.k8s.io"
BINDINGS: Final = "validatingadmissionpolicybindings.admissionregistration.k8s.io"
CODES: Final = {"Unauthorized": 401, "Forbidden": 403, "Invalid": 422, "RequestEntityTooLarge": 413}
_DEFAULT_REASON: Final = "Invalid"


@dataclass(frozen=True, slots=True)
class Validation:
    """One rule of a policy."""

    expression: Expression
    message: str
    message_expression: Expression | None
    reason: str

    def message_in(self, scope: JSON) -> str:
        """Return what a write that breaks the rule is told."""
        if self.message_expression is not None:
            text = self.message_expression.evaluate(scope).value
            if isinstance(text, str) and text.strip() and "\n" not in text.strip():
                return text.strip()
        return self.message or f"failed expression: {self.expression.text}"


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy, ready to be evaluated."""

    name: str
    matching: Matching
    param_kind: tuple[str, str] | None
    ignores_failure: bool
    conditions: tuple[Expression, ...] = ()
    validations: tuple[Validation, ...] = ()
    unusable: str = ""  # why it cannot be evaluated, if it was stored where it could be


@dataclass(frozen=True, slots=True)
class PolicyBinding:
    """Where a policy is in force, with which parameters, and what follows from breaking it."""

    name: str
    policy: str
    matching: Matching
    params: JSON | None
    actions: tuple[str, ...]


class NotEvaluated(ValueError):
    """A policy that cannot be evaluated for a write."""


class AdmissionPolicies:
    """The policies and bindings of the cluster; follows them in the store. Mutable."""

    def __init__(self, store: Store, registry: KindRegistry) -> None:
        self._store = store
        self._registry = registry
        self._policies: dict[str, tuple[int, Policy]] = {}  # by name, with the revision that was compiled
        self._bindings: list[PolicyBinding] = []
        store.listen(self._on_write)

    def check(self, attributes: Attributes) -> None:
        """Raise the denial of the first binding, by name, that denies; warn of what others only warn of."""
        if not self._bindings or attributes.kind.storage in {POLICIES, BINDINGS}:
            return
        denial: StatusError | None = None
        for binding in self._bindings:
            if binding.policy not in self._policies:
                continue
            _, policy = self._policies[binding.policy]
            for reason, text in self._broken(policy, binding, attributes):
                named = f"ValidatingAdmissionPolicy '{policy.name}' with binding '{binding.name}'"
                if "Warn" in binding.actions:
                    attributes.warnings.append(f"Validation failed for {named}: {text}")
                if "Deny" in binding.actions and denial is None:
                    denial = _denial(attributes, reason, f"{named} denied request: {text}")
        if denial is not None:
            raise denial

    def _broken(self, policy: Policy, binding: PolicyBinding, attributes: Attributes) -> Iterator[tuple[str, str]]:
        """Yield the reason and the text of each rule that a write breaks."""
        seen_as = policy.matching.seen_as(attributes, self._registry)
        if seen_as is None or binding.matching.seen_as(attributes, self._registry) is None:
            return
        if not policy.matching.selects(attributes, self._store):
            return
        if not binding.matching.selects(attributes, self._store):
            return
        try:
            scope = self._scope(attributes, seen_as)
            for params in self._params(policy, binding, attributes):
                yield from _evaluated(policy, {**scope, "params": params})
        except NotEvaluated as error:
            if not policy.ignores_failure:
                yield _DEFAULT_REASON, str(error)

    def _scope(self, attributes: Attributes, seen_as: Kind) -> JSON:
        found = self._store.get("namespaces", Key("", attributes.namespace)) if attributes.namespace else None
        return {
            "object": shown_as(seen_as, attributes.obj),
            "oldObject": shown_as(seen_as, attributes.old),
            "request": request_of(attributes, seen_as),
            "namespaceObject": found.decode() if found else None,
        }

    def _params(self, policy: Policy, binding: PolicyBinding, attributes: Attributes) -> list[JSON | None]:
        """Return the parameter objects to evaluate a policy with, one after the other."""
        wanted = binding.params
        if policy.param_kind is None or wanted is None:
            return [None]
        kind = next(
            (each for each in self._registry if (each.resource.api_version, each.resource.kind) == policy.param_kind),
            None,
        )
        if kind is None:
            raise NotEvaluated(f"failed to configure binding: there is no {' '.join(policy.param_kind)} for params")
        namespace = wanted.get("namespace") or attributes.namespace if kind.resource.namespaced else ""
        if kind.resource.namespaced and not namespace:
            raise NotEvaluated("failed to configure binding: params of this kind are in namespaces, and none is named")
        if wanted.get("name"):
            named = self._store.get(kind.storage, Key(namespace, wanted["name"]))
            found = [named] if named is not None else []
        else:
            selector = convert(LabelSelector, wanted.get("selector") or {})
            found = [each for each in self._store.records(kind.storage, namespace) if selector.matches(each.labels)]
        if not found and wanted.get("parameterNotFoundAction") == "Deny":
            raise NotEvaluated(
                "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"
            )
        return [kind.served(each.decode()) for each in found]

    def _on_write(self, collection: Collection, _: StoreEvent) -> None:
        if collection.name == POLICIES:
            known = self._policies
            self._policies = {}
            for record in collection.records():
                name = record.key.name
                same = name in known and known[name][0] == record.revision
                self._policies[name] = known[name] if same else (record.revision, policy(record.decode()))
        elif collection.name == BINDINGS:
            self._bindings = sorted(
                (binding(record.decode()) for record in collection.records()), key=attrgetter("name")
            )


def policy(obj: JSON) -> Policy:
    """Return a stored policy, compiled."""
    spec = obj.get("spec") or {}
    params = spec.get("paramKind")
    read = Policy(
        name=obj["metadata"]["name"],
        matching=matching(spec.get("matchConstraints") or {}, rules="resourceRules", excluded="excludeResourceRules"),
        param_kind=(params["apiVersion"], params["kind"]) if params else None,
        ignores_failure=spec.get("failurePolicy") == "Ignore",
    )
    expressions = Expressions(spec)
    try:
        return replace(
            read,
            conditions=tuple(expressions.of(each["expression"]) for each in spec.get("matchConditions") or ()),
            validations=tuple(_validation(each, expressions) for each in spec.get("validations") or ()),
        )
    except NotCompiled as error:
        return replace(read, unusable=str(error))


def binding(obj: JSON) -> PolicyBinding:
    """Return a stored binding."""
    spec = obj.get("spec") or {}
    return PolicyBinding(
        name=obj["metadata"]["name"],
        policy=spec.get("policyName", ""),
        matching=matching(
            spec.get("matchResources") or {}, rules="resourceRules", excluded="excludeResourceRules", anything=True
        ),
        params=spec.get("paramRef"),
        actions=tuple(spec.get("validationActions") or ()),
    )


def _validation(described: JSON, expressions: Expressions) -> Validation:
    told = described.get("messageExpression")
    return Validation(
        expression=expressions.of(described["expression"]),
        message=(described.get("message") or "").strip(),
        message_expression=expressions.of(told) if told else None,
        reason=described.get("reason") or _DEFAULT_REASON,
    )


def _evaluated(policy: Policy, scope: JSON) -> Iterator[tuple[str, str]]:
    if policy.unusable:
        raise NotEvaluated(policy.unusable)
    for condition in policy.conditions:
        answer = condition.evaluate(scope)
        if answer.error:
            raise NotEvaluated(f"expression '{condition.text}' resulted in error: {answer.error}")
        if answer.value is not True:
            return
    for validation in policy.validations:
        answer = validation.expression.evaluate(scope)
        if answer.error:
            if not policy.ignores_failure:
                yield _DEFAULT_REASON, f"expression '{validation.expression.text}' resulted in error: {answer.error}"
        elif answer.value is not True:
            yield validation.reason, validation.message_in(scope)


def _denial(attributes: Attributes, reason: str, text: str) -> StatusError:
    resource = attributes.kind.resource
    name = attributes.name or (attributes.obj or {}).get("metadata", {}).get("name", "")
    details: dict[str, Any] = {"name": name, "group": resource.group, "kind": resource.plural}
    details = {field: value for field, value in details.items() if value}
    details["causes"] = [{"message": text}]
    return StatusError(CODES[reason], reason, f'{resource} "{name}" is forbidden: {text}', details=details)
