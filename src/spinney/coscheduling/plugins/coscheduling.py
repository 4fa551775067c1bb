"""Coscheduling: the pods of a group are bound together or not at all.

Members are placed one by one and wait at Permit until enough of them have a node; then all are bound. What keeps groups
from starving one another is said at each extension point, numbered as in the design document ("PreFilter 3"):

* QueueSort keeps the members of a group together, so two groups never interleave.
* PreFilter lets no group take what another, closer to its completion, still needs.
* PostFilter gives up a group that is far from its quorum, and settles who gives way when two groups hold what the other
  needs; nobody waits for a time-out.
* Permit waits, releases, and rejects the whole group when its time is up.

A rejected group goes on the back-off list and is tried again when its time there is up.
"""

from collections.abc import Mapping
from operator import attrgetter
from typing import Annotated, Any, Final

import msgspec
import numpy as np
import structlog

from spinney.api.core import NODE, POD, Pod
from spinney.api.pod_requests import amounts_of
from spinney.binding.placement import Placement
from spinney.cluster.pods import PodRecord
from spinney.cluster.resources import padded
from spinney.cluster.statuses import ACTIVE_ALLOCATED
from spinney.cluster.table import Mask, NodeTable
from spinney.coscheduling.feasibility.room import demands, fitting, leaves_enough
from spinney.coscheduling.feasibility.trial import TrialState
from spinney.coscheduling.framework.events import Action, ClusterEvent, EventHint, was_resized
from spinney.coscheduling.framework.handle import Handle
from spinney.coscheduling.framework.points import (
    CycleState,
    Filter,
    Permit,
    PostBind,
    PostFilter,
    PostFilterResult,
    PreBind,
    PreEnqueue,
    PreFilter,
    QueuedPod,
    QueueSort,
    Reserve,
    StateKey,
)
from spinney.coscheduling.framework.status import SUCCESS, Code, Status
from spinney.coscheduling.groups.group import Group, seconds
from spinney.coscheduling.groups.waiting import TIMED_OUT, JointBind
from spinney.coscheduling.groups.wording import nodes_counted
from spinney.coscheduling.plugins.default_preemption import FILTERED
from spinney.coscheduling.plugins.group_preemption import NO_VICTIMS
from spinney.coscheduling.plugins.in_flight import asked_until, preempting, why_kept
from spinney.explain.amounts import amount
from spinney.extensions.arguments import read_arguments
from spinney.kube.keys import Key, key_of
from spinney.reporting.pods import INADMISSIBLE, WAITING_FOR_PODS, WAITING_FOR_TURN

log = structlog.get_logger()

_SHORTEST_REST: Final = 1.0
"""A pod's own. With none at all the members that are still queued would begin the same attempt anew, for ever."""
_JOINT_BIND: Final[StateKey[JointBind]] = StateKey("members that are bound together")
_RELEASED: Final[StateKey[bool]] = StateKey("whether the member was let go from Permit")
_SPARED: Final[StateKey[Mask]] = StateKey("nodes that the closest group can spare", of_group=True)


class CoschedulingArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """How long groups wait, rest, and hold on."""

    permit_waiting_time_seconds: Annotated[float, msgspec.Meta(ge=0)] = 60.0
    """How long members wait at Permit where their group does not say so."""
    pod_group_backoff_seconds: Annotated[float, msgspec.Meta(ge=0)] = 10.0
    """How long a rejected group rests; at least one second."""
    pod_group_reject_percentage: Annotated[int, msgspec.Meta(ge=0, le=100)] = 10
    """A group is rejected when a larger part of its quorum than this is missing; 0 at any failure, 100 never."""
    prefer_closest_to_completion: bool = True
    """Whether PreFilter protects the group that is closest to its completion."""


