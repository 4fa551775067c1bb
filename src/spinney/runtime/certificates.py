"""Certificates of one's own making: an authority and what it signs, on elliptic curves (P-256).

For the embedded API server, the operator's webhooks and control planes in tests. They say everything that strict
clients ask for (Python 3.13 and later among them): what a key may be used for, and who signed it.
"""

import ipaddress
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from spinney.runtime.private_files import load_chain

LIFETIME = timedelta(days=365)
CLOCK_SKEW = timedelta(hours=1)

_COMMON_NAME_LENGTH = 64  # hosts are checked against the alternative names anyway


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key, in PEM."""

    certificate: bytes
    key: bytes


@dataclass(frozen=True, slots=True)
class ServingCertificate:
    """A server's certificate, its key, and the authority that signed it, all in PEM."""

    authority: bytes
    certificate: bytes
    key: bytes

    @property
    def expires(self) -> datetime:
        """Return when the certificate ends."""
        return x509.load_pem_x509_certificate(self.certificate).not_valid_after_utc

    def is_for(self, names: Sequence[str]) -> bool:
        """Tell whether the certificate is good for all these host names."""
        parsed = x509.load_pem_x509_certificate(self.certificate)
        found = parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        return set(names) <= set(found.get_values_for_type(x509.DNSName))

    def context(self) -> ssl.SSLContext:
        """Return a server-side TLS context with this certificate."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        load_chain(context, self.certificate, self.key)
        return context


class UnreadableCertificate(ValueError):
    """What should be a certificate and its key is not."""


class Authority:
    """A certificate authority, made new or read again. Holds its key for as long as it lives."""

    def __init__(self, name: str, *, now: datetime, organization: str = "", kept: Pair | None = None) -> None:
        """Make an authority, or take the one that was ``kept``; raise :class:`UnreadableCertificate` if it is none."""
        self._now = now
        if kept is not None:
            self._key, self._certificate = _read(kept)
            self._name = self._certificate.subject
            return
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _subject(name, (organization,) if organization else ())
        self._certificate = (
            self._draft(self._name, self._key.public_key(), signs_certificates=True)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(self._key, hashes.SHA256())
        )

    @property
    def expires(self) -> datetime:
        """Return when the authority ends."""
        return self._certificate.not_valid_after_utc

    @property
    def private(self) -> bytes:
        """Return the authority's key in PEM."""
        return private_pem(self._key)

    @property
    def pem(self) -> bytes:
        """Return the authority's own certificate."""
        return self._certificate.public_bytes(serialization.Encoding.PEM)

    def serving(self, hosts: Sequence[str]) -> Pair:
        """Sign a server's certificate for host names and addresses."""
        alternatives = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
        return self._issue(_subject(hosts[0]), ExtendedKeyUsageOID.SERVER_AUTH, alternatives)

    def client(self, user: str, groups: Sequence[str] = ()) -> Pair:
        """Sign a client's certificate that says who ``user`` is."""
        return self._issue(_subject(user, groups), ExtendedKeyUsageOID.CLIENT_AUTH, None)

    def _issue(
        self, subject: x509.Name, usage: x509.ObjectIdentifier, alternatives: x509.SubjectAlternativeName | None
    ) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        draft = (
            self._draft(subject, key.public_key(), signs_certificates=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        if alternatives is not None:
            draft = draft.add_extension(alternatives, critical=False)
        certificate = draft.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        return Pair(certificate, private_pem(key))

    def _draft(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, *, signs_certificates: bool
    ) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._now - CLOCK_SKEW)
            .not_valid_after(self._now + LIFETIME)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(_usage(signs_certificates=signs_certificates), critical=True)
        )


def serving_certificate(
    hosts: Sequence[str], *, now: datetime, authority: Authority | None = None
) -> ServingCertificate:
    """Make a certificate for a server, signed by ``authority`` or by one made for it."""
    signer = authority or Authority("spinney-ca", now=now)
    pair = signer.serving(hosts)
    return ServingCertificate(signer.pem, pair.certificate, pair.key)


def private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Return a private key in PEM, not encrypted."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _read(pair: Pair) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    try:
        key = serialization.load_pem_private_key(pair.key, password=None)
        certificate = x509.load_pem_x509_certificate(pair.certificate)
    except (ValueError, TypeError) as error:
        raise UnreadableCertificate(str(error)) from error
    if not isinstance(key, ec.EllipticCurvePrivateKey) or certificate.public_key() != key.public_key():
        raise UnreadableCertificate("the key is not the key of the certificate")
    return key, certificate


def _subject(name: str, organizations: Sequence[str] = ()) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization) for organization in organizations]
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, name[:_COMMON_NAME_LENGTH])])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
