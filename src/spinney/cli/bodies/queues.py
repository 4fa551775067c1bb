"""``spinney queues``: the tree of queues with what each is entitled to, holds and asks for."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spinney.api.kai import QUEUE
from spinney.cli.clusters.choosing import ClusterChoice
from spinney.cli.clusters.reading import print_unseen, snapshot_of
from spinney.cli.settings.session import scheduler_settings
from spinney.cli.terminal.output import columns, echo, print_data, progress
from spinney.cluster.resources import GPU_NAME
from spinney.explain.amounts import counted
from spinney.runtime import Runtime
from spinney.sim.overview.queue_table import QueueLine, has_queues, queue_lines
from spinney.sim.overview.suspended import SuspendedCounts, suspended_counts, waiting_suspended, with_kueues
from spinney.sim.whatif.simulation import Simulation

if TYPE_CHECKING:
    from spinney.cli.clusters.connecting import Connection

_SHORT = {GPU_NAME: "gpu"}
_FIELDS = ("quota", "limit", "fair_share", "allocated", "requested")


def queues(
    *,
    resource: tuple[str, ...],
    choice: ClusterChoice,
    config: Path | None,
    output: str,
) -> None:
    settings = scheduler_settings(config)
    known = {"gpu": GPU_NAME, "cpu": "cpu", "memory": "memory"}
    for name in resource:
        if name not in known and name not in known.values():
            raise click.BadParameter(
                f"{name!r} is not a resource of queues; known are gpu, cpu, memory", param_hint="--resource"
            )
    wanted = [known.get(name, name) for name in resource]
    suspended = SuspendedCounts()

    async def count_suspended(connection: "Connection") -> None:
        nonlocal suspended
        suspended = await suspended_counts(connection.client)

    snapshot, _ = snapshot_of(choice, also=count_suspended)
    snapshot = replace(snapshot, unseen=(*snapshot.unseen, *suspended.unseen))
    waiting = with_kueues(suspended.by_queue, snapshot)
    with progress("dividing the cluster"):
        simulation = Simulation(snapshot, settings, runtime=Runtime.system())
        lines = queue_lines(simulation.scheduler)
    if output in ("json", "yaml"):
        print_data({"queues": lines, "suspended": waiting, "unseen": snapshot.unseen}, output)
        return
    if not lines and not waiting:
        echo("no queues: the cluster has no Queue objects, and no gang names one")
    elif lines:
        always = wanted or (list(known.values()) if output == "wide" else [GPU_NAME])
        notable = [] if wanted else list(known.values())
        headings = ["QUEUE", "RESOURCE", "QUOTA", "LIMIT", "FAIR SHARE", "ALLOCATED", "REQUESTED", "PENDING GANGS"]
        echo(columns(headings, [row for line in lines if not line.problem for row in _rows(line, always, notable)]))
    for line in lines:
        if line.problem:
            echo(f"{line.name} cannot be used ({counted(line.pending_gangs, 'gang')} in it): {line.problem}")
    for name, number in sorted(waiting.items()):
        echo(f"{name}: {waiting_suspended(number)}")
    if snapshot.refused(QUEUE):
        echo("\nThe Queue objects may not be listed, so quotas, limits and shares are not known.", err=True)
    elif lines and not has_queues(simulation):
        echo("\nThe cluster has no Queue objects, so every queue a gang names may hold all of it.", err=True)
    print_unseen(snapshot)


def _rows(line: QueueLine, always: list[str], notable: list[str]) -> list[list[object]]:
    """Return a row for each resource that is always shown, and for those that keep gangs of the queue waiting."""
    name = "  " * line.depth + line.name
    more = [each for each in notable if each not in always and line.shares[each].is_over_limit]
    return [
        [
            name if number == 0 else "",
            _SHORT.get(resource, resource),
            *(getattr(line.shares[resource].shown(resource), field) for field in _FIELDS),
            line.pending_gangs if number == 0 else "",
        ]
        for number, resource in enumerate([*always, *more])
    ]
