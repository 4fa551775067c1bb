"""``spinney simulate``: what would be placed where, what would wait and why, and what another configuration changes."""

import sys
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import click

from spinney.api.core import NODE
from spinney.api.documents import InvalidConfiguration
from spinney.api.durations import format_duration
from spinney.api.grove import POD_CLIQUE_SET, PodCliqueSet
from spinney.api.labels import PART_OF
from spinney.api.podgang import POD_GANG, PodGang
from spinney.cli.clusters.choosing import DEFAULT_NAMESPACE, ClusterChoice
from spinney.cli.clusters.reading import print_unseen, snapshot_of
from spinney.cli.manifests.objects import Manifest, read
from spinney.cli.settings.session import PluginText, contenders, node_groups_in, session_policies
from spinney.cli.terminal.output import apart_from_plugins, columns, echo, print_data, progress, shortened
from spinney.explain.amounts import counted
from spinney.extensions.registry import UnknownPlugin
from spinney.gangs.source_workloads import SourceWorkload, workload
from spinney.gangs.sources import podgang
from spinney.gangs.tree import GangKey
from spinney.runtime import Runtime
from spinney.sim.policies.faults import watching
from spinney.sim.remedies.change import Remedy, told_anew, without_pods_of
from spinney.sim.remedies.search import nodes_to_add
from spinney.sim.snapshots.expanding import (
    DEFAULT_SCHEDULER,
    ExpansionContext,
    InvalidWorkload,
    expand,
    names_scheduler,
)
from spinney.sim.snapshots.snapshot import ClusterSnapshot
from spinney.sim.whatif.outcomes import Outcome, Waiting, differences
from spinney.sim.whatif.simulation import Simulation, matching_profile

_REASON_WIDTH = 100


@dataclass(frozen=True)
class SimulationRun:
    """One configuration and what came of it."""

    name: str
    outcome: Outcome
    workloads: Mapping[GangKey, SourceWorkload]
    """What gangs were made for, where the grouper made them."""
    nodes: Mapping[GangKey, Remedy | None]
    """The nodes with which gangs would start that wait, where it was asked for; ``None`` if none would do."""


def simulate(
    *,
    snapshot: Path | None,
    files: tuple[Path, ...],
    configs: tuple[Path, ...],
    plugins: tuple[PluginText, ...],
    node_groups: Path | None,
    cycles: int,
    choice: ClusterChoice,
    output: str,
) -> None:
    if len(configs) > 2:
        raise click.BadParameter("at most two configurations can be compared", param_hint="--config")
    if len(configs) == 2 and plugins:
        raise click.BadParameter("a plugin is compared with one configuration, not with two", param_hint="--plugin")
    policies, addable = session_policies(plugins), node_groups_in(node_groups)
    taken, here = snapshot_of(_chosen(choice, snapshot))
    if taken.refused(NODE):
        raise click.ClickException(
            f"nodes may not be listed in {taken.source}, so nothing could be placed; ask for get and list on nodes, or "
            "for a file that a user with these rights wrote with 'spinney snapshot'"
        )
    running = list(contenders(matching_profile(taken), configs, plugins, policies))
    runtime = Runtime.system()
    cluster = _with_workload(taken, files, here, runtime)
    _print_without_gangs(cluster)
    workloads = {
        GangKey.of(podgang.SOURCE, gang.metadata): made
        for gang in cluster.of(POD_GANG, PodGang)
        if (made := workload(gang)) is not None
    }
    runs = []
    try:
        with progress("simulating", steps=len(running)) as say, watching() as faults, apart_from_plugins():
            for name, config, registry in running:
                say(f"simulating {name}")
                simulation = Simulation(cluster, config, runtime=runtime, registry=registry)
                outcome = simulation.run(cycles)
                say(f"adding nodes to {name}" if addable and outcome.waiting else f"simulating {name}")
                nodes = {
                    each.gang: nodes_to_add(
                        cluster,
                        each.gang,
                        config,
                        addable,
                        runtime=runtime,
                        registry=registry,
                        explanation=each.explanation,
                    )
                    for each in (outcome.waiting if addable else ())  # as the cluster is before the others have theirs
                }
                runs.append(SimulationRun(name, outcome, workloads, nodes))
    except (UnknownPlugin, InvalidConfiguration) as error:
        raise click.ClickException(str(error)) from error
    except Exception as error:
        if not policies or not any(str(path.resolve()) in _files(error) for path, _, _ in plugins):
            raise
        names = ", ".join(each.name for each, _ in policies.session)
        faults.add(names, error, "the session could not be opened", "on_session_open")
        raise click.ClickException(str(faults)) from error
    finally:
        runtime.executor.close()
    if output in ("json", "yaml"):
        print_data({**_as_data(runs, taken), "faults": list(faults)}, output)
        sys.exit(1 if faults else 0)
    for run in runs:
        _print_run(run, wide=output == "wide", named=len(runs) > 1)
    if len(runs) == 2:
        _print_differences(*runs)
    print_unseen(taken)
    if faults:
        raise click.ClickException(str(faults))


