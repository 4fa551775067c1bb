"""The ``proportion`` plugin: fairness between queues, in a session.

When the session opens, the books are written up from what queues hold and want, and the cluster is divided into fair
shares. From then on every virtual placement and eviction moves the books, so that the order of queues, the capacity
checks and the rules of reclaim always speak about the session as it stands. A search for victims is judged by the books
as they were before its simulation began.

Arguments: ``reclaimerSaturationMultiplier`` (at least 1, default 1); ``kValue``, which KAI's configurations have, is
taken and changes nothing, as usage over time does not count.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar

import msgspec

from spinney.cluster.classes import RequestClass
from spinney.cluster.fitting import MANY
from spinney.cluster.pods import PodRecord
from spinney.cluster.statuses import ACTIVE_ALLOCATED, CHARGED
from spinney.extensions.arguments import read_arguments
from spinney.gangs.book import GangSnapshot
from spinney.scheduler.fairshare.amounts import GPU, ZERO, Amounts, total_of
from spinney.scheduler.fairshare.books import QueueBook, QueueBooks
from spinney.scheduler.fairshare.bounds import most_reclaimable
from spinney.scheduler.fairshare.capacity import OverCapacity, non_preemptible_over_quota, over_capacity
from spinney.scheduler.fairshare.order import QueueStanding, compare_standings, standing_of
from spinney.scheduler.fairshare.reclaim import Reclaimer, Victims, can_reclaim, judge, may_be_victim
from spinney.scheduler.fairshare.totals import cluster_total
from spinney.scheduler.framework.events import (
    UNBOUNDED,
    WITHIN_CAPACITY,
    BatchEvent,
    CapacityVerdict,
    EventHandler,
    Scenario,
)
from spinney.scheduler.framework.extension_points import QueueTurn
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.nodes import NodeInfo
from spinney.scheduler.framework.plugin import Constraint, Plugin
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import PodInfo


class UsageWeights(msgspec.Struct, frozen=True, rename="camel"):
    """How far below a giver's the use of a reclaiming queue has to be, and what KAI weighs usage over time by."""

    # What KAI's code reads, and what its documentation says.
    key_aliases: ClassVar[Mapping[str, str]] = {
        "relcaimerSaturationMultiplier": "reclaimerSaturationMultiplier",
        "reclaimerUtilizationMultiplier": "reclaimerSaturationMultiplier",
    }

    k_value: Annotated[float, msgspec.Meta(ge=0)] = 1.0
    """Without effect."""
    reclaimer_saturation_multiplier: Annotated[float, msgspec.Meta(ge=1)] = 1.0


