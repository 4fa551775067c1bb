"""Selecting objects by label and by field.

:class:`LabelSelector` is the structured form found in specs, :class:`Selector` the text form of list and watch
requests (``a=b,c in (d,e),!f``). Both reduce to requirements over a label mapping; a selector without requirements
matches everything.
"""

import re
from collections.abc import Mapping
from enum import Enum
from typing import Final, Literal

import msgspec

from spinney.api.names import label_value_faults, qualified_name_faults
from spinney.api.struct import Struct


class InvalidSelector(ValueError):
    """A text that is not a selector."""

    def __init__(self, text: str, fault: str) -> None:
        super().__init__(f"{text!r} is not a selector: {fault}")


class SelectorOperator(Enum):
    """How a requirement compares a label."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GREATER = "Gt"
    LESS = "Lt"


class Requirement(msgspec.Struct, frozen=True):
    """One comparison of one label."""

    key: str
    operator: SelectorOperator
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether ``labels`` meet this requirement; an absent label meets ``NotIn``, as in Kubernetes."""
        present = labels.get(self.key)
        match self.operator:
            case SelectorOperator.IN:
                return present is not None and present in self.values
            case SelectorOperator.NOT_IN:
                return present is None or present not in self.values
            case SelectorOperator.EXISTS:
                return present is not None
            case SelectorOperator.DOES_NOT_EXIST:
                return present is None
            case SelectorOperator.GREATER | SelectorOperator.LESS:
                return self._compares(present)

    def _compares(self, present: str | None) -> bool:
        left, right = _integer(present), _integer(self.values[0] if len(self.values) == 1 else None)
        if left is None or right is None:
            return False
        return left > right if self.operator is SelectorOperator.GREATER else left < right

    def __str__(self) -> str:
        match self.operator:
            case SelectorOperator.IN if len(self.values) == 1:
                return f"{self.key}={self.values[0]}"
            case SelectorOperator.NOT_IN if len(self.values) == 1:
                return f"{self.key}!={self.values[0]}"
            case SelectorOperator.IN:
                return f"{self.key} in ({','.join(sorted(self.values))})"
            case SelectorOperator.NOT_IN:
                return f"{self.key} notin ({','.join(sorted(self.values))})"
            case SelectorOperator.EXISTS:
                return self.key
            case SelectorOperator.DOES_NOT_EXIST:
                return f"!{self.key}"
            case SelectorOperator.GREATER:
                return f"{self.key}>{self.values[0]}"
            case SelectorOperator.LESS:
                return f"{self.key}<{self.values[0]}"


class Selector(msgspec.Struct, frozen=True):
    """A conjunction of requirements over labels."""

    requirements: tuple[Requirement, ...] = ()

    @classmethod
    def parse(cls, text: str) -> "Selector":
        """Return the selector that ``text`` denotes; raises :class:`InvalidSelector`. Empty text matches everything."""
        return cls(tuple(_SelectorParser(text).requirements()))

    @classmethod
    def of(cls, labels: Mapping[str, str]) -> "Selector":
        """Return the selector of exactly these labels."""
        return cls(tuple(Requirement(key, SelectorOperator.IN, (labels[key],)) for key in sorted(labels)))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether ``labels`` meet every requirement."""
        return all(requirement.matches(labels) for requirement in self.requirements)

    def __str__(self) -> str:
        return ",".join(str(requirement) for requirement in self.requirements)


class FieldRequirement(msgspec.Struct, frozen=True):
    """One comparison of one field."""

    path: str
    value: str
    equal: bool = True


class FieldSelector(msgspec.Struct, frozen=True):
    """A conjunction of comparisons over fields such as ``spec.nodeName`` (``a=b,c!=d``)."""

    requirements: tuple[FieldRequirement, ...] = ()

    @classmethod
    def parse(cls, text: str) -> "FieldSelector":
        """Return the field selector that ``text`` denotes; a backslash escapes ``,``, ``=`` and itself in values."""
        return cls(tuple(_field_requirement(text, part) for part in _split_fields(text) if part))

    def matches(self, fields: Mapping[str, str]) -> bool:
        """Tell whether ``fields`` (path to value; an absent path counts as empty) meet every comparison."""
        return all((fields.get(r.path, "") == r.value) is r.equal for r in self.requirements)

    def __str__(self) -> str:
        return ",".join(f"{r.path}{'=' if r.equal else '!='}{_escape(r.value)}" for r in self.requirements)


class LabelSelectorRequirement(Struct, frozen=True, kw_only=True):
    """One entry of ``matchExpressions``."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: tuple[str, ...] = ()