def _print_without_gangs(cluster: ClusterSnapshot) -> None:
    """Say which sets are in a snapshot as a user wrote them: only an operator makes gangs of a set."""
    made = {(gang.metadata.namespace, gang.metadata.labels.get(PART_OF)) for gang in cluster.of(POD_GANG, PodGang)}
    for each in cluster.of(POD_CLIQUE_SET, PodCliqueSet):
        name = each.metadata.name
        if each.spec.replicas != 0 and (each.metadata.namespace, name) not in made:
            echo(
                f"PodCliqueSet {name} has no gangs in {cluster.source}; name its file with -f, and they are made",
                err=True,
            )


def _chosen(choice: ClusterChoice, snapshot: Path | None) -> ClusterChoice:
    """Return which cluster is meant, whichever way its file was named."""
    if snapshot is not None and choice.file is not None:
        raise click.UsageError(f"SNAPSHOT {snapshot} and --from {choice.file} name two files; one cluster is simulated")
    return replace(choice, file=snapshot or choice.file)


def _files(error: Exception) -> set[str]:
    """Return the files that an error came through."""
    return {str(Path(frame.filename).resolve()) for frame in traceback.extract_tb(error.__traceback__)}


def _with_workload(
    taken: ClusterSnapshot, files: Sequence[Path], namespace: str | None, runtime: Runtime
) -> ClusterSnapshot:
    if not files:
        return taken
    # Manifests are held to the schemas of their kinds, which only the extra `embedded` can compile; a snapshot is not.
    from spinney.cli.manifests.judging import setting_of, verdict_on  # noqa: PLC0415

    manifests = read(tuple(files))
    setting = setting_of(None, manifests)
    problems = [problem for manifest in manifests for problem in verdict_on(manifest, setting).problems]
    if problems:
        raise click.ClickException("\n".join(map(str, problems)))
    values = [manifest.value for manifest in manifests]
    surroundings = ExpansionContext.of(taken, runtime.clock.now(), namespace=namespace or DEFAULT_NAMESPACE)
    rest = without_pods_of(taken, values, surroundings.namespace)
    if said := told_anew(taken, rest, "the files", taken.source):
        echo(said, err=True)
    try:
        added = expand(values, surroundings)
    except InvalidWorkload as error:
        raise click.ClickException(f"{_place(error, manifests)}{error}") from error
    for each in added if surroundings.default_scheduler is None else ():
        if isinstance(each, PodCliqueSet) and not names_scheduler(each):
            echo(
                f"PodCliqueSet {each.metadata.name} names no scheduler, and which one the operator gives it is not "
                f"known: {DEFAULT_SCHEDULER} is assumed; schedulerName in its podSpec names another",
                err=True,
            )
    return rest.with_objects(added)


def _place(error: InvalidWorkload, manifests: Sequence[Manifest]) -> str:
    """Return file and line of the object that was refused; one that was filled in has its name."""
    refused = error.manifest.get("metadata") or {}
    for manifest in manifests:
        if manifest.value is error.manifest or manifest.name == refused.get("name"):
            return f"{manifest.document.source}:{manifest.document.line()}: "
    return ""


# -- for people --------------------------------------------------------------------------------------------------------