class Coscheduling(QueueSort, PreEnqueue, PreFilter, Filter, PostFilter, Reserve, Permit, PreBind, PostBind):
    """Groups of pods. Mutable state is in :class:`~spinney.coscheduling.groups.book.Groups`, which profiles share."""

    name = "Coscheduling"
    must_be_last = True
    decides_for_group = True
    alike = True
    reason = "node(s) were kept for the pod group closest to its completion"

    def __init__(self, handle: Handle, arguments: Mapping[str, Any]) -> None:
        super().__init__(handle, {})
        self._groups = handle.services.groups
        self.arguments = read_arguments(CoschedulingArguments, arguments)
        self._groups.fulfilled = self._release
        self._groups.withdrawn = self._withdraw
        self._groups.broken = lambda group: self.reject(group, self._triable(group).message or "its parts changed")

    def events(self) -> tuple[EventHint, ...]:
        """Return what may let a rejected group go on before it has rested: room that became free."""
        return (
            EventHint(NODE, Action.ADD | Action.UPDATE),
            EventHint(POD, Action.DELETE, self._frees_others_node),
            EventHint(POD, Action.UPDATE, was_resized),
        )

    def _frees_others_node(self, pod: Pod, event: ClusterEvent) -> bool:
        """Tell whether room became free that the pod's own group did not just give up."""
        if event.old is None or not event.old.spec.node_name:
            return False
        group = self._groups.of_pod(pod)
        return group is None or self._groups.of_pod(event.old) is not group

    # -- QueueSort ---------------------------------------------------------------------------------------------------

    def sort_key(self, queued: QueuedPod) -> tuple[Any, ...]:
        """Return priority, whether grouped, creation of the group, its identity, creation of the pod, its name.

        A group that was interrupted half-bound comes before everything of its priority, so that it is completed.
        """
        created = seconds(queued.pod.metadata.creation_timestamp)
        group = self._groups.of(queued.key)
        if group is None:
            return (-queued.priority, 0, created, (), created, queued.key)
        return (-group.priority, -1 if group.interrupted else 1, group.created, group.key, created, queued.key)

    # -- PreEnqueue --------------------------------------------------------------------------------------------------

    def pre_enqueue(self, pod: Pod) -> Status:
        """Keep members out while their group cannot be tried: it is not there, incomplete, or backing off."""
        group = self._groups.of_pod(pod)
        if group is None:
            return SUCCESS
        if self._groups.is_resting(group):
            group.stirred = True
        return self._triable(group)

    # -- PreFilter ---------------------------------------------------------------------------------------------------

    def pre_filter(self, state: CycleState, pod: Pod) -> Status:
        """Refuse a member whose group should not go on now (PreFilter 1 to 3)."""
        group = self._groups.of_pod(pod)
        if group is None:
            return SUCCESS  # PreFilter 1
        triable = self._triable(group)
        if not triable.ok:
            return triable
        if group.terms.priority is not None and group.terms.priority != pod.priority:
            return Status.unresolvable(
                f"the pod's priority is {pod.priority} and its pod group's {group.terms.priority}; they must be equal",
                waits=INADMISSIBLE,
            )
        if group.is_surplus(key_of(pod)):
            group.held_back = True
            return Status.unresolvable(
                f"other parts of pod group {group.name} come first; this one has its minimum", waits=WAITING_FOR_TURN
            )
        if group.chosen and not group.satisfied and key_of(pod) not in group.chosen:
            group.held_back = True
            return Status.unresolvable(
                f"other pods of pod group {group.name} come first; there is room for them", waits=WAITING_FOR_TURN
            )
        lacking = self._lacking_resources(group)
        if lacking:
            return self._rejected(group, f"resource gap of pod group {group.name}: {lacking}")
        if not self.arguments.prefer_closest_to_completion:
            return SUCCESS
        return self._closest_to_completion(state, group, pod)

    def _triable(self, group: Group) -> Status:
        if group.gang is None:
            return Status.unresolvable(f"pod group {group.name} not found", waits=INADMISSIBLE)
        if not group.complete:
            gated = f", {group.gated} of them gated" if group.gated else ""
            return Status.unresolvable(
                f"cannot find enough sibling pods, current pods number: {group.size}{gated}, "
                f"minMember of group: {group.minimum}",
                waits=WAITING_FOR_PODS,
            )
        if self._groups.is_resting(group):
            return Status.unresolvable(f"podGroup {group.name} failed recently: {group.rejection.rstrip('.')}")
        return SUCCESS

    def _lacking_resources(self, group: Group) -> str:
        """Return what the cluster lacks of the group's minimum resources; asked until it is met once."""
        if group.resources_checked or not group.terms.min_resources:
            return ""
        table = self._services.cluster.table
        asked = amounts_of({"pods": group.minimum, **group.terms.min_resources})
        wanted = table.axis.vector(asked)
        usable = table.alive & ~table.unschedulable
        free = np.maximum(table.idle[usable], 0).sum(axis=0)
        for record in group.members:
            if record.status in ACTIVE_ALLOCATED:
                free += padded(record.request.requests, len(free))
        short = np.maximum(wanted - free, 0)
        names = table.axis.names([name for name in asked if table.axis.find(name) is None])
        gap = [amount(names[column], int(short[column])) for column in np.flatnonzero(short).tolist()]
        group.resources_checked = not gap
        return ", ".join(gap)

    def _closest_to_completion(self, state: CycleState, group: Group, pod: Pod) -> Status:
        rivals = [each for each in self._groups.holding() if each is not group]
        if not rivals:
            return SUCCESS  # PreFilter 2
        top = min(rivals, key=lambda each: (-each.progress, each.order))
        if group.progress >= top.progress:
            return SUCCESS  # PreFilter 3: it is the closest
        record = self._record(pod)
        table = self._services.cluster.table
        spared = leaves_enough(demands(top.lacking(), self._handle.ranking), table, record)
        if spared is None:
            return SUCCESS  # nothing this pod takes would help the other one
        fits = self._handle.ranking.feasible(state, record, self._services.cluster.view).mask
        if not fits.any() or (fits & spared).any():
            state.write(_SPARED, spared)
            return SUCCESS  # PreFilter 3: the closest one still fits, on the nodes that remain
        if pod.priority > top.priority:
            self.reject(top, f"pod {key_of(pod)} of higher priority takes what pod group {top.name} needs", again=True)
            return SUCCESS
        reason = f"pod group {top.name} is closer to its completion and needs what is left"
        return self._rejected(group, reason, again=True)

    # -- Filter ------------------------------------------------------------------------------------------------------

    def concerns(self, state: CycleState, pod: Pod) -> bool:
        """Tell whether PreFilter kept nodes for another group."""
        return state.read(_SPARED) is not None

    def filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Mask:
        """Leave only the nodes that the closest group can spare."""
        spared = state.read(_SPARED)
        return nodes.alive if spared is None else spared

    # -- PostFilter --------------------------------------------------------------------------------------------------

    def post_filter(self, state: CycleState, pod: Pod) -> PostFilterResult:
        """Give up the group if it is far from its quorum, or if another one should have what it holds."""
        group = self._groups.of_pod(pod)
        if group is None or group.satisfied:
            return PostFilterResult(Status.unschedulable())
        if preempting(self._services, group):
            why = why_kept(self._services, group.members, otherwise="victims are still terminating")
            return PostFilterResult(Status.unschedulable(why), keep=True)
        others = group.others_than(self._record(pod), self._handle.ranking.kind)
        if others:
            self._services.activate(record.key for record in others)
            return PostFilterResult(Status.unschedulable(f"other pods may make the quorum of pod group {group.name}"))
        if group.missing * 100 > self.arguments.pod_group_reject_percentage * group.minimum:
            reason = f"PodGroup {group.name} gets rejected due to Pod {pod.metadata.name} is unschedulable"
            found = state.read(FILTERED)
            if found is not None:
                reason += f": {nodes_counted(self._record(pod), self._services.cluster.table, found)}"
            nobody = state.read(NO_VICTIMS)
            self.reject(group, f"{reason} {nobody}" if nobody else reason)
            return PostFilterResult(Status(Code.UNSCHEDULABLE, (reason,)))
        return self._settle_with_rivals(group)

    def _settle_with_rivals(self, group: Group) -> PostFilterResult:
        """Near its quorum a group holds on; but if others hold too, the later one in order gives way at once."""
        holding = (each for each in self._groups.holding() if each is not group and each.waiting)
        rivals = sorted(holding, key=attrgetter("order"))
        if not rivals:
            return PostFilterResult(Status.unschedulable(f"PodGroup {group.name} is near its quorum and holds on"))
        later = [each for each in rivals if each.order > group.order]
        for count in range(1, len(later) + 1):
            giving_way = later[-count:]
            if self._would_fit_without(group, giving_way):
                for each in giving_way:
                    self.reject(each, f"pod group {group.name}, which comes first, needs what it holds", again=True)
                return PostFilterResult(SUCCESS)
        reason = f"PodGroup {group.name} gives way to {', '.join(each.name for each in rivals)}"
        return PostFilterResult(self._rejected(group, reason, Code.UNSCHEDULABLE, again=True))

    def _would_fit_without(self, group: Group, others: list[Group]) -> bool:
        trial = TrialState(self._services.cluster, self._services.claims)
        for other in others:
            for key in other.waiting:
                record = self._services.cluster.pod(key)
                if record is not None and record.status in ACTIVE_ALLOCATED:
                    trial.evict(record)
        lacking = group.lacking()
        wanted = demands(lacking, self._handle.ranking)
        return fitting(wanted, trial.view.table, trial.view.table.alive) == len(lacking)

    # -- Reserve -----------------------------------------------------------------------------------------------------

    def reserve(self, state: CycleState, pod: Pod, node: str) -> Status:
        """Nothing to note: the ledger counts the pod."""
        return SUCCESS

    def unreserve(self, state: CycleState, pod: Pod, node: str) -> None:
        """One member that loses its node takes the waiting ones with it."""
        key = key_of(pod)
        group = self._groups.of_pod(pod)
        joint = state.read(_JOINT_BIND)
        if joint is not None:
            joint.fail(f"pod {key} of the group could not be bound")
        # One whose bind fails after it was released comes back alone; those that wait now wait for something else.
        if group is not None and group.waiting and not state.read(_RELEASED):
            group.waiting.pop(key, None)
            late = state.read(TIMED_OUT)
            # When its time is up nothing has changed. Otherwise something has: there may be room elsewhere.
            self.reject(group, f"pod {key} of the group {late or 'lost its node'}", again=not late)

    # -- Permit ------------------------------------------------------------------------------------------------------

    def permit(self, state: CycleState, pod: Pod, node: str) -> tuple[Status, float]:
        """Wait until enough members have a node, then let all go (Permit 1 and 2)."""
        group = self._groups.of_pod(pod)
        if group is None:
            return SUCCESS, 0.0
        key = key_of(pod)
        if group.gang is None:
            return Status.unschedulable(f"pod group {group.name} not found"), 0.0
        first = not group.waiting
        if first:
            self._services.reached_permit(group)
        if group.satisfied:
            self._release(group, {key: state})
            return SUCCESS, 0.0
        group.waiting[key] = None
        if first:
            self._services.activate(record.key for record in group.pending())
        timeout = group.terms.timeout or self.arguments.permit_waiting_time_seconds
        if self._services.requests and (asked := asked_until(self._services, group.members)) is not None:
            timeout += max((asked - self._services.runtime.clock.now()).total_seconds(), 0.0)
        return Status(Code.WAIT, (f"waiting for {group.missing} more pods of pod group {group.name}",)), timeout

    def _release(self, group: Group, last: Mapping[Key, CycleState] = {}) -> None:
        """Let the waiting members go, and the ``last`` one that came; together, if some must be prepared first."""
        waiting, group.waiting = group.waiting, {}
        group.begin_anew()
        held = [pod for key in waiting if (pod := self._services.waiting.get(key)) is not None]
        states = {**{pod.key: pod.state for pod in held}, **last}
        for state in states.values():
            state.write(_RELEASED, True)
        if any(self._needs_preparing(key) for key in states):
            joint = JointBind(states)
            for state in states.values():
                state.write(_JOINT_BIND, joint)
        for pod in held:
            pod.allow(self.name)
        if waiting or group.held_back:
            group.held_back = False
            self._services.activate(record.key for record in group.pending())

    def _needs_preparing(self, key: Key) -> bool:
        record = self._services.cluster.pod(key)
        if record is None or not (record.pod.spec.volumes or record.pod.spec.resource_claims):
            return False
        placement = Placement(key, record.uid, record.node)
        return bool(record.pod.spec.resource_claims) or self._services.late_volumes.needs(placement)

    # -- PreBind -----------------------------------------------------------------------------------------------------

    async def pre_bind(self, state: CycleState, pod: Pod, node: str) -> Status:
        """Wait until all members that were released together have what they need to be bound."""
        joint = state.read(_JOINT_BIND)
        if joint is None:
            return SUCCESS
        joint.ready(key_of(pod))
        problem = await joint.verdict()
        return Status.unschedulable(problem) if problem else SUCCESS

    # -- PostBind ----------------------------------------------------------------------------------------------------

    async def post_bind(self, state: CycleState, pod: Pod, node: str) -> None:
        """Have the group's status say that one more of its pods is bound."""
        group = self._groups.of_pod(pod)
        if group is not None:
            self._services.bound(group)

    # -- rejecting a group -------------------------------------------------------------------------------------------

    def reject(self, group: Group, reason: str, *, again: bool = False) -> None:
        """Send back every waiting member and put the group on the back-off list.

        It is tried again when it has rested, if something happened meanwhile that may help it, or if it gave way to
        others (``again``), who will be gone.
        """
        if self._groups.is_resting(group):
            return
        log.info("pod group rejected", group=group.name, held=group.assigned, minimum=group.minimum, reason=reason)
        group.rejection = reason
        group.resources_checked = False
        group.begin_anew()
        rest = max(self.arguments.pod_group_backoff_seconds, _SHORTEST_REST)
        self._groups.rest(group, self._services.runtime.clock.monotonic() + rest, stirred=again)
        waiting, group.waiting = group.waiting, {}
        for key in waiting:
            pod = self._services.waiting.get(key)
            if pod is not None:
                pod.reject(self.name, reason)
        group.leave_domains()
        self._withdraw(group)
        self._services.refused(group, reason)

    def _withdraw(self, group: Group) -> None:
        """Keep no node for the members of a group."""
        group.chosen = frozenset()
        for record in group.members:
            if self._services.nominations.node_of(record.key):
                self._services.nominate(record, "")

    def _rejected(self, group: Group, reason: str, code: Code = Code.UNRESOLVABLE, *, again: bool = False) -> Status:
        self.reject(group, reason, again=again)
        return Status(code, (reason,))

    def _record(self, pod: Pod) -> PodRecord:
        record = self._services.cluster.pod(key_of(pod))
        assert record is not None, "a pod in a scheduling cycle is in the ledger"
        return record
