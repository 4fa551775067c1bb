"""Pods that have finished well, by gang and group, also when they are gone: a gang does not need them again.

Finished pods are deleted by others: with their node, or because there are too many. How many of a group are gone is
noted on the PodGang, so that the next grouper knows. A group that is done, or has as many pods as it needs, starts
anew, and so does a gang without pods: its workload makes pods again in the place of those that had finished.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from spinney.api import labels as marks
from spinney.api.core import Pod
from spinney.api.podgang import PodGang
from spinney.kube.keys import Key

_gone: Final = msgspec.json.Decoder(dict[str, int])


@dataclass(frozen=True)
class _Finished:
    """The finished pods of a group that were seen, and how many were gone before."""

    gone_before: int = 0
    uids: frozenset[str] = frozenset()

    @property
    def number(self) -> int:
        return self.gone_before + len(self.uids)


@dataclass
class FinishedPods:
    """What was seen of each gang. Mutable."""

    _gangs: dict[Key, dict[str, _Finished]] = field(default_factory=dict)

    def counts(self, gang: PodGang, groups: Mapping[str, Sequence[Pod]], before: PodGang | None) -> dict[str, int]:
        """Return how many pods of each group have finished well; ``before`` is the gang as it stands."""
        key = Key(gang.metadata.namespace or "", gang.metadata.name)
        if key not in self._gangs:
            noted = _noted(before) if before is not None else {}
            self._gangs[key] = {name: _Finished(gone) for name, gone in noted.items()}
        found = self._gangs[key]
        counts: dict[str, int] = {}
        for group in gang.spec.pod_groups:
            pods = groups.get(group.name, ())
            present = frozenset(pod.metadata.uid or "" for pod in pods if pod.status.phase == "Succeeded")
            finished = found.get(group.name, _Finished())
            is_done = not pods and finished.number >= group.min_replicas
            if is_done or len(pods) >= group.min_replicas:
                finished = _Finished()
            found[group.name] = _Finished(finished.gone_before, finished.uids | present)
            counts[group.name] = found[group.name].number
        return counts

    def start_anew(self, key: Key) -> None:
        """Take all pods of a gang for needed again, whatever is noted on it: it has none left."""
        self._gangs[key] = {}

    def forget(self, key: Key) -> None:
        """Forget a gang."""
        self._gangs.pop(key, None)


def noting(gang: PodGang, counts: Mapping[str, int], groups: Mapping[str, Sequence[Pod]]) -> PodGang:
    """Return a PodGang on which stands how many finished pods of its groups are gone, if some are."""
    present = {name: sum(pod.status.phase == "Succeeded" for pod in pods) for name, pods in groups.items()}
    gone = {name: count - present.get(name, 0) for name, count in counts.items() if count > present.get(name, 0)}
    if not gone:
        return gang
    annotations = {**gang.metadata.annotations, marks.FINISHED_AND_GONE: msgspec.json.encode(gone).decode()}
    return msgspec.structs.replace(gang, metadata=msgspec.structs.replace(gang.metadata, annotations=annotations))


def _noted(gang: PodGang) -> dict[str, int]:
    try:
        return _gone.decode(gang.metadata.annotations.get(marks.FINISHED_AND_GONE, "{}"))
    except msgspec.DecodeError:  # somebody else wrote it; it is written anew
        return {}
