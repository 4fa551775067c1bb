"""``spinney why``: why something waits, and what would have to change."""

import asyncio
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec
import structlog

from spinney.api.core import EVENT
from spinney.api.documents import InvalidConfiguration
from spinney.api.events import Event
from spinney.cli.clusters.choosing import ClusterChoice
from spinney.cli.clusters.reading import print_unseen, snapshot_of
from spinney.cli.running import in_one_line
from spinney.cli.settings.session import PluginText, node_groups_in, scheduler_settings, session_policies
from spinney.cli.terminal.logs import log_to_stderr
from spinney.cli.terminal.output import apart_from_plugins, coloured, echo, print_data, progress
from spinney.explain.amounts import counted, first_few
from spinney.explain.rendering import as_text
from spinney.extensions.registry import UnknownPlugin
from spinney.gangs.source_workloads import SourceWorkload
from spinney.gangs.tree import GangKey
from spinney.kube.errors import Forbidden
from spinney.kube.keys import key_of
from spinney.runtime import Runtime, collection_held_off
from spinney.scheduler.process.endpoint import EXPLANATIONS, RefusedGang
from spinney.sim.advice.advice import Advisor
from spinney.sim.advice.answer import STARTS_ANYWAY, Answer
from spinney.sim.advice.births import births
from spinney.sim.advice.forecast import refused_gangs
from spinney.sim.advice.subjects import AmbiguousSubject, NoSuchSubject, UnknownSubject, find, may_be_queue
from spinney.sim.advice.suspended_workloads import SuspendedSubject, suspended_workload
from spinney.sim.overview.history import telling_events
from spinney.sim.overview.queue_table import QueueLine
from spinney.sim.overview.suspended import SuspendedCounts, suspended_counts, with_kueues
from spinney.sim.policies.faults import watching
from spinney.sim.policies.files import with_policies
from spinney.sim.remedies.change import Remedy
from spinney.sim.snapshots.expanding import InvalidWorkload
from spinney.sim.snapshots.snapshot import ClusterSnapshot, Unseen, forbidden
from spinney.sim.whatif.simulation import matching_profile

if TYPE_CHECKING:
    from spinney.cli.clusters.connecting import Connection

_DEVELOPER = 7  # the verbosity at which plugins log the node sets they made


