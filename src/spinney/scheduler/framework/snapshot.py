"""The cluster at one moment, as a session sees it."""

from collections.abc import Callable, Mapping
from datetime import datetime

import msgspec

from spinney.cluster.budgets import Budgets
from spinney.cluster.dra.book import ClaimBook
from spinney.cluster.filters.view import ClusterView
from spinney.cluster.ledger import Ledger
from spinney.cluster.pods import PodIndex, PodKey, PodRecord
from spinney.gangs.book import GangSnapshot
from spinney.gangs.checkpoints import EvictionRequest
from spinney.gangs.tree import GangKey
from spinney.scheduler.fairshare import QueueTree
from spinney.scheduler.fairshare.foreign import ForeignHoldings
from spinney.scheduler.topology.domains import DomainTrees
from spinney.scheduler.topology.resolving import Topologies


class Snapshot(msgspec.Struct, frozen=True):
    """The cluster at one moment. Ledger, pods, view and claims are its own copies."""

    ledger: Ledger
    pods: PodIndex
    view: ClusterView
    rule_carriers: int
    gangs: GangSnapshot
    queues: QueueTree
    topologies: Topologies
    claims: ClaimBook
    domain_trees: DomainTrees
    """Shared between snapshots: a cache."""
    has_stranded_pods: bool
    """Some pod may be on a node that is not in the snapshot."""
    releasing: tuple[PodRecord, ...]
    """Pods that are terminating."""
    foreign: ForeignHoldings
    """What pods of other schedulers hold."""
    serves: Callable[[PodRecord], bool]
    """Tells whether a pod is this scheduler's: all others stay where they are."""
    budgets: Budgets
    evicted: Mapping[GangKey, datetime]
    """When gangs that wait before they disturb others last lost pods, where their objects do not say so."""
    asked: Mapping[GangKey, Mapping[PodKey, EvictionRequest]]
    """Pods that were asked to go, by gang."""
