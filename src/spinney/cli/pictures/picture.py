"""A picture of a cluster: racks as boxes, GPUs as cells coloured (or lettered) by the gang that uses them.

Pure: nodes, pods and queues in, something rich can print out. The demo and ``top`` draw it live, others once. How much
is shown depends on the room there is: the layouts are tried from roomy to terse, and the first that is no higher than
allowed is taken. So a laptop's small terminal shows the whole demo, and thousands of nodes still make one screen.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Final

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from spinney.api.core import Node, Pod
from spinney.api.labels import POD_GANG
from spinney.cli.pictures.racks import NOBODY, Boxes, Lines, Mark, Occupants, occupants
from spinney.cli.pictures.shares import QueueShare, draw_shares
from spinney.cli.terminal.printable import printable
from spinney.cluster.devices import gpus_on

_COLOURS: Final = (
    "cyan",
    "magenta",
    "yellow",
    "green",
    "blue",
    "red",
    "bright_cyan",
    "bright_magenta",
    "bright_yellow",
)
_GAP: Final = 2
_LEFT_AT_LEAST: Final = 50
"""Columns below which the racks would no longer read as a picture."""
_FEWEST_GANGS: Final = 4
"""Gangs that are listed however little room there is."""
_WAITING_FIRST: Final = ("pending", "gated", "creating", "starting", "running")


def labelled_gang(pod: Pod) -> str:
    """Return the gang a pod is labelled with; empty for none."""
    return pod.metadata.labels.get(POD_GANG, "")


@dataclass(frozen=True)
class Scene:
    """What the picture is made of; pods are in the gang that ``gang_of`` names, if any."""

    nodes: Sequence[Node]
    pods: Sequence[Pod]
    gangs: Sequence[str] = ()
    gang_of: Callable[[Pod], str] = labelled_gang
    queues: Sequence[QueueShare] = ()
    event: str = ""
    """What happened last, in a line."""


@dataclass(frozen=True)
class GangProgress:
    """A gang in one line: how many of its pods exist, are bound and are ready, and what that amounts to."""

    name: str
    pods: int
    bound: int
    ready: int
    state: str

    @property
    def text(self) -> str:
        return f"{self.state}: {self.pods} pods, {self.bound} bound, {self.ready} ready"


def summary(scene: Scene) -> Mapping[str, GangProgress]:
    """Return a line per gang, in order of name."""
    members: dict[str, list[Pod]] = {name: [] for name in scene.gangs}
    for pod in scene.pods:
        if (name := scene.gang_of(pod)) in members:
            members[name].append(pod)
    return {name: _line(name, members[name]) for name in sorted(members)}


def gang_marks(scene: Scene) -> Mapping[str, Mark]:
    """Return a mark per gang, in order of name, so that a gang keeps its mark while it lives."""
    names = sorted({*scene.gangs, *map(scene.gang_of, scene.pods)} - {""})
    return {
        name: Mark(_COLOURS[index % len(_COLOURS)], ascii_uppercase[index % len(ascii_uppercase)])
        for index, name in enumerate(names)
    }


# -- layouts -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Content:
    """What every layout draws."""

    scene: Scene
    nodes: Sequence[Occupants]
    gangs: Sequence[GangProgress]
    marks: Mapping[str, Mark]


@dataclass(frozen=True)
class Picture:
    """The whole picture: racks, queues beside them, the gangs with the colour each has, and an event line.

    It is the roomiest layout of at most ``height`` lines; without one it is as high as it likes.
    """

    scene: Scene
    height: int | None = None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        marks = gang_marks(self.scene)
        nodes = occupants(self.scene.nodes, self.scene.pods, lambda pod: marks.get(self.scene.gang_of(pod), NOBODY))
        content = _Content(self.scene, nodes, list(summary(self.scene).values()), marks)
        lines: list[list[Segment]] = []
        for layout, least in _LAYOUTS:
            if self.height is not None and least(content, options.max_width) > self.height:
                continue  # thousands of boxes take seconds to lay out, only to be too many
            lines = console.render_lines(layout(content, self.height), options, pad=False)
            if self.height is None or len(lines) <= self.height:
                break
        for line in lines[: self.height]:
            yield from _without_trailing_blanks(line)
            yield Segment.line()


def _roomy(content: _Content, _: int | None) -> RenderableType:
    scene = content.scene
    gangs: RenderableType = _Gangs(content.gangs, content.marks) if content.gangs else Text("no gangs", style="dim")
    if not scene.queues:
        return _with_event([Boxes(content.nodes), gangs], scene)
    shares = draw_shares(scene.queues, sum(map(gpus_on, scene.nodes)))
    return _with_event([_Beside(Boxes(content.nodes), Group(shares, Text(), gangs))], scene)


def _snug(content: _Content, height: int | None) -> RenderableType:
    return _with_event([Boxes(content.nodes, names=False), _below(content, height)], content.scene)


def _terse(content: _Content, height: int | None) -> RenderableType:
    tables = _below(content, height)
    return _with_event([Lines(content.nodes, None if height is None else (tables, height - 1)), tables], content.scene)


def _cells(content: _Content) -> int:
    return sum(node.gpus + 2 for node in content.nodes)


_LAYOUTS: Final[Sequence[tuple[Callable[[_Content, int | None], RenderableType], Callable[[_Content, int], int]]]] = (
    (_roomy, lambda content, width: max(len(content.gangs), _cells(content) // width)),
    (_snug, lambda content, width: _cells(content) // width),
    (_terse, lambda _content, _width: 0),
)
"""From roomy to terse, each with how many lines it needs at least."""


def _with_event(parts: list[RenderableType], scene: Scene) -> RenderableType:
    if scene.event:
        parts.append(Text(printable(scene.event), style="dim", no_wrap=True, overflow="ellipsis"))
    return Group(*parts)


def _below(content: _Content, height: int | None) -> RenderableType:
    """Return queues and gangs side by side, each as short as it can be."""
    most = len(content.gangs) if height is None else max(_FEWEST_GANGS, height // 3)
    gangs = _Gangs(content.gangs, content.marks, most)
    if not content.scene.queues:
        return gangs
    shares = draw_shares(content.scene.queues, sum(map(gpus_on, content.scene.nodes)), short=True)
    return _Beside(shares, gangs, left_at_least=1)


@dataclass(frozen=True)
class _Beside:
    """One thing beside another where both fit, else below it."""

    left: RenderableType
    right: RenderableType
    left_at_least: int = _LEFT_AT_LEAST

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        room = options.max_width - Measurement.get(console, options, self.right).maximum - _GAP
        lines = console.render_lines(self.left, options.update(width=max(room, 1)), pad=False)
        wide = max((Segment.get_line_length(_without_trailing_blanks(line)) for line in lines), default=0)
        if room < max(self.left_at_least, wide):
            yield self.left
            yield self.right
            return
        grid = Table.grid(padding=(0, _GAP, 0, 0))
        grid.add_column(width=min(room, wide + 1))  # a table ends with a blank
        grid.add_column()
        grid.add_row(self.left, self.right)
        yield grid


def _without_trailing_blanks(line: list[Segment]) -> list[Segment]:
    kept = list(line)
    while kept and not kept[-1].text.strip():
        kept.pop()
    if kept:
        kept[-1] = Segment(kept[-1].text.rstrip(), kept[-1].style)
    return kept


# -- gangs -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Gangs:
    """The gangs with their marks; with ``most`` in short, and if some are left out, none that waits."""

    gangs: Sequence[GangProgress]
    marks: Mapping[str, Mark]
    most: int | None = None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self._table(console)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement.get(console, options, self._table(console))

    def _table(self, console: Console) -> Table:
        return self._at_length(console) if self.most is None else self._in_short(console, self.most)

    def _at_length(self, console: Console) -> Table:
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
        for heading in ("gang", "pods", "bound", "ready", "state"):
            table.add_column(heading)
        for gang in self.gangs:
            table.add_row(self._name(gang, console), str(gang.pods), str(gang.bound), str(gang.ready), _state(gang))
        return table

    def _in_short(self, console: Console, most: int) -> Table:
        table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim")
        table.add_column("gang", no_wrap=True)
        table.add_column("ready", justify="right")
        table.add_column("state")
        most = most if len(self.gangs) > most + 1 else len(self.gangs)  # "and 1 more" is as long as that one
        telling = sorted(self.gangs, key=lambda gang: (_WAITING_FIRST.index(gang.state), gang.name))[:most]
        for gang in telling if len(self.gangs) > most else self.gangs:
            table.add_row(self._name(gang, console), f"{gang.ready}/{gang.pods}", _state(gang))
        if len(self.gangs) > most:
            table.add_row(Text(f"and {len(self.gangs) - most} more", style="dim"))
        return table

    def _name(self, gang: GangProgress, console: Console) -> Text:
        mark = self.marks[gang.name]
        return mark.cell(console).append(f" {printable(gang.name)}", style=mark.colour)


def _line(name: str, pods: Sequence[Pod]) -> GangProgress:
    bound, ready = sum(bool(pod.spec.node_name) for pod in pods), sum(pod.is_true("Ready") for pod in pods)
    if not pods:
        state = "creating"
    elif ready == len(pods):
        state = "running"
    elif bound == len(pods):
        state = "starting"
    else:
        state = "gated" if any(pod.gated for pod in pods) else "pending"
    return GangProgress(name, len(pods), bound, ready, state)


_STATE_STYLES: Final = {"running": "green", "starting": "yellow", "pending": "red"}


def _state(gang: GangProgress) -> Text:
    return Text(gang.state, style=_STATE_STYLES.get(gang.state, "dim"))
