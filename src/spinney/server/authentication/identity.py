"""What clients know a server by: its certificate authority and the administrator's token.

With a data directory both are kept there, so that a kubeconfig is good for as long as the directory is. An authority
that will soon end is made anew.
"""

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from spinney.runtime.certificates import Authority, Pair, UnreadableCertificate
from spinney.runtime.private_files import write_private

_NAME: Final = "spinney-ca"
_AUTHORITY: Final = "authority.pem"
_TOKEN: Final = "token"  # noqa: S105 - the name of a file
_RENEWED_BEFORE: Final = timedelta(days=30)


class IdentityUnusable(RuntimeError):
    """A file that says who the server is cannot be read."""


@dataclass(frozen=True)
class ServerIdentity:
    """Who signs a server's certificates, and the token that makes an administrator."""

    authority: Authority
    token: str


def identity(directory: Path | None, *, now: datetime) -> ServerIdentity:
    """Return the identity kept in a directory, or a new one; a new one is kept there."""
    if directory is None:
        return ServerIdentity(Authority(_NAME, now=now), _new_token())
    directory.mkdir(parents=True, exist_ok=True)
    return ServerIdentity(_authority(directory / _AUTHORITY, now), _token(directory / _TOKEN))


def _authority(path: Path, now: datetime) -> Authority:
    if path.exists():
        certificate, mark, key = path.read_bytes().partition(b"-----BEGIN PRIVATE KEY-----")
        try:
            kept = Authority(_NAME, now=now, kept=Pair(certificate, mark + key))
        except UnreadableCertificate as error:
            raise IdentityUnusable(f"{path} cannot be read: {error}; remove it, and write a new kubeconfig") from error
        if kept.expires - now > _RENEWED_BEFORE:
            return kept
    made = Authority(_NAME, now=now)
    write_private(path, made.pem + made.private)
    return made


def _token(path: Path) -> str:
    if path.exists():
        kept = path.read_text(encoding="ascii", errors="replace").strip()
        if not kept.isascii() or len(kept) < 16:
            raise IdentityUnusable(f"{path} does not hold a token; remove it, and write a new kubeconfig")
        return kept
    made = _new_token()
    write_private(path, made.encode())
    return made


def _new_token() -> str:
    return secrets.token_urlsafe(32)
