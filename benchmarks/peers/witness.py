"""Who is where while a gang comes to a full cluster: judged at every change that a watch shows, not only at the end."""

from collections import defaultdict

from benchmarks.peers.families import GANG
from benchmarks.peers.hall import GPUS
from spinney.api.core import Pod
from spinney.kube.cache import Change


class Witness:
    """What was wrong so far. Mutable: it follows the pods of the namespace.

    ``size`` pods of ``gang`` may be bound, and as many others evicted for them; where it is ``hopeless`` none may.
    """

    def __init__(self, gang: str, size: int, *, hopeless: bool) -> None:
        self._gang = gang
        self._allowed = 0 if hopeless else size
        self._size = size
        self._on: dict[str, set[str]] = defaultdict(set)
        self._bound: set[str] = set()
        self._evicted = 0
        self._faults: dict[str, None] = {}

    def see(self, change: Change[Pod]) -> None:
        """Take in what happened to a pod."""
        name, pod = change.key.name, change.new or change.old
        before, after = (each.spec.node_name if each is not None else "" for each in (change.old, change.new))
        if pod is None or before == after:
            return
        comes = pod.metadata.labels.get(GANG) == self._gang
        if before:
            self._on[before].discard(name)
            self._bound.discard(name)
            self._evicted += not comes
        if before and after:
            self._fault(f"pod {name} was bound to {before} and then to {after}")
        if after:
            self._on[after].add(name)
            if comes:
                self._bound.add(name)
        self._judge(after)

    def faults(self) -> tuple[str, ...]:
        """Return what was wrong at any time, or is now that the gang has been answered."""
        found = dict(self._faults)
        if 0 < len(self._bound) < self._size:
            found[f"{len(self._bound)} of {self._size} pods are bound"] = None
        if self._evicted > len(self._bound):
            found[f"{self._evicted} pods were evicted for {len(self._bound)}"] = None
        return tuple(found)

    def _judge(self, node: str) -> None:
        if node and len(self._on[node]) > GPUS:
            self._fault(f"node {node} has {GPUS} GPUs and had {len(self._on[node])} pods")
        if len(self._bound) > self._allowed:
            self._fault(f"{len(self._bound)} pods of a gang that fits nowhere were bound")
        if self._evicted > self._allowed:
            self._fault(f"more than {self._allowed} pods were evicted")

    def _fault(self, text: str) -> None:
        self._faults[text] = None
