"""``spinney drain``: empty nodes, one gang at a time."""

from collections.abc import Collection
from datetime import timedelta

import click

from spinney.binding.draining import Drain, DrainStopped
from spinney.binding.moving import Leaving
from spinney.cli.clusters.choosing import ClusterChoice
from spinney.cli.clusters.connecting import Connection, with_cluster
from spinney.cli.clusters.following import following
from spinney.cli.options import meant
from spinney.cli.running import in_one_line
from spinney.cli.terminal.output import echo
from spinney.explain.amounts import counted


def drain(
    *,
    nodes: tuple[str, ...],
    choice: ClusterChoice,
    dry_run: bool,
    no_checkpoints: bool,
    force: bool,
    timeout: timedelta | None,
) -> None:
    async def use(connection: Connection) -> None:
        async with following(connection) as cluster:
            known = cluster.inventory.cluster.table
            unknown = [name for name in nodes if name not in known]
            if unknown:
                hint = f"{meant(unknown[0], filter(None, known.names))} 'spinney get nodes' lists all."
                raise click.ClickException(f"no node is called {', '.join(unknown)}{hint}")
            seconds = timeout.total_seconds() if timeout is not None else 0.0
            drain = Drain(cluster.mover(nodes, tell=echo, gang_seconds=seconds, asks=not no_checkpoints))
            leaving = drain.leaving()
            if dry_run:
                await _foretell(drain, leaving)
                return
            pods = [record for each in leaving for record in each.pods]
            lonely = [str(record.key) for record in pods if record.pod.metadata.controller is None]
            if lonely and not force:
                raise click.ClickException(
                    f"nothing makes these pods anew once they are evicted: {', '.join(lonely)}; delete them yourself, "
                    "or give --force"
                )
            with in_one_line(DrainStopped):
                await drain.run()
            echo(f"{counted(len(nodes), 'node')} {'is' if len(nodes) == 1 else 'are'} empty")

    with_cluster(choice, use)


async def _foretell(drain: Drain, leaving: Collection[Leaving]) -> None:
    for each in leaving:
        pods = counted(len(each.pods), "pod")
        if forbidden := await drain.mover.forbidden(each):
            echo(f"{each}: {pods} would wait for a disruption budget: {forbidden}")
        else:
            state = "" if each.well else ", which has not what it needs now and is not waited for"
            echo(f"{each}: {pods} would be evicted{state}")
    if not leaving:
        echo("there is nothing to evict")
