"""Part-bound gangs go first: what they miss is placed before anything else is.

Not a policy one could choose, so it is in no configuration: the process puts it in front of the configured plugins.
"""

from collections.abc import Collection, Mapping
from typing import Final

import msgspec

from spinney.binding.repair import PartGangs
from spinney.gangs.tree import GangKey
from spinney.scheduler.config import PluginOption, SchedulerConfig
from spinney.scheduler.framework.extension_points import with_jobs_first
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.plugin import Plugin, PluginRegistry
from spinney.scheduler.framework.session import Session

NAME: Final = "completing"


class Completing(Plugin):
    """Orders part-bound gangs, and the queues whose next job is one, before all others."""

    name = NAME
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


def completing_first(config: SchedulerConfig, registry: PluginRegistry, gangs: PartGangs) -> SchedulerConfig:
    """Return the configuration with part-bound gangs put before whatever it orders by."""

    def build(_arguments: Mapping[str, str]) -> Plugin:
        return Completing(gangs.keys)

    registry.register(NAME, build)
    return msgspec.structs.replace(config, plugins=(PluginOption(NAME), *config.plugins))
