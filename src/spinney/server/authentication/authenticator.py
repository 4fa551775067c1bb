"""From a bearer token to a user.

The administrator's token is known by heart; every other must be a service account's, whose account (and the pod, Secret
or node that the token is bound to) still exists and is the same as when the token was made.
"""

import hmac
from dataclasses import dataclass

from spinney.api.keys import Key
from spinney.runtime import Runtime
from spinney.server.authentication.tokens import ISSUER, Bound, Claims, InvalidToken, TokenIssuer
from spinney.server.exchange.message import ADMIN, AUTHENTICATED, User, account_groups, account_name
from spinney.server.store import Store

_EXTRA = "authentication.kubernetes.io"


@dataclass(frozen=True, slots=True)
class Authenticated:
    """Whose token it was, and for which of the audiences asked about it is good."""

    user: User
    audiences: tuple[str, ...]


class Authenticator:
    """Knows tokens. Mutable: the administrator's tokens are added when the API is served."""

    def __init__(self, runtime: Runtime, store: Store, issuer: TokenIssuer) -> None:
        self._runtime = runtime
        self._store = store
        self._issuer = issuer
        self._administrators: list[bytes] = []

    def trust(self, token: str) -> None:
        """Take a client with this token for the administrator."""
        self._administrators.append(token.encode())

    def authenticate(self, token: str, audiences: tuple[str, ...] = (ISSUER,)) -> Authenticated:
        """Return whose token it is; raise :class:`InvalidToken`."""
        given = token.encode(errors="surrogateescape")  # what is no text is nobody's token
        if any(hmac.compare_digest(given, each) for each in self._administrators):
            return Authenticated(ADMIN, audiences)
        claims = self._issuer.read(token, self._runtime.clock.now())
        shared = tuple(each for each in audiences if each in claims.audiences)
        if not shared:
            raise InvalidToken(f"the token is for {list(claims.audiences)}, not for {list(audiences)}")
        return Authenticated(self._account(claims), shared)

    def _account(self, claims: Claims) -> User:
        about = claims.about
        namespace, account = about.namespace, about.serviceaccount
        self._check("serviceaccounts", namespace, account)
        extra = {f"{_EXTRA}/credential-id": (f"JTI={claims.identity}",)}
        for kind, bound in (("node", about.node), ("pod", about.pod)):
            if bound is not None:
                extra |= {f"{_EXTRA}/{kind}-name": (bound.name,), f"{_EXTRA}/{kind}-uid": (bound.uid,)}
        if about.pod is not None:
            self._check("pods", namespace, about.pod)
        if about.secret is not None:
            self._check("secrets", namespace, about.secret)
        if about.node is not None and about.pod is None:  # with a pod, the node only says where that was
            self._check("nodes", "", about.node)
        groups = (*account_groups(namespace), AUTHENTICATED)
        return User(account_name(namespace, account.name), account.uid, groups, extra)

    def _check(self, collection: str, namespace: str, bound: Bound) -> None:
        found = self._store.get(collection, Key(namespace, bound.name))
        if found is None or found.uid != bound.uid:
            raise InvalidToken(f"{collection} {namespace}/{bound.name} of the token is gone")
