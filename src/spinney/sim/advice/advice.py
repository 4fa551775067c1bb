"""Why something waits, on any cluster: what its scheduler said, what gates hold it, and what a simulation finds.

An :class:`Advisor` simulates one scheduling cycle over a snapshot, with the rules of the scheduler that the pods in
question name, and puts together what is known about one subject. It only reads. An answer says when it simulates
another scheduler than ours, and the snapshot says what could not be seen.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from types import MappingProxyType
from typing import Final

import msgspec

from spinney.api import grove, kai, kueue
from spinney.api.conditions import find_condition
from spinney.api.core import NODE
from spinney.api.events import Event
from spinney.api.labels import PART_OF, POD_CLIQUE, SCALING_GROUP
from spinney.api.labels import POD_GANG as GANG_LABEL
from spinney.api.meta import Condition, OwnerReference
from spinney.api.podgang import BACKEND_READY, MINIMUM_NOT_PLACED, POD_GANG, SCHEDULED, PodGang
from spinney.api.quantity import value
from spinney.cluster.pods import PodKey, PodRecord
from spinney.explain.amounts import counted, first_few, listed
from spinney.explain.rendering import condition_message
from spinney.gangs.membership import membership
from spinney.gangs.source_workloads import SourceWorkload, made_for, workload
from spinney.gangs.tree import GangKey
from spinney.grouping.statuses import PROBLEM
from spinney.kube.keys import key_of
from spinney.reporting.pod_gangs import ENDED
from spinney.reporting.verdicts import WAITING
from spinney.runtime import Runtime
from spinney.scheduler.config import SchedulerConfig
from spinney.scheduler.framework.plugin import PluginRegistry
from spinney.scheduler.process.endpoint import RefusedGang
from spinney.sim.advice.answer import STARTS_ANYWAY, WORST_FIRST, Answer, census, state_of
from spinney.sim.advice.forecast import Forecast, disagreements, forecast
from spinney.sim.advice.subjects import AdviceSubject
from spinney.sim.overview import history as history_of
from spinney.sim.overview.gang_table import lost_nodes
from spinney.sim.overview.gates import gate_sentences, why_not_released
from spinney.sim.overview.history import Said
from spinney.sim.overview.queue_table import QueueLine, queue_lines
from spinney.sim.overview.suspended import waiting_suspended
from spinney.sim.remedies.node_groups import AddableNodes
from spinney.sim.remedies.search import Findings, remedies
from spinney.sim.remedies.trial import Fate, progress
from spinney.sim.snapshots.snapshot import ClusterSnapshot
from spinney.sim.whatif.outcomes import CycleOutcome
from spinney.sim.whatif.simulation import Simulation, matching_profile

_BAD_NEWS: Final = {"SchedulerCapabilitiesMet": "False", "TopologyLevelsUnavailable": "True"}
"""The status in which a condition of a PodCliqueSet has something to say about waiting."""
_NOT_REFUSED: Final = frozenset({WAITING, ENDED, MINIMUM_NOT_PLACED})
"""Reasons of a PodGang that is not scheduled, and that no scheduler has refused."""
_BEGINNING: Final = datetime.min.replace(tzinfo=UTC)
_SHOWN: Final = 8


class Advisor:
    """Answers questions about one snapshot. Mutable: the cycle is simulated when it is first needed.

    At most ``best`` remedies are looked for in each answer; after ``patience`` seconds no more is tried. ``events`` are
    the cluster's events of evictions, ``refused`` what the running scheduler's last cycle refused, if that was read.
    ``suspended`` is how many suspended workloads wait in each queue. ``born`` is when workloads were created of which
    ``events`` may tell: both are of one namespace.
    """

    def __init__(
        self,
        snapshot: ClusterSnapshot,
        config: SchedulerConfig | None = None,
        *,
        runtime: Runtime,
        registry: PluginRegistry | None = None,
        node_groups: Sequence[AddableNodes] = (),
        best: int = 3,
        patience: float | None = None,
        events: Sequence[Event] = (),
        made_up: Collection[PodKey] = (),
        refused: Mapping[GangKey, RefusedGang] | None = None,
        suspended: Mapping[str, int] = MappingProxyType({}),
        born: Mapping[SourceWorkload, datetime] = MappingProxyType({}),
    ) -> None:
        self.snapshot = snapshot
        self._events, self._refused, self._made_up, self._suspended = events, refused, made_up, suspended
        self._born = born
        self._config, self._registry, self._runtime = config or matching_profile(snapshot), registry, runtime
        self._best, self._patience, self._node_groups = best, patience, node_groups
        self._spent = 0.0
        self._waiting: dict[tuple[str, str], Sequence[PodRecord]] = {}
        """Pods that would still wait, by the namespace and subject of the answer about them."""
        self.simulation = Simulation(snapshot, config, runtime=runtime, registry=registry)
        self._records = list(self.simulation.inventory.cluster.pods())
        self._gang_of = {record.key: self.simulation.gang_of(record) for record in self._records}
        self._pod_gangs: dict[tuple[str, str], PodGang] = {
            key_of(each): each for each in snapshot.of(POD_GANG, PodGang)
        }

    @cached_property
    def queues(self) -> list[QueueLine]:
        """Return the queues, as of before the simulated cycle."""
        return queue_lines(self.simulation.scheduler)

    @property
    def queue_names(self) -> set[str]:
        """Return every queue that can be asked about, those too that only suspended workloads name."""
        return {line.name for line in self.queues} | self._suspended.keys()

    @cached_property
    def cycle(self) -> CycleOutcome:
        """Return what one cycle decides, once the gates that are opening are open; simulated once."""
        _ = self.queues  # the cycle changes the books
        self.simulation.release_gates()
        return self.simulation.cycle()

    def answer(self, subject: AdviceSubject) -> Answer:
        """Return what is known about ``subject``, which must be in the snapshot, with what would let it start."""
        reasons = self.reasons(subject)
        parts = tuple(map(self.advised, reasons.parts))
        return msgspec.structs.replace(self.advised(reasons), parts=parts)

    def advised(self, answer: Answer, say: Callable[[str], None] = lambda _: None) -> Answer:
        """Return an answer of :meth:`reasons` with what would let it start, without that of its parts.

        Many changed clusters are scheduled for it; ``say`` is told what is being tried.
        """
        found = self._findings(self._waiting.get((answer.namespace, answer.subject), ()), say)
        return msgspec.structs.replace(
            answer,
            sentences=(*answer.sentences, *((STARTS_ANYWAY,) if found.starts_anyway else ())),
            starts_anyway=found.starts_anyway,
            remedies=found.remedies,
            tried=found.tried,
            exhausted=found.complete,
        )

    def reasons(self, subject: AdviceSubject) -> Answer:
        """Return what is known about ``subject`` before any change is tried."""
        match subject.word:
            case "pod":
                return self._about_pod(subject)
            case "pcs":
                return self._about_set(subject)
            case "pclq":
                return self._about_clique(subject)
            case "queue":
                return self._about_queue(subject)
            case "podgang":
                return self._about_gang(self._pod_gangs[subject.namespace, subject.name])
            case "pcsg":
                return self._about_scaling_group(subject)
            case "podgroup":
                return self._about_group(subject)
            case _:
                return self._about_workload(subject)

    # -- subjects ----------------------------------------------------------------------------------------------------

    def _about_pod(self, subject: AdviceSubject) -> Answer:
        key = PodKey(subject.namespace, subject.name)
        record = next((each for each in self._records if each.key == key), None)
        if record is None:
            return Answer(
                subject=str(subject).split()[0],
                namespace=subject.namespace,
                state="unreadable",
                sentences=("no scheduler places it, for it cannot be read; a warning says why",),
            )
        alone = self._about_records(str(subject).split()[0], subject.namespace, [record])
        mates = [each for each in self._records if self._gang_of[each.key] == self._gang_of[key]]
        if len(mates) == 1:
            return alone
        gang = self._gang_of[key]
        kind = gang.source if gang.source == "podgang" else f"{gang.source} group"
        return alone.saying(f"it belongs to the {kind} {gang}, of {counted(len(mates), 'pod')}")

    def _about_clique(self, subject: AdviceSubject) -> Answer:
        members = [
            each
            for each in self._records
            if each.namespace == subject.namespace and each.labels.get(POD_CLIQUE) == subject.name
        ]
        answer = self._about_records(str(subject).split()[0], subject.namespace, members)
        gangs = sorted({each.labels.get(GANG_LABEL, "") for each in members} - {""})
        return answer.saying(f"its pods belong to the podgang {listed(gangs)}") if gangs else answer

    def _about_gang(self, gang: PodGang) -> Answer:
        namespace, name = key_of(gang)
        members = [
            each for each in self._records if each.namespace == namespace and each.labels.get(GANG_LABEL) == name
        ]
        condition = find_condition(gang.status.conditions, SCHEDULED)
        said = [_said_of_gang(condition)] if condition is not None and condition.status == "False" else []
        answer = self._about_records(f"podgang/{name}", namespace, members, said)
        if not members:
            answer = answer.saying(why_not_released(self._pod_gangs, namespace, name))
        cliques = {group.name for group in gang.spec.pod_groups}
        owners = [
            each
            for each in self.snapshot.of(grove.POD_CLIQUE, grove.PodClique)
            if each.metadata.namespace == namespace and each.metadata.name in cliques
        ]
        evicted = history_of.gang_eviction(gang, self._now, known=answer.history)
        history = (*history_of.failures(owners, self._now), *evicted, *answer.history)
        recorded = (*answer.recorded, *_backend_says(gang, answer.sentences), *_grouper_says(gang))
        if condition is not None and condition.status == "False":
            answer = answer.saying(*self._elsewhere(members))
        return msgspec.structs.replace(answer, history=history, recorded=recorded)

    def _elsewhere(self, members: Sequence[PodRecord]) -> list[str]:
        """Return which pods of the same owners another scheduler places: they are in no gang with these."""
        names = {each.pod.spec.scheduler_name for each in members}
        owners = {(each.namespace, owner) for each in members if (owner := each.pod.metadata.controller)}
        found: dict[tuple[str, OwnerReference], list[str]] = {}
        for each in self._records:
            owner, scheduler = each.pod.metadata.controller, each.pod.spec.scheduler_name
            if owner is not None and (each.namespace, owner) in owners and scheduler not in names:
                found.setdefault((scheduler, owner), []).append(each.pod.metadata.name)
        return [
            f"{'pod' if len(pods) == 1 else 'pods'} {first_few(sorted(pods))} of {owner.kind} {owner.name} "
            f"{'asks' if len(pods) == 1 else 'ask'} for {scheduler}, and cannot be in this gang: "
            f"give all pod templates the schedulerName {listed(sorted(names))}"
            for (scheduler, owner), pods in sorted(found.items(), key=lambda item: item[1])
        ]

    def _about_group(self, subject: AdviceSubject) -> Answer:
        def named(key: GangKey) -> bool:
            return key.namespace == subject.namespace and key.name.split("/")[0] == subject.name

        members = [
            each
            for each in self._records
            if named(self._gang_of[each.key]) or (named(key := membership(each)[0]) and key.source != "pod")
        ]
        said = [
            Said(f"PodGroup condition {condition.type}", condition.message, condition.last_transition_time)
            for group in self.snapshot.of(kai.POD_GROUP, kai.PodGroup)
            if key_of(group) == (subject.namespace, subject.name)
            for condition in group.status.scheduling_conditions
        ]
        answer = self._about_records(f"podgroup/{subject.name}", subject.namespace, members, said)
        if not members:
            none = "no pod names this group: its pods have not been created, or name another group"
            answer = msgspec.structs.replace(answer, sentences=(none,))
        return answer

    def _about_set(self, subject: AdviceSubject) -> Answer:
        pcs = next(
            each
            for each in self.snapshot.of(grove.POD_CLIQUE_SET, grove.PodCliqueSet)
            if key_of(each) == (subject.namespace, subject.name)
        )
        gangs = self._gangs(subject, lambda gang: gang.metadata.labels.get(PART_OF) == subject.name)
        whole = self._about_gangs(subject, gangs)
        (census_of_gangs,) = whole.sentences
        sentences = [f"{counted(pcs.spec.replicas or 0, 'replica')} wanted, {census_of_gangs}"]
        if not gangs and pcs.spec.replicas:
            sentences.append("the operator has made no PodGang for it: is it running, and does it accept the set?")
        recorded = tuple(
            f"PodCliqueSet condition {condition.type}: {condition.message}"
            for condition in pcs.status.conditions
            if condition.status == _BAD_NEWS.get(condition.type) and condition.message
        )
        history = tuple(history_of.failures([pcs], self._now))
        return msgspec.structs.replace(whole, sentences=tuple(sentences), history=history, recorded=recorded)

    def _about_scaling_group(self, subject: AdviceSubject) -> Answer:
        cliques = {
            each.metadata.name
            for each in self.snapshot.of(grove.POD_CLIQUE, grove.PodClique)
            if each.metadata.namespace == subject.namespace and each.metadata.labels.get(SCALING_GROUP) == subject.name
        }
        gangs = self._gangs(subject, lambda gang: any(group.name in cliques for group in gang.spec.pod_groups))
        return self._about_gangs(subject, gangs)

    def _about_workload(self, subject: AdviceSubject) -> Answer:
        gangs = self._gangs(subject, lambda gang: made_for(gang, subject.word, subject.name) is not None)
        return self._about_gangs(subject, gangs)

    def _gangs(self, subject: AdviceSubject, belongs: Callable[[PodGang], bool]) -> list[PodGang]:
        """Return the gangs of a subject's namespace that belong to it, by name."""
        here = ((key, gang) for key, gang in self._pod_gangs.items() if key[0] == subject.namespace and belongs(gang))
        return [gang for _, gang in sorted(here)]

    def _about_gangs(self, subject: AdviceSubject, gangs: Sequence[PodGang]) -> Answer:
        """Return how many gangs are in which state, as that of which all are parts."""
        parts = tuple(map(self._about_gang, gangs))
        states = Counter(part.state for part in parts)
        text = counted(len(gangs), "gang")
        text += f": {listed([f'{count} {state}' for state, count in sorted(states.items())])}" if states else ""
        state = next((each for each in WORST_FIRST if states[each]), "empty")
        name = str(subject).split()[0]
        return Answer(subject=name, namespace=subject.namespace, state=state, sentences=(text,), parts=parts)

    def _about_queue(self, subject: AdviceSubject) -> Answer:
        line = next((each for each in self.queues if each.name == subject.name), None)
        below = self._with_those_below(subject.name)
        known = self.simulation.inventory.gangs.members
        waiting = [each for each in self.cycle.waiting if (found := known(each.gang)) and found.gang.queue in below]
        sentences = [line.problem] if line is not None and line.problem else []
        where = "the queue" if len(below) == 1 else "the queue and those below it"
        sentences.append(f"{counted(len(waiting), 'gang')} of {where} would still wait after a cycle")
        sentences += [f"{each.gang}: {each.message}" for each in waiting[:_SHOWN]]
        if len(waiting) > _SHOWN:
            sentences.append(f"and {len(waiting) - _SHOWN} more")
        suspended = sum(self._suspended.get(each, 0) for each in below)
        if suspended:
            sentences.append(f"{waiting_suspended(suspended)}; 'spinney why job/NAME' says what for")
        used = line is not None and any(value(share.allocated) for share in line.shares.values())
        return Answer(
            subject=f"queue/{subject.name}",
            state="pending" if waiting or suspended else "running" if used else "empty",
            sentences=tuple(sentences),
            queue=line,
        )

    def _with_those_below(self, queue: str) -> set[str]:
        """Return a queue and all queues whose use counts against it."""
        found = {queue}
        for line in self.queues:  # children stand below their parent
            if line.parent in found:
                found.add(line.name)
        return found

    # -- pods --------------------------------------------------------------------------------------------------------

    @property
    def _now(self) -> datetime:
        """Return when the snapshot was taken."""
        return self.snapshot.taken or self._runtime.clock.now()

    def _about_records(
        self, subject: str, namespace: str, records: Sequence[PodRecord], said_of_group: Iterable[Said] = ()
    ) -> Answer:
        by_state: dict[str, list[PodRecord]] = {}
        for record in records:
            by_state.setdefault(state_of(record), []).append(record)
        pending = by_state.get("pending", [])
        sentences = [census(by_state)] if records else ["it has no pods"]
        sentences += self._lost_nodes([*by_state.get("starting", ()), *by_state.get("running", ())])
        workloads = self.snapshot.of(kueue.WORKLOAD, kueue.Workload)
        sentences += gate_sentences(by_state.get("gated", []), self._pod_gangs, workloads)
        unbound = history_of.refused_bindings(self._events, pending, self._now)
        explanations, said, placeable, ungrouped = self._forecast(pending, unbound)
        sentences += said
        if pending and placeable:
            state = "placeable"
        else:
            state = next((word for word in WORST_FIRST if word in by_state), "empty")
        if pending and not placeable:
            self._waiting[namespace, subject] = [each for each in pending if each.key not in ungrouped]
        sentences += self._disagreements(pending)
        told = history_of.newest((*history_of.said_of_pods(pending), *said_of_group))
        repeated = told is not None and told.message in {condition_message(each) for each in explanations}
        if told is not None and told.refused:
            ours = all(map(self.simulation.serves, pending))
            sentences += self._lacking_plugins(told, ours=ours)
            sentences += [_differs(told, ours=ours)] if placeable else []
        return Answer(
            subject=subject,
            namespace=namespace,
            state=state,
            sentences=tuple(sentences),
            history=(
                *history_of.evictions(records, self._now),
                *self._past_evictions(subject, namespace, records),
                *history_of.waits(records, self._now),
                *list(unbound.values())[-1:],
            ),
            recorded=() if told is None or repeated else (_recorded(told, self._now),),
            explanations=explanations,
        )

    def _lost_nodes(self, placed: Sequence[PodRecord]) -> list[str]:
        """Return which nodes of pods do not exist, where all nodes can be seen."""
        if not self.snapshot.sees(NODE):
            return []
        return lost_nodes([each.node for each in placed], {each.metadata.name for each in self.snapshot.nodes})

    def _past_evictions(self, subject: str, namespace: str, records: Sequence[PodRecord]) -> list[str]:
        """Return what events tell of evictions of the subject and of pods that its own have taken the place of.

        Those of a set or another workload that had the same name before are of no concern.
        """
        names = {subject.partition("/")[2], *(self._gang_of[each.key].name for each in records)}
        names |= {clique for each in records if (clique := each.labels.get(POD_CLIQUE))}
        names |= {owner.name for each in records if (owner := each.pod.metadata.controller)}
        sets = {(namespace, each.labels.get(PART_OF)) for each in records}
        made = [
            each.metadata.creation_timestamp or _BEGINNING
            for each in self.snapshot.of(grove.POD_CLIQUE_SET, grove.PodCliqueSet)
            if (each.metadata.namespace, each.metadata.name) in sets
        ]
        gangs = {(namespace, each.labels.get(GANG_LABEL, "")) for each in records} & self._pod_gangs.keys()
        workloads = {workload(self._pod_gangs[each]) for each in gangs}
        made += [born for each, born in self._born.items() if each in workloads]
        since = min(made, default=_BEGINNING)
        events = [
            each
            for each in self._events
            if each.metadata.namespace == namespace and (history_of.moment_of(each) or since) >= since
        ]
        return history_of.past_evictions(events, names, self._now)

    def _disagreements(self, pending: Sequence[PodRecord]) -> list[str]:
        """Return where the running scheduler said otherwise about the gangs of pods that it places."""
        if self._refused is None or not self.snapshot.sees(NODE):
            return []
        gangs = {self._gang_of[each.key] for each in pending if self.simulation.serves(each)}
        return list(disagreements(gangs, self._refused, self.cycle.waiting))

    def _lacking_plugins(self, told: Said, *, ours: bool) -> list[str]:
        """Return that the scheduler has plugins which this simulation lacks, where its refusal names some.

        ``ours`` are pods of the session scheduler; plugins of no other can be given.
        """
        missing = history_of.foreign_plugins(told, {each.name for each in self._config.plugins})
        noun = "plugin" if len(missing) == 1 else "plugins"
        lacking = f"the scheduler has the {noun} {listed(missing)}, and this simulation has not"
        help_ = ": --plugin or --config names the file" if ours else f": what they say is what {told.who} wrote"
        return [f"{lacking}{help_}"] if missing else []

    def _findings(self, pending: Sequence[PodRecord], say: Callable[[str], None]) -> Findings:
        """Return what would let the gang of the pods that wait start; of several gangs, the first."""
        refused = [each for each in pending if each.key not in self.cycle.placed] if self.snapshot.sees(NODE) else []
        if not refused or not self._best:
            return Findings()
        gang = self._gang_of[refused[0].key]
        explanation = next((each.explanation for each in self.cycle.waiting if each.gang == gang), None)
        clock = self._runtime.clock
        started = clock.monotonic()

        def may_go_on(seconds: float) -> bool:
            spent = self._spent + clock.monotonic() - started
            return self._patience is None or spent + seconds < self._patience

        found = remedies(
            self.snapshot,
            gang,
            self._config,
            runtime=self._runtime,
            registry=self._registry,
            explanation=explanation,
            base=self._settled(gang),
            node_groups=self._node_groups,
            best=self._best,
            may_go_on=may_go_on,
            say=say,
        )
        self._spent += clock.monotonic() - started
        return found

    def _settled(self, gang: GangKey) -> Fate | None:
        """Return what becomes of a gang if a cycle decides nothing; ``None`` if it decides something."""
        if self.cycle.changed:
            return None
        starts, waits = progress(self.simulation, gang)
        return Fate(starts=starts, waits=waits)

    def _forecast(self, pending: Sequence[PodRecord], unbound: Collection[PodKey] = ()) -> Forecast:
        if not pending:
            return Forecast()
        if not self.snapshot.sees(NODE):
            why = "nodes may not be listed" if self.snapshot.refused(NODE) else "what was read has no nodes"
            return Forecast(sentences=(f"{why}, so nothing could be simulated",))
        refusals = history_of.grouping_refusals(self._events)
        return forecast(self.cycle, pending, self._gang_of, made_up=self._made_up, refusals=refusals, unbound=unbound)


