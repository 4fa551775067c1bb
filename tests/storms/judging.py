"""The invariants of :mod:`tests.e2e.invariants`, judged at every write of a storm."""

from dataclasses import dataclass, field

from spinney.api import labels as marks
from spinney.api.core import Pod
from spinney.api.podgang import PodGang
from spinney.api.struct import decode
from spinney.server.store import Collection, StoreEvent
from tests.e2e.chronicle import KINDS, Happening
from tests.e2e.invariants import Replay

_MAY_BE_LATE = ("which is closed",)
"""What a scheduler cannot know yet: a node that was closed a moment ago. The kubelet refuses such a pod."""


@dataclass
class StormReplay(Replay):
    """The invariants, less what nobody can know in time: that a pod was taken away, or a node closed, a moment ago."""

    seen: set[str] = field(default_factory=set)

    def take(self, each: Happening) -> None:
        """Judge one write."""
        before = self.pods.get(each.name)
        if each.kind is Pod:
            self.seen.add(each.name)
        super().take(each)
        if each.kind is Pod and not each.gone and marks.PART_OF not in each.object.metadata.labels:
            self._check_ordinary(each, before)

    def _check_ordinary(self, each: Happening, before: Pod | None) -> None:
        """Judge a pod of a workload that is no set: it is bound once, where there is room."""
        pod: Pod = each.object
        node = self.nodes.get(pod.spec.node_name)
        if before is None or before.metadata.uid != pod.metadata.uid or not pod.spec.node_name:
            return
        if before.spec.node_name and before.spec.node_name != pod.spec.node_name:
            self._report(each.revision, f"pod {each.name} was moved from {before.spec.node_name}")
        if not before.spec.node_name and node is not None:
            self._check_room(each.revision, node)

    def rest(self, revision: int) -> None:
        """Judge a moment at which nothing is under way: no gang holds less than its minimum."""
        for name, gang in self.gangs.items():
            bound = self._bound(name)
            if bound and any(bound[group.name] < group.min_replicas for group in gang.spec.pod_groups):
                self._report(revision, f"gang {name} is part-bound: {dict(bound)}")

    def _check_complete(self, revision: int, gang: PodGang) -> None:
        if marks.GROUPED in gang.metadata.labels:
            return  # the grouper makes no pods: that a gang has all there are is all that it says
        for group in gang.spec.pod_groups:
            clique = self.cliques.get(group.name)
            wanted = (clique.spec.replicas or 0) if clique is not None else group.min_replicas
            known = [each.name for each in group.pod_references if each.name in self.seen]
            if len(known) < wanted:
                text = f"{gang.metadata.name} is Initialized and {group.name} has {len(known)} of {wanted} pods"
                self._report(revision, text)


@dataclass
class Judge:
    """Replays every commit, in order, as the server makes it. Mutable."""

    replay: StormReplay = field(default_factory=StormReplay)
    revision: int = 0

    def __call__(self, collection: Collection, event: StoreEvent) -> None:
        kind = _KIND_OF.get(collection.name)
        self.revision = event.record.revision
        if kind is not None and event.record.key.namespace in ("", "test"):
            found = decode(kind, event.record.raw)
            self.replay.take(Happening(self.revision, kind, gone=event.type == "DELETED", object=found))

    def found(self) -> list[str]:
        """Return what was violated."""
        return [each for each in self.replay.found if not each.endswith(_MAY_BE_LATE)]


_KIND_OF = {str(resource): kind for resource, kind in KINDS.items()}
