"""The lives of a gang.

A gang outlives its PodCliques: gang termination deletes them all, and they are made anew under the same names. That is
a *recycling*: the gang loses Initialized and its references, gets a new incarnation, and starts over. It is asked for
by an annotation before the first PodClique is deleted, because old and new ones may exist side by side for a moment,
and is over when none of the PodCliques on record is left. A gang all of whose PodCliques were replaced without being
asked has been recycled just the same. When only some are new (one scaling group replica was replaced, say) it lives on.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from spinney.api.grove import PodClique
from spinney.api.podgang import PodGang
from spinney.backends import additions
from spinney.operator.desired import hashes

UID_LENGTH = 8


@dataclass(frozen=True)
class RecyclingRecord:
    """The last recycling a gang has completed, and the PodCliques it consists of since."""

    recycling: str = ""
    cliques: frozenset[str] = frozenset()

    @classmethod
    def of(cls, gang: PodGang) -> "RecyclingRecord":
        """Read the record of a gang."""
        recycling, _, cliques = gang.metadata.annotations.get(additions.INCARNATION_CLIQUES, "").rpartition("|")
        return cls(recycling, frozenset(cliques.split(",") if cliques else ()))

    def __str__(self) -> str:
        return f"{self.recycling}|{','.join(sorted(self.cliques))}"


@dataclass(frozen=True)
class Life:
    """Which life a gang has reached."""

    incarnation: str | None
    record: RecyclingRecord
    starts_over: bool = False
    """References and Initialized are of a former life."""
    survived: bool = False
    """PodCliques of the former life still exist, so the new one cannot be complete."""

    def annotations(self) -> dict[str, str]:
        """Return the annotations that record this life."""
        recorded = {additions.INCARNATION_CLIQUES: str(self.record)} if self.record != RecyclingRecord() else {}
        return recorded | ({additions.INCARNATION: self.incarnation} if self.incarnation else {})


def life(gang: PodGang, cliques: Iterable[PodClique]) -> Life:
    """Return the life a gang has reached with the PodCliques that exist now."""
    present = frozenset(_short(clique) for clique in cliques if not clique.metadata.deleting)
    record = RecyclingRecord.of(gang)
    asked = gang.metadata.annotations.get(additions.RECYCLE, "")
    incarnation = gang.metadata.annotations.get(additions.INCARNATION)
    if asked != record.recycling:
        renewed = hashes.digest([gang.metadata.uid, asked], 5)
        survived = bool(record.cliques & present)
        kept = record if survived else RecyclingRecord(asked, present)
        return Life(renewed, kept, starts_over=renewed != incarnation, survived=survived)
    if record.cliques and present and not record.cliques & present:
        renewed = hashes.digest([gang.metadata.uid, sorted(present)], 5)
        return Life(renewed, RecyclingRecord(asked, present), starts_over=True)
    # PodCliques that are gone for the moment stay on record: only new ones tell a new life from an interruption.
    return Life(incarnation, RecyclingRecord(asked, present or record.cliques))


def is_recorded(gang: PodGang) -> bool:
    """Tell whether a gang has its PodCliques on record: from its first references on."""
    return bool(RecyclingRecord.of(gang).cliques)


def belongs(clique: PodClique, gang: PodGang) -> bool:
    """Tell whether the gang has taken note of this very PodClique."""
    return _short(clique) in RecyclingRecord.of(gang).cliques


def _short(clique: PodClique) -> str:
    return (clique.metadata.uid or "")[:UID_LENGTH]
