"""Capacity that was provisioned for a gang is kept for it until it is bound."""

from collections.abc import Collection, Iterator
from typing import Final

from spinney.gangs.tree import GangKey
from spinney.scheduler.config import SchedulerConfig
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.nodes import NodeInfo
from spinney.scheduler.framework.plugin import Plugin, PluginRegistry
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import PodInfo
from spinney.scheduler.plugins.keeping import needing_least
from spinney.scheduler.process.own_plugins import with_plugin_first

NAME: Final = "provisioned-capacity"


class ProvisionedCapacity(Plugin):
    """Keeps jobs off the nodes that an autoscaler has made for others, unless their priority is higher."""

    name = NAME

    def __init__(self, gangs: Collection[GangKey]) -> None:
        self._gangs = frozenset(gangs)

    def on_session_open(self, session: Session) -> None:
        """Register the predicate, if something was provisioned."""
        self._session = session
        self._kept: list[tuple[PodGroupInfo, frozenset[int]]] | None = None
        if self._gangs:
            session.add_predicate_fn(self._leaves_room, per_pod=False, applies_to=self._must_look)

    @property
    def kept(self) -> list[tuple[PodGroupInfo, frozenset[int]]]:
        """Return whom which nodes are kept for: those that need to empty least, which are the new ones."""
        if self._kept is None:
            self._kept = []  # nodes are asked about while they are being chosen
            self._kept = list(self._choose())
        return self._kept

    def _choose(self) -> Iterator[tuple[PodGroupInfo, frozenset[int]]]:
        taken: set[int] = set()
        for job in self._session.pending_jobs():
            if job.key in self._gangs and job.ready and not job.gang_satisfied:
                rows = needing_least(self._session, job, taken)
                if rows is not None:
                    taken.update(rows)
                    yield job, frozenset(rows)

    def _must_look(self, task: PodInfo) -> bool:
        return any(_gives_way(task.job, job) for job, _ in self.kept)

    def _leaves_room(self, task: PodInfo, job: PodGroupInfo, node: NodeInfo) -> str | None:
        for other, rows in self.kept:
            if node.row in rows and _gives_way(job, other):
                return f"kept for {other.key}, for which it was provisioned"
        return None


def _gives_way(job: PodGroupInfo, other: PodGroupInfo) -> bool:
    return job is not other and job.priority <= other.priority


def keeping_capacity(
    config: SchedulerConfig, registry: PluginRegistry, provisioned: Collection[GangKey]
) -> SchedulerConfig:
    """Return the configuration with the plugin in front; ``provisioned`` is looked at whenever a session opens."""
    return with_plugin_first(config, registry, NAME, lambda _: ProvisionedCapacity(provisioned))
