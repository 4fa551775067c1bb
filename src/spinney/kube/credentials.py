"""Who we say we are, and how that is kept fresh.

A :class:`CredentialSource` is asked before every request and answers from memory while what it holds is good. When the
server answers 401 the transport says so, and the source fetches anew: a rotated token costs one extra request.
"""

import base64
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import structlog

from spinney.kube.errors import ConfigurationError
from spinney.kube.tls import ClientCertificate, check_certificate
from spinney.runtime import Runtime

TOKEN_FILE_SECONDS = 60.0

log = structlog.get_logger()

Header = tuple[str, str]
"""A header's name and value; a name may come more than once."""


@dataclass(frozen=True, slots=True)
class Credential:
    """What a request carries: headers and, on its connection, a client certificate."""

    headers: tuple[Header, ...] = field(default=(), repr=False)
    certificate: ClientCertificate | None = None

    def __post_init__(self) -> None:
        for name, value in self.headers:
            if "\n" in value or "\r" in value:
                raise ConfigurationError(
                    f"the credential has a line break in what is sent as {name}; write its token, or whom it "
                    "impersonates, on one line"
                )

    def carrying(self, *headers: Header) -> "Credential":
        """Return this credential with more headers."""
        return Credential(self.headers + headers, self.certificate)


class CredentialSource(Protocol):
    """Gives the credential to use now."""

    async def credential(self) -> Credential:
        """Return a credential that is believed to be good."""
        ...

    def reject(self, credential: Credential) -> bool:
        """Take in that the server refused ``credential``; returns whether the next one may differ."""
        ...


class FixedCredential:
    """A credential that never changes."""

    def __init__(self, credential: Credential = Credential()) -> None:  # noqa: B008 - a frozen value
        self._credential = credential

    async def credential(self) -> Credential:
        """Return the credential."""
        return self._credential

    def reject(self, _credential: Credential) -> bool:
        """Have nothing better to offer."""
        return False


class TokenFile:
    """A bearer token in a file that another program rotates; read again every minute, and after a 401."""

    def __init__(self, path: Path, runtime: Runtime, *, base: Credential = Credential()) -> None:  # noqa: B008
        self._path = path
        self._runtime = runtime
        self._base = base
        self._credential: Credential | None = None
        self._read_at = 0.0

    async def credential(self) -> Credential:
        """Return the token as last read, at most a minute ago."""
        now = self._runtime.clock.monotonic()
        if self._credential is None or now - self._read_at >= TOKEN_FILE_SECONDS:
            self._credential = self._read(self._credential)
            self._read_at = now
        return self._credential

    def reject(self, credential: Credential) -> bool:
        """Read the file again; it helps if the token has changed."""
        self._credential = self._read(self._credential)
        self._read_at = self._runtime.clock.monotonic()
        return self._credential != credential

    def _read(self, before: Credential | None) -> Credential:
        try:
            token = self._path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as problem:
            if before is not None:
                return before  # a rotation in progress: the old token is good for a while
            said = problem.strerror if isinstance(problem, OSError) else "it is not a text file"
            raise ConfigurationError(f"token file {self._path} cannot be read: {said}") from problem
        if not token:
            if before is not None:
                return before
            raise ConfigurationError(f"token file {self._path} is empty; expected a bearer token")
        return self._base.carrying(bearer(token))


class ClientCertificateFiles:
    """Presents a client certificate whose files another program rotates; read again every minute, and after a 401.

    What else a credential carries comes from the source ``behind``.
    """

    def __init__(
        self, read: Callable[[], ClientCertificate | None], behind: CredentialSource, runtime: Runtime
    ) -> None:
        self._read = read
        self._behind = behind
        self._runtime = runtime
        self._certificate = read()
        self._former: ClientCertificate | None = None
        self._read_at = runtime.clock.monotonic()

    async def credential(self) -> Credential:
        """Return a credential with the certificate as last read, at most a minute ago."""
        if self._runtime.clock.monotonic() - self._read_at >= TOKEN_FILE_SECONDS:
            self._read_again()
        found = await self._behind.credential()
        return found if found.certificate is not None else replace(found, certificate=self._certificate)

    def reject(self, credential: Credential) -> bool:
        """Read the files again; it helps if they have changed, or if the source behind has something else."""
        rejected = credential.certificate
        ours = rejected in (self._certificate, self._former)  # another request may have been refused before
        self._read_again()
        behind = self._behind.reject(replace(credential, certificate=None) if ours else credential)
        return behind or (ours and rejected != self._certificate)

    def _read_again(self) -> None:
        self._read_at = self._runtime.clock.monotonic()
        try:
            found = self._read()
            if found is not None and found != self._certificate:
                check_certificate(found)
                self._former, self._certificate = self._certificate, found
        except ConfigurationError as problem:  # a rotation in progress: the old one is good for a while
            log.info("client certificate not read again", error=str(problem))


def bearer(token: str) -> Header:
    """Return the header that carries a bearer token."""
    return ("authorization", f"Bearer {token}")


def basic(username: str, password: str) -> Header:
    """Return the header that carries a user name and password."""
    encoded = base64.b64encode(f"{username}:{password}".encode()).decode("ascii")
    return ("authorization", f"Basic {encoded}")
