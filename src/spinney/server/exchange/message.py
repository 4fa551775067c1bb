"""What goes in and what comes out of the server: a request and a response, without any transport."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

from spinney.api.struct import JSON

AUTHENTICATED = "system:authenticated"
MASTERS = "system:masters"
ACCOUNT_PREFIX = "system:serviceaccount:"
_UNAUTHENTICATED = "system:unauthenticated"
_ACCOUNTS = "system:serviceaccounts"


@dataclass(frozen=True, slots=True)
class User:
    """A person, a component or a service account."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def to_json(self) -> JSON:
        """Return it as ``UserInfo``, without what is empty."""
        info: JSON = {"username": self.name, "uid": self.uid, "groups": list(self.groups)}
        if self.extra:
            info["extra"] = {name: list(values) for name, values in self.extra.items()}
        return {name: value for name, value in info.items() if value}


ADMIN = User("system:admin", groups=(MASTERS, AUTHENTICATED))
ANONYMOUS = User("system:anonymous", groups=(_UNAUTHENTICATED,))


def account_groups(namespace: str) -> tuple[str, ...]:
    """Return the groups that every service account of a namespace is in."""
    return (_ACCOUNTS, f"{_ACCOUNTS}:{namespace}")


def account_name(namespace: str, name: str) -> str:
    """Return the user name of a service account."""
    return f"{ACCOUNT_PREFIX}{namespace}:{name}"


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request. Header names are lower case; ``path`` is decoded and has no query."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    user: User = ADMIN


@dataclass(frozen=True, slots=True)
class Response:
    """One HTTP response. A body that is an iterator is a stream: it ends when the iterator does."""

    status: int
    headers: Mapping[str, str]
    body: bytes | AsyncIterator[bytes]
