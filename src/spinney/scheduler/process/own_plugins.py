"""Plugins that are no policy one could choose or order: the process puts them in front of the configured ones."""

from collections.abc import Collection
from typing import Final

import msgspec

from spinney.gangs.tree import GangKey
from spinney.scheduler.config import PluginOption, SchedulerConfig
from spinney.scheduler.framework.extension_points import with_jobs_first
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.plugin import Builder, Plugin, PluginRegistry
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import PodInfo

SHARES_REFUSED: Final = (
    "the pod asks for a part of a GPU, which needs a component that reserves shared devices on nodes; "
    "set deviceReservation if this cluster has one"
)


def with_plugin_first(
    config: SchedulerConfig, registry: PluginRegistry, name: str, builder: Builder
) -> SchedulerConfig:
    """Return the configuration with a plugin in front of all others."""
    registry.register(name, builder)
    return msgspec.structs.replace(config, plugins=(PluginOption(name), *config.plugins))


class Completing(Plugin):
    """Orders part-bound gangs, and the queues whose next job is one, before all others: they hold what others need."""

    name = "completing"
    treats_alike = True

    def __init__(self, part_bound: Collection[GangKey]) -> None:
        self._part_bound = frozenset(part_bound)

    def on_session_open(self, session: Session) -> None:
        """Register the orders, if there is anything to complete."""
        if self._part_bound:
            session.add_job_order_key(lambda job: 0 if self._is_part_bound(job) else 1)
            session.add_queue_order_fn(with_jobs_first(self._is_part_bound))

    def _is_part_bound(self, job: PodGroupInfo) -> bool:
        return job.key in self._part_bound


class WholeDevices(Plugin):
    """Refuses pods that would share a device, where nothing on the cluster would give them a part.

    Sharing is more than arithmetic: something has to take the device out of the device plugin's hands and give it to
    the pods that share it. Without such a component they would start without a GPU.
    """

    name = "whole-devices"
    treats_alike = True

    def on_session_open(self, session: Session) -> None:
        """Register the refusal, also as one that no eviction can lift."""
        session.add_pre_predicate_fn(_refuse_shares, per_job=False)
        session.add_victim_invariant_pre_predicate_fn(lambda task: _refuse_shares(task, task.job))


def _refuse_shares(task: PodInfo, job: PodGroupInfo) -> str | None:
    return SHARES_REFUSED if task.request.share is not None else None
