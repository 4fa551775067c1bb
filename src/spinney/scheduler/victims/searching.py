"""The search for victims: for each pending job that may disturb others, the least disturbance that places it.

For one job the search asks, cheapest first, and stops at the first *no*:

1. Is there a job that may be a victim? Jobs are asked about, not their pods.
2. Could the job be placed if every possible victim left? Sums per node and per domain answer that, first as if the
   cluster were empty, then with what victims hold; where nobody may be lost, with what could be moved elsewhere.
3. Is what may be taken for good enough, with what is free, for what the job asks for? Sums per queue answer that.
4. Which victims make room, by arithmetic? (:mod:`~spinney.scheduler.victims.selecting`)
5. Does that hold when it is simulated, and is it just? If so, it is committed.
6. If not, other sets are tried: for the first task of the job, then for twice as many, up to all of them, each time on
   top of what was found for fewer (:mod:`~spinney.scheduler.victims.scenarios`), while the budget lasts.

7. Last, the scenarios that plugins generate are tried.

So the number of simulations is bounded by the number of victims, and most searches need one or none.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from operator import attrgetter
from typing import Final

import structlog

from spinney.cluster.devices import DEVICE
from spinney.cluster.statuses import ACTIVE_ALLOCATED, PodStatus
from spinney.explain.reasons import ScenarioCount, VictimReport
from spinney.gangs.declarations import NEVER
from spinney.scheduler.evaluation.turns import ALLOCATE, JobTurns, first_of_queues
from spinney.scheduler.fairshare.amounts import Amounts, total_of
from spinney.scheduler.fairshare.runtimes import is_delay_over
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.results import PREEMPTION_DELAY, FitError
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import NOWHERE, PodInfo, by_request, one_of_each
from spinney.scheduler.placement.failed_jobs import FailedSearches
from spinney.scheduler.victims.moving import NO_OTHER_PLACE, all_have_units
from spinney.scheduler.victims.order import Step, Steps, VictimOrder
from spinney.scheduler.victims.own_runtime import CUT_SHORT, is_cut_short
from spinney.scheduler.victims.pool import VictimPool, protection_of
from spinney.scheduler.victims.returning import Returning
from spinney.scheduler.victims.room import FreedRoom
from spinney.scheduler.victims.rule import VictimRule
from spinney.scheduler.victims.scenarios import Scenarios, generated_scenarios
from spinney.scheduler.victims.selecting import JobDemand, choose
from spinney.scheduler.victims.simulating import Bystanders, simulate

log = structlog.get_logger()

NO_ROOM = "there is no room even without all possible victims"
TOO_LITTLE = "evicting all that may be evicted makes too little room"
NO_VICTIM = "a plugin proposed victims that may not be taken"
BROKEN_GANG = "a gang would be left below its minimum"
NOT_PLACED = "the job was not placed in the simulation"
TAKEN_BACK = "what was taken would go back to queues whose turn comes before the job's"
NOT_TAKEN_UP = "the job was given a place for which nobody has to go, and did not come to it"
OUT_OF_TIME = "the time for the search was over"
_NOBODY_LEFT: Final = timedelta(seconds=1)
"""When a job is looked at again that was given a place though nobody has to go for it."""
_PREEMPTION_POLICY = attrgetter("record.pod.spec.preemption_policy")


def search_victims(session: Session, rule: VictimRule, pending: Sequence[PodGroupInfo]) -> None:
    """Search victims for every one of the ``pending`` jobs, in order, and commit what is found."""
    # Whom nobody has tried to place may fit as it is.
    untried = session.overdue.get(ALLOCATE, frozenset())
    pending = [job for job in pending if job.key not in untried]
    jobs = []
    for job in first_of_queues(session, rule.name, pending):
        with session.bulkhead(job.key, "looking at"):
            jobs += [job] if _may_disturb(session, job) else []
    if not jobs:
        return
    search = Search(session, rule, pending)
    shared = session.config.use_scheduling_signatures and session.hooks.find_victims_alike
    failed = FailedSearches(session.nodes, by_priority=rule.by_priority) if shared else None
    for job in JobTurns(session, rule.name, jobs, lambda: search.spent):
        with session.bulkhead(job.key, "searching victims for"):
            _search(session, search, failed, job)


def _search(session: Session, search: "Search", failed: FailedSearches | None, job: PodGroupInfo) -> None:
    """Search victims for one job, unless that failed before for one just like it."""
    failures = session.failures.total
    if not search.rule.may_search(session, job):
        session.record_failures(job, failures)
        return
    known = failed.find(job) if failed is not None else None
    if known is not None:
        session.victim_reports.setdefault(job.key, []).extend(session.victim_reports.get(known, ())[-1:])
        return
    if search.solve(job):
        session.fit_errors.pop(job.key, None)
        session.victim_reports.pop(job.key, None)
        return
    session.record_failures(job, failures)
    if failed is not None and session.failures.total == failures and search.rule.remark(session, job) is None:
        failed.add(job)


class Search:
    """Searches of one action. Mutable: the pool of victims and the time that is left go from one job to the next.

    A job never gets more than half of what is left, so a hard one cannot keep those behind it from their turn. Time is
    only looked at between scenarios and between the steps they are made of; on a clock that stands still nothing ever
    runs out.
    """

    def __init__(self, session: Session, rule: VictimRule, pending: Sequence[PodGroupInfo]) -> None:
        self._end = session.monotonic() + session.config.victim_search.action_seconds
        self._job_end = self._end
        self._session = session
        self.rule = rule
        self._pool = VictimPool(session)
        self._bystanders = Bystanders(session, pending)
        self._returning: Returning | None = None
        self._rejected: Counter[str] = Counter()
        self._messages: dict[str, str] = {}

    @property
    def spent(self) -> bool:
        """Tell whether the action's time is over."""
        return self._session.monotonic() > self._end

    def solve(self, job: PodGroupInfo) -> bool:
        """Place ``job`` at the cost of victims, if that may be; return whether it was done."""
        session, rule = self._session, self.rule
        now = session.monotonic()
        self._job_end = now + min(session.config.victim_search.job_seconds, max(self._end - now, 0.0) / 2)
        self._returning = None
        self._rejected.clear()
        self._messages.clear()
        tasks = list(job.tasks_to_allocate())
        asked = one_of_each(tasks) if all(hook.alike for hook in session.hooks.invariants) else tasks
        blocker = next(filter(None, map(session.ask.victim_invariant_blocker, asked)), None)
        if blocker is not None:
            self._reject(blocker)
        if not tasks or blocker is not None:
            return self._report(job, 0)
        session.ask.job_solution_start()
        queues = list(rule.queues(session, job, self._pool))

        def admits(victim: PodGroupInfo) -> bool:
            return rule.admits(session, job, victim)

        def may_be(priority: int) -> bool:
            return rule.may_admit(session, job, priority)

        def protection(victim: PodGroupInfo) -> str | None:
            return protection_of(session, victim) if admits(victim) else rule.protection(session, job, victim)

        if not self._pool.has_any(queues, may_be, admits):
            self._reject_for_first(map(protection, self._pool.holding(queues, may_be)))
            return self._report(job, 0)
        room = FreedRoom.of(session)
        if rule.loses_nothing and not self._is_enough(tasks, room.total()):
            self._reject(TOO_LITTLE)
            return self._report(job, self._pool.pods(queues))
        demand = JobDemand(session, job, tasks)
        if not self._has_neighbours(queues, room, demand):
            self._reject(NO_ROOM)
            return self._report(job, 0)
        if self._may_hold(job, queues, room, demand):
            order = VictimOrder(session, self._pool, queues, admits)
            steps = Steps(order, most_jobs=rule.most_jobs(session), has_time=self._has_time)
            if steps.get(0) is not None and self._find(job, queues, room, demand, steps):
                return True
            if self._generate(job, tasks, queues, admits):
                return True
            if steps.exhausted and not steps.pods:
                self._reject_for_first(map(protection, self._pool.holding(queues, may_be)))
            if steps.exhausted:
                return self._report(job, steps.pods)
        return self._report(job, self._pool.pods(queues))

    # -- one job -----------------------------------------------------------------------------------------------------

    def _has_neighbours(self, queues: Sequence[str], room: FreedRoom, demand: JobDemand) -> bool:
        """Tell whether there could be a victim on the nodes that a job without room is bound to, if it is to some.

        A plugin that makes scenarios of its own is asked in any case.
        """
        if self._session.hooks.scenario_generators:
            return True
        here = demand.anywhere
        if here[self._session.nodes.all.rows].all() or demand.possible_in(room):
            return True
        return any(True for _ in self._pool.present(queues, here))

    def _may_hold(self, job: PodGroupInfo, queues: Sequence[str], room: FreedRoom, demand: JobDemand) -> bool:
        """Tell whether the job could be placed as far as sums tell, without looking at victims one by one."""
        if not demand.possible_in(FreedRoom.empty(self._session)):
            return self._reject(NO_ROOM)
        generated = bool(self._session.hooks.scenario_generators)
        if self.rule.loses_nothing and not generated and not self._is_within_reach(queues, room, demand):
            return self._reject(TOO_LITTLE)
        # What victims keep elsewhere is not free: demand is covered by what is free and what is lost for good.
        most = self.rule.most_lost(self._session, job, self._pool)
        if most is not None and not self._is_enough(demand.tasks, room.total() + most):
            return self._reject(TOO_LITTLE)
        return True

    def _is_within_reach(self, queues: Sequence[str], room: FreedRoom, demand: JobDemand) -> bool:
        """Tell whether enough is free where the job may go, with what may be moved from there to other nodes.

        Nobody is lost, so what comes to these nodes is covered by what is free there and what leaves them for good.
        """
        here = demand.anywhere
        asked = self._asked(demand.tasks)
        if asked is None or _is_within(asked, free := room.total(here)):
            return True
        most = free + room.total(~here)
        if not _is_within(asked, most):
            return False
        for held in self._pool.leaving(queues, here):
            free += held
            if _is_within(asked, free):
                return True
        return False

    def _is_enough(self, tasks: Sequence[PodInfo], available: Amounts) -> bool:
        """Tell whether so much would do for tasks if it were all in one place."""
        asked = self._asked(tasks)
        return asked is None or _is_within(asked, available)

    def _asked(self, tasks: Sequence[PodInfo]) -> Amounts | None:
        """Return what tasks ask for in sum; ``None`` where they ask for MIG instances, which are not added up."""
        requests = by_request(tasks)
        if any(request.mig_slices for request in requests):
            return None
        largest = self._session.charges.sizes.largest
        return total_of(
            self._session.charges.of_request(each, largest).times(len(alike)) for each, alike in requests.items()
        )

    def _find(self, job: PodGroupInfo, queues: Sequence[str], room: FreedRoom, demand: JobDemand, steps: Steps) -> bool:
        """Choose victims, simulate, and search on if that does not hold."""
        utmost = room.copy()
        utmost.free += self._pool.freed(queues)
        places = demand.possible_in(utmost)
        narrow = self._session.config.narrow_victims
        # Where what is passed over goes too, the domain of the least important victims is not the one to begin with.
        chosen_first = bool(places) and (narrow or demand.domains is None)
        choice = choose(demand, room, steps, places, narrow=narrow) if chosen_first else None
        # What fits without any victim still needs one to begin with, who may be anywhere and stays.
        tried_all = chosen_first and choice is None and steps.exhausted
        hopeless = tried_all and demand.uniform and not demand.possible_in(room)
        if not places or hopeless:
            return self._reject(NO_ROOM)
        if choice is not None and self._try(job, demand.tasks, choice.steps, keep=True):
            return True
        return self._probe(job, room, demand, steps)

    def _probe(self, job: PodGroupInfo, room: FreedRoom, demand: JobDemand, steps: Steps) -> bool:
        """Search for growing parts of the job, each with what was found for the one before."""
        tasks = demand.tasks
        settled: tuple[Step, ...] = ()
        for size in _sizes(len(tasks)):
            whole = size == len(tasks)
            found = next(
                (
                    each
                    for each in Scenarios(
                        demand, tasks[:size], room, settled, across_nodes=self._session.config.victims_across_nodes
                    ).among(steps)
                    if self._has_time() and self._try(job, tasks[:size], each, keep=whole)
                ),
                None,
            )
            if found is None:
                return False
            settled = found
        return True

    def _generate(
        self, job: PodGroupInfo, tasks: Sequence[PodInfo], queues: Sequence[str], admits: Callable[[PodGroupInfo], bool]
    ) -> bool:
        """Try the scenarios of plugins, as far as their victims may be victims at all."""
        session, eligible = self._session, frozenset(queues)
        for victims in generated_scenarios(session, job):
            if not self._has_time():
                return False
            by_job: dict[PodGroupInfo, list[PodInfo]] = {}
            for task in victims:
                by_job.setdefault(task.job, []).append(task)
            if not all(each.queue in eligible and self._pool.holds(each) and admits(each) for each in by_job):
                self._reject(NO_VICTIM)
                continue
            steps = [Step(each, tuple(given)) for each, given in by_job.items()]
            if steps and self._try(job, tasks, steps, keep=True):
                return True
        return False

    def _has_time(self) -> bool:
        if self._session.monotonic() <= self._job_end:
            return True
        self._rejected[OUT_OF_TIME] = 1
        return False

    def _try(self, job: PodGroupInfo, tasks: Sequence[PodInfo], steps: Sequence[Step], *, keep: bool) -> bool:
        """Simulate a scenario; ``keep`` commits it if it holds."""
        session = self._session
        hopeless = self._hopeless(job, tasks, steps)
        if hopeless is not None:
            return self._reject(hopeless)
        for step in steps:
            if step.job.queue not in self._messages:
                self._messages[step.job.queue] = self.rule.message(session, job, step.job.queue)
        held = simulate(session, job, tasks, steps, bystanders=self._bystanders, messages=self._messages)
        if held is None:
            return self._reject(NOT_PLACED)
        statement, scenario = held
        evicted = [task.record for tasks in scenario.victims.values() for task in tasks if _goes(task)]
        refusal = self.rule.refusal(session, scenario) or session.snapshot.budgets.refusal(evicted)
        if any(map(_is_broken, scenario.victims)):
            refusal = BROKEN_GANG
        elif any(is_cut_short(session, each) for each in scenario.victims):
            refusal = CUT_SHORT
        if refusal is None and keep and not job.gang_satisfied:
            refusal = NOT_PLACED
        free = keep and not evicted and self._is_free(tasks)
        if refusal is None and free and job.key in session.promised:
            refusal = NOT_TAKEN_UP
        if refusal is not None or not keep:
            statement.discard()
            return refusal is None or self._reject(refusal)
        statement.commit()
        session.snapshot.budgets.spend(evicted)
        if free:
            session.free_places |= {job.key}
        if not evicted:  # then nothing may happen that has the job looked at again, and its pods bound
            session.wake_at(session.now + _NOBODY_LEFT)
        self._pool.look_again([job, *scenario.victims])
        log.info(
            "victims taken",
            action=self.rule.name,
            job=str(job.key),
            victims=len(scenario.victims),
            pods=sum(map(len, scenario.victims.values())),
        )
        return True

    def _is_free(self, tasks: Sequence[PodInfo]) -> bool:
        """Tell whether tasks that were promised a place need nobody to go: nor victims of an earlier search."""
        table, shared = self._session.nodes.table, self._session.nodes.ledger.shared
        for row, request in {(task.row, task.request) for task in tasks if task.row != NOWHERE}:
            if (table.used[row] > table.allocatable[row])[request.columns].any():
                return False
            if request.share is not None and any(use.used > DEVICE for use in shared.of_row(row).values()):
                return False
        return True

    def _hopeless(self, job: PodGroupInfo, tasks: Sequence[PodInfo], steps: Sequence[Step]) -> str | None:
        """Return why a simulation would fail, if there is no room for the job beside those who would stay."""
        leaving = [task for step in steps for task in step.tasks]
        if self.rule.loses_nothing:
            staying, why = leaving, NO_OTHER_PLACE
        else:
            if self._returning is None:
                self._returning = Returning(self._session, job, self._bystanders.besides({job: None}))
            staying, why = self._returning.before(steps), TAKEN_BACK
        return None if not staying or all_have_units(self._session, [*tasks, *staying], leaving) else why

    def _reject(self, reason: str) -> bool:
        self._rejected[reason] += 1
        return False

    def _reject_for_first(self, reasons: Iterable[str | None]) -> None:
        """Note the first of the reasons for which nobody may go, if there is one."""
        reason = next(filter(None, reasons), None)
        if reason is not None:
            self._reject(reason)

    def _report(self, job: PodGroupInfo, candidates: int) -> bool:
        remark = self.rule.remark(self._session, job)
        if remark is not None:
            self._reject(remark)
        rejected = tuple(
            ScenarioCount(reason=reason, scenarios=count) for reason, count in sorted(self._rejected.items())
        )
        report = VictimReport(action=self.rule.reported_as, candidates=candidates, rejected=rejected)
        self._session.victim_reports.setdefault(job.key, []).append(report)
        return False