def _print_run(run: SimulationRun, *, wide: bool, named: bool) -> None:
    outcome = run.outcome
    if named:
        echo(f"== {run.name}")
    waiting = {each.gang: each for each in outcome.waiting}
    gangs = dict.fromkeys([*(outcome.gangs[pod] for pod in outcome.placed), *waiting])
    if not gangs:
        echo("nothing is pending, so there is nothing to place")
        return
    rows = [_row(gang, run, waiting.get(gang), wide=wide) for gang in sorted(gangs)]
    echo(columns(["GANG", "KIND", "PLACED", "PENDING", "WHERE, OR WHY NOT"], rows))
    for gang, remedy in run.nodes.items():
        name = run.workloads[gang].name if gang in run.workloads else gang.name
        if remedy is not None:
            echo(f"{name} would start: {remedy.text}")
    for eviction in outcome.evictions:
        for_whom = f" for {eviction.beneficiary}" if eviction.beneficiary is not None else ""
        grace = outcome.graces.get(eviction.pod)
        first = f", asked first: it has up to {format_duration(grace)} to checkpoint" if grace is not None else ""
        echo(f"evicted: {eviction.pod} from {eviction.node}{for_whom}{first}")
    ended = "" if outcome.settled else "; the last one still changed something, so ask for more --cycles"
    pending = sum(len(each.pods) for each in outcome.waiting)
    placed, took = counted(len(outcome.placed), "pod"), counted(outcome.cycles, "cycle")
    echo(f"\n{placed} placed, {pending} pending after {took}{ended}")


def _row(gang: GangKey, run: SimulationRun, waiting: Waiting | None, *, wide: bool) -> list[object]:
    outcome, made = run.outcome, run.workloads.get(gang)
    nodes: dict[str, int] = {}
    for pod, node in outcome.placed.items():
        if outcome.gangs[pod] == gang:
            nodes[node] = nodes.get(node, 0) + 1
    where = ", ".join(node if count == 1 else f"{node} x{count}" for node, count in sorted(nodes.items()))
    said = waiting.message if waiting is not None else ""
    text = "; ".join(filter(None, (where, said)))
    pending = len(waiting.pods) if waiting is not None else 0
    named = (gang, gang.source) if made is None else (f"{gang.namespace}/{made.name}", made.kind)
    return [*named, sum(nodes.values()), pending, text if wide else shortened(text, _REASON_WIDTH)]


def _print_differences(before: SimulationRun, after: SimulationRun) -> None:
    found = differences(before.outcome, after.outcome)
    if not found:
        echo("\nboth configurations decide the same")
        return
    echo(f"\nwhat {after.name} changes:")
    echo(columns(["GANG", before.name, after.name], [[each.gang, each.before, each.after] for each in found]))


# -- for programs ------------------------------------------------------------------------------------------------------


def _as_data(runs: Sequence[SimulationRun], taken: ClusterSnapshot) -> dict[str, Any]:
    data: dict[str, Any] = {"runs": [_run_data(run) for run in runs], "unseen": taken.unseen}
    if len(runs) == 2:
        data["differences"] = [
            {"gang": str(each.gang), "before": each.before, "after": each.after}
            for each in differences(runs[0].outcome, runs[1].outcome)
        ]
    return data


def _run_data(run: SimulationRun) -> dict[str, Any]:
    outcome = run.outcome
    return {
        "config": run.name,
        "cycles": outcome.cycles,
        "settled": outcome.settled,
        "placed": [
            {"pod": str(pod), "node": node, "gang": str(outcome.gangs[pod])} for pod, node in outcome.placed.items()
        ],
        "evicted": [
            {
                "pod": str(each.pod),
                "node": each.node,
                "for": str(each.beneficiary or ""),
                "message": each.message,
                "checkpointSeconds": outcome.graces.get(each.pod, timedelta(0)).total_seconds(),
            }
            for each in outcome.evictions
        ],
        "pending": [
            {
                "gang": str(each.gang),
                "kind": each.gang.source,
                "pods": [str(pod) for pod in each.pods],
                "message": each.message,
                "explanation": each.explanation,
                "nodesToAdd": run.nodes.get(each.gang),
            }
            for each in outcome.waiting
        ],
    }
