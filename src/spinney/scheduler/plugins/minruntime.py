"""The ``minruntime`` plugin: a job that has just started is left alone for a while.

A job that is still protected may only lose what it has beyond its gang: it passes the victim filter if it has such
pods, and a scenario is refused if it would take a protected job below the minimum of any pod set.

Arguments: ``defaultPreemptMinRuntime`` and ``defaultReclaimMinRuntime`` (durations, default 0s) hold where no queue
says otherwise; ``reclaimResolveMethod`` is ``lca`` (default) or ``queue``.
"""

from datetime import timedelta

import msgspec

from spinney.cluster.statuses import ACTIVE_ALLOCATED
from spinney.extensions.arguments import read_arguments
from spinney.scheduler.fairshare.runtimes import MinRuntimes, ReclaimMethod, is_protected
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.plugin import Plugin
from spinney.scheduler.framework.session import Session


class Protection(msgspec.Struct, frozen=True, rename="camel"):
    """For how long jobs are left alone where no queue says otherwise, and which queue's word counts."""

    default_preempt_min_runtime: timedelta = timedelta(0)
    default_reclaim_min_runtime: timedelta = timedelta(0)
    reclaim_resolve_method: ReclaimMethod = ReclaimMethod.LCA


class MinRuntimePlugin(Plugin):
    """Protection of jobs that started recently."""

    name = "minruntime"
    arguments_type = Protection
    treats_alike = True

    def on_session_open(self, session: Session) -> None:
        self._now, self._wake_at = session.now, session.wake_at
        chosen = read_arguments(Protection, self.arguments)
        self._runtimes = MinRuntimes(
            tree=session.queues,
            preempt=chosen.default_preempt_min_runtime,
            reclaim=chosen.default_reclaim_min_runtime,
            method=chosen.reclaim_resolve_method,
        )
        session.add_reclaim_victim_filter_fn(
            lambda job, victim: self._may_be_touched(victim, self._for_reclaim(job, victim))
        )
        session.add_preempt_victim_filter_fn(
            lambda job, victim: self._may_be_touched(victim, self._for_preempt(job, victim))
        )
        session.add_reclaim_scenario_validator_fn(
            lambda scenario: all(
                self._keeps_gang(victim, self._for_reclaim(scenario.preemptor, victim)) for victim in scenario.victims
            )
        )
        session.add_preempt_scenario_validator_fn(
            lambda scenario: all(
                self._keeps_gang(victim, self._for_preempt(scenario.preemptor, victim)) for victim in scenario.victims
            )
        )

    def _for_reclaim(self, job: PodGroupInfo, victim: PodGroupInfo) -> timedelta:
        return self._runtimes.for_reclaim(job.queue, victim.queue)

    def _for_preempt(self, job: PodGroupInfo, victim: PodGroupInfo) -> timedelta:
        """Whoever gives way to a job of another queue is protected as from any that takes from it."""
        if job.queue != victim.queue:
            return self._for_reclaim(job, victim)
        return self._runtimes.for_preempt(victim.queue)

    def _may_be_touched(self, victim: PodGroupInfo, min_runtime: timedelta) -> bool:
        if victim.last_start is None or not is_protected(victim.last_start, min_runtime, self._now):
            return True
        self._wake_at(victim.last_start + min_runtime)
        return any(victim.active(pod_set) > pod_set.min_member for pod_set in victim.gang.pod_sets.values())

    def _keeps_gang(self, victim: PodGroupInfo, min_runtime: timedelta) -> bool:
        """Tell whether a protected victim, as the simulation left it, still has every pod set's minimum."""
        if not is_protected(victim.last_start, min_runtime, self._now):
            return True
        placed = victim.count_in(ACTIVE_ALLOCATED)
        return all(placed(pod_set) >= pod_set.min_member for pod_set in victim.gang.pod_sets.values())
