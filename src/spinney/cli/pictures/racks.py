"""Racks as a picture: boxes with a line per node and a cell per GPU, or a line per rack with a cell per node.

Where there is no colour, a gang's cells have a letter instead.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from os.path import commonprefix
from typing import Final

from rich.columns import Columns
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from spinney.api.core import Node, Pod
from spinney.cli.pictures.gpus import cpu_of, cpu_on, gpus_of
from spinney.cli.terminal.printable import printable
from spinney.cluster.devices import gpus_on

RACK: Final = "topology.kubernetes.io/rack"
BLOCK: Final = "topology.kubernetes.io/block"
FREE: Final = "·"
USED: Final = "■"
PARTLY: Final = "▪"

CPU_CELLS: Final = 8
"""Cells of a node in a cluster without GPUs."""
_SMALL: Final = 100
"""Columns of a screen below which every one of them counts."""


@dataclass(frozen=True, order=True)
class Mark:
    """What tells the cells of one gang from those of another: a colour, or where there is none, a letter."""

    colour: str = "white"
    letter: str = USED

    def cell(self, console: Console, *, full: bool = True) -> Text:
        """Return a cell in use; one that is not ``full`` is a node with room left."""
        if is_coloured(console):
            return Text(USED if full else PARTLY, style=f"not dim {self.colour}")
        return Text(self.letter if full else self.letter.lower())


NOBODY: Final = Mark()
"""The mark of pods in no gang."""


def is_coloured(console: Console) -> bool:
    """Tell whether gangs can be told apart by colour."""
    return console.color_system is not None and not console.no_color


@dataclass(frozen=True)
class Occupants:
    """A node: where it is, how many GPUs it has, and the marks of those in use."""

    name: str
    block: str
    rack: str
    gpus: int
    marks: Sequence[Mark]

    @property
    def domain(self) -> str:
        """Return block and rack, as far as it has them."""
        return "/".join(filter(None, (self.block, self.rack))) or "nodes"


def _of_cpu(node: Node, pods: Iterable[Pod], mark_of: Callable[[Pod], Mark]) -> list[Mark]:
    """Return the marks of a node's CPU, in parts of it; a request for any has at least a part of a cell."""
    capacity, used = cpu_on(node), 0
    marks: list[Mark] = []
    for pod in pods:
        used += cpu_of(pod)
        filled = min(CPU_CELLS, math.ceil(CPU_CELLS * used / capacity)) if capacity else 0
        marks += [mark_of(pod)] * (filled - len(marks))
    return marks


def occupants(nodes: Sequence[Node], pods: Iterable[Pod], mark_of: Callable[[Pod], Mark]) -> list[Occupants]:
    """Return the nodes rack by rack, each with the marks of what is on it.

    A cell is a GPU, or in a cluster that has none, an eighth of a node's CPU.
    """
    placed: dict[str, list[Pod]] = {}
    for pod in pods:
        if pod.spec.node_name and not pod.terminal:
            placed.setdefault(pod.spec.node_name, []).append(pod)
    with_gpus = any(map(gpus_on, nodes))
    found = []
    for node in nodes:
        here = placed.get(node.metadata.name, [])
        if with_gpus:
            cells, marks = gpus_on(node), [mark for pod in here for mark in [mark_of(pod)] * gpus_of(pod)]
        else:
            cells, marks = CPU_CELLS, _of_cpu(node, here, mark_of)
        labels = node.metadata.labels
        name, block, rack = map(printable, (node.metadata.name, labels.get(BLOCK, ""), labels.get(RACK, "")))
        found.append(Occupants(name, block, rack, cells, sorted(marks)))
    first: dict[str, str] = {}
    for known in sorted(found, key=lambda each: each.name):
        first.setdefault(known.domain, known.name)
    return sorted(found, key=lambda each: (first[each.domain], each.name))


@dataclass(frozen=True)
class Boxes:
    """A box per rack, a new row of them for every block. Without names of nodes they are half as wide."""

    nodes: Sequence[Occupants]
    names: bool = True

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        small = console.width < _SMALL
        names = [node.name for node in self.nodes]
        shared = len(commonprefix(names)) if small and len(names) > 1 else 0  # noqa: RUF071 - of characters, not of paths
        boxes: dict[str, list[RenderableType]] = {}
        for domain, rack in groupby(self.nodes, key=lambda node: node.domain):
            members = list(rack)
            title = (members[0].rack or members[0].block or domain) if small or not self.names else domain
            lines = [
                Text.assemble((f"{node.name[shared:]} ", "dim") if self.names else "", _cells(node, console))
                for node in members
            ]
            # A block begins a new row, unless space is what there is least of.
            boxes.setdefault(members[0].block if self.names else "", []).append(_box(title, lines, spaced=self.names))
        for row in boxes.values():
            yield Columns(row, padding=(0, 1) if self.names else (0, 0))


@dataclass(frozen=True)
class Lines:
    """A line per rack, a cell per node: full, in use, or free. What does not fit above ``below`` is counted only."""

    nodes: Sequence[Occupants]
    below: tuple[RenderableType, int] | None = None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = [self._line(list(rack), console) for _, rack in groupby(self.nodes, key=lambda node: node.domain)]
        wide = max((line.cell_len for line in lines), default=1) + 2
        beside = max(1, options.max_width // wide)
        shown = len(lines)
        if self.below is not None:
            tables, height = self.below
            left = height - len(console.render_lines(tables, options, pad=False)) - 1
            shown = min(shown, max(1, left) * beside)
        yield Columns(lines[:shown], padding=(0, 2), column_first=True, width=wide - 2)
        if shown < len(lines):
            yield Text(f"and {len(lines) - shown} more racks", style="dim")

    @staticmethod
    def _line(rack: Sequence[Occupants], console: Console) -> Text:
        line = Text(f"{rack[0].domain} ", style="dim", no_wrap=True)
        for node in rack:
            if node.marks:
                most = max(node.marks, key=node.marks.count)
                line.append_text(most.cell(console, full=len(node.marks) >= node.gpus))
            else:
                line.append(FREE, style="dim")
        return line


def _cells(node: Occupants, console: Console) -> Text:
    cells = Text()
    for mark, run in groupby(node.marks[: node.gpus]):
        cell = mark.cell(console)
        cells.append(cell.plain * len(list(run)), style=cell.style)
    cells.append(FREE * (node.gpus - len(cells)), style="dim")
    return cells


def _box(title: str, lines: Sequence[Text], *, spaced: bool) -> Text:
    """Return lines in a box with its title in the frame."""
    pad, heading = (" ", f"─ {title} ") if spaced else ("", title)
    inside = max(len(heading) + len(pad), *(line.cell_len + 2 * len(pad) for line in lines))
    box = Text(f"╭{heading.ljust(inside, '─')}╮", style="dim", no_wrap=True)
    for line in lines:
        box.append_text(Text.assemble(f"\n│{pad}", line, " " * (inside - 2 * len(pad) - line.cell_len), f"{pad}│"))
    return box.append(f"\n╰{'─' * inside}╯")
