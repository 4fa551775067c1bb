"""Pods that were promised a node on which victims are still on their way out.

Until a nominated pod has its node, others of lower or equal priority see it there: nobody takes the room that was made
for it. A pod of higher priority may.
"""

from dataclasses import dataclass

from spinney.cluster.pods import PodRecord
from spinney.kube.keys import Key


@dataclass(frozen=True, slots=True)
class Nomination:
    """A pod and the node it is meant to go to."""

    record: PodRecord
    node: str


class Nominations:
    """Nominated nodes by pod. Mutable; ``version`` grows with every change."""

    def __init__(self) -> None:
        self.version = 0
        self._of: dict[Key, Nomination] = {}

    def __len__(self) -> int:
        return len(self._of)

    def put(self, record: PodRecord, node: str) -> None:
        """Nominate a node for a pod, in place of any earlier one."""
        key = record.key
        found = self._of.get(key)
        if found is None or found.node != node or found.record.uid != record.uid:
            self._of[key] = Nomination(record, node)
            self.version += 1

    def remove(self, key: Key) -> bool:
        """Forget a pod's nomination; tell whether there was one."""
        if self._of.pop(key, None) is None:
            return False
        self.version += 1
        return True

    def node_of(self, key: Key) -> str:
        """Return the node nominated for a pod, or the empty string."""
        found = self._of.get(key)
        return found.node if found is not None else ""

    def binding_on(self, record: PodRecord) -> list[Nomination]:
        """Return the nominations that a pod must leave room for: of others, with at least its priority."""
        if not self._of:
            return []
        priority, own = record.pod.priority, record.key
        return [each for key, each in self._of.items() if key != own and each.record.pod.priority >= priority]

    def all(self) -> list[PodRecord]:
        """Return the pods that were promised a node."""
        return [each.record for each in self._of.values()]

    def on_node(self, node: str) -> list[Nomination]:
        return [each for each in self._of.values() if each.node == node]
