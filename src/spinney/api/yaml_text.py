"""YAML as Kubernetes reads it, within bounds: the one way in for bodies and files.

PyYAML follows YAML 1.1, where ``12:30`` is the number 750 and a date becomes an object; both stay text here, as they do
in Kubernetes. Text that is small and means something huge (aliases of aliases) or that is nested deeper than any object
is refused before anything is made of it.
"""

import math
import re
from collections.abc import Iterator
from typing import Any, ClassVar, Final

import yaml

MAX_DEPTH: Final = 256
MAX_EXPANDED: Final = 1_000_000
"""How many values the aliases of a document may stand for."""

_SafeLoader: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_INT: Final = re.compile(r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0[0-7_]*|[1-9][0-9_]*)\Z")
_FLOAT: Final = re.compile(
    r"(?:[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?|[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z"
)
_PATTERNS: Final = {"tag:yaml.org,2002:int": _INT, "tag:yaml.org,2002:float": _FLOAT}
_TIMESTAMP: Final = "tag:yaml.org,2002:timestamp"


class Unacceptable(yaml.YAMLError):
    """Text that is YAML and is not read, because of what it would become."""


def _spelled(key: Any, node: yaml.Node) -> str:
    if isinstance(key, bool):
        return str(key).lower()
    if isinstance(key, int | float):
        return str(key)
    raise Unacceptable(f"line {node.start_mark.line + 1}: a key must be text, found {key!r}")


def _number(loader: Any, node: yaml.ScalarNode) -> int | float:
    """Make a number; a whole one is an integer, as in JSON, and what JSON cannot say is refused."""
    value: float = loader.construct_yaml_float(node)
    if not math.isfinite(value):
        raise Unacceptable(f"line {node.start_mark.line + 1}: {node.value} is not a number that JSON has")
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


class _Kubernetes:
    """Makes plain values; numbers are those that Kubernetes takes for numbers, and keys are text, as in JSON."""

    yaml_implicit_resolvers: ClassVar[dict[Any, Any]] = {
        first: [(tag, _PATTERNS.get(tag, pattern)) for tag, pattern in resolvers if tag != _TIMESTAMP]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    yaml_constructors: ClassVar[dict[Any, Any]] = {
        **yaml.SafeLoader.yaml_constructors,
        "tag:yaml.org,2002:float": _number,
    }

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[str, Any]:
        """Make a mapping; a key that is a number or a truth value is taken as JSON writes it."""
        found = super().construct_mapping(node, deep)  # type: ignore[misc]  # of the loader it is mixed into
        return {key if isinstance(key, str) else _spelled(key, node): value for key, value in found.items()}


class Loader(_Kubernetes, _SafeLoader):  # type: ignore[misc, valid-type]
    """Reads quickly, in C where PyYAML has that; for text that :func:`check` has accepted."""


class MarkingLoader(_Kubernetes, yaml.SafeLoader):  # type: ignore[misc]  # its mappings have text for keys
    """Reads slowly, with the best words about where a fault is; for what people write."""


def load(text: str | bytes, *, aliases: bool = True) -> Any:
    """Return the value of one document; raise :class:`yaml.YAMLError`. Without ``aliases`` any of them is refused."""
    return next(load_all(text, aliases=aliases, single=True), None)


def load_all(text: str | bytes, *, aliases: bool = True, single: bool = False) -> Iterator[Any]:
    """Return the values of all documents of a text; a ``single`` one is all there may be."""
    check(text, aliases=aliases)
    try:
        if single:
            return iter((yaml.load(text, Loader=Loader),))  # noqa: S506 - a safe loader
        return iter(list(yaml.load_all(text, Loader=Loader)))
    except ValueError as error:  # a number of thousands of digits
        raise Unacceptable(str(error)) from error


def check(text: str | bytes, *, aliases: bool = True) -> None:
    """Raise :class:`Unacceptable` for text that is nested too deeply or becomes too large."""
    sizes: dict[str, int] = {}
    open_: list[tuple[str | None, int]] = []  # the anchor of each collection begun, and the count when it began
    count = expanded = 0
    for event in yaml.parse(text, Loader=_SafeLoader):
        if isinstance(event, yaml.AliasEvent):
            if not aliases:
                raise Unacceptable("aliases are not accepted")
            size = sizes.get(event.anchor or "")
            if size is None:
                raise Unacceptable(f"*{event.anchor} stands in what it stands for")
            count += size
            expanded += size
        elif isinstance(event, yaml.ScalarEvent):
            count += 1
            if event.anchor is not None:
                sizes[event.anchor] = 1
        elif isinstance(event, yaml.CollectionStartEvent):
            open_.append((event.anchor, count))
            count += 1
            if len(open_) > MAX_DEPTH:
                raise Unacceptable(f"nested deeper than {MAX_DEPTH}")
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, began = open_.pop()
            if anchor is not None:
                sizes[anchor] = count - began
        elif isinstance(event, yaml.DocumentEndEvent):
            sizes, count, expanded = {}, 0, 0
        if expanded > MAX_EXPANDED:
            raise Unacceptable(f"its aliases stand for more than {MAX_EXPANDED} values")
