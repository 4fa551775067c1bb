"""The minimum runtime that gangs ask for themselves: until it is over a gang only loses what it can do without."""

from datetime import timedelta

from spinney.binding.repair import started_at
from spinney.cluster.pods import PodRecord
from spinney.coscheduling.framework.handle import Services
from spinney.gangs.checkpoints import min_runtime_of
from spinney.gangs.sources import bare
from spinney.gangs.tree import GangKey


class OwnRuntimes:
    """Which gangs have not run for as long as they ask for, at one moment. Mutable: it remembers its answers."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._known: dict[GangKey, bool] = {}

    def protects(self, record: PodRecord) -> bool:
        """Tell whether the gang of a pod is not to be disturbed yet; pods that wait are tried again when it may be."""
        if self._services.longest_min_runtime <= timedelta(0):
            return False
        key = self._services.groups.gang_key(record)
        if key.source == bare.SOURCE:
            return self._is_within(record)
        if key not in self._known:
            self._known[key] = self._is_within(record)
        return self._known[key]

    def _is_within(self, record: PodRecord) -> bool:
        members = self._services.groups.gang_members(record)
        asked, started = min_runtime_of(members), started_at(members)
        if asked is None or started is None:
            return False
        end = started + min(asked, self._services.longest_min_runtime)
        if self._services.runtime.clock.now() >= end:
            return False
        self._services.try_again_at(end)
        return True