def why(
    *,
    subject: str,
    choice: ClusterChoice,
    config: Path | None,
    plugins: tuple[PluginText, ...],
    node_groups: Path | None,
    verbose: bool,
    best: int,
    patience: float | None,
    explanations: str | None,
    output: str,
) -> None:
    policies = session_policies(plugins)
    settings = scheduler_settings(config, policies)
    addable = node_groups_in(node_groups)
    refused = _last_refusals(explanations) if explanations is not None else None
    events: list[Event] = []
    born: Mapping[SourceWorkload, datetime] = {}
    suspended: list[SuspendedSubject] = []
    waiting = SuspendedCounts()
    unseen: list[Unseen] = []

    async def read_more(connection: "Connection") -> None:
        nonlocal waiting, events, born
        events, born = await _told_by_events(connection, unseen)
        if (asked := await suspended_workload(connection.client, subject, connection.namespace)) is not None:
            suspended.append(asked)
        if may_be_queue(subject):
            waiting = await suspended_counts(connection.client)

    snapshot, here = snapshot_of(choice, also=read_more)
    exist = set(map(key_of, snapshot.pods))
    suspended = [] if _names_something(snapshot, subject, here) else suspended
    snapshot = replace(_with_gangs_of(suspended, snapshot), unseen=(*snapshot.unseen, *unseen))
    settings, registry = with_policies(settings or matching_profile(snapshot), policies)
    if verbose:
        settings = msgspec.structs.replace(settings, verbosity=_DEVELOPER)
    with (
        in_one_line(UnknownSubject, NoSuchSubject, AmbiguousSubject, UnknownPlugin, InvalidConfiguration),
        progress("simulating"),
        apart_from_plugins(),
        _developer_log(wanted=verbose) as logged,
        collection_held_off(),
        watching() as faults,
    ):
        advisor = Advisor(
            snapshot,
            settings,
            runtime=Runtime.system(),
            registry=registry,
            node_groups=addable,
            best=best,
            patience=patience,
            events=events,
            made_up=set(map(key_of, snapshot.pods)) - exist,
            refused=refused,
            suspended=with_kueues(waiting.by_queue, snapshot),
            born=born,
        )
        found = find(snapshot, subject, here, queues=advisor.queue_names)
        served = advisor.simulation.inventory.scheduler_names
        waits = tuple(
            each.sentence(served, Runtime.system().clock.now()) for each in suspended if found.word != "queue"
        )
        if found.word == "queue":
            snapshot = replace(snapshot, unseen=(*snapshot.unseen, *waiting.unseen))
        answer = _introduced(advisor.reasons(found), waits)
    if output != "text":
        with progress("trying changes"), apart_from_plugins(), watching(faults):
            answer = _introduced(advisor.answer(found), waits)
        print_data(
            {"answer": answer, "unseen": snapshot.unseen, **({"faults": list(faults)} if faults else {})}, output
        )
        if faults:
            sys.exit(1)
        return
    if found.word in ("podgang", "queue") and found.name not in subject and not suspended:
        echo(f"{subject} is {found}")
    if found.word == "pod" and found.name not in subject:
        echo(f"{found} is one of the pods of {subject}")
    with watching(faults):
        _print(advisor, answer, "")
    if verbose:
        _print_developer_log(answer, logged)
    print_unseen(snapshot)
    if faults:
        raise click.ClickException(str(faults))


async def _told_by_events(
    connection: "Connection", unseen: list[Unseen]
) -> tuple[list[Event], Mapping[SourceWorkload, datetime]]:
    """Read what happened, and when the workloads were created that it may have happened to."""
    try:
        events = await telling_events(connection.client, connection.namespace)
    except Forbidden as refusal:  # evictions are then only told by conditions
        unseen.append(forbidden(EVENT, refusal))
        return [], {}
    return events, await births(connection.client, connection.namespace, events)


def _names_something(snapshot: ClusterSnapshot, subject: str, namespace: str | None) -> bool:
    """Tell whether a name without a kind means something that is not suspended."""
    if "/" in subject:
        return False
    try:
        find(snapshot, subject, namespace)
    except AmbiguousSubject:
        return True
    except (NoSuchSubject, UnknownSubject):
        return False
    return True


def _with_gangs_of(suspended: Sequence[SuspendedSubject], snapshot: ClusterSnapshot) -> ClusterSnapshot:
    """Return the snapshot with the gangs that suspended workloads would be."""
    for workload in suspended:
        try:
            snapshot = workload.added_to(snapshot, Runtime.system().clock.now())
        except InvalidWorkload as error:
            raise click.ClickException(f"it is suspended, and its gang cannot be told: {error}") from error
    return snapshot


def _introduced(answer: Answer, waits: Sequence[str]) -> Answer:
    """Return an answer that begins with what suspended workloads wait for."""
    return msgspec.structs.replace(answer, sentences=(*waits, *answer.sentences))


def _last_refusals(url: str) -> Mapping[GangKey, RefusedGang]:
    """Return what the last cycle of the scheduler at ``url`` refused."""
    from spinney.dashboard.schedulers import RemoteScheduler, SchedulerUnreadable  # noqa: PLC0415 - an HTTP stack

    try:
        return refused_gangs(asyncio.run(RemoteScheduler(url.removesuffix(EXPLANATIONS)).read(EXPLANATIONS, {}, None)))
    except (SchedulerUnreadable, ValueError) as error:
        raise click.ClickException(
            f"--explanations {url}: {error}; the scheduler answers this host on its metrics port, for example after "
            "'kubectl port-forward deployment/spinney-scheduler 8080'"
        ) from error


