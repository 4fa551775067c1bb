"""The rules of admission policies and of their bindings: only what can be evaluated may be stored."""

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from spinney.api.field_error import FieldError, duplicate, forbidden, invalid, not_supported, required
from spinney.api.struct import JSON, fill
from spinney.server.admission.expressions import Expressions, NotCompiled
from spinney.server.admission.matching import matching
from spinney.server.admission.policies import CODES
from spinney.server.kinds.kind import Behaviour

_FAILURES: Final = ("Fail", "Ignore")
_ACTIONS: Final = ("Audit", "Deny", "Warn")
_NOT_FOUND: Final = ("Allow", "Deny")
_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_LISTS: Final = ("apiGroups", "apiVersions", "operations", "resources")
_UNREADABLE: Final = (msgspec.ValidationError, AttributeError, KeyError, TypeError, ValueError)


class PolicyBehaviour(Behaviour):
    """Policies: rules that compile, for writes that are named."""

    def fill_defaults(self, obj: JSON) -> None:
        spec = obj.setdefault("spec", {})
        spec.setdefault("failurePolicy", "Fail")
        _fill_matching(spec.get("matchConstraints"))

    def validate(self, obj: JSON, old: JSON | None, subresource: str) -> Iterator[FieldError]:
        spec = obj.get("spec") or {}
        if subresource or (old is not None and spec == old.get("spec")):
            return
        yield from list(_matching_causes("spec.matchConstraints", spec.get("matchConstraints"), needed=True))
        if spec.get("failurePolicy") not in _FAILURES:
            yield not_supported("spec.failurePolicy", spec.get("failurePolicy"), _FAILURES)
        if params := spec.get("paramKind"):
            yield from (required(f"spec.paramKind.{name}") for name in ("apiVersion", "kind") if not params.get(name))
        if not spec.get("validations") and not spec.get("auditAnnotations"):
            yield required("spec.validations")
            yield required("spec.auditAnnotations")
        yield from _expression_causes(spec)


class PolicyBindingBehaviour(Behaviour):
    """Bindings: a policy, what follows from breaking it, and where its parameters are."""

    def fill_defaults(self, obj: JSON) -> None:
        _fill_matching((obj.get("spec") or {}).get("matchResources"))

    def validate(self, obj: JSON, old: JSON | None, subresource: str) -> Iterator[FieldError]:
        spec = obj.get("spec") or {}
        yield from list(_matching_causes("spec.matchResources", spec.get("matchResources"), needed=False))
        if not spec.get("policyName"):
            yield required("spec.policyName")
        yield from _action_causes(spec.get("validationActions") or [])
        yield from _param_causes(spec.get("paramRef"))


def _fill_matching(described: JSON | None) -> None:
    if described is None:
        return
    fill(described, matchPolicy="Equivalent", namespaceSelector={}, objectSelector={})
    for field in ("resourceRules", "excludeResourceRules"):
        for rule in described.get(field) or ():
            rule.setdefault("scope", "*")


def _matching_causes(path: str, described: JSON | None, *, needed: bool) -> Iterator[FieldError]:
    if described is None:
        if needed:
            yield required(path)
        return
    if needed and not described.get("resourceRules"):
        yield required(f"{path}.resourceRules")
    try:
        matching(described, rules="resourceRules", excluded="excludeResourceRules")
    except _UNREADABLE as error:
        yield invalid(path, described, f"cannot be read: {error}")
        return
    for field in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(described.get(field) or ()):
            where = f"{path}.{field}[{index}]"
            yield from (required(f"{where}.{name}") for name in _LISTS if not rule.get(name))
            for position, operation in enumerate(rule.get("operations") or ()):
                if operation not in _OPERATIONS:
                    yield not_supported(f"{where}.operations[{position}]", operation, _OPERATIONS)


def _expression_causes(spec: JSON) -> Iterator[FieldError]:
    expressions = Expressions(spec)
    for index, variable in enumerate(spec.get("variables") or ()):
        where, name = f"spec.variables[{index}]", variable.get("name") or ""
        if not name:
            yield required(f"{where}.name")
        elif not _NAME.fullmatch(name):
            yield invalid(f"{where}.name", name, "must be a CEL identifier")
        yield from _compiled(f"{where}.expression", variable.get("expression"), expressions.before(index, spec), "")
    for index, condition in enumerate(spec.get("matchConditions") or ()):
        where = f"spec.matchConditions[{index}]"
        if not condition.get("name"):
            yield required(f"{where}.name")
        yield from _compiled(f"{where}.expression", condition.get("expression"), expressions, "BOOL")
    for index, validation in enumerate(spec.get("validations") or ()):
        where = f"spec.validations[{index}]"
        yield from _compiled(f"{where}.expression", validation.get("expression"), expressions, "BOOL")
        if told := validation.get("messageExpression"):
            yield from _compiled(f"{where}.messageExpression", told, expressions, "STRING")
        if "\n" in (validation.get("message") or "").strip():
            yield invalid(f"{where}.message", validation["message"], "must not contain line breaks")
        if (reason := validation.get("reason")) and reason not in CODES:
            yield not_supported(f"{where}.reason", reason, CODES)
    for index, annotation in enumerate(spec.get("auditAnnotations") or ()):
        where = f"spec.auditAnnotations[{index}]"
        if not annotation.get("key"):
            yield required(f"{where}.key")
        yield from _compiled(f"{where}.valueExpression", annotation.get("valueExpression"), expressions, "")


def _compiled(path: str, text: str | None, expressions: Expressions, kind: str) -> Iterator[FieldError]:
    if not (text or "").strip():
        yield required(path)
        return
    assert text is not None
    try:
        expressions.of(text, kind=kind)
    except NotCompiled as error:
        yield invalid(path, text, f"cannot be evaluated: {error}")


def _action_causes(actions: list[str]) -> Iterator[FieldError]:
    field = "spec.validationActions"
    if not actions:
        yield required(field)
    for index, action in enumerate(actions):
        if action not in _ACTIONS:
            yield not_supported(f"{field}[{index}]", action, _ACTIONS)
        elif action in actions[:index]:
            yield duplicate(f"{field}[{index}]", action)
    if "Deny" in actions and "Warn" in actions:
        yield invalid(field, actions, "must not contain both Deny and Warn: a denial says the same")


def _param_causes(params: JSON | None) -> Iterator[FieldError]:
    if params is None:
        return
    field = "spec.paramRef"
    if params.get("name") and params.get("selector") is not None:
        for name in ("name", "selector"):
            yield forbidden(f"{field}.{name}", "name and selector must not be set both")
    elif not params.get("name") and params.get("selector") is None:
        yield required(field, "one of name or selector must be specified")
    action = params.get("parameterNotFoundAction")
    if not action:
        yield required(f"{field}.parameterNotFoundAction")
    elif action not in _NOT_FOUND:
        yield not_supported(f"{field}.parameterNotFoundAction", action, _NOT_FOUND)
