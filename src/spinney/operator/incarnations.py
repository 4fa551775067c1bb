"""The lives of a gang.

A gang outlives its PodCliques: gang termination deletes them all, and they are made anew under the same names. The gang
remembers by uid whose pods it refers to. When none of those PodCliques is left it has been *recycled*: it gets a new
incarnation, loses its Initialized, and starts over. When only some are new (one scaling group replica was replaced,
say) the gang lives on and just takes note of them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from spinney.api.grove import PodClique
from spinney.api.podgang import PodGang
from spinney.backends import additions
from spinney.operator import hashes

UID_LENGTH = 8


@dataclass(frozen=True)
class Life:
    """The incarnation a gang is to have, the PodCliques it consists of, and whether that means starting over."""

    incarnation: str | None
    cliques: str
    recycled: bool = False

    def annotations(self) -> dict[str, str]:
        """Return the annotations that record this life."""
        recorded = {additions.INCARNATION_CLIQUES: self.cliques} if self.cliques else {}
        return recorded | ({additions.INCARNATION: self.incarnation} if self.incarnation else {})


def life(gang: PodGang | None, cliques: Iterable[PodClique]) -> Life:
    """Return the life a gang has reached with the PodCliques that exist now."""
    present = sorted(_short(clique) for clique in cliques if not clique.metadata.deleting)
    if gang is None:
        return Life(None, ",".join(present))
    known = _recorded(gang.metadata.annotations)
    incarnation = gang.metadata.annotations.get(additions.INCARNATION)
    if known and present and not known.intersection(present):
        return Life(hashes.digest([gang.metadata.uid, present], 5), ",".join(present), recycled=True)
    # PodCliques that are gone for the moment stay on record: only new ones tell a new life from an interruption.
    kept = sorted(set(present) | (known if not present else set()))
    return Life(incarnation, ",".join(kept))


def belongs(clique: PodClique, gang: PodGang) -> bool:
    """Say whether the gang has taken note of this very PodClique."""
    return _short(clique) in _recorded(gang.metadata.annotations)


def _recorded(annotations: Mapping[str, str]) -> frozenset[str]:
    recorded = annotations.get(additions.INCARNATION_CLIQUES, "")
    return frozenset(recorded.split(",")) if recorded else frozenset()


def _short(clique: PodClique) -> str:
    return (clique.metadata.uid or "")[:UID_LENGTH]
