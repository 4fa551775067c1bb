"""Pods that ask for a part of a GPU, where nothing on the cluster would give them one.

Sharing a device is more than arithmetic: something has to take the device out of the device plugin's hands and give it
to the pods that share it. On a cluster without such a component a pod that asks for a part would start without a GPU,
so it is refused, and told why. Not a policy one could order among others: the process puts it in front of the plugins.
"""

from typing import Final

import msgspec

from spinney.scheduler.config import PluginOption, SchedulerConfig
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.plugin import Plugin, PluginRegistry
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import PodInfo

NAME: Final = "whole-devices"
REASON: Final = (
    "the pod asks for a part of a GPU, which needs a component that reserves shared devices on nodes; "
    "set deviceReservation if this cluster has one"
)


class WholeDevices(Plugin):
    """Refuses pods that would share a device."""

    name = NAME
    treats_alike = True

    def on_session_open(self, session: Session) -> None:
        """Register the refusal, also as one that no eviction can lift."""
        session.add_pre_predicate_fn(_refuse_shares)
        session.add_victim_invariant_pre_predicate_fn(lambda task: _refuse_shares(task, task.job))


def without_shares(config: SchedulerConfig, registry: PluginRegistry) -> SchedulerConfig:
    """Return the configuration with pods that share devices refused, unless it says that the cluster can give them."""
    if config.device_reservation:
        return config
    registry.register(NAME, lambda _arguments: WholeDevices())
    return msgspec.structs.replace(config, plugins=(PluginOption(NAME), *config.plugins))


def _refuse_shares(task: PodInfo, job: PodGroupInfo) -> str | None:
    del job
    return REASON if task.request.share is not None else None
