"""Reading case files, with errors that name the file, the case and the field.

A field this version does not know is no error, because files outlive runners; it is reported as a warning instead, so
that a misspelt field never passes silently. A field that is null counts as absent, and a whole number may be written as
a decimal. One case that cannot be read does not keep the others of its file from being run.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from spinney.sim.cases import format as cases
from spinney.sim.cases.format import Case

_AMOUNTS = {"fraction": "gpu_fraction", "gpu_memory": "gpu_memory"}
"""What a task must give if it asks for a part of a device."""
_HOLDING_NOTHING = frozenset({"Pending", "Succeeded", "Failed"})
"""States in which the node of a task is informational."""
_MISSING = re.compile(r"Object missing required field `(?P<field>[^`]+)`")


class InvalidCase(ValueError):
    """A file that is not of the case format."""


@dataclass(frozen=True)
class UnreadableCase:
    """A case that is not of the format, and why."""

    id: str
    reason: str


@dataclass(frozen=True)
class CaseFile:
    """The cases of one file, those that cannot be read, and fields in it that this version ignores."""

    path: Path
    cases: tuple[Case, ...]
    warnings: tuple[str, ...] = ()
    unreadable: tuple[UnreadableCase, ...] = ()


def read_cases(paths: Iterable[Path]) -> list[CaseFile]:
    """Read case files, and the ``*.json`` files of directories by name; raises :class:`InvalidCase`."""
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            found = sorted(path.glob("*.json"))
            if not found:
                raise InvalidCase(f"{path}: the directory holds no *.json case files")
            files += found
        else:
            files.append(path)
    return [read_file(path) for path in files]


def read_file(path: Path) -> CaseFile:
    """Read one file; raises :class:`InvalidCase` if nothing in it can be read."""
    try:
        raw = msgspec.json.decode(path.read_bytes())
    except OSError as error:
        raise InvalidCase(f"{path}: cannot be read: {error.strerror or error}") from error
    except msgspec.DecodeError as error:
        raise InvalidCase(f"{path}: not JSON: {error}") from error
    if not isinstance(raw, list):
        raise InvalidCase(f"{path}: a case file is a list of cases, found {_kind(raw)}")
    read: list[Case] = []
    warnings: list[str] = []
    unreadable: list[UnreadableCase] = []
    for position, each in enumerate(map(_plain, raw)):
        where = f"{path.name}: case {_case_name(each, position)}"
        try:
            case = _convert(each, where)
            _check(case, where)
        except InvalidCase as error:
            unreadable.append(UnreadableCase(_case_name(each, position), str(error)))
            continue
        warnings += [
            f"{where}: {field} is not a field of the format; ignored"
            for field in _surplus(each, msgspec.to_builtins(case), "")
        ]
        read.append(case)
    if unreadable and not read:
        raise InvalidCase(unreadable[0].reason)
    return CaseFile(path=path, cases=tuple(read), warnings=tuple(warnings), unreadable=tuple(unreadable))


def _plain(raw: Any) -> Any:
    """Return what was decoded without fields that are null, and with whole numbers as such."""
    if isinstance(raw, dict):
        return {key: _plain(value) for key, value in raw.items() if value is not None}
    if isinstance(raw, list):
        return [_plain(value) for value in raw]
    return int(raw) if isinstance(raw, float) and raw.is_integer() else raw


def _convert(raw: object, where: str) -> Case:
    try:
        return msgspec.convert(raw, Case)
    except msgspec.ValidationError as error:
        text, _, path = str(error).partition(" - at ")
        field = path.strip("`").removeprefix("$").removeprefix(".")
        missing = _MISSING.fullmatch(text)
        if missing is not None:
            field = f"{field}.{missing['field']}".lstrip(".")
            text = "missing, and the format names no default"
        raise InvalidCase(f"{where}: {field or 'the case'}: {text}") from error


def _check(case: Case, where: str) -> None:
    """Check what refers to something else in the case."""
    _check_names(case, where)
    nodes = {node.name for node in case.nodes}
    queues = {queue.name for queue in (*case.departments, *case.queues)}
    claims = {claim.name for claim in case.dra.claims} if case.dra else set()
    for position, queue in enumerate(case.queues):
        if queue.parent is not None and queue.parent not in queues:
            raise InvalidCase(f"{where}: queues[{position}].parent: no queue or department {queue.parent!r}")
    for number, job in enumerate(case.jobs):
        in_tree = dict(_members(job.root_group))
        for index, task in enumerate(job.tasks):
            at = f"{where}: jobs[{number}].tasks[{index}]"
            if task.node is not None and task.node not in nodes and task.state not in _HOLDING_NOTHING:
                raise InvalidCase(f"{at}.node: no node {task.node!r}")
            if task.node is None and task.state in {"Running", "Releasing", "Bound", "Binding"}:
                raise InvalidCase(f"{at}.node: a {task.state} task must be on a node")
            field = _AMOUNTS.get(task.requests.gpu_kind)
            if field is not None and not getattr(task.requests, field):
                raise InvalidCase(f"{at}.requests.{field}: a task of kind {task.requests.gpu_kind} must give it")
            if in_tree.get(task.name, task.pod_set) != task.pod_set:
                raise InvalidCase(f"{at}.pod_set: {task.pod_set!r}, but root_group lists it in {in_tree[task.name]!r}")
            for claim in task.requests.dra_claims:
                if claim not in claims:
                    raise InvalidCase(f"{at}.requests.dra_claims: no claim {claim!r} in dra.claims")
        strangers = sorted(in_tree.keys() - {task.name for task in job.tasks})
        if strangers:
            raise InvalidCase(f"{where}: jobs[{number}].root_group: {strangers[0]!r} is no task of the job")


def _check_names(case: Case, where: str) -> None:
    """Check that what is found by its name is there once."""
    named = {
        "nodes": [node.name for node in case.nodes],
        "queues": [queue.name for queue in (*case.departments, *case.queues)],
        "topologies": [topology.name for topology in case.topologies],
    }
    for field, names in named.items():
        twice = next((name for name, count in Counter(names).items() if count > 1), None)
        if twice is not None:
            raise InvalidCase(f"{where}: {field}: the name {twice!r} is there more than once")


def _groups(root: cases.Group) -> Iterator[cases.Group]:
    yield root
    for group in root.groups:
        yield from _groups(group)


def _members(root: cases.Group) -> Iterator[tuple[str, str]]:
    for group in _groups(root):
        for pod_set in group.pod_sets:
            for task in pod_set.tasks:
                yield task, pod_set.name


def _surplus(raw: Any, known: Any, path: str) -> Iterator[str]:
    """Name the fields of the file that the structs have no place for."""
    if isinstance(raw, Mapping) and isinstance(known, Mapping):
        for key, value in raw.items():
            field = f"{path}.{key}".lstrip(".")
            if key in known:
                yield from _surplus(value, known[key], field)
            else:
                yield field
    elif isinstance(raw, list) and isinstance(known, Sequence):
        for position, (each, other) in enumerate(zip(raw, known, strict=True)):
            yield from _surplus(each, other, f"{path}[{position}]")


def _case_name(raw: object, position: int) -> str:
    name = raw.get("id") if isinstance(raw, dict) else None
    return name if isinstance(name, str) else f"number {position + 1}"


def _kind(raw: object) -> str:
    return {dict: "an object", str: "a string", type(None): "null"}.get(type(raw), type(raw).__name__)
