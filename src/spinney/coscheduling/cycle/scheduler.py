"""The scheduler: one pod at a time from the queue to a node, and from there, in its own time, to the API server.

A *scheduling cycle* decides for one pod: filters, post-filters where nothing fits, scores, Reserve, Permit. It never
waits and runs on the event loop with others in short bursts, so every decision sees everything decided before it. The
*binding cycle* of a pod that may go follows in the background. Whatever fails on the way, the pod gives back what it
held and returns to the queue with the names of the plugins that refused it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import structlog

from spinney.api.core import Pod
from spinney.cluster.filters import FilterResult
from spinney.cluster.pods import PodRecord
from spinney.cluster.statuses import PodStatus
from spinney.coscheduling.cycle.metrics import CoschedulingMetrics
from spinney.coscheduling.cycle.queue import SchedulingQueue
from spinney.coscheduling.feasibility.ranking import NodeRanking
from spinney.coscheduling.framework import (
    ClusterEvent,
    Code,
    CycleState,
    Profile,
    QueuedPod,
    Services,
    Status,
    room_freed,
)
from spinney.coscheduling.framework.faults import a_permission, a_status, nothing
from spinney.coscheduling.framework.points import FILTER_FAILED, PostFilterResult
from spinney.coscheduling.framework.status import FrameworkPluginFailed
from spinney.coscheduling.groups.waiting import WaitingPod
from spinney.coscheduling.plugins.default_preemption import FILTERED
from spinney.extensions.answers import InvalidAnswer, shown
from spinney.kube.keys import Key
from spinney.runtime.faults import printable, raised, raised_later
from spinney.runtime.tasks import BackgroundTasks

log = structlog.get_logger()

FLUSH_SECONDS: Final = 300.0


@dataclass(frozen=True, slots=True)
class UnplacedPod:
    """A pod that found no node in a cycle, and why. ``found`` is absent if no filter was asked."""

    record: PodRecord
    status: Status
    found: FilterResult | None = None
    tail: str = ""
    """What the post-filters had to say."""


@dataclass(frozen=True, slots=True)
class _BindingCycle:
    """A pod that has a node and is on its way to be bound."""

    profile: Profile
    state: CycleState
    queued: QueuedPod
    pod: Pod
    node: str
    nominated: str
    """The node it was promised before it got one; holds again if it loses this one."""
    since: int
    """The moment, as the queue counts them, at which it got the node."""


@dataclass(frozen=True, slots=True)
class _Freed:
    """Room that was held by some pods from one moment to another, and is free again."""

    event: ClusterEvent
    since: int
    until: int
    own: frozenset[Key]


class Coscheduler:
    """Profiles over one queue and one ledger. Mutable; runs on one event loop."""

    def __init__(
        self,
        services: Services,
        profiles: Mapping[str, Profile],
        rankings: Mapping[str, NodeRanking],
        queue: SchedulingQueue,
        *,
        report: Callable[[UnplacedPod], None],
        about_to_bind: Callable[[Key], Awaitable[None] | None],
        metrics: CoschedulingMetrics,
    ) -> None:
        self.services = services
        self.queue = queue
        self._metrics = metrics
        self._profiles = profiles
        self._rankings = rankings
        self._report = report
        self._about_to_bind = about_to_bind
        self.preparing: dict[Key, str] = {}
        """Pods that have a node and wait for a plugin at PreBind, and for which."""
        self.began_preparing: Callable[[Key, str], None] = lambda key, plugin: None
        """Called when a pod begins to wait for a plugin there."""
        self._binding = BackgroundTasks()
        self._freed: dict[tuple[str, ...], _Freed] = {}

    # -- bursts ------------------------------------------------------------------------------------------------------

    def burst(self, seconds: float, most: int) -> bool:
        """Run cycles for at most so long and so many; tell whether pods are left that are ready to be tried."""
        clock = self.services.runtime.clock
        for group in self.services.groups.rested(clock.monotonic()):
            self.services.activate(record.key for record in group.pending())
        deadline = clock.monotonic() + seconds
        for _ in range(most):
            queued = self.queue.pop()
            if queued is None:
                return False
            self._schedule(queued)
            if clock.monotonic() >= deadline:
                break
        return True

    def next_due(self) -> float | None:
        """Return when a pod or group that rests will be ready, on the monotonic clock."""
        due = (self.queue.next_rested(), self.services.groups.next_rested())
        return min((each for each in due if each is not None), default=None)

    def nominate(self, record: PodRecord, node: str) -> bool:
        """Promise a node to a pod, or none; tell whether that is news."""
        key, nominations = record.key, self.services.nominations
        promised = nominations.node_of(key)
        if promised == node:
            return False
        if node:
            nominations.put(record, node)
        else:
            nominations.remove(key)
        if promised:
            self.queue.notify(room_freed(record.pod, promised), but_not=frozenset({key}))
        return True

    def displace(self, beneficiary: PodRecord, node: str) -> None:
        """Try pods again that were promised a node and have a lower priority than its ``beneficiary``."""
        for nomination in self.services.nominations.on_node(node):
            if nomination.record.pod.priority < beneficiary.pod.priority:
                self.services.nominate(nomination.record, "")
                self.queue.activate((nomination.record.key,))

    async def finish_binding(self) -> None:
        """Wait for the binding cycles under way."""
        await self._binding.finish()

    # -- the scheduling cycle ----------------------------------------------------------------------------------------

    def _schedule(self, queued: QueuedPod) -> None:
        record = self.services.cluster.pod(queued.key)
        profile = self._profiles.get(queued.pod.spec.scheduler_name)
        if record is None or profile is None or record.status is not PodStatus.PENDING:
            self.queue.done(queued)
            return
        state = CycleState()
        try:
            refused = self._cycle(profile, state, queued, record)
        except FrameworkPluginFailed as error:
            refused = UnplacedPod(record, Status.error(error))
        except raised() as error:
            log.exception("scheduling cycle failed", pod=str(queued.key))
            refused = UnplacedPod(record, Status.error(error))
        if refused is None:
            self._metrics.placed.inc()
        else:
            (self._metrics.failed if refused.status.code is Code.ERROR else self._metrics.refused).inc()
            self._return(queued, refused)

    def _cycle(self, profile: Profile, state: CycleState, queued: QueuedPod, record: PodRecord) -> UnplacedPod | None:
        pod = record.pod
        for plugin in profile.pre_filter:
            status = profile.faults.ask(plugin.name, "preFilter", partial(plugin.pre_filter, state, pod), a_status)
            if not status.ok:
                return UnplacedPod(record, status.by(plugin.name))
        ranking = self._rankings[profile.scheduler_name]
        row = ranking.best(state, record)
        if row is None:
            found = ranking.explain(state, record)
            state.write(FILTERED, found)
            room, tails = self._post_filter(profile, state, record)
            row = ranking.best(state, record) if room else None
            if row is None:
                failed = state.read(FILTER_FAILED)
                status = Status.unschedulable("no node fits") if failed is None else Status.error(failed)
                return UnplacedPod(record, status, found, " ".join(tails))
        self._place(profile, state, queued, record, self.services.cluster.table.names[row])
        return None

    def _post_filter(self, profile: Profile, state: CycleState, record: PodRecord) -> tuple[bool, list[str]]:
        """Ask post-filters in order until one makes room; return whether there is room now, and what they said."""
        said: list[str] = []
        key = record.key
        for plugin in profile.post_filter:
            try:
                ask = partial(plugin.post_filter, state, record.pod)
                result = profile.faults.ask(plugin.name, "postFilter", ask, _a_result)
            except FrameworkPluginFailed as error:
                result = PostFilterResult(Status.error(error))
            said += [result.status.message] if result.status.message else []
            if result.nominated_node:
                self.services.nominate(record, result.nominated_node)
                return False, said
            if result.status.code is Code.SUCCESS:
                return True, said
            if result.keep:
                return False, said
        if self.services.nominations.node_of(key):
            self.services.nominate(record, "")
        return False, said

    def _place(self, profile: Profile, state: CycleState, queued: QueuedPod, record: PodRecord, node: str) -> None:
        """Reserve the node and ask for permission; from here on whatever fails is undone by :meth:`_lost`."""
        nominations = self.services.nominations
        flight = _BindingCycle(
            profile, state, queued, record.pod, node, nominations.node_of(queued.key), self.queue.moment
        )
        nominations.remove(queued.key)
        if flight.nominated and flight.nominated != node:
            self.queue.notify(room_freed(record.pod, flight.nominated), but_not=frozenset({queued.key}))
        self.services.cluster.assume(record.key, node)
        for plugin in profile.reserve:
            try:
                ask = partial(plugin.reserve, state, record.pod, node)
                status = profile.faults.ask(plugin.name, "reserve", ask, a_status)
            except FrameworkPluginFailed as error:
                status = Status.error(error)
            if not status.ok:
                self._lost(flight, status.by(plugin.name))
                return
        timeouts: dict[str, float] = {}
        for permitting in profile.permit:
            try:
                permit = partial(permitting.permit, state, record.pod, node)
                status, seconds = profile.faults.ask(permitting.name, "permit", permit, a_permission)
            except FrameworkPluginFailed as error:
                status, seconds = Status.error(error), 0.0
            if status.code is Code.WAIT:
                timeouts[permitting.name] = seconds
            elif not status.ok:
                self._lost(flight, status.by(permitting.name))
                return
        if not timeouts:
            self._binding.begin(self._bind(flight), f"bind {queued.key}")
            return
        self.queue.hold(queued.key)
        waiting = self.services.waiting
        waiting.add(WaitingPod(queued, node, state, timeouts, lambda _, status: self._settled(flight, status)))

    def _settled(self, flight: _BindingCycle, status: Status) -> None:
        self.services.waiting.remove(flight.queued.key)
        if status.ok:
            self._binding.begin(self._bind(flight), f"bind {flight.queued.key}")
        else:
            self._lost(flight, status)

    # -- the binding cycle -------------------------------------------------------------------------------------------

    async def _bind(self, flight: _BindingCycle) -> None:
        clock = self.services.runtime.clock
        began = clock.monotonic()
        try:
            status = await self._bound_by_plugins(flight)
        except FrameworkPluginFailed as error:
            status = Status.error(error)
        except raised_later() as error:
            log.exception("binding cycle failed", pod=str(flight.queued.key), node=flight.node)
            status = Status.error(error)
        self._metrics.gangs.bound(clock.monotonic() - began, failed=() if status.ok else (status,))
        if not status.ok:
            self._lost(flight, status)
            return
        self._count_wait(flight)
        self.queue.done(flight.queued)
        for plugin in flight.profile.post_bind:
            with suppress(FrameworkPluginFailed):  # the pod is bound, whatever a plugin makes of it
                tell = partial(plugin.post_bind, flight.state, flight.pod, flight.node)
                await flight.profile.faults.ask_later(plugin.name, "postBind", tell, nothing)

    def _count_wait(self, flight: _BindingCycle) -> None:
        """Count how long a pod without a group waited, or a group of which this is the first pod to be bound."""
        group = self.services.groups.of(flight.queued.key)
        pods = [flight.pod] if group is None else group.start()
        created = [pod.metadata.creation_timestamp for pod in pods if pod.metadata.creation_timestamp is not None]
        if created:
            waited = self.services.runtime.clock.now() - max(created)
            self._metrics.started(waited.total_seconds(), pods=len(pods))

    async def _bound_by_plugins(self, flight: _BindingCycle) -> Status:
        faults = flight.profile.faults
        for preparing in flight.profile.pre_bind:
            prepare = partial(preparing.pre_bind, flight.state, flight.pod, flight.node)
            with self._waiting_for(preparing.name, flight.queued.key):
                status = (await faults.ask_later(preparing.name, "preBind", prepare, a_status)).by(preparing.name)
            if not status.ok:
                return status
        written_before = self._about_to_bind(flight.queued.key)
        if written_before is not None:
            await written_before
        for binding in flight.profile.bind:
            bind = partial(binding.bind, flight.state, flight.pod, flight.node)
            status = (await faults.ask_later(binding.name, "bind", bind, a_status)).by(binding.name)
            if status.code is not Code.SKIP:
                return status
        return Status(Code.ERROR, ("every bind plugin skipped the pod",))

    @contextmanager
    def _waiting_for(self, plugin: str, key: Key) -> Iterator[None]:
        self.preparing[key] = plugin
        self.began_preparing(key, plugin)
        try:
            yield
        finally:
            self.preparing.pop(key, None)  # a new pod of its name may be prepared, too

    # -- pods that come back -----------------------------------------------------------------------------------------

    def _lost(self, flight: _BindingCycle, status: Status) -> None:
        """Undo a reservation and return the pod to the queue; others may use what it held."""
        for plugin in reversed(flight.profile.reserve):
            with suppress(FrameworkPluginFailed):  # the others give back what they hold all the same
                undo = partial(plugin.unreserve, flight.state, flight.pod, flight.node)
                flight.profile.faults.ask(plugin.name, "unreserve", undo, nothing)
        key = flight.queued.key
        record = self.services.cluster.pod(key)
        if record is None or record.uid != flight.pod.metadata.uid:
            self.queue.done(flight.queued)  # it is gone; a new pod of its name has a ledger entry of its own
        else:
            self.services.cluster.forget(key)
            record = self.services.cluster.pod(key) or record
            if self._return(flight.queued, UnplacedPod(record, status)) and flight.nominated:
                self.services.nominations.put(record, flight.nominated)
        self._tell_freed(flight)

    def _tell_freed(self, flight: _BindingCycle) -> None:
        """Have others tried again because room became free; once for all members of a group that lost theirs together.

        It was only held for a while, so it is news to pods that were refused meanwhile. To the group itself it is
        none: what it gave up did not suffice.
        """
        group = self.services.groups.of(flight.queued.key)
        if not self._freed:
            asyncio.get_running_loop().call_soon(self._notify_freed)
        identity = group.key if group is not None else flight.queued.key
        found = self._freed.get(identity)
        if found is None:
            together = [each.key for each in group.members] if group is not None else [flight.queued.key]
            own = frozenset(together)
            self._freed[identity] = _Freed(room_freed(flight.pod, flight.node), flight.since, self.queue.moment, own)
        else:
            self._freed[identity] = replace(found, since=min(found.since, flight.since), until=self.queue.moment)

    def _notify_freed(self) -> None:
        freed, self._freed = self._freed, {}
        for each in freed.values():
            self.queue.notify(each.event, between=(each.since, each.until), but_not=each.own)

    def _return(self, queued: QueuedPod, refused: UnplacedPod) -> bool:
        """Return a pod to the queue and say why; tell whether it still wants a node."""
        rejected_by: Iterable[str] = ()
        if refused.found is not None and refused.status.rejected:
            rejected_by = _rejecting(refused)
        elif refused.status.rejected:
            rejected_by = (refused.status.plugin,)
        wanted = self.queue.give_back(queued, rejected_by)
        if wanted:
            self._report(refused)
        return wanted


def _a_result(answer: object) -> PostFilterResult:
    if not isinstance(answer, PostFilterResult):
        raise InvalidAnswer(shown(answer), "a PostFilterResult")
    node: object = answer.nominated_node
    if not isinstance(node, str):
        raise InvalidAnswer(f"a PostFilterResult whose nominated_node is {shown(node)}", "the name of a node, or none")
    return replace(answer, status=a_status(answer.status), nominated_node=printable(node))


def _rejecting(refused: UnplacedPod) -> tuple[str, ...]:
    """Return the filters whose change of mind may help; a pod refused as a whole waits for any of storage's."""
    found = refused.found
    assert found is not None
    if found.pre_filter is not None:
        return ("VolumeBinding", "VolumeRestrictions", "VolumeZone")
    names = dict.fromkeys(refusal.filter for refusal in found.refusals)
    return tuple(names) or ("NodeResourcesFit",)
