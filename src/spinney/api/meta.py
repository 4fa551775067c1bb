"""Object metadata, owner references and conditions (``meta.k8s.io/v1``), shared by every kind."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

import msgspec

from spinney.api.resource import Resource
from spinney.api.struct import JSON, Struct, constant

ConditionStatus = Literal["True", "False", "Unknown"]


class OwnerReference(Struct, frozen=True, kw_only=True):
    """Whom an object belongs to; the garbage collector follows it by uid."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class Metadata(Struct, frozen=True, kw_only=True):
    """The metadata that schedulers and controllers read; what a projection keeps of an object."""

    name: str = ""
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()

    @property
    def controller(self) -> OwnerReference | None:
        """Return the owner that manages this object, if it has one."""
        for owner in self.owner_references:  # asked for every pod that comes and goes
            if owner.controller:
                return owner
        return None

    @property
    def deleting(self) -> bool:
        """Tell whether deletion has been asked for."""
        return self.deletion_timestamp is not None


class ObjectMeta(Metadata, frozen=True, kw_only=True):
    """The metadata of an object, whole: what the API server put there survives a round trip."""

    generate_name: str | None = None
    generation: int | None = None
    deletion_grace_period_seconds: int | None = None
    managed_fields: tuple[JSON, ...] = ()
    self_link: str | None = None


class _Typed(msgspec.StructMeta):
    """Makes structs of kinds: ``of`` is the resource whose ``apiVersion`` and ``kind`` an object always says."""

    def __new__(
        mcs, name: str, bases: tuple[type, ...], namespace: JSON, *, of: Resource | None = None, **options: Any
    ) -> "_Typed":
        if of is not None:
            version, called = constant(of.api_version), constant(of.kind)

            class Said(*bases, frozen=True, kw_only=True):  # type: ignore[misc, call-arg]
                api_version: str = version
                kind: str = called

            bases = (Said,)
        return super().__new__(mcs, name, bases, namespace, **options)


class ProjectedObject(Struct, metaclass=_Typed, frozen=True, kw_only=True):
    """An object of which a part is read."""

    api_version: str = ""
    kind: str = ""
    metadata: Metadata = Metadata()


class Object(ProjectedObject, frozen=True, kw_only=True):
    """An object, whole: what is read is what was written."""

    metadata: ObjectMeta = ObjectMeta()


class Condition(Struct, frozen=True, kw_only=True):
    """One aspect of an object's state, as its writer sees it."""

    type: str
    status: ConditionStatus
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None
    observed_generation: int | None = None


def owner_reference(resource: Resource, metadata: Metadata, *, block: bool = True) -> OwnerReference:
    """Return the reference a dependent carries to its controlling owner, which must have been stored (has a uid)."""
    if metadata.uid is None:
        raise ValueError(
            f"{resource.kind} {metadata.namespace or ''}/{metadata.name} has no metadata.uid; "
            "read it from the API server before making it an owner"
        )
    return OwnerReference(
        api_version=resource.api_version,
        kind=resource.kind,
        name=metadata.name,
        uid=metadata.uid,
        controller=True,
        block_owner_deletion=block,
    )