def _print(advisor: Advisor, answer: Answer, indent: str) -> None:
    """Print an answer: what is known at once, what would let it start when that has been tried."""
    for line in reason_lines(answer):
        echo(f"{indent}{line}")
    with progress("trying changes") as say:
        advised = advisor.advised(answer, say)
    for line in remedy_lines(advised):
        echo(f"{indent}  {line}")
    for part in answer.parts:
        _print(advisor, part, f"{indent}  ")


def reason_lines(answer: Answer) -> list[str]:
    """Return what is known about a subject before any change is tried, without its parts."""
    where = f"{answer.namespace}/" if answer.namespace else ""
    word, _, name = answer.subject.partition("/")
    lines = [f"{word} {where}{name}: {coloured(answer.state)}"]
    lines += [f"  {sentence}" for sentence in (*answer.history, *answer.sentences)]
    if answer.queue is not None:
        lines += [f"  {line}" for line in _queue_lines(answer.queue)]
    lines += [f"  said by {' '.join(line.split())}" for line in answer.recorded]
    for explanation in answer.explanations:
        lines += [f"  {line}" for line in as_text(explanation).splitlines()]
    return lines


def remedy_lines(answer: Answer) -> list[str]:
    """Return what would let it start, with the command and the price of each."""
    if answer.starts_anyway:
        return [STARTS_ANYWAY]
    if not answer.tried:
        return []
    early = "" if answer.exhausted else "; the search stopped early, and more could be tried with --patience"
    if not answer.remedies and answer.tried == 1 and answer.exhausted:
        return ["there is no change to try that could let it start"]
    if not answer.remedies:
        return [f"nothing that was tried would let it start ({counted(answer.tried, 'attempt')}{early})"]
    lines = [f"what would let it start (each was tried on this snapshot{early}):"]
    for remedy in answer.remedies:
        lines.append(f"  - {remedy.text}{_price(remedy)}")
        lines += [f"      {line}" for change in remedy.changes for line in change.command.splitlines()]
    return lines


def _price(remedy: Remedy) -> str:
    """Return what is said behind a change: what it costs others, and that it may be larger than it need be."""
    price = remedy.price
    costs = [] if remedy.smallest else ["less may be enough: the search stopped before that was tried"]
    if price.evicted:
        costs.append(f"evicts {counted(len(price.evicted), 'pod')}: {first_few(price.evicted)}")
    if price.delayed:
        costs.append(f"delays {first_few(price.delayed)}")
    return f" ({'; '.join(costs)})" if costs else ""


def _queue_lines(queue: QueueLine) -> list[str]:
    return [
        f"{resource}: {share.allocated} in use, {share.requested} requested, quota {share.quota}, "
        f"limit {share.limit}, fair share {share.fair_share}"
        for resource, share in ((resource, share.shown(resource)) for resource, share in queue.shares.items())
    ]


@contextmanager
def _developer_log(*, wanted: bool) -> Iterator[Sequence[Mapping[str, Any]]]:
    """Gather what the scheduler logs for developers while the block runs; without being wanted, nothing is."""
    if not wanted:
        yield ()
        return
    log_to_stderr(1)  # what is below the level is not captured
    try:
        with structlog.testing.capture_logs() as logged:
            yield logged
    finally:
        log_to_stderr()


def _print_developer_log(answer: Answer, logged: Sequence[Mapping[str, Any]]) -> None:
    subjects = {explanation.subject for part in (answer, *answer.parts) for explanation in part.explanations}
    shown = [entry for entry in logged if "v" in entry and entry.get("job") in subjects]
    echo("\ndeveloper detail:")
    for entry in shown:
        echo(f"  {entry['job']}: {entry['event']}")
    if not shown:
        echo("  no plugin divided the nodes for it")
