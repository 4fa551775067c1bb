"""CEL rules of a schema (``x-kubernetes-validations``), where the optional CEL library is installed.

Rules are compiled once per version of a kind. Where the library is missing, or a rule uses a function of Kubernetes'
own CEL library, nothing is made up: the write is accepted with a warning that names what was not evaluated.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any, Protocol

from spinney.api.field_error import CauseReason, FieldError, invalid
from spinney.api.struct import JSON

_RULES = "x-kubernetes-validations"
_REASONS: dict[str, CauseReason] = {
    "FieldValueInvalid": "FieldValueInvalid",
    "FieldValueForbidden": "FieldValueForbidden",
    "FieldValueRequired": "FieldValueRequired",
    "FieldValueDuplicate": "FieldValueDuplicate",
}
_RESERVED = frozenset(
    ("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import")
) | {"let", "loop", "package", "namespace", "return", "var", "void", "while"}


_PREVIOUS, _EXISTED = "_previous", "_existed"


class Evaluator(Protocol):
    """A compiled CEL expression: values of its variables in; a value, or the text of an error, out."""

    def __call__(self, **variables: Any) -> "RuleResult": ...


@dataclass(frozen=True, slots=True)
class RuleResult:
    """What an expression came to."""

    value: Any
    error: str = ""


@dataclass(frozen=True, slots=True)
class ValidationRule:
    """One rule, ready to run."""

    text: str
    message: str
    message_expression: Evaluator | None
    reason: CauseReason
    field: str
    transition: bool
    optional_old: bool
    escaped: bool
    expression: Evaluator


def can_evaluate() -> bool:
    """Tell whether the optional CEL library is installed."""
    return find_spec("cel_expr_python") is not None


class SchemaRules:
    """The rules of one schema, in the tree of the schema; ``evaluated`` where CEL is to be had."""

    def __init__(self, schema: JSON, *, evaluated: bool) -> None:
        self.not_evaluated: list[str] = []
        environment = Environment() if _has_rules(schema) and evaluated else None
        self._tree = _compile(schema, environment, self.not_evaluated)
        if environment is None and self.not_evaluated:
            count = len(self.not_evaluated)
            self.not_evaluated = [
                f"{count} CEL validation rules were not evaluated: the package cel-expr-python is not installed"
            ]

    @property
    def any(self) -> bool:
        """Whether there are rules at all."""
        return self._tree is not None

    def validate(self, obj: JSON, old: JSON | None) -> list[FieldError]:
        """Return the rules that ``obj`` breaks. Rules about parts that an update did not touch are not run."""
        if self._tree is None:
            return []
        return list(_broken(obj, old, self._tree, "", created=old is None))


@dataclass(frozen=True, slots=True)
class _Node:
    """The rules at one place of the schema and below it."""

    rules: tuple[ValidationRule, ...]
    fields: dict[str, "_Node"]
    items: "_Node | None"
    rest: "_Node | None"
    keys: tuple[str, ...]  # of a list that is a map: how to find an item's earlier state


class Environment:
    """Compiles expressions over the given variables, by default those of a validation rule."""

    def __init__(self, names: tuple[str, ...] = ("self", "oldSelf", _PREVIOUS, _EXISTED)) -> None:
        from cel_expr_python import cel  # type: ignore[import-untyped]  # noqa: PLC0415 - 50 MB, only where rules are
        from cel_expr_python.ext import (  # type: ignore[import-untyped]  # noqa: PLC0415
            ext_bindings,
            ext_math,
            ext_optional,
            ext_strings,
        )

        extensions = [
            ext_optional.ExtOptional(),
            ext_strings.ExtStrings(),
            ext_math.ExtMath(),
            ext_bindings.ExtBindings(),
        ]
        variables = dict.fromkeys(names, cel.Type.DYN)
        self._error = cel.Type.ERROR
        self._environment = cel.NewEnv(variables=variables, extensions=extensions)

    def compile(self, text: str, kind: str = "") -> Evaluator:
        """Return the compiled expression; raise ``RuntimeError`` if it is not valid here, or of another ``kind``."""
        expression = self._environment.compile(text)
        if kind and (found := str(expression.return_type())) not in {kind, "DYN"}:
            raise RuntimeError(f"must evaluate to {kind.lower()}, and is {found.lower()}")

        def evaluate(**variables: Any) -> RuleResult:
            try:
                found = expression.eval(data=variables)
            except RuntimeError as error:  # too many iterations: the fault of the rule or of what it is asked about
                return RuleResult(None, str(error).partition(" [")[0])
            if found.type() == self._error:
                return RuleResult(None, str(found.value()))
            return RuleResult(found.value())

        return evaluate


def _compile(schema: Any, environment: "Environment | None", failed: list[str]) -> _Node | None:
    if not isinstance(schema, dict):
        return None
    rules = [_rule(each, environment, failed) for each in schema.get(_RULES) or ()]
    fields = {
        name: node
        for name, child in (schema.get("properties") or {}).items()
        if (node := _compile(child, environment, failed)) is not None
    }
    items = _compile(schema.get("items"), environment, failed)
    rest = _compile(schema.get("additionalProperties"), environment, failed)
    present = tuple(rule for rule in rules if rule is not None)
    if not present and not fields and items is None and rest is None:
        return None
    keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
    return _Node(present, fields, items, rest, keys)


def _rule(rule: JSON, environment: "Environment | None", failed: list[str]) -> ValidationRule | None:
    text = rule.get("rule", "")
    if environment is None:
        failed.append(text)
        return None
    optional_old = bool(rule.get("optionalOldSelf"))
    told = rule.get("messageExpression")
    try:
        expression = environment.compile(_with_optional_old(text) if optional_old else text)
        message = environment.compile(_with_optional_old(told) if optional_old else told) if told else None
    except RuntimeError as error:
        failed.append(f"CEL rule {text!r} was not evaluated: {str(error).splitlines()[0]}")
        return None
    return ValidationRule(
        text=text,
        message=rule.get("message") or f"failed rule: {text}",
        message_expression=message,
        reason=_REASONS.get(rule.get("reason", ""), "FieldValueInvalid"),
        field=rule.get("fieldPath", ""),
        transition="oldSelf" in text,
        optional_old=optional_old,
        escaped="__" in text,
        expression=expression,
    )


def _with_optional_old(text: str) -> str:
    """Return an expression in which ``oldSelf`` is an optional: there is none when the value is new."""
    return f"cel.bind(oldSelf, {_EXISTED} ? optional.of({_PREVIOUS}) : optional.none(), {text})"


def _broken(value: Any, old: Any, node: _Node, path: str, *, created: bool) -> Iterator[FieldError]:
    if not created and old == value:
        return
    for rule in node.rules:
        cause = _run(rule, value, old, path)
        if cause is not None:
            yield cause
    if isinstance(value, dict):
        before = old if isinstance(old, dict) else {}
        for name, child in value.items():
            below = node.fields.get(name, node.rest)
            if below is not None:
                where = f"{path}.{name}" if path else name
                yield from _broken(child, before.get(name), below, where, created=created)
    elif isinstance(value, list) and node.items is not None:
        for index, item in enumerate(value):
            earlier = _earlier(item, old, node.keys)
            yield from _broken(item, earlier, node.items, f"{path}[{index}]", created=created)


def _earlier(item: Any, old: Any, keys: tuple[str, ...]) -> Any:
    """Return the earlier state of an item of a list that is a map; other lists have no such thing."""
    if not keys or not isinstance(old, list) or not isinstance(item, dict):
        return None
    wanted = [item.get(key) for key in keys]
    return next((each for each in old if isinstance(each, dict) and [each.get(key) for key in keys] == wanted), None)


def _run(rule: ValidationRule, value: Any, old: Any, path: str) -> FieldError | None:
    if rule.transition and old is None and not rule.optional_old:
        return None
    scope = {"self": escaped(value) if rule.escaped else value}
    if rule.transition or rule.optional_old:
        scope[_PREVIOUS if rule.optional_old else "oldSelf"] = escaped(old) if rule.escaped else old
        scope[_EXISTED] = old is not None
    answer = rule.expression(**scope)
    if answer.value is True:
        return None
    field = path + rule.field if path else rule.field.lstrip(".")
    if answer.error:
        return replace(invalid(field, value, f"rule {rule.text!r} failed: {answer.error}"), reason=rule.reason)
    message = rule.message
    if rule.message_expression is not None:
        told = rule.message_expression(**scope).value
        if isinstance(told, str) and told.strip():
            message = told
    return replace(invalid(field, value, message), reason=rule.reason)


def _has_rules(schema: Any) -> bool:
    if isinstance(schema, dict):
        return _RULES in schema or any(_has_rules(child) for child in schema.values())
    return isinstance(schema, list) and any(_has_rules(child) for child in schema)


def escaped(value: Any) -> Any:
    """Return a value with its field names as CEL sees them (``__namespace__``, ``a__dash__b``)."""
    if isinstance(value, dict):
        return {_escaped_name(name): escaped(child) for name, child in value.items()}
    if isinstance(value, list):
        return [escaped(item) for item in value]
    return value


def _escaped_name(name: str) -> str:
    if name in _RESERVED:
        return f"__{name}__"
    name = name.replace("__", "__underscores__").replace(".", "__dot__")
    return name.replace("-", "__dash__").replace("/", "__slash__")
