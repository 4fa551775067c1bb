"""Who may look, and as whom the cluster is read.

On loopback the cluster is read with the kubeconfig, as any command of this user would. From elsewhere every viewer
brings a bearer token of their own, and everything they are shown was read with it. Nothing is remembered between two
visits: no cookie is set, and a token lives as long as the view that was opened with it.
"""

import hashlib
import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from spinney.kube.client import Client

Mode = Literal["kubeconfig", "token"]

NAMESPACES: Final = "x-spinney-namespaces"
"""The header in which a viewer who may not list namespaces names theirs."""
_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z")
_MOST_NAMESPACES: Final = 50
_LONGEST_TOKEN: Final = 16 * 1024
_LOCAL_NAMES: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
_PORT: Final = re.compile(r":[0-9]*\Z")
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/=-]+\Z")


class RefusedExposure(ValueError):
    """A way to serve that would show the cluster to people who are not asked who they are."""


class NotAllowed(Exception):
    """A request that is not answered."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


@dataclass(frozen=True)
class Visitor:
    """Whom a request comes from, and in which namespaces they look where not all may be listed."""

    token: str | None
    namespaces: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Return what tells visitors apart, without the token."""
        told = "\0".join((self.token or "", *self.namespaces))
        return hashlib.sha256(told.encode()).hexdigest()


Connect = Callable[[str | None], Client]
"""Returns a client that presents a bearer token, or for ``None`` the kubeconfig's user."""


@dataclass(frozen=True, kw_only=True)
class Access:
    """How viewers are told apart, checked against where the page is served."""

    host: str
    mode: Mode
    tls: bool
    behind_proxy: bool = False

    def __post_init__(self) -> None:
        if is_loopback(self.host):
            return
        if self.mode == "kubeconfig":
            raise RefusedExposure(
                f"{self.host} can be reached from other machines, and every user there would read the cluster as you; "
                "serve on 127.0.0.1, or with --authentication token"
            )
        if not self.tls and not self.behind_proxy:
            raise RefusedExposure(
                f"{self.host} can be reached from other machines, and tokens would cross the network in the clear; "
                "give --tls-cert-file and --tls-private-key-file, or --behind-proxy where a proxy in front has TLS"
            )

    def visitor(self, headers: Mapping[str, str]) -> Visitor:
        """Return whom a request comes from; raises :class:`NotAllowed`."""
        self.check_host(headers)
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin", "same-site"):
            raise NotAllowed(403, "a page of another site may not read the dashboard")
        namespaces = _namespaces(headers.get(NAMESPACES, ""))
        if self.mode == "kubeconfig":
            return Visitor(None, namespaces)
        scheme, _, token = headers.get("authorization", "").partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            raise NotAllowed(401, "a bearer token of the cluster is needed; 'kubectl create token NAME' makes one")
        if len(token) > _LONGEST_TOKEN or not _TOKEN.match(token):
            raise NotAllowed(401, "the Authorization header does not carry a bearer token as Kubernetes makes them")
        return Visitor(token, namespaces)

    def check_host(self, headers: Mapping[str, str]) -> None:
        """Refuse a name that is not this machine's own where the kubeconfig is used; raises :class:`NotAllowed`."""
        if self.mode == "kubeconfig":
            name = _PORT.sub("", headers.get("host", ""))
            if name not in _LOCAL_NAMES | {self.host}:
                # A foreign name that points at 127.0.0.1 would let their page read the cluster.
                served = ", ".join(sorted(_LOCAL_NAMES | {self.host}))
                raise NotAllowed(421, f"found host {name!r}; on loopback only these are served: {served}")


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _namespaces(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(filter(None, (part.strip() for part in text.split(",")))))
    if len(names) > _MOST_NAMESPACES or not all(map(_LABEL.match, names)):
        raise NotAllowed(400, f"{NAMESPACES} must be at most {_MOST_NAMESPACES} names of namespaces")
    return names
