"""The work that pods would lose if they went: since they started, or since the last checkpoint of their gang."""

from datetime import UTC, datetime
from typing import Final

from spinney.api.interruption import checkpoints_on_sigterm
from spinney.api.labels import LAST_CHECKPOINT
from spinney.cluster.pods import PodRecord
from spinney.coscheduling.framework.handle import Services
from spinney.gangs.checkpoints import saved_until
from spinney.gangs.sources import bare
from spinney.gangs.sources.context import timestamp_of
from spinney.gangs.tree import GangKey

NOT_STARTED: Final = datetime.max.replace(tzinfo=UTC)


class UnsavedWork:
    """Since when pods have done work that is not saved, at one moment. Mutable: it remembers what gangs say."""

    def __init__(self, services: Services) -> None:
        self._groups = services.groups
        self._checkpoints: dict[GangKey, datetime | None] = {}

    def since(self, record: PodRecord) -> datetime:
        """Return since when a pod has unsaved work; one that has none, or has not started, counts as the latest."""
        begun = record.pod.status.start_time or NOT_STARTED
        saved = self._saved_until(record)
        return begun if saved is None else max(begun, saved)

    def _saved_until(self, record: PodRecord) -> datetime | None:
        key = self._groups.gang_key(record)
        if key.source == bare.SOURCE:
            said = record.annotations
            return NOT_STARTED if checkpoints_on_sigterm(said) else timestamp_of(said, LAST_CHECKPOINT)
        if key not in self._checkpoints:
            self._checkpoints[key] = saved_until(self._groups.gang_members(record), NOT_STARTED)
        return self._checkpoints[key]
