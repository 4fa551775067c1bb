"""A picture of a cluster as HTML, for notebooks: racks as boxes, devices as cells in the colour of their gang."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

_COLOURS: Final = ("#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#b07aa1", "#76b7b2", "#edc948", "#ff9da7", "#9c755f")
_FREE: Final = "#8883"
_CELL: Final = "display:inline-block;width:.75em;height:.75em;margin:1px;border-radius:2px"
_BOX: Final = "display:inline-block;vertical-align:top;border:1px solid #8886;border-radius:4px;padding:4px;margin:3px"


@dataclass(frozen=True)
class NodePicture:
    """One node: its domain, how many devices it has, and the gang of each device in use."""

    name: str
    domain: str
    devices: int
    used_by: Sequence[str]


@dataclass(frozen=True)
class GangPicture:
    """One gang: how many pods it has, how many are placed, and what it waits for."""

    name: str
    pods: int
    placed: int
    reason: str = ""


def html(nodes: Sequence[NodePicture], gangs: Sequence[GangPicture], *, caption: str) -> str:
    """Return the picture; gangs keep their colour as long as the order of ``gangs`` does."""
    colours = {gang.name: _COLOURS[number % len(_COLOURS)] for number, gang in enumerate(gangs)}
    boxes: dict[str, list[NodePicture]] = {}
    for node in nodes:
        boxes.setdefault(node.domain, []).append(node)
    drawn = "".join(_box(domain, inside, colours) for domain, inside in boxes.items())
    rows = "".join(
        f"<tr><td>{_cell(colours[gang.name], gang.name)} {escape(gang.name)}</td><td>{gang.placed}/{gang.pods}</td>"
        f"<td>{escape(gang.reason)}</td></tr>"
        for gang in gangs
    )
    table = f"<table><tr><th>gang</th><th>placed</th><th>waits for</th></tr>{rows}</table>" if gangs else ""
    return f'<div style="font-family:monospace"><div>{escape(caption)}</div>{drawn}{table}</div>'


def _box(domain: str, nodes: Sequence[NodePicture], colours: Mapping[str, str]) -> str:
    inside = "".join(_node(node, colours) for node in nodes)
    return f'<div style="{_BOX}"><small>{escape(domain) or "nodes"}</small>{inside}</div>'


def _node(node: NodePicture, colours: Mapping[str, str]) -> str:
    cells = [_cell(colours.get(gang, "#888"), gang or "a pod in no gang") for gang in node.used_by]
    cells += [_cell(_FREE, "free")] * max(node.devices - len(cells), 0)
    return f"<div>{escape(node.name)} {''.join(cells)}</div>"


def _cell(colour: str, title: str) -> str:
    return f'<span style="{_CELL};background:{colour}" title="{escape(title)}"></span>'
