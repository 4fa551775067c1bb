"""What filters answer: the nodes they refuse, why, and whether evicting pods could change it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from spinney.cluster.table import Mask

if TYPE_CHECKING:
    from spinney.cluster.filters.candidate import Candidate
    from spinney.cluster.filters.view import ClusterView


class Refusal(msgspec.Struct, frozen=True, eq=False):
    """The nodes one filter refuses for one reason, ``[node]``; ``unresolvable`` are those no eviction would help."""

    filter: str
    reason: str
    nodes: Mask
    unresolvable: Mask

    @classmethod
    def final(cls, name: str, reason: str, nodes: Mask) -> "Refusal":
        """Return a refusal that no eviction can change."""
        return cls(name, reason, nodes, nodes)

    @classmethod
    def evictable(cls, name: str, reason: str, nodes: Mask) -> "Refusal":
        """Return a refusal that the eviction of some pod may lift."""
        return cls(name, reason, nodes, np.zeros_like(nodes))


class Restriction(msgspec.Struct, frozen=True):
    """What a filter knows before it looks at nodes: the pod fits nowhere (``reason``), or only on ``nodes``."""

    reason: str | None = None
    nodes: Mask | None = None


class FilterRule(msgspec.Struct, frozen=True):
    """A rule about which nodes may take a pod, judged for all nodes at once.

    ``refuse`` returns the nodes it refuses by reason; a node may be refused for several. ``restrict`` comes first, for
    what can be said about the pod alone.
    """

    name: str
    refuse: "Callable[[ClusterView, Candidate], Sequence[Refusal]]"
    restrict: "Callable[[ClusterView, Candidate], Restriction | None] | None" = None


@dataclass(frozen=True, slots=True, eq=False)
class FilterResult:
    """The nodes that pass every filter, and what each filter refused, in filter order.

    ``mask`` is ``[node]``. ``pre_filter`` is set when the pod was refused as a whole; then no node passes.
    """

    mask: Mask
    refusals: tuple[Refusal, ...] = field(default=())
    pre_filter: str | None = None

    @property
    def feasible(self) -> bool:
        """Tell whether any node passes."""
        return bool(self.mask.any())

    def unresolvable(self) -> Mask:
        """Return the nodes where eviction cannot help: their first refusing filter says so, as preemption counts it."""
        if self.pre_filter is not None:
            return np.ones_like(self.mask)
        decided = np.zeros_like(self.mask)
        hopeless = np.zeros_like(self.mask)
        for group in by_filter(self.refusals).values():
            first = np.logical_or.reduce([refusal.nodes for refusal in group]) & ~decided
            hopeless |= first & np.logical_or.reduce([refusal.nodes & refusal.unresolvable for refusal in group])
            decided |= first
        return hopeless


def by_filter(refusals: Iterable[Refusal]) -> dict[str, list[Refusal]]:
    """Return refusals by filter, in the order in which filters first appear."""
    groups: dict[str, list[Refusal]] = {}
    for refusal in refusals:
        groups.setdefault(refusal.filter, []).append(refusal)
    return groups
