"""What would happen: schedulers run over a snapshot.

The simulation *is* the scheduler on a loaded snapshot; there is no second implementation. Each cycle runs the session
scheduler over its pods and the coscheduler over all others, carries the decisions out in the inventory as
the cluster would (bound pods run, evicted ones that have an owner come back pending, gates of a scaled gang open once
its base gang is placed), and stops when a cycle changes nothing.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, Final, TypeVar

import msgspec

from spinney.api.core import NODE, POD, Pod
from spinney.api.labels import BASE_POD_GANG, POD_CLIQUE, POD_GANG_GATE
from spinney.api.labels import POD_GANG as GANG_LABEL
from spinney.api.podgang import POD_GANG, PodGang
from spinney.api.resource import Resource
from spinney.api.resource_claims import RESOURCE_CLAIM
from spinney.api.struct import changed
from spinney.cluster.pods import GPU_GROUP_LABEL, PodKey, PodRecord
from spinney.cluster.statuses import ACTIVE_ALLOCATED, WAITING, PodStatus
from spinney.gangs.checkpoints import grace_within
from spinney.gangs.tree import DEFAULT_POD_SET, Gang, GangKey
from spinney.operator.desired.gates import was_initialized
from spinney.runtime import Runtime
from spinney.scheduler.config import SchedulerConfig
from spinney.scheduler.cycle.scheduler import Scheduler
from spinney.scheduler.framework.plugin import PluginRegistry
from spinney.scheduler.framework.results import Binding, CycleResult, Eviction
from spinney.scheduler.intake.sources import OPTIONAL_KINDS
from spinney.sim.snapshots.snapshot import ClusterSnapshot, identity, resource_of
from spinney.sim.whatif.claims import as_it_is, give_up_devices
from spinney.sim.whatif.loading import SESSION_NAMES, KueueQueues, inventory_of, take_in
from spinney.sim.whatif.outcomes import CycleOutcome, Outcome, Waiting
from spinney.sim.whatif.pod_refusals import group_of
from spinney.sim.whatif.pod_scheduling import Preempted, schedule_pods
from spinney.sim.whatif.running import running_as_bound

MAX_CYCLES: Final = 20
_INVENTORIED: Final = frozenset({NODE, POD, *OPTIONAL_KINDS})
"""The kinds that schedulers get through the inventory."""

T = TypeVar("T")


def matching_profile(snapshot: ClusterSnapshot) -> SchedulerConfig:
    """Return how the session scheduler of a cluster decides, as far as the snapshot tells.

    That is the configuration it brought along; else, where KAI places pods and our scheduler none, KAI's way.
    """
    if snapshot.scheduler is not None:
        return snapshot.scheduler
    names = {pod.spec.scheduler_name for pod in snapshot.pods}
    if "kai-scheduler" in names and "spinney-scheduler" not in names:
        return SchedulerConfig.kai_compat(explain=True)
    return SchedulerConfig()


class Simulation:
    """A cluster being scheduled. Mutable: each cycle changes its inventory.

    Without a configuration the session scheduler has the one that :func:`matching_profile` finds. ``tells`` is whether
    objects that cannot be read are told.
    """

    def __init__(
        self,
        snapshot: ClusterSnapshot,
        config: SchedulerConfig | None = None,
        *,
        runtime: Runtime,
        registry: PluginRegistry | None = None,
        tells: bool = True,
    ) -> None:
        config = config or matching_profile(snapshot)
        names = tuple(dict.fromkeys((*config.scheduler_names, *SESSION_NAMES)))
        self.runtime = runtime
        self._base, self._tells = snapshot, tells
        self._objects = {
            resource: {identity(each): each for each in found} for resource, found in snapshot.objects.items()
        }
        self.inventory, self._kueue = inventory_of(snapshot, names, tells=tells), KueueQueues.of(snapshot)
        self.scheduler = Scheduler(
            msgspec.structs.replace(config, scheduler_names=names), self.inventory, runtime=runtime, registry=registry
        )
        self.inventory.cluster.subscribe(partial(give_up_devices, self.inventory.claims))

    # -- the cluster -------------------------------------------------------------------------------------------------

    def of(self, resource: Resource, _kind: type[T]) -> tuple[T, ...]:
        """Return the objects of one kind; pods as they were when they were added."""
        return tuple(self._objects.get(resource, {}).values())

    def add(self, objects: Iterable[Any]) -> None:
        """Take objects in as if they had just been created, or changed."""
        for found in objects:
            resource = resource_of(found)
            self._objects.setdefault(resource, {})[identity(found)] = found
            if resource in _INVENTORIED:
                take_in(self.inventory, self._kueue.labelled(found), tells=self._tells)

    def remove(self, objects: Iterable[Any]) -> None:
        """Take objects out as if they had been deleted."""
        for found in objects:
            resource = resource_of(found)
            self._objects.get(resource, {}).pop(identity(found), None)
            if resource in _INVENTORIED:
                self.inventory.delete(found)

    def current(self) -> ClusterSnapshot:
        """Return the cluster as the simulation has changed it: pods are where they were put, with their devices."""
        objects = {resource: tuple(found.values()) for resource, found in self._objects.items()}
        records = {record.uid: record for record in self.inventory.cluster.pods()}
        pods = tuple(map(_as_it_is, records.values()))
        claims = tuple(as_it_is(each, self.inventory.claims, records) for each in objects.get(RESOURCE_CLAIM, ()))
        return replace(self._base, objects={**objects, POD: pods, **({RESOURCE_CLAIM: claims} if claims else {})})

    def serves(self, record: PodRecord) -> bool:
        """Tell whether the session scheduler places a pod."""
        return record.pod.spec.scheduler_name in self.inventory.scheduler_names

    def gang_of(self, record: PodRecord) -> GangKey:
        """Return the gang whose minimum decides about a pod, by the rules of the scheduler that places it."""
        if self.serves(record):
            return self.inventory.gangs.membership(record)[0]
        return group_of(record, self.inventory.shared)

    def gang(self, key: GangKey) -> Gang | None:
        """Return a gang as the scheduler that places it understands it; ``None`` if its object is missing."""
        members = self.inventory.gangs.members(key)
        return members.gang if members is not None else self.inventory.shared.gangs.gang(key)

    def pod_set_of(self, record: PodRecord) -> str:
        """Return the name of the pod set of its gang that a pod counts for."""
        return self.inventory.gangs.membership(record)[1] if self.serves(record) else DEFAULT_POD_SET

    def decisions(self) -> CycleResult:
        """Return what the session scheduler decides now; nothing of it is carried out."""
        return self.scheduler.run_cycle(self.inventory.snapshot())

    def cycle(self) -> CycleOutcome:
        """Run one cycle of both schedulers and carry out what they decide."""
        snapshot = self.inventory.snapshot()
        result = self.scheduler.run_cycle(snapshot)
        waiting = [*self._refused(result), *self._orphans(snapshot.gangs.orphans)]
        for bind in result.binds:
            self._bind(bind)
        graces = self._graces(result.evictions)
        for eviction in result.evictions:
            self._evict(eviction)
        others = schedule_pods(
            self.inventory.shared,
            lambda record: not self.serves(record),
            now=self.runtime.clock.now(),
        )
        graces |= {each.victim.key: each.grace for each in others.preempted if each.grace}
        waiting += others.refused
        preempted = [self._preempted(each) for each in others.preempted]
        return CycleOutcome(
            placed={bind.pod: bind.node for bind in result.binds} | others.placed,
            evictions=(*result.evictions, *preempted),
            graces=graces,
            promised={each.pod: each.node for each in result.pipelines},
            waiting=tuple(waiting),
            result=result,
        )

    def complete(self, key: PodKey) -> None:
        """Have a pod end well, and give up what it holds."""
        record = self.inventory.cluster.pod(key)
        if record is not None:
            self.inventory.apply(changed(_as_it_is(record), status={"phase": "Succeeded"}))

    def release_gates(self) -> list[PodKey]:
        """Open the gates the operator would open now: of complete gangs, scaled ones after their base gang."""
        gated = [record for record in self.inventory.cluster.pods() if _is_held_by_gang(record)]
        if not gated:
            return []
        gangs = {(each.metadata.namespace, each.metadata.name): each for each in self.of(POD_GANG, PodGang)}
        placed = Counter(
            (record.namespace, record.labels.get(POD_CLIQUE))
            for record in self.inventory.cluster.pods()
            if record.status in ACTIVE_ALLOCATED
        )

        def is_scheduled(gang: PodGang | None) -> bool:
            groups = gang.spec.pod_groups if gang is not None else ()
            namespace = gang.metadata.namespace if gang is not None else None
            return bool(groups) and all(placed[namespace or "", each.name] >= each.min_replicas for each in groups)

        released = []
        for record in gated:
            gang = gangs.get((record.namespace, record.labels.get(GANG_LABEL, "")))
            base = gang.metadata.labels.get(BASE_POD_GANG) if gang is not None else None
            if gang is None or not was_initialized(gang):
                continue
            if base is None or is_scheduled(gangs.get((record.namespace, base))):
                self.inventory.apply(changed(record.pod, spec={"scheduling_gates": ()}))
                released.append(record.key)
        return released

    def run(self, cycles: int = MAX_CYCLES) -> Outcome:
        """Run until a cycle changes nothing, at most ``cycles`` times."""
        placed: dict[PodKey, str] = {}
        evictions: list[Eviction] = []
        graces: dict[PodKey, timedelta] = {}
        gangs: dict[PodKey, GangKey] = {}
        waiting: tuple[Waiting, ...] = ()
        settled, count = False, 0
        while not settled and count < cycles:
            outcome = self.cycle()
            count += 1
            placed |= outcome.placed
            for eviction in outcome.evictions:
                placed.pop(eviction.pod, None)  # maybe one that was placed in the same cycle, by another scheduler
            evictions += outcome.evictions
            graces |= outcome.graces
            waiting = outcome.waiting
            released = self.release_gates()
            settled = not outcome.changed and not released
        for record in self.inventory.cluster.pods():
            if record.key in placed or record.status in WAITING:
                gangs[record.key] = self.gang_of(record)
        return Outcome(
            cycles=count,
            settled=settled,
            placed=placed,
            evictions=tuple(evictions),
            graces=graces,
            waiting=(*waiting, *self._gated()),
            gangs=gangs,
        )

    # -- carrying out ------------------------------------------------------------------------------------------------

    def _bind(self, bind: Binding) -> None:
        record = self.inventory.cluster.pod(bind.pod)
        assert record is not None, "only known pods are bound"
        self.inventory.apply(running_as_bound(record.pod, bind, self.runtime.clock.now()))
        for key, devices in bind.claims.items():
            self.inventory.claims.assign(key, bind.node, devices, bind.uid)

    def _graces(self, evictions: Iterable[Eviction]) -> dict[PodKey, timedelta]:
        """Return how long victims that go for others would be given to checkpoint first."""
        most = timedelta(seconds=self.scheduler.config.max_checkpoint_grace_seconds)
        found: dict[PodKey, timedelta] = {}
        for each in evictions:
            members = self.inventory.gangs.members(each.gang)
            if members is not None and each.beneficiary not in (None, each.gang):
                found[each.pod] = grace_within(members, most)
        return {pod: grace for pod, grace in found.items() if grace}

    def _evict(self, eviction: Eviction) -> None:
        record = self.inventory.cluster.pod(eviction.pod)
        if record is not None:
            self.inventory.cluster.delete_pod(record.key)
            self._replace(record)

    def _preempted(self, preempted: Preempted) -> Eviction:
        """Replace a pod that the coscheduler has taken away."""
        victim, beneficiary = preempted.victim, preempted.beneficiary
        self._replace(victim)
        return Eviction(
            pod=victim.key,
            uid=victim.uid,
            node=victim.node,
            gang=self.gang_of(victim),
            message=f"preempted by pod {beneficiary.key} of higher priority",
            beneficiary=self.gang_of(beneficiary),
        )

    def _replace(self, record: PodRecord) -> None:
        """Make a new pod in the place of one that is gone, if it has a controller that would."""
        if record.pod.metadata.controller is not None:
            self.inventory.apply(made_anew(record.pod, self.runtime))

    # -- who waits ---------------------------------------------------------------------------------------------------

    def _refused(self, result: CycleResult) -> Iterator[Waiting]:
        for refused in result.unschedulable:
            members = self.inventory.gangs.members(refused.gang)
            pending = [] if members is None else [record for _, record in members.pods.values()]
            yield Waiting(
                gang=refused.gang,
                pods=tuple(record.key for record in pending if record.status is PodStatus.PENDING),
                message=refused.message,
                explanation=refused.explanation,
            )

    def _orphans(self, orphans: Mapping[PodKey, str]) -> Iterator[Waiting]:
        for key, reason in orphans.items():
            record = self.inventory.cluster.pod(key)
            if record is not None and record.status is PodStatus.PENDING:
                yield Waiting(gang=self.gang_of(record), pods=(key,), message=reason)

    def _gated(self) -> Iterator[Waiting]:
        gated: dict[tuple[GangKey, tuple[str, ...]], list[PodKey]] = {}
        for record in self.inventory.cluster.pods():
            if record.status is PodStatus.GATED:
                names = tuple(gate.name for gate in record.pod.spec.scheduling_gates)
                gated.setdefault((self.gang_of(record), names), []).append(record.key)
        for (gang, names), pods in gated.items():
            yield Waiting(gang=gang, pods=tuple(pods), message=f"gated by {', '.join(names)}")


def made_anew(pod: Pod, runtime: Runtime) -> Pod:
    """Return the pod that a controller makes in the place of ``pod``: pending, and on no node."""
    return changed(
        pod,
        metadata={
            "labels": {k: text for k, text in pod.metadata.labels.items() if not k.startswith(GPU_GROUP_LABEL)},
            "uid": runtime.uid(),
            "creation_timestamp": runtime.clock.now(),
            "deletion_timestamp": None,
        },
        spec={"node_name": ""},
        status={"phase": "Pending", "conditions": (), "start_time": None},
    )


def _as_it_is(record: PodRecord) -> Pod:
    """Return a pod's object; one that is being bound counts as running where it goes."""
    if record.status is not PodStatus.BINDING:
        return record.pod
    return changed(record.pod, spec={"node_name": record.node}, status={"phase": "Running"})


def _is_held_by_gang(record: PodRecord) -> bool:
    """Tell whether the operator's gate is the only thing that holds a pod back."""
    gates = [gate.name for gate in record.pod.spec.scheduling_gates]
    return record.status is PodStatus.GATED and gates == [POD_GANG_GATE]
