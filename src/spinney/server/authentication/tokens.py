"""Tokens of service accounts: JSON Web Tokens, signed with a key of the cluster's own (ES256).

The key lies in the data directory, if there is one, so that tokens outlive a restart. A token says which account it
is for, and possibly which pod; whether those still exist is for the authenticator to find out.
"""

import base64
import binascii
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from spinney.api.struct import JSON
from spinney.runtime.certificates import private_pem
from spinney.runtime.private_files import write_private
from spinney.server.authentication.identity import IdentityUnusable

ISSUER = "https://kubernetes.default.svc.cluster.local"
_HALF = 32  # bytes of each of the two numbers of a signature
_PRIVATE = "kubernetes.io"
_REMEDY = "put a copy of it back, or remove it and have every token made anew"


class InvalidToken(ValueError):
    """A token that is not ours, is damaged, or whose time is over."""


class Bound(msgspec.Struct, frozen=True):
    """An object that a token is for, or bound to."""

    name: str
    uid: str


class About(msgspec.Struct, frozen=True, omit_defaults=True):
    """Kubernetes' own claim: the account, and what the token is bound to."""

    namespace: str
    serviceaccount: Bound
    pod: Bound | None = None
    node: Bound | None = None
    secret: Bound | None = None


@dataclass(frozen=True, slots=True)
class Claims:
    """What a token says, once its signature has been checked."""

    about: About
    audiences: tuple[str, ...]
    identity: str  # the token's own, ``jti``


class TokenIssuer:
    """Signs and reads tokens with one key."""

    def __init__(self, key: ec.EllipticCurvePrivateKey) -> None:
        self._key = key
        public = key.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        digest = hashes.Hash(hashes.SHA256())
        digest.update(public)
        self._header = _encoded({"alg": "ES256", "kid": _base64(digest.finalize())})

    def issue(
        self, about: About, *, audiences: tuple[str, ...], identity: str, now: datetime, lifetime: timedelta
    ) -> str:
        """Return a token that is valid from now on."""
        moment = int(now.timestamp())
        claims: JSON = {
            "aud": list(audiences),
            "exp": moment + int(lifetime.total_seconds()),
            "iat": moment,
            "iss": ISSUER,
            "jti": identity,
            _PRIVATE: msgspec.to_builtins(about),
            "nbf": moment,
            "sub": f"system:serviceaccount:{about.namespace}:{about.serviceaccount.name}",
        }
        signed = f"{self._header}.{_encoded(claims)}"
        r, s = decode_dss_signature(self._key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
        return f"{signed}.{_base64(r.to_bytes(_HALF) + s.to_bytes(_HALF))}"

    def read(self, token: str, now: datetime) -> Claims:
        """Return what a token says; raise :class:`InvalidToken`."""
        header, _, rest = token.partition(".")
        body, _, signature = rest.partition(".")
        if header != self._header:
            raise InvalidToken("the token was not issued here")
        try:
            raw = _decoded(signature)
            numbers = encode_dss_signature(int.from_bytes(raw[:_HALF]), int.from_bytes(raw[_HALF:]))
            self._key.public_key().verify(numbers, f"{header}.{body}".encode(), ec.ECDSA(hashes.SHA256()))
            claims: Any = msgspec.json.decode(_decoded(body))
            about = msgspec.convert(claims[_PRIVATE], About)
            begins, ends = (datetime.fromtimestamp(claims[name], UTC) for name in ("nbf", "exp"))
        except (InvalidSignature, binascii.Error, msgspec.DecodeError, KeyError, TypeError, ValueError) as error:
            raise InvalidToken("the token is damaged") from error
        if not begins <= now < ends:
            raise InvalidToken("the token has expired")
        return Claims(about, tuple(claims.get("aud") or ()), str(claims.get("jti", "")))


def token_issuer(directory: Path | None) -> TokenIssuer:
    """Return the issuer of a cluster: with the key in its data directory, or with a new one."""
    path = directory / "service-account.key" if directory else None
    if path is not None and path.exists():
        try:
            key = serialization.load_pem_private_key(path.read_bytes(), password=None)
        except (ValueError, TypeError) as error:
            raise IdentityUnusable(f"{path} cannot be read: {error}; {_REMEDY}") from error
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise IdentityUnusable(f"{path} holds a key of another kind; {_REMEDY}")
        return TokenIssuer(key)
    made = ec.generate_private_key(ec.SECP256R1())
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_private(path, private_pem(made))
    return TokenIssuer(made)


def _encoded(value: JSON) -> str:
    return _base64(msgspec.json.encode(value))


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
