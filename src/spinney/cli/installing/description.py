"""Objects described once, with two readers: ``spinney manifests`` and the templates of the Helm chart.

A description is plain data (mappings, lists, text, numbers) with places in it that depend on values: :class:`Value`,
:class:`Text`, :class:`Computed`, :class:`When` and :class:`Each`. :func:`made` fills the places in and returns objects;
:func:`template` writes the same description as a Helm template, which fills them in at installation.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from spinney.api.struct import JSON

Description: TypeAlias = Any
"""JSON, with places in it."""


@dataclass(frozen=True)
class ChartSetting:
    """What places are filled in from: the chart's values, and what Helm knows of a release."""

    values: JSON
    namespace: str
    version: str

    def at(self, path: str) -> Any:
        """Return the value at a dotted path; None where there is none."""
        found: Any = self.values
        for step in path.split("."):
            found = found.get(step) if isinstance(found, Mapping) else None
        return found


@dataclass(frozen=True)
class Value:
    """The value at a dotted path, whatever it is."""

    path: str

    @property
    def helm(self) -> str:
        return f".Values.{self.path}"

    def of(self, setting: ChartSetting) -> Any:
        return setting.at(self.path)


@dataclass(frozen=True)
class Computed:
    """Something that follows from values by a rule: the rule as an expression of Helm's, and as a function."""

    helm: str
    of: Callable[[ChartSetting], Any]


@dataclass(frozen=True)
class Text:
    """Text with values in it."""

    parts: tuple[str | Value | Computed, ...]

    def of(self, setting: ChartSetting) -> str:
        return "".join(part if isinstance(part, str) else str(part.of(setting)) for part in self.parts)

    @property
    def written(self) -> str:
        """Return it as part of a template."""
        return "".join(part if isinstance(part, str) else f"{{{{ {part.helm} }}}}" for part in self.parts)


Condition: TypeAlias = Value | Computed
"""Holds where what it stands for is neither absent nor false, zero or empty."""


@dataclass(frozen=True)
class When:
    """An entry of a mapping or a list, or an object, that is there only under a condition."""

    condition: Condition
    entry: Description


@dataclass(frozen=True)
class Each:
    """The entries of a list of the values, among those of a list."""

    path: str


def text(*parts: str | Value | Computed) -> Text:
    """Return text with values in it."""
    return Text(parts)


def given(path: str) -> When:
    """Return the value at a path as an entry that is there where the value is not empty."""
    return When(Value(path), Value(path))


def every(*conditions: Condition) -> Computed:
    """Return a condition that holds where all of these do."""
    return Computed(
        "and " + " ".join(f"({each.helm})" for each in conditions),
        lambda setting: all(each.of(setting) for each in conditions),
    )


def either(*conditions: Condition) -> Computed:
    """Return a condition that holds where one of these does."""
    return Computed(
        "or " + " ".join(f"({each.helm})" for each in conditions),
        lambda setting: any(each.of(setting) for each in conditions),
    )


def no(condition: Condition) -> Computed:
    """Return a condition that holds where another does not."""
    return Computed(f"not ({condition.helm})", lambda setting: not condition.of(setting))


# -- objects -----------------------------------------------------------------------------------------------------------


def made(description: Description, setting: ChartSetting) -> Any:
    """Return what a description comes to, its places filled in."""
    match description:
        case Value() | Computed() | Text():
            return description.of(setting)
        case Mapping():
            return {key: made(entry, setting) for key, each in description.items() for entry in _present(each, setting)}
        case list():
            return [made(entry, setting) for each in description for entry in _present(each, setting)]
        case _:
            return description


def _present(entry: Description, setting: ChartSetting) -> list[Description]:
    match entry:
        case When():
            return _present(entry.entry, setting) if entry.condition.of(setting) else []
        case Each():
            return list(setting.at(entry.path) or ())
        case _:
            return [entry]


# -- templates ---------------------------------------------------------------------------------------------------------


def template(objects: list[Description]) -> str:
    """Return objects as the text of a Helm template."""
    return "".join(f"{line}\n" for each in objects for line in _conditional(each, lambda it: ["---", *_lines(it, 0)]))


def _conditional(entry: Description, write: Callable[[Description], list[str]]) -> list[str]:
    if isinstance(entry, When):
        return [f"{{{{- if {entry.condition.helm} }}}}", *_conditional(entry.entry, write), "{{- end }}"]
    return write(entry)


def _lines(description: Description, indent: int) -> list[str]:
    if isinstance(description, Mapping):
        return [
            line for key, entry in description.items() for line in _conditional(entry, partial(_entry, key, indent))
        ]
    return [line for entry in description for line in _conditional(entry, partial(_entry, None, indent))]


def _entry(key: str | None, indent: int, entry: Description) -> list[str]:
    """Write one entry of a mapping, or of a list where there is no key."""
    margin = " " * indent
    head = "-" if key is None else f"{key}:"
    if isinstance(entry, Each):
        return [f"{{{{- range .Values.{entry.path} }}}}", f"{margin}- {{{{ toJson . }}}}", "{{- end }}"]
    if isinstance(entry, Mapping | list) and entry:
        nested = _lines(entry, indent + 2)
        return [f"{margin}- {nested[0].strip()}", *nested[1:]] if key is None else [f"{margin}{head}", *nested]
    return [f"{margin}{head} {_scalar(entry)}"]


def _scalar(entry: Description) -> str:
    match entry:
        case Value():
            return f"{{{{ toJson {entry.helm} }}}}"
        case Computed():
            return f"{{{{ {entry.helm} | toJson }}}}"
        case Text():
            return f'"{entry.written}"'
        case _:
            return json.dumps(entry)
