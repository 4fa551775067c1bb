"""Selecting objects by label and by field.

:class:`LabelSelector` is the structured form found in specs, :class:`Selector` the text form of list and watch
requests (``a=b,c in (d,e),!f``). Both reduce to requirements over a label mapping; a selector without requirements
matches everything.
"""

import re
from collections.abc import Iterator, Mapping
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
        return cls(tuple(sorted(_requirements(text), key=lambda each: each.key)))

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
        return cls(tuple(_field_requirement(text, part) for part in re.findall(r"(?:\\.|[^,\\]|\\$)+", text)))

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


_WORD: Final = r"[^\s=!<>(),]+"
_REQUIREMENT: Final = re.compile(
    rf"""\s*(?: !\s*(?P<absent>{_WORD})
       | (?P<key>{_WORD}) (?: \s* (?P<operator>==|=|!=|>|<) \s* (?P<value>{_WORD})?
                          | \s+ (?P<set>in|notin) \s* \((?P<values>[^()]*)\) )? )
    \s*(?:(?P<comma>,)|$)""",
    re.VERBOSE,
)
_OPERATORS: Final = {
    "=": SelectorOperator.IN,
    "==": SelectorOperator.IN,
    "in": SelectorOperator.IN,
    "!=": SelectorOperator.NOT_IN,
    "notin": SelectorOperator.NOT_IN,
    ">": SelectorOperator.GREATER,
    "<": SelectorOperator.LESS,
}
_SIGNED: Final = re.compile(r"[+-]?[0-9]+")


def _requirements(text: str) -> Iterator[Requirement]:
    position, end = 0, len(text.rstrip())
    while position < end:
        match = _REQUIREMENT.match(text, position, end)
        if match is None:
            expected = "expected a requirement such as a=b, a!=b, a in (b,c), a or !a"
            raise InvalidSelector(text, f"{expected}, found {text[position:end]!r}")
        yield _requirement(text, match)
        position = match.end()
        if match["comma"] and position == end:
            raise InvalidSelector(text, "ends with ','")


def _requirement(text: str, match: re.Match[str]) -> Requirement:
    key, operator = match["absent"] or match["key"], match["operator"] or match["set"]
    if faults := qualified_name_faults(key):
        raise InvalidSelector(text, f"the key {key!r} {faults[0]}")
    if operator is None:
        return Requirement(key, SelectorOperator.DOES_NOT_EXIST if match["absent"] else SelectorOperator.EXISTS)
    listed = match["value"] or "" if match["operator"] else match["values"]
    values = tuple(value.strip() for value in listed.split(","))
    for value in values:
        if operator in "<>" and _SIGNED.fullmatch(value) is None:
            raise InvalidSelector(text, f"expected a whole number, found {value!r}")
        if faults := label_value_faults(value):
            raise InvalidSelector(text, f"the value {value!r} {faults[0]}")
    return Requirement(key, _OPERATORS[operator], values)


def _integer(text: str | None) -> int | None:
    return int(text) if text is not None and _SIGNED.fullmatch(text) else None


def _field_requirement(text: str, part: str) -> FieldRequirement:
    match = re.fullmatch(r"(?P<path>[^=!]+)(?P<operator>!=|==|=)(?P<value>(?:\\[\\,=]|[^\\,=])*)", part)
    if match is None:
        raise InvalidSelector(text, f"expected path=value or path!=value, found {part!r}")
    return FieldRequirement(match["path"], re.sub(r"\\(.)", r"\1", match["value"]), match["operator"] != "!=")


def _escape(value: str) -> str:
    return re.sub(r"([\\,=])", r"\\\1", value)