class LabelSelector(Struct, frozen=True, kw_only=True):
    """``metav1.LabelSelector``: labels that must be equal, and expressions that must hold. Empty matches everything."""

    match_labels: Mapping[str, str] = {}
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()

    def selector(self) -> Selector:
        """Return the requirements this selector stands for, in a stable order."""
        expressions = (Requirement(e.key, SelectorOperator(e.operator), e.values) for e in self.match_expressions)
        return Selector((*Selector.of(self.match_labels).requirements, *expressions))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether ``labels`` meet every label and expression."""
        for key, wanted in self.match_labels.items():
            if labels.get(key) != wanted:
                return False
        return all(
            Requirement(e.key, SelectorOperator(e.operator), e.values).matches(labels) for e in self.match_expressions
        )

    def __str__(self) -> str:
        return str(self.selector())


_TOKEN: Final = re.compile(r"\s*(?:(?P<mark>!=|==|=|!|<|>|\(|\)|,)|(?P<word>[^\s=!<>(),]+))")
_SIGNED: Final = re.compile(r"[+-]?[0-9]+")


class _SelectorParser:
    """Recursive descent over the tokens of a selector text (mutable: a position in the token list)."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._tokenise()
        self._position = 0

    def requirements(self) -> list[Requirement]:
        found: list[Requirement] = []
        while self._peek() is not None:
            found.append(self._requirement())
            if self._peek() is None:
                break
            self._expect(",")
            if self._peek() is None:
                raise self._fault("ends with ','")
        return sorted(found, key=lambda r: r.key)

    def _requirement(self) -> Requirement:
        if self._accept("!"):
            return Requirement(self._key(), SelectorOperator.DOES_NOT_EXIST)
        key = self._key()
        operator = self._peek()
        if operator is None or operator == ",":
            return Requirement(key, SelectorOperator.EXISTS)
        self._position += 1
        match operator:
            case "=" | "==":
                return Requirement(key, SelectorOperator.IN, (self._value(),))
            case "!=":
                return Requirement(key, SelectorOperator.NOT_IN, (self._value(),))
            case ">" | "<":
                return Requirement(
                    key, SelectorOperator.GREATER if operator == ">" else SelectorOperator.LESS, (self._number(),)
                )
            case "in" | "notin":
                return Requirement(
                    key, SelectorOperator.IN if operator == "in" else SelectorOperator.NOT_IN, self._values()
                )
            case _:
                raise self._fault(f"expected an operator after {key!r}, found {operator!r}")

    def _key(self) -> str:
        token = self._take("a label key")
        if faults := qualified_name_faults(token):
            raise self._fault(f"the key {token!r} {faults[0]}")
        return token

    def _value(self) -> str:
        if self._peek() in {None, ","}:
            return ""
        return self._checked(self._take("a value"))

    def _number(self) -> str:
        token = self._take("a whole number")
        if _SIGNED.fullmatch(token) is None:
            raise self._fault(f"expected a whole number, found {token!r}")
        return self._checked(token)

    def _values(self) -> tuple[str, ...]:
        self._expect("(")
        values = []
        while True:
            values.append("" if self._peek() in {",", ")"} else self._checked(self._take("a value")))
            if self._accept(")"):
                return tuple(values)
            self._expect(",")

    def _checked(self, value: str) -> str:
        if faults := label_value_faults(value):
            raise self._fault(f"the value {value!r} {faults[0]}")
        return value

    def _tokenise(self) -> list[str]:
        tokens, position = [], 0
        text = self._text.rstrip()
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                raise self._fault(f"unexpected {text[position]!r}")
            tokens.append(match["mark"] or match["word"])
            position = match.end()
        return tokens

    def _peek(self) -> str | None:
        return self._tokens[self._position] if self._position < len(self._tokens) else None

    def _accept(self, token: str) -> bool:
        if self._peek() == token:
            self._position += 1
            return True
        return False

    def _take(self, wanted: str) -> str:
        token = self._peek()
        if token is None:
            raise self._fault(f"ends where {wanted} was expected")
        self._position += 1
        return token

    def _expect(self, token: str) -> None:
        if not self._accept(token):
            raise self._fault(f"expected {token!r}, found {self._peek()!r}")

    def _fault(self, fault: str) -> InvalidSelector:
        return InvalidSelector(self._text, fault)


def _integer(text: str | None) -> int | None:
    return int(text) if text is not None and _SIGNED.fullmatch(text) else None


def _split_fields(text: str) -> list[str]:
    return re.findall(r"(?:\\.|[^,\\]|\\$)+", text)


def _field_requirement(text: str, part: str) -> FieldRequirement:
    match = re.fullmatch(r"(?P<path>[^=!]+)(?P<operator>!=|==|=)(?P<value>(?:\\[\\,=]|[^\\,=])*)", part)
    if match is None:
        raise InvalidSelector(text, f"expected path=value or path!=value, found {part!r}")
    return FieldRequirement(match["path"], re.sub(r"\\(.)", r"\1", match["value"]), match["operator"] != "!=")


def _escape(value: str) -> str:
    return re.sub(r"([\\,=])", r"\\\1", value)
