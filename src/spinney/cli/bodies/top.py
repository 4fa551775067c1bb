"""``spinney top``: the nodes of any cluster and the gangs on them, as they change.

The picture is the demo's. Gangs of other families (PodGroups) are shown as if they were PodGangs.
"""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from rich.live import Live

from spinney.api.core import NODE, POD, Node, Pod
from spinney.api.kai import QUEUE, Queue
from spinney.api.meta import ObjectMeta
from spinney.api.podgang import PodGang
from spinney.cli.clusters.choosing import ClusterChoice
from spinney.cli.clusters.connecting import Connection, with_cluster
from spinney.cli.clusters.reading import print_unseen, snapshot_of
from spinney.cli.pictures.picture import GANG_LABEL, Scene, draw
from spinney.cli.pictures.shares import queue_shares
from spinney.cli.terminal.console import ReadableConsole
from spinney.cluster.classes import RequestClasses
from spinney.cluster.pods import record_of
from spinney.cluster.resources import ResourceAxis
from spinney.gangs.membership import membership
from spinney.gangs.sources import bare
from spinney.gangs.tree import GangKey
from spinney.kube.cache import WatchCache
from spinney.kube.discovery import served

_REFRESH: Final = 0.2
"""Seconds between two pictures at least; events in between are gathered."""
_SHARE: Final = 4
"""Of the time, at most one part in so many goes into drawing."""
_WIDTH: Final = 120
_HEIGHT: Final = 200
"""Lines of a picture that is not for a terminal."""


def top(
    *, namespace: str | None, kubeconfig: Path | None, context: str | None, from_file: Path | None, once: bool
) -> None:
    choice = ClusterChoice(kubeconfig, context, namespace)
    if once or from_file is not None or not sys.stdout.isatty():
        snapshot, _ = snapshot_of(choice, from_file)
        pods = [pod for pod in snapshot.pods if namespace in (None, pod.metadata.namespace)]
        terminal = sys.stdout.isatty()
        console = ReadableConsole(highlight=False, width=None if terminal else _WIDTH)
        picture = scene(list(snapshot.nodes), pods, snapshot.of(QUEUE, Queue))
        console.print(draw(picture, height=console.height - 1 if terminal else _HEIGHT), end="")
        print_unseen(snapshot)
        return
    with_cluster(choice, lambda connection: _follow(connection, namespace))


class Memberships:
    """Pods labelled with the gang they are in, whatever family that is of. Mutable: remembers pods it has seen."""

    def __init__(self) -> None:
        self._classes = RequestClasses(ResourceAxis())
        self._seen: dict[str, tuple[Pod, GangKey | None]] = {}

    def scene(self, nodes: Sequence[Node], pods: Sequence[Pod], queues: Sequence[Queue] = ()) -> Scene:
        """Return what to draw; pods that ended are left out."""
        alive = [pod for pod in pods if not pod.terminal]
        keys = [self._gang(pod) for pod in alive]
        self._seen = {pod.metadata.uid or "": (pod, key) for pod, key in zip(alive, keys, strict=True)}
        crowded = len({key.namespace for key in keys if key is not None}) > 1
        gangs: dict[str, PodGang] = {}
        shown: list[Pod] = []
        for pod, key in zip(alive, keys, strict=True):
            if key is None:
                shown.append(pod)
                continue
            name = str(key) if crowded else key.name
            gangs.setdefault(name, PodGang(metadata=ObjectMeta(name=name, namespace=key.namespace)))
            labels = {**pod.metadata.labels, GANG_LABEL: name}
            shown.append(msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, labels=labels)))
        return Scene(nodes=nodes, pods=shown, gangs=list(gangs.values()), queues=queue_shares(queues, shown))

    def _gang(self, pod: Pod) -> GangKey | None:
        seen, key = self._seen.get(pod.metadata.uid or "", (None, None))
        if seen is pod:
            return key
        found = membership(record_of(pod, self._classes))[0]
        return None if found.source == bare.SOURCE else found


def scene(nodes: Sequence[Node], pods: Sequence[Pod], queues: Sequence[Queue] = ()) -> Scene:
    """Return what to draw, once."""
    return Memberships().scene(nodes, pods, queues)


async def _must_be_listed(connection: Connection, namespace: str | None) -> None:
    """Raise what the server says if nodes or pods may not be listed: a cache would go on trying."""
    for resource, where in ((NODE, None), (POD, namespace)):
        async for _ in connection.client.pages(resource, where, limit=1):
            break


async def _follow(connection: Connection, namespace: str | None) -> None:
    """Draw until cancelled, after each burst of changes."""
    client, changed = connection.client, asyncio.Event()
    await _must_be_listed(connection, namespace)
    nodes = WatchCache(client, NODE, Node, runtime=client.runtime)
    pods = WatchCache(client, POD, Pod, runtime=client.runtime, namespace=namespace)
    queues = WatchCache(client, QUEUE, Queue, runtime=client.runtime)
    followed: list[WatchCache[Any]] = [nodes, pods]
    if QUEUE in await served(client, [QUEUE]):
        followed.append(queues)
    async with asyncio.TaskGroup() as following:
        for cache in followed:
            cache.subscribe(lambda _: changed.set())
            following.create_task(cache.run())
        for cache in followed:
            await cache.wait_for_sync()
        clock, memberships = client.runtime.clock, Memberships()
        console = ReadableConsole(highlight=False)
        with Live(console=console, screen=True, auto_refresh=False) as live:
            while True:
                changed.clear()
                began = clock.monotonic()
                picture = memberships.scene(list(nodes.values()), list(pods.values()), list(queues.values()))
                live.update(draw(picture, height=console.height - 1), refresh=True)
                took = clock.monotonic() - began
                await changed.wait()
                await clock.sleep(max(_REFRESH, took * (_SHARE - 1)))
