"""The pages of ``top``: content and view in, lines of text out. Only the rows that fit are laid out."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from rich.text import Text

from spinney.cli.screens.content import Content, PodLine
from spinney.cli.screens.view import HELP, PAGES, ScreenView
from spinney.cli.terminal.output import COLOURS, shortened
from spinney.cli.terminal.printable import printable
from spinney.explain.amounts import counted
from spinney.gangs.tree import GangKey
from spinney.sim.overview.gang_table import GangLine

_GAP: Final = "  "
ABOVE: Final = 4
"""Lines above the rows: totals, pages, what is searched and sorted, headings."""
BELOW: Final = 1


class Row(NamedTuple):
    """A row: what it opens, its cells, and the state that colours it."""

    key: str
    cells: tuple[str, ...]
    state: str = ""


class ScreenTable(NamedTuple):
    """Rows under headings, with a few lines about them above."""

    headings: tuple[str, ...]
    rows: Sequence[Row]
    about: Sequence[str] = ()


def listing(view: ScreenView, content: Content) -> ScreenTable:
    """Return all rows that a view lists, searched and ordered."""
    if view.opened:
        found = _gang_page(view, content) if view.page == "gangs" else _node_page(view, content)
    elif view.page == "gangs":
        found = _gangs(view, content)
    elif view.page == "nodes":
        found = _nodes(view, content)
    else:
        found = _queues(content)
    word = view.search.lower()
    return found._replace(rows=[row for row in found.rows if any(word in cell.lower() for cell in row.cells)])


def screen(view: ScreenView, content: Content, width: int, height: int) -> list[Text]:
    """Return the lines of the screen: at most ``height``, none wider than ``width``."""
    found = listing(view, content)
    about = [line[:width] for line in found.about]
    room = max(height - ABOVE - BELOW - len(about), 1)
    first = max(min(view.cursor - room // 2, len(found.rows) - room), 0)
    visible = found.rows[first : first + room]
    widths = _widths(found.headings, visible, width)
    lines = [Text(content.totals[:width], style="bold"), _tabs(view, width), _searched(view, found, width)]
    lines += [Text(printable(line)) for line in about]
    lines.append(Text(_joined(found.headings, widths), style="dim"))
    for number, row in enumerate(visible, first):
        line = Text(printable(_joined(row.cells, widths)).ljust(width), style=COLOURS.get(row.state, ""))
        if number == view.cursor:
            line.stylize("reverse")
        lines.append(line)
    if not visible:
        lines.append(Text("nothing to show", style="dim"))
    lines += [Text()] * (height - BELOW - len(lines))
    lines.append(Text(HELP[:width], style="dim"))
    return lines[:height]


def _gangs(view: ScreenView, content: Content) -> ScreenTable:
    orders = {
        "name": lambda line: (line.namespace, line.name),
        "GPUs": lambda line: (-line.gpus, line.name),
        "queue": lambda line: (line.queue, line.name),
    }
    gangs = content.gangs if view.order not in orders else sorted(content.gangs, key=orders[view.order])
    headings = ("GANG", "OF", "QUEUE", "READY", "GPUS", "STATE", "SPREAD", "WAITS FOR")
    rows = [
        Row(
            text_of(line),
            (
                f"{line.namespace}/{line.name}",
                line.workload,
                line.queue,
                f"{line.ready}/{line.pods}",
                f"{line.gpus_held}/{line.gpus}",
                line.state,
                line.spread,
                " ".join(line.reason.split()),
            ),
            line.state,
        )
        for line in gangs
    ]
    return ScreenTable(headings, rows)


def _nodes(view: ScreenView, content: Content) -> ScreenTable:
    orders = {
        "free GPUs": lambda node: (node.used - node.gpus, node.name),
        "state": lambda node: (node.state, node.name),
    }
    nodes = content.nodes if view.order not in orders else sorted(content.nodes, key=orders[view.order])
    rows = [
        Row(node.name, (node.name, node.state, f"{node.used}/{node.gpus}", str(node.pods)), node.state)
        for node in nodes
    ]
    return ScreenTable(("NODE", "STATE", "GPUS", "PODS"), rows)


def _queues(content: Content) -> ScreenTable:
    rows = [
        Row(
            share.name,
            (
                "  " * share.depth + share.name,
                str(share.held),
                "unlimited" if share.quota is None else f"{share.quota:g}",
                str(share.waiting),
            ),
            "pending" if share.waiting else "",
        )
        for share in content.queues
    ]
    return ScreenTable(("QUEUE", "GPUS HELD", "QUOTA", "GPUS WAITED FOR"), rows)


def _gang_page(view: ScreenView, content: Content) -> ScreenTable:
    line = next((each for each in content.gangs if text_of(each) == view.opened), None)
    if line is None:
        return ScreenTable((), (), (f"{view.opened} is gone; esc goes back",))
    about = [
        f"{line.source} {line.namespace}/{line.name}: {line.state}, {line.ready} of {line.pods} pods ready, "
        f"at least {line.minimum} together",
        f"queue {line.queue}, scheduler {line.scheduler}, {line.gpus_held} of {line.gpus} GPUs; "
        f"{line.spread or 'nowhere yet'}",
    ]
    if line.reason:
        about.append(f"waits for: {' '.join(line.reason.split())}")
    if line.state in ("pending", "gated"):
        about.append(f"'spinney why {line.name} -n {line.namespace}' says what would help")
    return _pods(content.members(GangKey(line.source, line.namespace, line.name)), about, gang=False)


def _node_page(view: ScreenView, content: Content) -> ScreenTable:
    node = next((each for each in content.nodes if each.name == view.opened), None)
    if node is None:
        return ScreenTable((), (), (f"{view.opened} is gone; esc goes back",))
    found = next(each for each in content.snapshot.nodes if each.metadata.name == node.name)
    taints = ", ".join(f"{taint.key}:{taint.effect}" for taint in found.spec.taints) or "none"
    places = ", ".join(
        f"{key.rpartition('/')[2]} {value}"
        for key, value in sorted(found.metadata.labels.items())
        if key.startswith("topology.kubernetes.io/")
    )
    about = [
        f"node {node.name}: {node.state}, {node.used} of {node.gpus} GPUs in use, {counted(node.pods, 'pod')}",
        f"taints: {taints}" + (f"; {places}" if places else ""),
    ]
    return _pods(content.on_node(node.name), about, gang=True)


def _pods(pods: Sequence[PodLine], about: Sequence[str], *, gang: bool) -> ScreenTable:
    rows = [
        Row(
            pod.name,
            (pod.name, pod.gang if gang else pod.node, str(pod.gpus), pod.state, " ".join(pod.reason.split())),
            pod.state,
        )
        for pod in pods
    ]
    return ScreenTable(("POD", "GANG" if gang else "NODE", "GPUS", "STATE", "WAITS FOR"), rows, about)


def text_of(line: GangLine) -> str:
    """Return what identifies a gang."""
    return f"{line.source}/{line.namespace}/{line.name}"


def _tabs(view: ScreenView, width: int) -> Text:
    tabs = Text()
    for number, page in enumerate(PAGES, 1):
        tabs.append(f" {number} {page} ", style="reverse" if page == view.page else "dim")
    tabs.truncate(width)
    return tabs


def _searched(view: ScreenView, found: ScreenTable, width: int) -> Text:
    if view.typing:
        return Text(f"/{view.search}▏"[:width])
    parts = [f"{min(view.cursor + 1, len(found.rows))} of {len(found.rows)}"]
    if not view.opened:
        parts.append(f"by {view.order}")
    if view.search:
        parts.append(f"with {view.search!r}")
    return Text(", ".join(parts)[:width], style="dim")


def _widths(headings: Sequence[str], rows: Sequence[Row], width: int) -> list[int]:
    """Return how wide each column is; the last takes what is left."""
    columns = zip(headings, *(row.cells for row in rows), strict=True)
    widths = [max(map(len, column)) for column in columns]
    if widths:
        widths[-1] = max(width - sum(widths[:-1]) - len(_GAP) * (len(widths) - 1), 0)
    return widths


def _joined(cells: Sequence[str], widths: Sequence[int]) -> str:
    fitted = [
        cell if len(cell) <= width else shortened(cell, max(width, 4))
        for cell, width in zip(cells, widths, strict=True)
    ]
    return _GAP.join(cell.ljust(width) for cell, width in zip(fitted, widths, strict=True)).rstrip()[
        : sum(widths) + len(_GAP) * len(widths)
    ]
