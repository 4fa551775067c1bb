"""From a pod to its owners, nearest first.

Of several references the controller's counts, else the first. An owner that may not be read ends the climb: the last
one that could be read is the top. An owner that is not there, or is another of the same name, is an error.
"""

from collections.abc import Callable

from spinney.api.core import Pod
from spinney.api.meta import Metadata, OwnerReference
from spinney.grouping.owners import Owner, owner_of
from spinney.grouping.terms import RuleRefused

Find = Callable[[OwnerReference, str], Owner | None]
"""Returns the object that a reference names in a namespace, ``None`` if it may not be read; raises OwnerMissing."""

MOST_OWNERS = 20


class OwnerMissing(RuleRefused):
    """An owner is not there, or is no longer the one that was meant."""


def climb(pod: Pod, find: Find) -> tuple[Owner, ...]:
    """Return the owners of a pod, nearest first; raises :class:`OwnerMissing`."""
    return above(pod.metadata, find)


def above(metadata: Metadata, find: Find) -> tuple[Owner, ...]:
    """Return the owners above an object, nearest first; raises :class:`OwnerMissing`."""
    chain: list[Owner] = []
    current = metadata
    while (reference := owner_of(current)) is not None and len(chain) < MOST_OWNERS:
        owner = find(reference, metadata.namespace or "")
        if owner is None:
            break
        if reference.uid and owner.metadata.uid and owner.metadata.uid != reference.uid:
            raise replaced(reference, owner)
        chain.append(owner)
        current = owner.metadata
    return tuple(chain)


def replaced(reference: OwnerReference, found: Owner) -> OwnerMissing:
    """Return the error for an owner in whose place there is another object of the same name."""
    return OwnerMissing(
        f"{reference.kind} {reference.name} is another object than the owner that was meant: "
        f"found uid {found.metadata.uid}, expected {reference.uid}"
    )


def missing(reference: OwnerReference) -> OwnerMissing:
    """Return the error for an owner that is not there."""
    return OwnerMissing(f"{reference.kind} {reference.name} ({reference.api_version}) owns the pod and is not there")