class ProportionPlugin(Plugin):
    """Fair share, queue order, limits and quotas."""

    name = "proportion"
    arguments_type = UsageWeights
    honours = frozenset({Constraint.QUEUE_LIMITS})
    treats_alike = True

    def on_session_open(self, session: Session) -> None:
        self._session = session
        self._saturation = read_arguments(UsageWeights, self.arguments).reclaimer_saturation_multiplier
        self._batches: dict[tuple[int, int], Amounts] = {}
        """What so many pods of a request class cost, where that is the same everywhere."""
        self._requests: dict[PodGroupInfo, tuple[Mapping[RequestClass, int], Amounts]] = {}
        self._standings: dict[QueueBook, tuple[Amounts, Amounts, QueueStanding]] = {}
        self._consolidating = session.config.allow_consolidating_reclaim
        self._sizes = session.charges.sizes
        self.books = QueueBooks(session.queues, cluster_total(session.nodes.table, session.snapshot.foreign))
        self._before_search = self.books
        self._write_up(session.snapshot.gangs)
        self.books.set_fair_shares()
        session.add_queue_order_fn(lambda left, right: compare_standings(self._standing(left), self._standing(right)))
        session.add_is_job_over_capacity_fn(self._job_over_capacity)
        session.add_is_non_preemptible_job_over_queue_quota_fn(self._non_preemptible_over_quota)
        session.add_is_task_allocation_on_node_over_capacity_fn(self._task_over_capacity)
        session.add_can_reclaim_resources_fn(lambda job: can_reclaim(self.books, self._reclaimer(job)))
        if session.config.spare_within_share:
            session.add_reclaim_victim_filter_fn(
                lambda job, victim: may_be_victim(self.books, self._reclaimer(job), victim.queue)
            )
        session.add_reclaim_scenario_validator_fn(self._is_just)
        session.add_reclaim_bound_fn(lambda job, lots: most_reclaimable(self.books, self._reclaimer(job), lots))
        session.add_on_job_solution_start_fn(self._remember_books)
        session.add_get_queue_allocated_resources_fn(lambda queue: self.books[queue].allocated)
        session.add_get_queue_deserved_resources_fn(lambda queue: self.books[queue].queue.quota)
        session.add_get_queue_fair_share_fn(lambda queue: self.books[queue].fair_share)
        session.add_event_handler(
            EventHandler(
                allocate_many=lambda event: self._post(event, 1),
                deallocate_many=lambda event: self._post(event, -1),
                ahead=lambda _: MANY,  # the order of queues and what they may hold are asked about afterwards
            )
        )

    # -- the books ---------------------------------------------------------------------------------------------------

    def _write_up(self, gangs: GangSnapshot) -> None:
        """Post what queues hold and want when the session opens."""
        self.books.write_up(gangs.holdings, self._session.nodes.table)
        if self._session.claims.claims:
            self.books.write_up_claims(gangs.gangs.values(), self._claimed)
        if self._session.is_inference_preemptible():
            self._reclassify_inference(gangs)

    def _claimed(self, record: PodRecord) -> Amounts:
        return Amounts(gpu=(self._session.devices.effective_request(record).gpus - record.request.gpus) * GPU)

    def _reclassify_inference(self, gangs: GangSnapshot) -> None:
        """Book what inference jobs hold as preemptible, which in this configuration they are."""
        table = self._session.nodes.table
        for key, members in gangs.gangs.items():
            gang = members.gang
            if gang.preemptible or gang.queue not in self.books.tree:
                continue
            if not self._is_preemptible(self._session.job(key)):
                continue
            for _, record in members.pods.values():
                if record.status in CHARGED:
                    request = self._session.devices.effective_request(record)
                    row = table.find(record.node) if record.node else None
                    amounts = self._charge(request, self._sizes.smallest if row is None else int(table.gpu_memory[row]))
                    self.books.discharge(gang.queue, amounts, preemptible=False)
                    self.books.charge(gang.queue, amounts, preemptible=True)

    def _post(self, event: BatchEvent, sign: int) -> None:
        job, request = event.job, event.request
        if job.queue not in self.books.tree:
            return
        if request.share is None or not request.share.memory:  # alike, and cost the same everywhere
            kind = (request.number, sign * event.count)
            amounts = self._batches.get(kind)
            if amounts is None:
                amounts = self._batches[kind] = self._charge(request, 0).times(sign * event.count)
        else:
            amounts = total_of(map(self._session.charges.of, event.tasks)).times(sign)
        self.books.charge(job.queue, amounts, preemptible=self._is_preemptible(job))

    def _charge(self, request: RequestClass, memory: int) -> Amounts:
        return self._session.charges.of_request(request, memory)

    def _cost(self, asked: Mapping[RequestClass, int], memory: int) -> Amounts:
        """Return what pods that have no node yet ask for, on devices of that much memory."""
        return total_of(self._charge(request, memory).times(count) for request, count in asked.items())

    def _next_request(self, job: PodGroupInfo) -> Amounts:
        """Return what the tasks to place next ask for; kept until the job's next tasks are others."""
        asked = job.asked
        known = self._requests.get(job)
        if known is None or known[0] is not asked:
            known = self._requests[job] = (asked, self._cost(asked, self._sizes.smallest))
        return known[1]

    def _is_preemptible(self, job: PodGroupInfo) -> bool:
        return job.is_preemptible_job(self._session.is_inference_preemptible())

    # -- order and capacity ------------------------------------------------------------------------------------------

    def _standing(self, turn: QueueTurn) -> QueueStanding:
        """Return how a queue stands; computed anew only when what it holds or wants has changed."""
        book = self.books[turn.queue.name]
        following = ZERO if turn.next_job is None else self._next_request(turn.next_job)
        if turn.victims:
            victims = total_of(map(self._held, turn.victims)) if turn.victims_hold is None else turn.victims_hold
            return standing_of(book, self.books.total, following=following, victims=victims)
        known = self._standings.get(book)
        if known is not None and known[0] is book.allocated and known[1] is following:
            return known[2]
        standing = standing_of(book, self.books.total, following=following)
        self._standings[book] = (book.allocated, following, standing)
        return standing

    def _held(self, job: PodGroupInfo) -> Amounts:
        return self._session.charges.of_all([task for task in job.tasks if task.status in ACTIVE_ALLOCATED])

    def _job_over_capacity(self, job: PodGroupInfo, tasks: Sequence[PodInfo]) -> CapacityVerdict:
        if self._is_unbounded(job):
            return UNBOUNDED
        request = self._cost(job.requests_of(tasks), self._sizes.largest)
        return _verdict(over_capacity(self.books, job.queue, request, preemptible=self._is_preemptible(job)))

    def _non_preemptible_over_quota(self, job: PodGroupInfo, tasks: Sequence[PodInfo]) -> CapacityVerdict:
        if self._is_preemptible(job):
            return UNBOUNDED
        request = self._cost(job.requests_of(tasks), self._sizes.largest)
        return _verdict(non_preemptible_over_quota(self.books, job.queue, request))

    def _task_over_capacity(self, task: PodInfo, job: PodGroupInfo, node: NodeInfo) -> CapacityVerdict:
        if self._is_unbounded(job):
            return UNBOUNDED
        request = self._charge(task.request, node.gpu_memory)
        return _verdict(over_capacity(self.books, job.queue, request, preemptible=self._is_preemptible(job)))

    def _is_unbounded(self, job: PodGroupInfo) -> bool:
        """Tell whether no limit and no quota bounds what the job may be given."""
        return self._is_preemptible(job) and not self.books.is_limited(job.queue)

    # -- reclaim -----------------------------------------------------------------------------------------------------

    def _reclaimer(self, job: PodGroupInfo) -> Reclaimer:
        return Reclaimer(queue=job.queue, request=self._next_request(job), preemptible=self._is_preemptible(job))

    def _remember_books(self) -> None:
        self._before_search = self.books.copy()

    def _is_just(self, scenario: Scenario) -> bool | str:
        job = scenario.preemptor
        reclaimer = Reclaimer(
            queue=job.queue,
            request=self._cost(job.requests_of(scenario.pending), self._sizes.smallest),
            preemptible=self._is_preemptible(job),
        )
        by_queue: dict[str, list[Amounts]] = {}
        for victim, tasks in scenario.victims.items():
            lost = [task for task in tasks if not (self._consolidating and task.status in ACTIVE_ALLOCATED)]
            by_queue.setdefault(victim.queue, []).extend(self._chunks(victim, lost))
        victims = [Victims(queue=queue, chunks=tuple(chunks)) for queue, chunks in by_queue.items() if chunks]
        unjust = judge(self._before_search, reclaimer, victims, saturation_multiplier=self._saturation)
        return True if unjust is None else f"{unjust.reason}: queue {unjust.queue}"

    def _chunks(self, victim: PodGroupInfo, tasks: Sequence[PodInfo]) -> list[Amounts]:
        """Divide what a job loses: each task beyond a pod set's minimum by itself, the rest of the gang as one."""
        lost = Counter(task.pod_set.name for task in tasks)
        spare = {
            pod_set.name: victim.active(pod_set) + lost[pod_set.name] - pod_set.min_member
            for pod_set in victim.gang.pod_sets.values()
        }
        chunks: list[Amounts] = []
        core = ZERO
        for task in tasks:
            cost = self._session.charges.of(task)
            if spare[task.pod_set.name] > 0:
                spare[task.pod_set.name] -= 1
                chunks.append(cost)
            else:
                core = core + cost
        return [*chunks, core] if core else chunks


def _verdict(refusal: OverCapacity | None) -> CapacityVerdict:
    if refusal is None:
        return WITHIN_CAPACITY
    return CapacityVerdict(ok=False, reason=refusal.reason.value, message=refusal.message, details=refusal)
