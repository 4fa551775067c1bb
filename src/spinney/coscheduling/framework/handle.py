"""What a plugin may use: the cluster, the groups, the pods that wait, and what it may ask the scheduler to do."""

from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from spinney.cluster.dra.book import ClaimBook
from spinney.cluster.pods import PodRecord
from spinney.cluster.state import ClusterState
from spinney.gangs.eviction_requests import EvictionRequests
from spinney.kube.keys import Key
from spinney.runtime import Runtime

if TYPE_CHECKING:
    from spinney.binding.binder import Binder
    from spinney.binding.device_claims import DeviceClaims
    from spinney.binding.volumes import LateVolumes
    from spinney.cluster.budgets import Budgets
    from spinney.cluster.surroundings import Volumes
    from spinney.coscheduling.feasibility.nominations import Nominations
    from spinney.coscheduling.feasibility.ranking import NodeRanking
    from spinney.coscheduling.groups.book import Groups
    from spinney.coscheduling.groups.group import Group
    from spinney.coscheduling.groups.waiting import WaitingPods


@dataclass(kw_only=True)
class Services:
    """What all profiles of a scheduler share. Its parts are mutable; plugins change them only through their methods."""

    runtime: Runtime
    cluster: ClusterState
    groups: "Groups"
    waiting: "WaitingPods"
    nominations: "Nominations"
    budgets: "Budgets"
    binder: "Binder"
    volumes: "Volumes"
    late_volumes: "LateVolumes"
    claims: ClaimBook
    device_claims: "DeviceClaims"
    activate: Callable[[Iterable[Key]], None]
    """Make pods active now, without rest."""
    preempt: Callable[[Sequence[PodRecord], PodRecord, str], None]
    """Take these pods away for the sake of another, which is meant to go to the named node."""
    nominate: Callable[[PodRecord, str], None]
    """Promise a node to a pod."""
    reached_permit: Callable[["Group"], None]
    """Called when a member of a group is first held at Permit."""
    bound: Callable[["Group"], None]
    """Called when a member of a group was bound."""
    refused: Callable[["Group", str], None]
    """Called when a group was rejected as a whole, with the reason."""
    background: Callable[[Coroutine[Any, Any, None]], None]
    """Run something to its end beside the scheduling cycles; the process waits for it when it stops."""
    leaving: dict[Key, None] = field(default_factory=dict)
    """Victims that are being deleted and are still there. Mutable; written where preemption is carried out."""
    requests: EvictionRequests = field(default_factory=EvictionRequests)
    """Victims that were asked to checkpoint and go."""
    longest_min_runtime: timedelta = timedelta(0)
    """Gangs that ask to run so long before they are disturbed are left alone for no longer than this."""
    move: Callable[[Sequence[PodRecord], PodRecord, str], None] = lambda rest, lacking, why: None
    """Evict what is left of a group, all or none of it, for the sake of a member that it lacks."""
    try_again_at: Callable[[datetime], None] = lambda moment: None
    """Have pods that wait tried again at a moment, whatever happens before."""


class Handle:
    """A plugin's access to the scheduler it is part of, for one profile."""

    def __init__(self, services: Services, scheduler_name: str) -> None:
        self.services = services
        self.scheduler_name = scheduler_name
        self._ranking: NodeRanking | None = None

    @property
    def ranking(self) -> "NodeRanking":
        """Return the filters and scores of the profile; there once all its plugins are made."""
        if self._ranking is None:
            raise RuntimeError(f"profile {self.scheduler_name} is still being made: ask for its ranking later")
        return self._ranking

    def complete(self, ranking: "NodeRanking") -> None:
        """Give the filters and scores of the profile, once its plugins are known."""
        self._ranking = ranking
