"""From a changed object to the keys that should be reconciled because of it.

Each mapper looks at the object before and after the change, so that one which moves from an owner (or label value) to
another wakes both.
"""

from collections.abc import Callable, Iterable
from typing import Any

from spinney.api.meta import OwnerReference
from spinney.api.resource import Resource
from spinney.kube.cache import Change
from spinney.kube.keys import Key

Mapper = Callable[[Change[Any]], Iterable[Key]]


def itself(change: Change[Any]) -> Iterable[Key]:
    """Map a change to the changed object."""
    return (change.key,)


def to_controller_of(owner: Resource) -> Mapper:
    """Map an object to the owner of kind ``owner`` that controls it."""

    def owners_of(obj: Any, namespace: str) -> Iterable[Key]:
        for reference in obj.metadata.owner_references:
            if reference.controller and _is(reference, owner):
                yield Key(namespace if owner.namespaced else "", reference.name)

    return _of_both_sides(owners_of)


def to_label(label: str) -> Mapper:
    """Map an object to the object of its namespace that the value of ``label`` names."""

    def named_by(obj: Any, namespace: str) -> Iterable[Key]:
        name = obj.metadata.labels.get(label)
        return () if not name else (Key(namespace, name),)

    return _of_both_sides(named_by)


def _of_both_sides(keys_of: Callable[[Any, str], Iterable[Key]]) -> Mapper:
    def mapper(change: Change[Any]) -> Iterable[Key]:
        sides = (side for side in (change.old, change.new) if side is not None)
        return dict.fromkeys(key for side in sides for key in keys_of(side, change.key.namespace))

    return mapper


def _is(reference: OwnerReference, owner: Resource) -> bool:
    group, _, _ = reference.api_version.rpartition("/")
    return reference.kind == owner.kind and group == owner.group
