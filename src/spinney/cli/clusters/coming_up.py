"""How far what was applied has come: gang by gang, with what each waits for."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import click

from spinney.api.core import POD, Pod
from spinney.api.grove import POD_CLIQUE_SET, PodCliqueSet
from spinney.api.labels import PART_OF
from spinney.api.podgang import POD_GANG, PodGang
from spinney.api.resource import Resource
from spinney.api.struct import JSON, convert
from spinney.cli.clusters.connecting import Connection
from spinney.cli.clusters.following import Followed, following
from spinney.cli.terminal.output import progress, shortened
from spinney.explain.amounts import counted
from spinney.kube.keys import Key, key_of
from spinney.sim.overview.gang_table import GangLine
from spinney.sim.snapshots.snapshot import ClusterSnapshot

_SET: Final = POD_CLIQUE_SET.kind
_POD: Final = POD.kind
_REASON: Final = 100
"""Characters of a reason that are shown while waiting."""
_SHOWN: Final = 3
"""Gangs that are shown while waiting; the others are counted."""
_LOOK_AGAIN: Final = 1.0
"""Seconds without a change after which to look again: Jobs and the like are not followed, and lag behind their pods."""
_LAST_LOOK: Final = 5.0
"""Seconds that the look when the time is over may take."""


@dataclass(frozen=True)
class Arrival:
    """How far one object has come: what is still missing; nothing if it has arrived."""

    missing: tuple[str, ...] = ()
    why: str = ""
    """What to ask ``spinney why`` about."""


async def until_ready(
    connection: Connection, applied: Sequence[tuple[Resource, Key]], *, timeout: timedelta | None
) -> None:
    """Wait until the pods of all that was applied are ready, and say meanwhile what is being waited for.

    Kinds that make no pods are ready when they are there. Raises an error that says what was missing at the end.
    """
    awaited = [each for each in applied if each[0].kind in (_SET, _POD) or each[0].kind in _COUNTED]
    missing: list[Arrival] = []
    cluster: Followed | None = None
    if not awaited:
        return
    try:
        async with (
            asyncio.timeout(timeout.total_seconds() if timeout is not None else None),
            following(connection) as cluster,
        ):
            with progress("waiting for the cluster", repeat=True) as say:
                async for snapshot in cluster.states(within=_LOOK_AGAIN):
                    missing = await _behind(connection, cluster, snapshot, awaited)
                    if not missing:
                        return
                    say(on_one_line([text for stage in missing for text in stage.missing]))
    except TimeoutError:
        if cluster is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(_LAST_LOOK):
                    missing = await _behind(connection, cluster, cluster.snapshot(), awaited)
                    if not missing:
                        return
        said = "\n".join(f"  {text}" for stage in missing for text in stage.missing)
        asked = next((stage.why for stage in missing if stage.why), "")
        hint = f"\n'spinney why {asked}' says more" if asked else ""
        raise click.ClickException(f"not ready after {timeout}; still waiting for:\n{said}{hint}") from None


def on_one_line(missing: Sequence[str]) -> str:
    """Return what is being waited for: a few gangs, and how many more."""
    more = len(missing) - _SHOWN
    return "; ".join((*missing[:_SHOWN], *([f"and {more} more"] if more > 0 else ())))


async def _behind(
    connection: Connection, cluster: Followed, snapshot: ClusterSnapshot, applied: Sequence[tuple[Resource, Key]]
) -> list[Arrival]:
    """Return how far each object has come that has not arrived."""
    lines = cluster.gangs(snapshot)
    stages: list[Arrival] = []
    for resource, key in applied:
        if resource.kind == _SET:
            stages.append(_of_set(snapshot, key, lines))
        else:
            found = await connection.client.get(resource, key.name, key.namespace)
            stages.append(_of_pod(convert(Pod, found)) if resource.kind == _POD else _of_counts(resource, key, found))
    return [stage for stage in stages if stage.missing]


def _of_set(snapshot: ClusterSnapshot, key: Key, lines: Sequence[GangLine]) -> Arrival:
    found = next((each for each in snapshot.of(POD_CLIQUE_SET, PodCliqueSet) if key_of(each) == key), None)
    if found is None:
        return Arrival((f"{key.name}: the set is not seen yet",))
    if found.status.last_errors:
        return Arrival((f"{key.name}: {found.status.last_errors[-1].description}",), why=key.name)
    gangs = {
        each.metadata.name
        for each in snapshot.of(POD_GANG, PodGang)
        if each.metadata.namespace == key.namespace and each.metadata.labels.get(PART_OF) == key.name
    }
    own = [line for line in lines if line.namespace == key.namespace and line.name in gangs]
    behind = [line for line in own if line.ready < max(line.minimum, 1)]
    if behind:
        return Arrival(tuple(map(_told, behind)), why=behind[0].name)
    status, wanted = found.status, found.spec.replicas or 0
    if status.available_replicas >= wanted and status.observed_generation == found.metadata.generation:
        return Arrival()
    return Arrival((f"{key.name}: {status.available_replicas} of {counted(wanted, 'replica')} available",))


def _told(line: GangLine) -> str:
    reason = f": {shortened(line.reason, _REASON)}" if line.reason else ""
    return f"{line.name} {line.state}, {line.ready} of {counted(line.minimum, 'pod')} ready{reason}"


def _of_pod(pod: Pod) -> Arrival:
    if pod.status.phase == "Succeeded" or pod.is_true("Ready"):
        return Arrival()
    scheduled, name = pod.condition("PodScheduled"), pod.metadata.name
    reason = shortened(scheduled.message, _REASON) if scheduled is not None else ""
    return Arrival((f"pod {name}: {reason or 'not ready'}",), why=f"pod/{name}")


def _of_counts(resource: Resource, key: Key, found: JSON) -> Arrival:
    status = found.get("status") or {}
    wanted, ready = _COUNTED[resource.kind](found.get("spec") or {}, status)
    generation = 0 if resource.kind == "Job" else found["metadata"].get("generation", 0)  # a Job's status has none
    if ready >= wanted and status.get("observedGeneration", 0) >= generation:
        return Arrival()
    text = f"{resource.kind} {key.name}: {ready} of {counted(wanted, 'pod')} ready"
    return Arrival((text,), why=f"{resource.kind.lower()}/{key.name}")


def _job(spec: Mapping[str, Any], status: Mapping[str, Any]) -> tuple[int, int]:
    at_once = spec.get("parallelism", 1)
    wanted = min(at_once, spec.get("completions") or at_once)
    return wanted, status.get("ready", 0) + status.get("succeeded", 0)


def _replicas(spec: Mapping[str, Any], status: Mapping[str, Any]) -> tuple[int, int]:
    return spec.get("replicas", 1), status.get("readyReplicas", 0)


_COUNTED: Final[Mapping[str, Callable[[Mapping[str, Any], Mapping[str, Any]], tuple[int, int]]]] = {
    "Job": _job,
    "Deployment": _replicas,
    "ReplicaSet": _replicas,
    "StatefulSet": _replicas,
}
"""How many pods a workload wants and has ready, by kind."""
