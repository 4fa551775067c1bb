"""Which name the next pod of an index gets, so that none is made twice.

A name follows from its PodClique, the index and how many pods of that index have come and gone: a creation repeated on
a stale cache meets the pod it already made. What it follows from may change in between, though (a pod is reported gone,
a gang stops referring to one), so a creation whose outcome is not known keeps its name until that pod has been seen.
"""

from collections.abc import Set as AbstractSet

from spinney.api.core import Pod
from spinney.api.grove import PodClique
from spinney.operator.desired.pods import pod_name
from spinney.operator.pod_states import pod_index


class PodNames:
    """How many pods of each index have gone, and the names of those that may have been made, by PodClique. Mutable."""

    def __init__(self) -> None:
        self._gone: dict[str, dict[int, int]] = {}
        self._open: dict[tuple[str, int], str] = {}

    def begin(self, clique: PodClique, index: int, *, there: AbstractSet[str], taken: AbstractSet[str]) -> str:
        """Return the name under which a pod is created now: a new one, unless the last creation is still open.

        Pods of the names ``there`` are known, so they are not open; those ``taken`` are not given to a new pod.
        """
        uid = clique.metadata.uid or ""
        attempted = self._open.get((uid, index))
        if attempted is None or attempted in there:
            life = self._gone.get(uid, {}).get(index, 0)
            attempted = self._open[uid, index] = pod_name(clique, index, life, taken)
        return attempted

    def made(self, clique: PodClique, index: int) -> None:
        """Note that the server has said which pod it made."""
        self._open.pop((clique.metadata.uid or "", index), None)

    def has_lost(self, clique: PodClique) -> bool:
        """Tell whether a pod of a PodClique has gone."""
        return clique.metadata.uid in self._gone

    def lost(self, clique: PodClique, pod: Pod) -> None:
        """Take note of a pod that is gone, and with it of what became of its creation."""
        uid, index = clique.metadata.uid or "", pod_index(pod)
        gone = self._gone.setdefault(uid, {})
        gone[index] = gone.get(index, 0) + 1
        if self._open.get((uid, index)) == pod.metadata.name:
            del self._open[uid, index]

    def forget(self, uid: str) -> None:
        """Drop what is known of a PodClique that is gone."""
        self._gone.pop(uid, None)
        for slot in [slot for slot in self._open if slot[0] == uid]:
            del self._open[slot]
