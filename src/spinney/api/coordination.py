"""Leases (``coordination.k8s.io/v1``): who leads, and which nodes are alive."""

from typing import Final

from spinney.api.meta import Object
from spinney.api.resource import Resource
from spinney.api.struct import Struct
from spinney.api.time import MicroTime

LEASE: Final = Resource("coordination.k8s.io", "v1", "Lease", "leases")


class LeaseSpec(Struct, frozen=True, kw_only=True):
    """Who holds the lease, since when and for how long; times are made by :func:`spinney.api.time.micro_timestamp`."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: MicroTime | None = None
    renew_time: MicroTime | None = None
    lease_transitions: int | None = None
    strategy: str | None = None
    preferred_holder: str | None = None


class Lease(Object, of=LEASE, frozen=True, kw_only=True):
    """A named promise that expires unless renewed."""

    spec: LeaseSpec = LeaseSpec()
