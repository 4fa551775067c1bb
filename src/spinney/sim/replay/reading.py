"""Traces from files: which reader a file belongs to, told by its form or by the user."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final, get_args

from spinney.sim.replay.formats.bounds import check_trace
from spinney.sim.replay.formats.dlrm import Role, read_dlrm
from spinney.sim.replay.formats.openb import beside_openb, read_openb
from spinney.sim.replay.formats.philly import Layout, read_philly, sizes_beside
from spinney.sim.replay.formats.recorded import is_recorded, is_snapshot_of, read_recorded
from spinney.sim.replay.formats.swf import read_swf
from spinney.sim.replay.formats.tables import InvalidTrace, header_of
from spinney.sim.replay.trace import Trace


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What of a trace is wanted, as far as its format lets one choose."""

    nodes: Path | None = None
    seed: int | None = None
    experiment: str | None = None
    begin: str | None = None
    until: str | None = None
    node_count: int | None = None


@dataclass(frozen=True)
class TraceFormat:
    """How traces of one format are read, and what of :class:`Wanted` can be chosen of them."""

    read: Callable[[Path, Wanted], Trace]
    takes: tuple[str, ...] = ()
    has_part: Callable[[Path, Path], bool] = lambda trace, path: False
    """Whether another file is read with a trace, or would be if it were there."""


def _philly(path: Path, wanted: Wanted) -> Trace:
    layout = _chosen(path, wanted, get_args(Layout))
    return read_philly(path, wanted.nodes, layout=layout, begin=wanted.begin, until=wanted.until)  # type: ignore[arg-type]


def _dlrm(path: Path, wanted: Wanted) -> Trace:
    return read_dlrm(path, role=_chosen(path, wanted, get_args(Role)), count=wanted.node_count)  # type: ignore[arg-type]


def _among(files: Callable[[Path], Iterable[Path]]) -> Callable[[Path, Path], bool]:
    return lambda trace, path: any(is_same_file(path, each) for each in files(trace))


FORMATS: Final[Mapping[str, TraceFormat]] = {
    "openb": TraceFormat(
        lambda path, wanted: read_openb(path, wanted.nodes, wanted.seed), ("nodes",), _among(beside_openb)
    ),
    "philly": TraceFormat(
        _philly, ("nodes", "experiment", "begin", "until"), _among(lambda jobs: (sizes_beside(jobs),))
    ),
    "dlrm": TraceFormat(_dlrm, ("experiment", "node_count")),
    "swf": TraceFormat(lambda path, wanted: read_swf(path)),
    "recorded": TraceFormat(lambda path, wanted: read_recorded(path), has_part=is_snapshot_of),
}
"""By name; another format is one more function here. All take a seed, which is of chance too."""


def read_trace(path: Path, wanted: Wanted, form: str | None = None) -> Trace:
    """Read a trace; its format is recognised unless ``form`` names it. Raises :class:`InvalidTrace`."""
    name = form or recognised(path)
    _refuse_ignored(path, wanted, name)
    trace = FORMATS[name].read(path, wanted)
    check_trace(trace, path)
    return trace


def is_part(path: Path, trace: Path, form: str | None = None) -> bool:
    """Tell whether a file belongs to a trace; raises :class:`InvalidTrace`."""
    return is_same_file(path, trace) or FORMATS[form or recognised(trace)].has_part(trace, path)


def is_same_file(path: Path, other: Path) -> bool:
    """Tell whether two paths lead to one file, be it there already or not."""
    return path.samefile(other) if path.exists() and other.exists() else path.resolve() == other.resolve()


def recognised(path: Path) -> str:
    """Return the format of a file; raises :class:`InvalidTrace` for one that is none of those known."""
    if is_recorded(path):
        return "recorded"
    header = header_of(path)
    if not header:
        raise InvalidTrace(f"{path}: its first line is empty; expected a trace of the format {_formats()}")
    columns = set(header.split(","))
    if {"num_gpu", "gpu_milli"} <= columns:
        return "openb"
    if {"duration", "num_gpus", "cluster"} <= columns:
        return "philly"
    if {"instance_sn", "max_instance_per_node"} <= columns:
        return "dlrm"
    if header.startswith(";"):
        return "swf"
    raise InvalidTrace(f"{path}: is a trace of no known format; name {_formats()} with --format")


def _formats() -> str:
    *others, last = sorted(FORMATS)
    return f"{', '.join(others)} or {last}"


def _refuse_ignored(path: Path, wanted: Wanted, name: str) -> None:
    """Refuse what is wanted of a trace and its format does not let one choose."""
    for field in fields(Wanted):
        takers = [other for other, form in FORMATS.items() if field.name in form.takes]
        if takers and name not in takers and getattr(wanted, field.name) is not None:
            option = f"--{field.name.replace('_', '-')}"
            raise InvalidTrace(
                f"{path}: {option} is for traces of the format {' or '.join(takers)}, and this is {name}; leave it out"
            )


def _chosen(path: Path, wanted: Wanted, known: tuple[str, ...]) -> str:
    name = wanted.experiment or known[0]
    if name not in known:
        raise InvalidTrace(f"{path}: --experiment: found {name!r}, expected {' or '.join(known)}")
    return name
