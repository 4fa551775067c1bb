"""``spinney top``: the nodes of any cluster and the gangs on them, as they change.

The picture is the demo's. Gangs of other families (PodGroups) are shown as if they were PodGangs.
"""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.live import Live

from spinney.api.core import NODE, POD, Node, Pod
from spinney.api.kai import QUEUE, Queue
from spinney.api.meta import ObjectMeta
from spinney.api.podgang import PodGang
from spinney.cli.connecting import ClusterChoice, Connection, snapshot_of, with_cluster
from spinney.cli.picture import GANG_LABEL, Scene, draw
from spinney.cli.shares import queue_shares
from spinney.cluster.classes import RequestClasses
from spinney.cluster.pods import record_of
from spinney.cluster.resources import ResourceAxis
from spinney.gangs.membership import membership
from spinney.gangs.sources import bare
from spinney.kube.cache import WatchCache
from spinney.kube.discovery import served

_REFRESH = 0.2
"""Seconds between two pictures at most; events in between are gathered."""
_WIDTH = 120


def top(
    *, namespace: str | None, kubeconfig: Path | None, context: str | None, from_file: Path | None, once: bool
) -> None:
    """Watch the GPUs of a cluster fill: racks, nodes, and the gangs on them; Ctrl-C ends it."""
    choice = ClusterChoice(kubeconfig, context, namespace)
    if once or from_file is not None or not sys.stdout.isatty():
        snapshot, _ = snapshot_of(choice, from_file)
        pods = [pod for pod in snapshot.pods if namespace in (None, pod.metadata.namespace)]
        Console(highlight=False, width=None if sys.stdout.isatty() else _WIDTH).print(
            draw(scene(list(snapshot.nodes), pods, snapshot.of(QUEUE, Queue)))
        )
        return
    with_cluster(choice, lambda connection: _follow(connection, namespace))


def scene(nodes: Sequence[Node], pods: Sequence[Pod], queues: Sequence[Queue] = ()) -> Scene:
    """Return what to draw: every pod labelled with the gang it is in, whatever family that is of."""
    classes = RequestClasses(ResourceAxis())
    shown: list[Pod] = []
    gangs: dict[str, PodGang] = {}
    for pod in pods:
        if pod.terminal:
            continue
        key = membership(record_of(pod, classes))[0]
        if key.source == bare.SOURCE:
            shown.append(pod)
            continue
        gangs.setdefault(key.name, PodGang(metadata=ObjectMeta(name=key.name, namespace=key.namespace)))
        labels = {**pod.metadata.labels, GANG_LABEL: key.name}
        shown.append(msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, labels=labels)))
    return Scene(nodes=nodes, pods=shown, gangs=list(gangs.values()), queues=queue_shares(queues, shown))


async def _follow(connection: Connection, namespace: str | None) -> None:
    """Draw until cancelled, after each burst of changes."""
    client, changed = connection.client, asyncio.Event()
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
        with Live(console=Console(highlight=False), screen=True, auto_refresh=False) as live:
            while True:
                changed.clear()
                picture = scene(list(nodes.values()), list(pods.values()), list(queues.values()))
                live.update(draw(picture), refresh=True)
                await changed.wait()
                await client.runtime.clock.sleep(_REFRESH)
