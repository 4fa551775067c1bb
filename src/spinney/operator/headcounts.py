"""How many pods of a PodClique are in which state, counted as they change.

A PodClique may have thousands of pods, and is looked at many times while they come up: to count them all at each look
would take a time that grows with the square of their number. Pods that count alike are counted together.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

from spinney.api import labels as marks
from spinney.api.core import Pod
from spinney.api.podgang import NamespacedName
from spinney.gangs.disruptions import is_disrupted
from spinney.kube.cache import Change
from spinney.operator.pod_states import PodState, has_gate, is_active, is_ready, is_scheduled, state


class CountedAs(NamedTuple):
    """What a pod counts as."""

    active: bool
    scheduled: bool
    ready: bool
    unhealthy: bool  # started, and does not serve
    gated: bool
    template: str | None  # the hash of the one it was made from
    gang: str | None


@dataclass(frozen=True)
class Headcount:
    """The pods of one PodClique at one moment: how many of each kind, and references to those of each gang."""

    kinds: Mapping[CountedAs, int] = field(default_factory=dict)
    references: Mapping[str, tuple[NamespacedName, ...]] = field(default_factory=dict)
    """Active pods by the gang that they are labelled as part of, each by name."""
    disrupted: tuple[Pod, ...] = ()
    """Pods that are asked to go, or are being evicted, by name."""
    generation: int = field(default=0, compare=False)
    """Moves when a pod comes, goes or gets other labels; not when it is placed, runs or ends."""

    @classmethod
    def of(cls, pods: Iterable[Pod]) -> "Headcount":
        """Count pods one by one."""
        tally = _Tally(count())
        for pod in pods:
            tally.replace(None, pod)
        return tally.counted()

    @property
    def pods(self) -> int:
        """Return how many there are, also of those that count no longer."""
        return sum(self.kinds.values())

    @property
    def active(self) -> int:
        """Return how many count."""
        return sum(count for kind, count in self.kinds.items() if kind.active)

    @property
    def scheduled(self) -> int:
        """Return how many of those that count have a node."""
        return sum(count for kind, count in self.kinds.items() if kind.active and kind.scheduled)

    @property
    def unhealthy(self) -> int:
        """Return how many of those that count have a node, have started, and do not serve."""
        return sum(count for kind, count in self.kinds.items() if kind.active and kind.scheduled and kind.unhealthy)

    @property
    def ready(self) -> int:
        """Return how many of those that count serve."""
        return sum(count for kind, count in self.kinds.items() if kind.active and kind.ready)

    @property
    def gated(self) -> int:
        """Return how many of those that count our gate holds."""
        return sum(count for kind, count in self.kinds.items() if kind.active and kind.gated)

    def made_from(self, template: str | None) -> int:
        """Return how many of those that count were made from a template."""
        return sum(count for kind, count in self.kinds.items() if kind.active and kind.template == template)

    def is_complete(self, replicas: int, template: str | None) -> bool:
        """Tell whether there are as many pods as wanted, all made from this template and released, and none failed."""
        return self.pods == replicas and all(
            kind.active and not kind.gated and kind.template == template for kind in self.kinds
        )

    @property
    def placed(self) -> bool:
        """Whether every pod has a node."""
        return all(kind.scheduled for kind in self.kinds)


class Headcounts:
    """The pods of every PodClique, by its uid. Mutable: follows a cache of pods."""

    def __init__(self) -> None:
        self._tallies: dict[str, _Tally] = {}
        self._generations = count(1)

    def of(self, clique: str | None) -> Headcount:
        """Return the pods that a PodClique controls now."""
        tally = self._tallies.get(clique or "")
        return tally.counted() if tally is not None else Headcount()

    def observe(self, change: Change[Pod]) -> None:
        """Take a change of a pod in."""
        old, new = change.old, change.new
        if _owner(old) == _owner(new):
            self._count(_owner(new), old, new)
        else:
            self._count(_owner(old), old, None)
            self._count(_owner(new), None, new)

    def _count(self, owner: str | None, old: Pod | None, new: Pod | None) -> None:
        if owner is not None:
            tally = self._tallies.setdefault(owner, _Tally(self._generations))
            tally.replace(old, new)
            if not tally.kinds:
                del self._tallies[owner]


class _Tally:
    """The pods of one PodClique. Mutable."""

    def __init__(self, generations: Iterator[int]) -> None:
        self.kinds: Counter[CountedAs] = Counter()
        self._members: dict[str, dict[str, NamespacedName]] = {}
        self._references: dict[str, tuple[NamespacedName, ...]] | None = None
        self._disrupted: dict[str, Pod] = {}
        self._generations, self._generation = generations, 0

    def replace(self, old: Pod | None, new: Pod | None) -> None:
        before, after = _kind(old) if old is not None else None, _kind(new) if new is not None else None
        if old is None or new is None or old.metadata.labels != new.metadata.labels:
            self._generation = next(self._generations)
        if old is not None:
            self._disrupted.pop(old.metadata.name, None)
        if new is not None and is_disrupted(new):
            self._disrupted[new.metadata.name] = new
        if before == after:
            return
        if before is not None:
            self.kinds[before] -= 1
            if not self.kinds[before]:
                del self.kinds[before]
        if after is not None:
            self.kinds[after] += 1
        left, joined = _gang(before), _gang(after)
        if left != joined:
            self._references = None
            if old is not None and left is not None:
                del self._members[left][old.metadata.name]
            if new is not None and joined is not None:
                metadata = new.metadata
                reference = NamespacedName(namespace=metadata.namespace or "", name=metadata.name)
                self._members.setdefault(joined, {})[metadata.name] = reference

    def counted(self) -> Headcount:
        if self._references is None:
            self._references = {
                gang: tuple(members[name] for name in sorted(members)) for gang, members in self._members.items()
            }
        disrupted = tuple(self._disrupted[name] for name in sorted(self._disrupted))
        return Headcount(dict(self.kinds), self._references, disrupted, self._generation)


def _owner(pod: Pod | None) -> str | None:
    controller = pod.metadata.controller if pod is not None else None
    return None if controller is None else controller.uid


def _gang(kind: CountedAs | None) -> str | None:
    """Return the gang that refers to a pod of a kind: none to pods that do not count."""
    return kind.gang if kind is not None and kind.active else None


def _kind(pod: Pod) -> CountedAs:
    labels = pod.metadata.labels
    return CountedAs(
        active=is_active(pod),
        scheduled=is_scheduled(pod),
        ready=is_ready(pod),
        unhealthy=state(pod) in {PodState.FAILED_BEFORE, PodState.NOT_READY},
        gated=has_gate(pod),
        template=labels.get(marks.POD_TEMPLATE_HASH),
        gang=labels.get(marks.POD_GANG),
    )
