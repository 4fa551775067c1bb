"""A picture of a cluster: racks as boxes, GPUs as cells coloured by the gang that uses them.

Pure: nodes, pods and queues in, something rich can print out. The demo and ``top`` draw it live, others once.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rich.columns import Columns
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from spinney.api.core import Node, Pod
from spinney.api.podgang import PodGang
from spinney.cli.gpus import gpus_of, gpus_on
from spinney.cli.shares import QueueShare, draw_shares

GANG_LABEL: Final = "grove.io/podgang"
RACK: Final = "topology.kubernetes.io/rack"
BLOCK: Final = "topology.kubernetes.io/block"

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
_FREE: Final = "·"
_USED: Final = "■"
_GAP: Final = 2
_SMALL: Final = 100
"""Columns of a screen below which every one of them counts."""
_LEFT_AT_LEAST: Final = 50
"""Columns below which the racks would no longer read as a picture."""


@dataclass(frozen=True)
class Scene:
    """What the picture is made of."""

    nodes: Sequence[Node]
    pods: Sequence[Pod]
    gangs: Sequence[PodGang] = ()
    queues: Sequence[QueueShare] = ()
    event: str = ""
    """What happened last, in a line."""


def draw(scene: Scene) -> RenderableType:
    """Return the whole picture: racks, queues beside them, the gangs with the colour each has, and an event line."""
    colours = gang_colours(scene)
    racks, gangs = _Racks(scene, colours), _gangs(scene, colours)
    if scene.queues:
        shares = draw_shares(scene.queues, sum(map(gpus_on, scene.nodes)))
        parts: list[RenderableType] = [_Beside(racks, Group(shares, Text(), gangs))]
    else:
        parts = [racks, gangs]
    if scene.event:
        parts.append(Text(scene.event, style="dim", no_wrap=True, overflow="ellipsis"))
    return Group(*parts)


@dataclass(frozen=True)
class _Beside:
    """One thing beside another where both fit, else below it."""

    left: RenderableType
    right: RenderableType

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        needed = Measurement.get(console, options, self.right).maximum + _GAP
        if options.max_width - needed < _LEFT_AT_LEAST:
            yield self.left
            yield self.right
            return
        grid = Table.grid(padding=(0, _GAP, 0, 0))
        grid.add_column(width=options.max_width - needed)
        grid.add_column()
        grid.add_row(self.left, self.right)
        yield grid


@dataclass(frozen=True)
class GangLine:
    """A gang in one word, and in one line of text."""

    state: str
    text: str


def summary(scene: Scene) -> Mapping[str, GangLine]:
    """Return a line per gang: how many of its pods exist, are bound and are ready."""
    lines: dict[str, GangLine] = {}
    for name, pods in _by_gang(scene):
        bound, ready = _progress(pods)
        state = _state(pods, bound=bound, ready=ready).plain
        lines[name] = GangLine(state, f"{state}: {len(pods)} pods, {bound} bound, {ready} ready")
    return lines


def gang_colours(scene: Scene) -> Mapping[str, str]:
    """Return a colour per gang, in order of name, so that a gang keeps its colour while it lives."""
    names = sorted({gang.metadata.name for gang in scene.gangs} | {_gang_of(pod) for pod in scene.pods} - {""})
    return {name: _COLOURS[index % len(_COLOURS)] for index, name in enumerate(names)}


@dataclass(frozen=True)
class _Racks:
    """A box per rack. On a small screen names are short, so that more racks stand in a row."""

    scene: Scene
    colours: Mapping[str, str]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        small = console.width < _SMALL
        shared = _shared([node.metadata.name for node in self.scene.nodes]) if small else 0
        on_node: dict[str, list[Pod]] = {}
        for pod in self.scene.pods:
            if pod.spec.node_name and not pod.terminal:
                on_node.setdefault(pod.spec.node_name, []).append(pod)
        racks: dict[tuple[str, str], list[Text]] = {}
        for node in sorted(self.scene.nodes, key=lambda node: node.metadata.name):
            name, labels = node.metadata.name, node.metadata.labels
            line = _node_line(name[shared:], gpus_on(node), on_node.get(name, []), self.colours)
            racks.setdefault((labels.get(BLOCK, ""), labels.get(RACK, "")), []).append(line)
        boxes = [
            Panel(
                Group(*lines),
                title="/".join(list(filter(None, domain))[-1 if small else 0 :]) or "nodes",
                title_align="left",
                border_style="dim",
                padding=(0, 1),
            )
            for domain, lines in racks.items()
        ]
        yield Columns(boxes, padding=(0, 1))


def _shared(names: Sequence[str]) -> int:
    """Return how many characters all names begin with; of one name, none."""
    if len(names) < 2:
        return 0
    first, last = min(names), max(names)
    return next((at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first))


def _node_line(name: str, gpus: int, pods: Iterable[Pod], colours: Mapping[str, str]) -> Text:
    line = Text.assemble((f"{name} ", "dim"))
    cells = [colours.get(_gang_of(pod), "white") for pod in sorted(pods, key=_gang_of) for _ in range(gpus_of(pod))]
    for index in range(gpus):
        if index < len(cells):
            line.append(_USED, style=cells[index])
        else:
            line.append(_FREE, style="dim")
    return line


def _gangs(scene: Scene, colours: Mapping[str, str]) -> RenderableType:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for heading in ("gang", "pods", "bound", "ready", "state"):
        table.add_column(heading)
    for name, pods in _by_gang(scene):
        bound, ready = _progress(pods)
        table.add_row(
            Text(f"{_USED} {name}", style=colours[name]),
            str(len(pods)),
            str(bound),
            str(ready),
            _state(pods, bound=bound, ready=ready),
        )
    return table


def _by_gang(scene: Scene) -> Iterator[tuple[str, Sequence[Pod]]]:
    """Yield each gang's name and pods, in order of name."""
    for name in sorted(gang.metadata.name for gang in scene.gangs):
        yield name, [pod for pod in scene.pods if _gang_of(pod) == name]


def _progress(pods: Sequence[Pod]) -> tuple[int, int]:
    """Return how many pods are bound, and how many are ready."""
    return sum(bool(pod.spec.node_name) for pod in pods), sum(pod.is_true("Ready") for pod in pods)


def _state(pods: Sequence[Pod], *, bound: int, ready: int) -> Text:
    if not pods:
        return Text("creating", style="dim")
    if ready == len(pods):
        return Text("running", style="green")
    if bound == len(pods):
        return Text("starting", style="yellow")
    if any(pod.gated for pod in pods):
        return Text("gated", style="dim")
    return Text("pending", style="red")


def _gang_of(pod: Pod) -> str:
    return pod.metadata.labels.get(GANG_LABEL, "")
