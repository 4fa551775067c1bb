"""Object metadata, owner references and conditions (``meta.k8s.io/v1``), shared by every kind."""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from spinney.api.struct import JSON, Struct

ConditionStatus = Literal["True", "False", "Unknown"]


class OwnerReference(Struct, frozen=True, kw_only=True):
    """Whom an object belongs to; the garbage collector follows it by uid."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Struct, frozen=True, kw_only=True):
    """The metadata of an object, whole: what the API server put there survives a round trip."""

    name: str = ""
    generate_name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    generation: int | None = None
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()
    managed_fields: tuple[JSON, ...] = ()

    @property
    def controller(self) -> OwnerReference | None:
        """Return the owner that manages this object, if it has one."""
        return next((owner for owner in self.owner_references if owner.controller), None)


class Condition(Struct, frozen=True, kw_only=True):
    """One aspect of an object's state, as its writer sees it."""

    type: str
    status: ConditionStatus
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None
    observed_generation: int | None = None
