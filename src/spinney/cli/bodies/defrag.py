"""``spinney plan defrag``: the fewest moves that free room, what each costs, and what it looks like."""

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from string import ascii_lowercase
from typing import cast

import click
import msgspec

from spinney.api.documents import InvalidConfiguration
from spinney.binding.moving import MoveStopped
from spinney.cli.clusters.choosing import ClusterChoice
from spinney.cli.clusters.connecting import Connection, with_cluster
from spinney.cli.clusters.following import following
from spinney.cli.clusters.reading import print_unseen, snapshot_of
from spinney.cli.running import in_one_line
from spinney.cli.settings.session import PluginText, scheduler_settings, session_policies
from spinney.cli.terminal.output import apart_from_plugins, columns, echo, print_data, progress
from spinney.cluster.resources import GPU, Vector
from spinney.explain.amounts import counted
from spinney.extensions.registry import UnknownPlugin
from spinney.gangs.tree import GangKey
from spinney.runtime import Runtime
from spinney.scheduler.framework.session import Session
from spinney.sim.defrag.exact import is_installed
from spinney.sim.defrag.plan import PATIENCE, DefragPlan, Solver, carry_out, make_plan
from spinney.sim.defrag.problem import NoPlan, Problem, room_for, whole_nodes
from spinney.sim.policies.faults import PolicyFaults, watching
from spinney.sim.policies.files import with_policies
from spinney.sim.whatif.simulation import Simulation, matching_profile


def defrag(
    *,
    gang: str | None,
    nodes: int | None,
    level: str | None,
    solver: str,
    execute: bool,
    choice: ClusterChoice,
    config: Path | None,
    plugins: tuple[PluginText, ...],
    output: str,
) -> None:
    if (gang is None) == (nodes is None):
        raise click.UsageError("give either --for GANG or --nodes N")
    if level is not None and nodes is None:
        raise click.BadParameter("a gang says itself what its nodes must share", param_hint="--sharing")
    if solver == "exact" and not is_installed():
        raise click.ClickException("the exact solver is not installed here: pip install 'spinney[plan]'")
    if execute and choice.file is not None:
        raise click.BadParameter("a file cannot be changed; leave out --from", param_hint="--execute")
    policies = session_policies(plugins)
    settings = scheduler_settings(config, policies)
    snapshot, here = snapshot_of(choice)
    settings, registry = with_policies(settings or matching_profile(snapshot), policies)
    runtime = Runtime.system()
    faults = PolicyFaults()
    try:
        with (
            closing(runtime.executor),
            in_one_line(UnknownPlugin, InvalidConfiguration),
            progress("planning"),
            apart_from_plugins(),
            watching(faults),
        ):
            session = Simulation(snapshot, settings, runtime=runtime, registry=registry).scheduler.open_session()
            if gang is not None:
                wanted, problem = f"gang {gang}", room_for(session, session.job(_waiting(session, gang, here)))
            else:
                wanted = f"{counted(nodes or 0, 'whole node')}{f' sharing {level}' if level else ''}"
                problem = whole_nodes(session, nodes or 0, level)
            plan = make_plan(problem, wanted, cast("Solver", solver))
    except NoPlan as error:
        raise click.ClickException("\n".join([str(error), *([str(faults)] if faults else [])])) from error
    if output == "json":
        print_data(msgspec.to_builtins(plan), "json")
    else:
        _print(plan, problem, session.nodes.table.allocatable[:, GPU])
        print_unseen(snapshot)
    if faults:
        raise click.ClickException(str(faults))
    if execute:
        _execute(choice, plan)


def _waiting(session: Session, name: str, here: str | None) -> GangKey:
    """Return the gang that waits under a name."""
    namespace, _, bare = name.rpartition("/")
    space = namespace or here
    found = [
        key
        for key in session.snapshot.gangs.pending
        if key.name == bare and (not space or key.namespace == space) and session.job(key).pending
    ]
    if len(found) == 1:
        return found[0]
    if found:
        raise click.ClickException(f"several gangs that wait are called {bare}: name the namespace too")
    waiting = ", ".join(sorted(map(str, session.snapshot.gangs.pending))[:5]) or "none"
    raise click.ClickException(f"no gang {name} waits for room; those that wait: {waiting}")


def _print(plan: DefragPlan, problem: Problem, gpus: Vector) -> None:
    """Print a plan for people; ``gpus[node]`` is what each has."""
    if not plan.moves:
        have = "has" if len(plan.nodes) == 1 else "have"
        echo(f"Nothing has to be moved: {', '.join(plan.nodes)} {have} room for {plan.wanted}.")
        return
    how = "nothing cheaper exists" if plan.solver == "exact" else "something cheaper may exist"
    echo(
        f"Room for {plan.wanted} on {', '.join(plan.nodes)}: {counted(len(plan.moves), 'gang')} moved, "
        f"{counted(plan.restarts, 'pod')} started anew, {plan.gpu_hours:.1f} GPU hours done again ({how})."
    )
    echo()
    rows = [
        [move.gang, pod.pod, str(pod.gpus), pod.source, pod.target if pod.target != pod.source else "(restarts there)"]
        + ([f"{move.gpu_hours:.1f}"] if place == 0 else [""])
        for move in plan.moves
        for place, pod in enumerate(move.pods)
    ]
    echo(columns(["GANG", "POD", "GPUS", "FROM", "TO", "GPU HOURS LOST"], rows))
    echo()
    letters = {move.gang: ascii_lowercase[number % 26] for number, move in enumerate(plan.moves)}
    lines = [[name, before, after] for name, before, after in _drawn(plan, problem, gpus, letters)]
    echo(columns(["NODE", "GPUS BEFORE", "AFTER"], lines))
    echo(
        "\n. free   # others   + room that was wanted   "
        + "   ".join(f"{mark} {name}" for name, mark in letters.items())
    )


def _drawn(plan: DefragPlan, problem: Problem, gpus: Vector, letters: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Return, for each node that changes, its GPUs before and after."""
    touched = dict.fromkeys(plan.nodes)
    moves = [(letters[move.gang], pod) for move in plan.moves for pod in move.pods]
    for _, pod in moves:
        touched |= dict.fromkeys((pod.source, pod.target))
    row_of = {name: row for row, name in enumerate(problem.names)}
    found = []
    for name in sorted(touched):
        free = int(problem.free[row_of[name], GPU])
        leaving = "".join(mark * pod.gpus for mark, pod in moves if pod.source == name)
        coming = "".join(mark * pod.gpus for mark, pod in moves if pod.target == name)
        others = "#" * max(int(gpus[row_of[name]]) - free - len(leaving), 0)
        space = free + len(leaving) - len(coming)
        room = ("+" if name in plan.nodes else ".") * max(space, 0)
        found.append((name, others + leaving + "." * free, others + coming + room))
    return found


def _execute(choice: ClusterChoice, plan: DefragPlan) -> None:
    async def use(connection: Connection) -> None:
        async with following(connection) as cluster:
            mover = cluster.mover(plan.nodes, tell=lambda said: echo(said, err=True), gang_seconds=PATIENCE)
            try:
                await carry_out(plan, mover)
            except MoveStopped as error:
                raise click.ClickException(f"{error}; nothing more is moved, and the nodes are open again") from error

    with_cluster(choice, use)
