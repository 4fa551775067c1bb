"""What every operation works on: the store, the kinds, admission, time and chance."""

from dataclasses import dataclass

from spinney.api.builtin_fields import FieldTable
from spinney.api.keys import Key
from spinney.api.resource import Resource
from spinney.runtime import Runtime
from spinney.server.admission.chain import AdmissionChain
from spinney.server.authentication.authenticator import Authenticator
from spinney.server.authentication.tokens import TokenIssuer
from spinney.server.authorization.authorizer import Authorizer
from spinney.server.kinds import Kind, KindRegistry
from spinney.server.options import ServerOptions
from spinney.server.store import Collection, Store


@dataclass(slots=True)
class Trust:
    """What clients check the server by. Mutable: it is set when the API is served."""

    authority: str = ""  # PEM; empty without TLS


@dataclass(frozen=True)
class Context:
    """The parts of one server, shared by its operations."""

    runtime: Runtime
    options: ServerOptions
    store: Store
    registry: KindRegistry
    fields: FieldTable  # of the built-in kinds
    admission: AdmissionChain
    authorizer: Authorizer
    authenticator: Authenticator
    tokens: TokenIssuer
    trust: Trust

    def collection(self, kind: Kind) -> Collection:
        """Return where the objects of a kind are stored."""
        return self.store.collection(kind.storage) or self.store.open(
            kind.storage, kind.storage_version, kind.field_values
        )


@dataclass(frozen=True, slots=True)
class Target:
    """What a request addresses: a collection (no name), an object, or a subresource of one."""

    kind: Kind
    namespace: str | None = None  # None: all namespaces, or a cluster-scoped kind
    name: str | None = None
    subresource: str = ""

    @property
    def resource(self) -> Resource:
        """The REST resource of the kind."""
        return self.kind.resource

    @property
    def key(self) -> Key:
        """The key of the object."""
        assert self.name is not None, "a collection has no key"
        return Key(self.namespace or "", self.name)
