"""``spinney top``: the gangs, nodes and queues of any cluster as they change, page by page.

The page of racks is the demo's picture.
"""

import asyncio
import sys
from collections.abc import Sequence
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from spinney.api.core import Node, Pod
from spinney.cli.clusters.choosing import ClusterChoice
from spinney.cli.clusters.connecting import Connection, with_cluster
from spinney.cli.clusters.following import following
from spinney.cli.clusters.reading import print_unseen, snapshot_of
from spinney.cli.pictures.picture import Picture, Scene
from spinney.cli.pictures.shares import QueueShare
from spinney.cli.screens.content import Content
from spinney.cli.screens.pages import ABOVE, BELOW, listing, screen
from spinney.cli.screens.view import ScreenView, keys, pressed
from spinney.cli.terminal.abilities import takes_commands
from spinney.cluster.classes import RequestClasses
from spinney.cluster.pods import record_of
from spinney.cluster.resources import ResourceAxis
from spinney.gangs.membership import membership
from spinney.gangs.sources import bare
from spinney.gangs.tree import GangKey
from spinney.runtime.tasks import end
from spinney.sim.overview.gang_table import GangTable
from spinney.sim.snapshots.snapshot import identity
from spinney.sim.whatif.loading import inventory_of

_WIDTH: Final = 120
_HEIGHT: Final = 200
"""Lines of a picture that is not for a terminal."""


def top(*, choice: ClusterChoice, once: bool) -> None:
    if once or choice.file is not None or not takes_commands(sys.stdout):
        snapshot, _ = snapshot_of(choice)
        inventory = inventory_of(snapshot, {pod.spec.scheduler_name for pod in snapshot.pods})
        lines = GangTable().lines(snapshot, inventory, singles=True)
        content = Content(snapshot, lines, inventory, choice.namespace)
        terminal = sys.stdout.isatty()
        console = Console(highlight=False, width=None if terminal else _WIDTH)
        console.print(Text(content.totals))
        picture = Memberships(choice.namespace).scene(snapshot.nodes, snapshot.pods, content.queues)
        console.print(Picture(picture, height=console.height - 2 if terminal else _HEIGHT), end="")
        print_unseen(snapshot)
        return
    with_cluster(choice, lambda connection: _follow(connection, choice.namespace))


class Memberships:
    """Pods and the gang each is in, whatever family that is of. Mutable: remembers pods it has seen.

    With a namespace the gangs of others have no name: their pods are drawn as pods that are in no gang.
    """

    def __init__(self, namespace: str | None = None) -> None:
        self._namespace = namespace
        self._classes = RequestClasses(ResourceAxis())
        self._seen: dict[tuple[str | None, str], tuple[Pod, GangKey | None]] = {}

    def scene(self, nodes: Sequence[Node], pods: Sequence[Pod], queues: Sequence[QueueShare] = ()) -> Scene:
        """Return what to draw; pods that ended are left out."""
        alive = [pod for pod in pods if not pod.terminal]
        self._seen = {identity(pod): (pod, self._gang(pod)) for pod in alive}
        keys = {name: key for name, (_, key) in self._seen.items() if key is not None}
        crowded = len({key.namespace for key in keys.values()}) > 1
        gangs = {name: str(key) if crowded else key.name for name, key in keys.items()}
        names = list(dict.fromkeys(gangs.values()))
        return Scene(nodes, alive, names, gang_of=lambda pod: gangs.get(identity(pod), ""), queues=queues)

    def _gang(self, pod: Pod) -> GangKey | None:
        seen, key = self._seen.get(identity(pod), (None, None))
        if seen is pod:
            return key
        found = membership(record_of(pod, self._classes))[0]
        return None if found.source == bare.SOURCE or self._namespace not in (None, found.namespace) else found


async def _follow(connection: Connection, namespace: str | None) -> None:
    """Show page after page, after each burst of changes and each key, until the user quits."""
    async with following(connection, namespace) as cluster:
        memberships, redraw, view = Memberships(namespace), asyncio.Event(), ScreenView()
        latest: list[Content] = []

        async def keep_up() -> None:
            async for snapshot in cluster.states():
                latest[:] = [Content(snapshot, cluster.gangs(snapshot, singles=True), cluster.inventory, namespace)]
                redraw.set()

        console = Console(highlight=False)
        keeping_up = asyncio.create_task(keep_up(), name="top: keeping up")
        try:
            with Live(console=console, screen=True, auto_refresh=False) as live, keys(redraw) as pressed_keys:
                while not keeping_up.done():
                    await redraw.wait()
                    redraw.clear()
                    if not latest:
                        continue
                    content, room = latest[0], max(console.height - ABOVE - BELOW, 1)
                    for key in pressed_keys():
                        rows = [row.key for row in listing(view, content).rows]
                        following_view = pressed(view, key, rows, room)
                        if following_view is None:
                            return
                        view = following_view
                    live.update(_drawn(view, content, memberships, console), refresh=True)
            keeping_up.result()
        finally:
            await end(keeping_up)


def _drawn(view: ScreenView, content: Content, memberships: Memberships, console: Console) -> RenderableType:
    if view.page != "racks":
        return Text("\n").join(screen(view, content, console.width, console.height - 1))
    picture = memberships.scene(content.snapshot.nodes, content.snapshot.pods, content.queues)
    frame = screen(view, content, console.width, ABOVE)[:2]
    return Group(*frame, Picture(picture, height=console.height - 1 - len(frame)))