def _said_of_gang(scheduled: Condition) -> Said:
    """Return what a PodGang says of not being scheduled; what is only derived from its pods never supersedes them."""
    since = scheduled.last_transition_time if scheduled.reason != MINIMUM_NOT_PLACED else None
    refused = scheduled.reason not in _NOT_REFUSED
    return Said(f"PodGang condition {SCHEDULED}", scheduled.message, since, refused=refused)


def _backend_says(gang: PodGang, sentences: Iterable[str]) -> Iterable[str]:
    """Yield what a backend that is not ready says, unless a gate is explained by it: pods that go are not replaced."""
    ready = find_condition(gang.status.conditions, BACKEND_READY)
    if ready is not None and ready.status == "False" and not any(ready.message in each for each in sentences):
        yield f"PodGang condition {BACKEND_READY}: {ready.message}"


def _grouper_says(gang: PodGang) -> Iterable[str]:
    """Yield what the grouper finds odd about a gang: what it asks for may never come."""
    problem = find_condition(gang.status.conditions, PROBLEM)
    if problem is not None and problem.status == "True":
        yield f"PodGang condition {PROBLEM}: {problem.message}"


def _recorded(told: Said, now: datetime) -> str:
    when = f" {history_of.lasted(now - told.since)} ago" if told.since is not None else ""
    return f"{told.who}{when}: {told.message}"


def _differs(told: Said, *, ours: bool) -> str:
    """Return that the simulation places what the scheduler refused, and why that may be.

    Reasons are not compared: each scheduler has its own words for the same one.
    """
    return (
        f"{told.who} refused it, and this simulation places it: the cluster has changed since, or the scheduler's "
        f"configuration is another{'; --config names its file' if ours else ''}"
    )
