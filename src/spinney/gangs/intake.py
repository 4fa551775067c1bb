"""Watch events into the state that schedulers share: the cluster, what constraints refer to, devices, budgets, gangs.

Each scheduler of a process follows the watches for reasons of its own: it wakes, it queues pods. What is true of the
cluster is taken in here, once: an object that another scheduler has already passed on changes nothing.
"""

from typing import Any

import msgspec

from spinney.api.core import Node, Pod
from spinney.api.policy import PodDisruptionBudget
from spinney.api.resource_claims import DeviceClass, ResourceClaim, ResourceSlice
from spinney.cluster.budgets import Budgets
from spinney.cluster.dra.book import ClaimBook
from spinney.cluster.state import ClusterState
from spinney.cluster.surroundings import Surroundings
from spinney.gangs.definitions import GangDefinitions
from spinney.kube.keys import Key, key_of


class ClusterIntake:
    """What schedulers know of a cluster. Mutable; one writer, the event loop."""

    def __init__(self) -> None:
        self.cluster = ClusterState()
        self.claims = ClaimBook()
        self.budgets = Budgets()
        self.gangs = GangDefinitions()
        self.surroundings = Surroundings()
        self.cluster.view.namespaces = self.surroundings.namespaces
        self.cluster.view.storage = self.surroundings.storage
        self._nodes: dict[str, Node] = {}

    def apply(self, found: msgspec.Struct) -> None:
        """Take in an object that appeared or changed; raises ``TypeError`` for a kind no scheduler reads."""
        match found:
            case Pod():
                known = self.cluster.pod(key_of(found))
                if known is None or known.pod is not found:
                    self.cluster.apply_pod(found)
            case Node():
                if self._nodes.get(found.metadata.name) is not found or found.metadata.name not in self.cluster.table:
                    self._nodes[found.metadata.name] = found
                    self.cluster.apply_node(found)
            case ResourceClaim() | ResourceSlice() | DeviceClass():
                self.claims.apply(found)
            case PodDisruptionBudget():
                self.budgets.put(found)
            case _:
                self._put(type(found), key_of(found), found)

    def delete(self, found: msgspec.Struct) -> None:
        """Take out an object that is gone."""
        key = key_of(found)
        match found:
            case Pod():
                self.cluster.delete_pod(key)
            case Node():
                self._nodes.pop(key.name, None)
                self.cluster.delete_node(key.name)
            case ResourceClaim() | ResourceSlice() | DeviceClass():
                self.claims.delete(found)
            case PodDisruptionBudget():
                self.budgets.remove(key)
            case _:
                self._put(type(found), key, None)

    def _put(self, kind: type[Any], key: Key, found: Any) -> None:
        if kind in Surroundings.KINDS:
            self.surroundings.put(kind, key, found)
        elif kind in GangDefinitions.KINDS:
            self.gangs.put(kind, key, found)
        else:
            raise TypeError(f"the scheduler reads no objects of type {kind.__module__}.{kind.__name__}")
