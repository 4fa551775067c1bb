"""A lever: one kind of change in many strengths, from the smallest to all of it."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from spinney.gangs.tree import GangKey
from spinney.sim.remedies.change import RemedyPrice, RemedyStep
from spinney.sim.snapshots.snapshot import ClusterSnapshot

Chosen = tuple[int, ...]
"""Which elements of a lever are taken, by position."""


@dataclass(frozen=True, kw_only=True)
class Lever:
    """Elements that can be changed, and what the cluster looks like when some of them are.

    ``ordered`` levers are taken from the first on (three more nodes, a limit two higher); of the others any set may be
    taken. The cheapest elements come first.
    """

    name: str
    size: int
    apply: Callable[[ClusterSnapshot, Chosen], ClusterSnapshot]
    """Return the cluster with the chosen elements changed."""
    describe: Callable[[Chosen], RemedyStep]
    price: Callable[[Chosen], RemedyPrice] = lambda _: RemedyPrice()
    restarts: Callable[[Chosen], Collection[GangKey]] = lambda _: ()
    """Return the other gangs that give up their nodes and have to find new ones: all of their pods."""
    ordered: bool = False
    likely: int | None = None
    """How many elements are probably enough, by arithmetic; the search begins there and does not rely on it."""
    waits: bool = False
    """Time makes the change, and nobody has to."""
    refine: "Callable[[Chosen], list[Lever]] | None" = None
    """Return a lever for each chosen element over how much it is changed, where that can be less than all."""

    @property
    def everything(self) -> Chosen:
        """Return all elements."""
        return tuple(range(self.size))

    @property
    def guess(self) -> Chosen | None:
        """Return the elements that are probably enough; ``None`` without an idea, or if it is all of them."""
        return tuple(range(self.likely)) if self.likely is not None and 0 < self.likely < self.size else None


def some(names: Sequence[str], shown: int = 4) -> str:
    """Return a few of the names, and how many more there are."""
    if len(names) <= shown:
        return ", ".join(names)
    return f"{', '.join(names[:shown])} and {len(names) - shown} more"