def _goes(task: PodInfo) -> bool:
    """Tell whether a victim leaves its node: for good, or because it was promised another one."""
    return task.status in {PodStatus.RELEASING, PodStatus.PIPELINED}


def _is_broken(victim: PodGroupInfo) -> bool:
    """Tell whether pods of a victim stay that could do nothing without those that go, as a plugin may have chosen."""
    stays = any(task.status in ACTIVE_ALLOCATED for task in victim.tasks)
    return stays and (victim.gang.disrupted_whole or not victim.gang_satisfied)


def _may_disturb(session: Session, job: PodGroupInfo) -> bool:
    """Tell whether a job is old enough to disturb others, and does not say that it never will."""
    gang = job.gang
    evicted = gang.last_eviction or session.snapshot.evicted.get(job.key)
    if gang.created is not None and not is_delay_over(gang.created, evicted, gang.preemption_delay, session.now):
        error = FitError(PREEMPTION_DELAY, f"the job may not disturb others before {gang.preemption_delay} have passed")
        if error not in session.fit_errors.get(job.key, ()):
            session.record_fit_error(job, error)
        if gang.preemption_delay is not None:
            session.wake_at(max(gang.created, evicted or gang.created) + gang.preemption_delay)
        return False
    if not session.config.honour_preemption_policy:
        return True
    return gang.preempts and NEVER not in map(_PREEMPTION_POLICY, job.tasks_to_allocate())


def _sizes(whole: int) -> Iterable[int]:
    size = 1
    while size < whole:
        yield size
        size *= 2
    yield whole


def _is_within(asked: Amounts, bound: Amounts) -> bool:
    return asked.cpu <= bound.cpu and asked.memory <= bound.memory and asked.gpu <= bound.gpu
