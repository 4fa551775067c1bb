"""YAML documents that remember their lines, and strict decoding of them into typed configuration.

Configuration is read by people at the worst of times, so everything that is wrong is said at once, each with its line,
its path and, for an unknown key, the nearest key that exists. Decoding goes in two passes over the parsed value:
:func:`_walk` collects unknown keys and turns Go durations (``4h30m``) into ``timedelta``; msgspec then checks types.
"""

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, TypeVar

import msgspec
import yaml

from spinney.api.durations import InvalidDuration, parse_duration
from spinney.api.yaml_text import MarkingLoader, Unacceptable

Step = str | int
T = TypeVar("T", bound=msgspec.Struct)

MAX_PARTS: Final = 1_000_000
"""How many parts a document may come to; aliases of aliases come to far more in a few lines."""
LARGE: Final = 1 << 20
"""Characters from which on a document was printed by a program, not written by a person."""
_STEP: Final = re.compile(r"\.?([^.\[\]]+)|\[([^\]]*)\]")


@dataclass(frozen=True)
class DocumentProblem:
    """Something wrong in a document, and where."""

    source: str
    line: int
    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.source}:{self.line}: {self.path or 'document'}: {self.message}"


class InvalidDocument(ValueError):
    """A document cannot be used; ``problems`` has everything that is wrong with it."""

    def __init__(self, problems: list[DocumentProblem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems


class InvalidConfiguration(ValueError):
    """A configuration that cannot be used; the text names the field and what to write instead."""


@dataclass(frozen=True)
class Document:
    """A parsed YAML document: its plain value, and the line of each part of it."""

    source: str
    value: Any
    lines: Mapping[tuple[Step, ...], int] = field(default_factory=dict)
    place: tuple[Step, ...] = ()
    """Where it stands in the document that ``lines`` are of."""

    def line(self, *path: Step) -> int:
        """Return the line of a part, or of the nearest part around it that exists."""
        whole = self.place + path
        for length in range(len(whole), -1, -1):
            found = self.lines.get(whole[:length])
            if found is not None:
                return found
        return 1

    def problem(self, path: tuple[Step, ...], message: str) -> DocumentProblem:
        """Return a problem at ``path`` of this document, which is told as it stands in the whole one."""
        return DocumentProblem(self.source, self.line(*path), spelled(self.place + path), message)

    def at(self, *path: Step) -> "Document":
        """Return a part as a document of its own that keeps its lines; an absent part is an empty mapping."""
        value = self.value
        for step in path:
            try:
                value = value[step]
            except (KeyError, IndexError, TypeError):
                value = {}
        return Document(self.source, value, self.lines, self.place + path)


class _LinesOnDemand(Mapping[tuple[Step, ...], int]):
    """The lines of a text that was read as JSON, found when one is asked for."""

    def __init__(self, text: str, source: str) -> None:
        self._text, self._source = text, source

    @cached_property
    def _found(self) -> Mapping[tuple[Step, ...], int]:
        try:
            return parse(self._text, self._source).lines
        except InvalidDocument:
            return {(): 1}

    def __getitem__(self, path: tuple[Step, ...]) -> int:
        return self._found[path]

    def __iter__(self) -> Iterator[tuple[Step, ...]]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


def parse_json(text: str, source: str) -> Document | None:
    """Parse a large JSON document, a hundred times faster than YAML; ``None`` if :func:`parse` has to.

    Small ones are written by people: :func:`parse` says more of what is wrong with them.
    """
    if len(text) < LARGE or not text.lstrip().startswith("{"):
        return None
    try:
        return Document(source, msgspec.json.decode(text), _LinesOnDemand(text, source))
    except (msgspec.DecodeError, RecursionError):
        return None


def parse(text: str, source: str) -> Document:
    """Parse one YAML document; a syntax error, or a key given twice, is an :class:`InvalidDocument`."""
    loader = None
    try:
        loader = MarkingLoader(text)
        node = loader.get_single_node()
        if node is None:
            return Document(source, {}, {(): 1})
        _size(node, {})
        positions = list(_positions(node, ()))  # before merge keys are resolved, which changes the nodes
        value = loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise InvalidDocument([DocumentProblem(source, line, "", _said(error))]) from error
    except Unacceptable as error:
        raise InvalidDocument([DocumentProblem(source, 1, "", str(error))]) from error
    except yaml.YAMLError as error:
        raise InvalidDocument([DocumentProblem(source, 1, "", f"not text: {error}".partition("\n")[0])]) from error
    except RecursionError as error:
        raise InvalidDocument([DocumentProblem(source, 1, "", "nested too deeply")]) from error
    except ValueError as error:  # a number of thousands of digits
        raise InvalidDocument([DocumentProblem(source, 1, "", str(error))]) from error
    finally:
        if loader is not None:
            loader.dispose()
    lines: dict[tuple[Step, ...], int] = {}
    problems: list[DocumentProblem] = []
    for path, line, duplicate in positions:
        if duplicate:
            problems.append(DocumentProblem(source, line, spelled(path), f"given twice, first in line {lines[path]}"))
        lines.setdefault(path, line)
    if problems:
        raise InvalidDocument(problems)
    return Document(source, value, lines)


def decode(kind: type[T], document: Document) -> T:
    """Decode a document strictly into ``kind``."""
    problems: list[DocumentProblem] = []

    def report(path: tuple[Step, ...], message: str) -> None:
        problems.append(document.problem(path, message))

    value = document.value if document.value is not None else {}
    if not isinstance(value, Mapping):
        report((), f"found {_named(value)}, expected a mapping of keys to values")
        raise InvalidDocument(problems)
    prepared = _walk(msgspec.inspect.type_info(kind), value, (), report)
    try:
        decoded = msgspec.convert(prepared, type=kind)
    except msgspec.ValidationError as error:
        message, _, where = str(error).partition(" - at ")
        path = _path_of(where)
        if not any(problem.path == spelled(document.place + path) for problem in problems):
            report(path, message[:1].lower() + message[1:])
        raise InvalidDocument(problems) from error
    if problems:
        raise InvalidDocument(problems)
    return decoded


def nearest(word: str, known: Sequence[str]) -> str:
    """Return a hint that names the key the user probably meant, or all that exist when none is near."""
    close = difflib.get_close_matches(word.lower(), [each.lower() for each in known], n=1, cutoff=0.6)
    if close:
        return f"did you mean {next(each for each in known if each.lower() == close[0])!r}?"
    return f"expected one of {', '.join(sorted(known))}" if known else "nothing is expected here"


def spelled(path: tuple[Step, ...]) -> str:
    """Return a path as people write it: ``scheduler.profiles[0].name``."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}"
    return text.removeprefix(".")


def steps(path: str) -> tuple[Step, ...]:
    """Return the parts of a field path such as ``spec.cliques[0].labels[app]``."""
    found: list[Step] = []
    for name, index in _STEP.findall(path):
        found.append(name if name else int(index) if index.isdecimal() else index)
    return tuple(found)


def _said(error: yaml.MarkedYAMLError) -> str:
    """Return what is wrong, and what to do about the faults that people make most."""
    problem = error.problem or "not valid YAML"
    if "'\\t'" in problem:
        return f"{problem}; indent with spaces, not with tabs"
    if "unhashable key" in problem:
        return f"{problem}; a template such as '{{{{ .Values.name }}}}' has to be rendered first"
    return problem


def _size(node: yaml.Node, known: dict[int, int]) -> int:
    """Return how many parts a node comes to once each alias stands for what it names; raises where that is absurd."""
    if id(node) in known:
        return known[id(node)]
    known[id(node)] = MAX_PARTS  # an alias to a part that it is in
    if isinstance(node, yaml.MappingNode):
        parts = sum(_size(each, known) for pair in node.value for each in pair)
    elif isinstance(node, yaml.SequenceNode):
        parts = sum(_size(each, known) for each in node.value)
    else:
        parts = 0
    if parts >= MAX_PARTS:
        raise yaml.MarkedYAMLError(problem="aliases make it endless", problem_mark=node.start_mark)
    known[id(node)] = parts + 1
    return parts + 1


def _positions(node: yaml.Node, path: tuple[Step, ...]) -> Iterator[tuple[tuple[Step, ...], int, bool]]:
    """Yield each part's path, its line, and whether its key had been given before."""
    if not path:
        yield path, node.start_mark.line + 1, False
    if isinstance(node, yaml.MappingNode):
        seen: set[tuple[Step, ...]] = set()
        for key, value in node.value:
            inner = (*path, str(key.value))
            yield inner, key.start_mark.line + 1, inner in seen
            seen.add(inner)
            yield from _positions(value, inner)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            inner = (*path, index)
            yield inner, value.start_mark.line + 1, False
            yield from _positions(value, inner)


def _walk(kind: msgspec.inspect.Type, value: Any, path: tuple[Step, ...], report: Any) -> Any:
    """Return ``value`` with durations parsed, reporting keys that ``kind`` does not have.

    A null is left out, as Kubernetes does: the field then has its default.
    """
    kind = _bare(kind)
    if isinstance(kind, msgspec.inspect.StructType) and isinstance(value, Mapping):
        known = {each.encode_name: each.type for each in kind.fields}
        aliases: Mapping[str, str] = getattr(kind.cls, "key_aliases", {})
        found: dict[str, Any] = {}
        for key, part in value.items():
            name = aliases.get(key, key)
            if name not in known:
                report((*path, str(key)), f"unknown key; {nearest(str(key), list(known))}")
            elif name in found:
                report((*path, str(key)), f"is another spelling of {name!r}, which is given too")
            elif part is not None or _takes_null(known[name]):
                found[name] = _walk(known[name], part, (*path, str(key)), report)
        return found
    if isinstance(kind, msgspec.inspect.ListType | msgspec.inspect.VarTupleType) and isinstance(value, list):
        return [_walk(kind.item_type, part, (*path, index), report) for index, part in enumerate(value)]
    if isinstance(kind, msgspec.inspect.DictType) and isinstance(value, Mapping):
        return {key: _walk(kind.value_type, part, (*path, str(key)), report) for key, part in value.items()}
    if isinstance(kind, msgspec.inspect.LiteralType) and value not in kind.values:
        report(path, f"found {value!r}; {nearest(str(value), list(map(str, kind.values)))}")
    if isinstance(kind, msgspec.inspect.TimeDeltaType):
        try:
            return parse_duration(str(value))
        except InvalidDuration as error:
            report(path, str(error))
            return parse_duration("0s")
    return value


def _takes_null(kind: msgspec.inspect.Type) -> bool:
    if isinstance(kind, msgspec.inspect.Metadata):
        return _takes_null(kind.type)
    kinds = kind.types if isinstance(kind, msgspec.inspect.UnionType) else (kind,)
    return any(isinstance(each, msgspec.inspect.NoneType | msgspec.inspect.AnyType) for each in kinds)


def _bare(kind: msgspec.inspect.Type) -> msgspec.inspect.Type:
    """Return what a type is about, without what is said of it and without the choice to leave it out."""
    while True:
        if isinstance(kind, msgspec.inspect.Metadata):
            kind = kind.type
        elif isinstance(kind, msgspec.inspect.UnionType):
            kind = next(each for each in kind.types if not isinstance(each, msgspec.inspect.NoneType))
        else:
            return kind


def _path_of(where: str) -> tuple[Step, ...]:
    """Return the path in a msgspec message such as ``$.profiles[0].name``."""
    return steps(where.strip("`").removeprefix("$"))


def _named(value: object) -> str:
    return {list: "a list", str: "text", int: "a number", float: "a number", bool: "a truth value"}.get(
        type(value), type(value).__name__
    )
