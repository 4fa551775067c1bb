"""The kind the tests of this room work with, and builders for it."""

from spinney.api.meta import ObjectMeta, OwnerReference
from spinney.api.struct import Struct
from spinney.kube.cache import WatchCache
from spinney.kube.client import Client
from spinney.runtime import Runtime
from tests.kube.model import THING, ModelServer


class Thing(Struct, frozen=True, kw_only=True):
    """A kind with nothing but a value, which is an int: a bookmark's does not decode."""

    metadata: ObjectMeta = ObjectMeta()
    value: int | None = None


def a_thing(
    name: str = "a",
    *,
    uid: str = "u1",
    version: str = "1",
    owner: str | None = None,
    labels: dict[str, str] | None = None,
    finalizers: tuple[str, ...] = (),
) -> Thing:
    """Return a thing as a cache would hold it."""
    owners: tuple[OwnerReference, ...] = ()
    if owner is not None:
        reference = OwnerReference(
            api_version=THING.api_version, kind=THING.kind, name=owner, uid=f"uid-{owner}", controller=True
        )
        owners = (reference,)
    metadata = ObjectMeta(
        name=name,
        namespace="x",
        uid=uid,
        resource_version=version,
        labels=labels or {},
        owner_references=owners,
        finalizers=finalizers,
    )
    return Thing(metadata=metadata)


def a_cache(server: ModelServer, runtime: Runtime) -> WatchCache[Thing]:
    return WatchCache(Client(server, runtime), THING, Thing, runtime=runtime)
