"""Jobs whose turn is still to come, for plugins that look ahead."""

from collections.abc import Collection, Sequence
from typing import Protocol

from spinney.scheduler.framework.jobs import PodGroupInfo


class WaitingJobs(Protocol):
    """The jobs that an action has not come to yet."""

    def upcoming(self, most: int) -> Sequence[PodGroupInfo]:
        """Return up to ``most`` jobs whose turn comes next, in order, as far as that is certain."""
        ...

    @property
    def missed(self) -> Collection[PodGroupInfo]:
        """Return all of them, in no order."""
        ...
