"""A picture of a cluster: racks as boxes, GPUs as cells coloured by the gang that uses them.

Pure: nodes and pods in, something rich can print out. The same picture is drawn live by the demo and still by others.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from spinney.api.core import Node, Pod
from spinney.api.podgang import PodGang
from spinney.api.quantity import value

GPU: Final = "nvidia.com/gpu"
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


@dataclass(frozen=True)
class Scene:
    """What the picture is made of."""

    nodes: Sequence[Node]
    pods: Sequence[Pod]
    gangs: Sequence[PodGang] = ()


def draw(scene: Scene) -> RenderableType:
    """Return the whole picture: racks, and the gangs with the colour each has."""
    colours = gang_colours(scene)
    return Group(_racks(scene, colours), _gangs(scene, colours))


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


def gpus_of(pod: Pod) -> int:
    """Return how many whole GPUs a pod asks for."""
    return sum(
        value(container.resources.requests.get(GPU, container.resources.limits.get(GPU, 0)))
        for container in pod.spec.containers
    )


def _racks(scene: Scene, colours: Mapping[str, str]) -> RenderableType:
    on_node: dict[str, list[Pod]] = {}
    for pod in scene.pods:
        if pod.spec.node_name and not pod.terminal:
            on_node.setdefault(pod.spec.node_name, []).append(pod)
    racks: dict[tuple[str, str], list[Node]] = {}
    for node in sorted(scene.nodes, key=lambda node: node.metadata.name):
        labels = node.metadata.labels
        racks.setdefault((labels.get(BLOCK, ""), labels.get(RACK, "")), []).append(node)
    boxes = [
        Panel(
            Group(*(_node_line(node, on_node.get(node.metadata.name, []), colours) for node in nodes)),
            title="/".join(filter(None, domain)) or "nodes",
            title_align="left",
            border_style="dim",
            padding=(0, 1),
        )
        for domain, nodes in racks.items()
    ]
    return Columns(boxes, padding=(0, 1))


def _node_line(node: Node, pods: Iterable[Pod], colours: Mapping[str, str]) -> Text:
    line = Text(f"{node.metadata.name} ", style="dim")
    cells = [colours.get(_gang_of(pod), "white") for pod in sorted(pods, key=_gang_of) for _ in range(gpus_of(pod))]
    total = value(node.status.allocatable.get(GPU, 0))
    for index in range(total):
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
