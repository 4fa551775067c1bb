"""What the grouper knows of the objects that own a pod, which of several owners counts, and the way up to the last one.

Of an owner only its metadata and the parts that its rule names are kept (:func:`projection`): a cluster has many
workloads, and most of what is in them is pod templates. Of several references the controller's counts, else the first.
An owner that is not there, or is another of the same name, is an error.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar, cast

import msgspec
from msgspec.structs import force_setattr

from spinney.api.core import Pod
from spinney.api.meta import Metadata, OwnerReference
from spinney.api.struct import JSON, Struct
from spinney.grouping.terms import RuleRefused

Step = str
"""A key, or ``*`` for every element of a list or value of a map."""
MOST_OWNERS = 20


class Owner(Struct, frozen=True, kw_only=True):
    """An object of an owner chain."""

    kept: ClassVar[tuple[tuple[Step, ...], ...] | None] = None
    """The paths of spec and status that are kept; ``None``: all."""

    api_version: str = ""
    kind: str = ""
    metadata: Metadata = Metadata()
    spec: JSON = msgspec.field(default_factory=dict)
    status: JSON = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.kept is not None:
            for field in ("spec", "status"):
                inside = [path[1:] for path in self.kept if path[0] == field]
                force_setattr(self, field, _pruned(getattr(self, field), inside) or {})

    @property
    def group_kind(self) -> str:
        """Return ``group/Kind``; core kinds are ``v1/Kind``."""
        return group_kind(self.api_version, self.kind)

    @property
    def content(self) -> Mapping[str, Any]:
        """Return what paths are looked up in."""
        return {"spec": self.spec, "status": self.status}

    def __str__(self) -> str:
        return f"{self.kind} {self.metadata.name}"


def projection(kind: str, paths: Iterable[Sequence[Step]], api_version: str = "") -> type[Owner]:
    """Return the type of owners of a kind that keeps metadata and ``paths`` only.

    In the lists of an API server, objects of Kubernetes' own kinds do not say what they are: ``api_version`` does.
    """
    all_paths = {tuple(path) for path in paths}
    kept = tuple(sorted(path for path in all_paths if not any(_leads_to(path, other) for other in all_paths)))
    name = kind.rpartition("/")[2] or "Owner"
    identity = [("api_version", str, api_version), ("kind", str, name)] if api_version else []
    made = msgspec.defstruct(name, identity, bases=(Owner,), namespace={"kept": kept}, frozen=True, kw_only=True)
    return cast("type[Owner]", made)


@lru_cache(1024)
def group_kind(api_version: str, kind: str) -> str:
    """Return ``group/Kind`` of an object or reference, whatever its version; core kinds are ``v1/Kind``."""
    group, slash, _ = api_version.rpartition("/")
    return f"{group if slash else api_version or 'v1'}/{kind}"


def owner_of(metadata: Metadata) -> OwnerReference | None:
    """Return the owner that counts: the controller, else the first."""
    return metadata.controller or next(iter(metadata.owner_references), None)


def pod_as_owner(pod: Pod) -> Owner:
    """Return a pod as the object that its own gang belongs to."""
    return Owner(api_version=pod.api_version, kind=pod.kind, metadata=pod.metadata)


def inheriting(owner: Owner, above: Iterable[Owner]) -> Owner:
    """Return an owner with the labels and annotations that it lacks and the owners above it have, nearest first."""
    higher = tuple(above)
    if not higher:
        return owner
    labels, annotations = dict(owner.metadata.labels), dict(owner.metadata.annotations)
    for each in higher:
        labels = {**each.metadata.labels, **labels}
        annotations = {**each.metadata.annotations, **annotations}
    metadata = msgspec.structs.replace(owner.metadata, labels=labels, annotations=annotations)
    # Not a copy of its own type, which would look through all of it again for what is kept.
    return Owner(
        api_version=owner.api_version, kind=owner.kind, metadata=metadata, spec=owner.spec, status=owner.status
    )


Find = Callable[[OwnerReference, str], Owner | None]
"""Returns the object that a reference names in a namespace, ``None`` if it may not be read; raises OwnerMissing."""


class OwnerMissing(RuleRefused):
    """An owner is not there, or is no longer the one that was meant."""


def climb(pod: Pod, find: Find) -> tuple[Owner, ...]:
    """Return the owners of a pod, nearest first; raises :class:`OwnerMissing`.

    An owner that may not be read ends the climb: the last one that could be read is the top.
    """
    chain: list[Owner] = []
    current: Metadata = pod.metadata
    while (reference := owner_of(current)) is not None and len(chain) < MOST_OWNERS:
        owner = find(reference, pod.metadata.namespace or "")
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


def _leads_to(path: Sequence[Step], other: Sequence[Step]) -> bool:
    """Tell whether a longer path goes on from here: then only what it names is kept."""
    same = all(a in (b, "*") or b == "*" for a, b in zip(path, other, strict=False))
    return len(path) < len(other) and same


def _pruned(value: Any, paths: Sequence[Sequence[Step]]) -> Any:
    if any(not path for path in paths):
        return value
    if isinstance(value, list):
        inside = [path[1:] for path in paths if path[0] == "*"]
        return [_pruned(each, inside) for each in value] if inside else None
    if isinstance(value, Mapping):
        kept: JSON = {}
        for key, part in value.items():
            inside = [path[1:] for path in paths if path[0] in (key, "*")]
            if inside:
                kept[key] = _pruned(part, inside)
        return kept
    return value if not paths else None
