"""``spinney drain``: empty nodes, one gang at a time."""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import click

from spinney.api.core import NODE, POD, Node, Pod
from spinney.api.resource import Resource
from spinney.binding.draining import Drain, DrainStopped, Leaving
from spinney.cli.clusters.choosing import ClusterChoice
from spinney.cli.clusters.connecting import Connection, with_cluster
from spinney.cli.terminal.output import echo
from spinney.gangs.book import GangBook
from spinney.gangs.definitions import GangDefinitions
from spinney.gangs.everybody import EverybodysGangs
from spinney.gangs.intake import ClusterIntake
from spinney.kube.cache import Change, WatchCache
from spinney.kube.client import Client
from spinney.kube.errors import TooManyRequests
from spinney.scheduler.intake.sources import OPTIONAL_KINDS, available


def drain(
    *,
    nodes: tuple[str, ...],
    kubeconfig: Path | None,
    context: str | None,
    dry_run: bool,
    no_checkpoints: bool,
    force: bool,
    timeout: timedelta | None,
) -> None:
    async def use(connection: Connection) -> None:
        async with followed(connection.client) as (intake, gangs, changed):
            unknown = [name for name in nodes if name not in intake.cluster.table]
            if unknown:
                raise click.ClickException(f"no node is called {', '.join(unknown)}; `spinney get nodes` lists them")
            drain = Drain(
                connection.client,
                intake.cluster,
                gangs,
                nodes,
                changed=changed,
                tell=echo,
                asks=not no_checkpoints,
                gang_seconds=timeout.total_seconds() if timeout is not None else 0.0,
            )
            leaving = drain.leaving()
            if dry_run:
                await _foretell(drain, leaving)
                return
            lonely = [] if force else _lonely(leaving)
            if lonely:
                raise click.ClickException(
                    f"nothing makes these pods anew once they are evicted: {', '.join(lonely)}; delete them yourself, "
                    "or give --force"
                )
            try:
                await drain.run()
            except DrainStopped as error:
                raise click.ClickException(str(error)) from error
            echo(f"{len(nodes)} nodes are empty")

    with_cluster(ClusterChoice(kubeconfig, context), use)


@asynccontextmanager
async def followed(client: Client) -> AsyncIterator[tuple[ClusterIntake, GangBook, asyncio.Event]]:
    """Follow pods, nodes and gangs of a cluster, whoever schedules them; the event is set with every change."""
    intake, changed = ClusterIntake(), asyncio.Event()
    gangs = EverybodysGangs(intake)

    def take_in(change: Change[Any]) -> None:
        if change.new is not None:
            intake.apply(change.new)
        elif change.old is not None:
            intake.delete(change.old)
        changed.set()

    groups = {resource: kind for resource, kind in OPTIONAL_KINDS.items() if kind in GangDefinitions.KINDS}
    served = await available(client, groups)
    kinds: dict[Resource, type[Any]] = {NODE: Node, POD: Pod, **{each: groups[each] for each in served}}
    caches = [WatchCache(client, resource, kind, runtime=client.runtime) for resource, kind in kinds.items()]
    for cache in caches:
        cache.subscribe(take_in)
    watching = [asyncio.create_task(cache.run(), name=f"cache of {cache.resource}") for cache in caches]
    try:
        for cache in caches:
            await cache.wait_for_sync()
        yield intake, gangs.book, changed
    finally:
        for task in watching:
            task.cancel()
        await asyncio.gather(*watching, return_exceptions=True)


async def _foretell(drain: Drain, leaving: Collection[Leaving]) -> None:
    for each in leaving:
        try:
            await drain.evict(each, dry_run=True)
        except TooManyRequests as error:
            echo(f"{each}: {len(each.pods)} pods would wait for a disruption budget: {error}")
        else:
            state = "" if each.well else ", which has not what it needs now and is not waited for"
            echo(f"{each}: {len(each.pods)} pods would be evicted{state}")
    if not leaving:
        echo("there is nothing to evict")


def _lonely(leaving: Collection[Leaving]) -> list[str]:
    return [str(record.key) for each in leaving for record in each.pods if record.pod.metadata.controller is None]
