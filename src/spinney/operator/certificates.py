"""Certificates for the webhook server, made by the operator itself.

An authority and a serving certificate are kept in one Secret, which all replicas of the operator share. They are made
when the Secret has none and renewed when a third of their life is left.
"""

import base64
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from spinney.api.core import SECRET
from spinney.api.struct import JSON
from spinney.kube.client import Client
from spinney.kube.errors import AlreadyExists, NotFound

AUTHORITY_NAME: Final = "Grove-CA"
ORGANIZATION: Final = "Grove"
LIFETIME: Final = timedelta(days=365)
RENEW_BEFORE: Final = LIFETIME / 3
CLOCK_SKEW: Final = timedelta(minutes=5)


@dataclass(frozen=True)
class ServingCertificate:
    """A certificate with its key, and the authority that signed it, all PEM."""

    authority: bytes
    certificate: bytes
    key: bytes

    @property
    def expires(self) -> datetime:
        """Return when the certificate ends."""
        return x509.load_pem_x509_certificate(self.certificate).not_valid_after_utc

    def is_for(self, names: tuple[str, ...]) -> bool:
        """Say whether the certificate is good for all these host names."""
        parsed = x509.load_pem_x509_certificate(self.certificate)
        found = parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        return set(names) <= set(found.get_values_for_type(x509.DNSName))


def service_names(service: str, namespace: str) -> tuple[str, ...]:
    """Return the names under which a Service is reached."""
    return (service, f"{service}.{namespace}", f"{service}.{namespace}.svc", f"{service}.{namespace}.svc.cluster.local")


def new_certificate(names: tuple[str, ...], now: datetime) -> ServingCertificate:
    """Return a new authority and a certificate it signed."""
    authority_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    issuer = _name(AUTHORITY_NAME)
    authority = (
        _builder(issuer, issuer, authority_key.public_key(), now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    certificate = (
        _builder(_name(names[-1]), issuer, key.public_key(), now)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    return ServingCertificate(
        authority.public_bytes(pem),
        certificate.public_bytes(pem),
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )


async def provision(
    client: Client, secret: str, namespace: str, names: tuple[str, ...], now: datetime
) -> ServingCertificate:
    """Return the certificate in a Secret, after making or renewing it where that is due."""
    found = await _read(client, secret, namespace)
    current = _certificate_in(found) if found is not None else None
    if current is not None and current.is_for(names) and current.expires - now > RENEW_BEFORE:
        return current
    made = new_certificate(names, now)
    data = {"ca.crt": made.authority, "tls.crt": made.certificate, "tls.key": made.key}
    manifest: JSON = {
        "metadata": {"name": secret, "namespace": namespace},
        "type": "kubernetes.io/tls",
        "data": {name: base64.b64encode(value).decode() for name, value in data.items()},
    }
    try:
        if found is None:
            await client.create(SECRET, manifest)
        else:
            version = {"resourceVersion": found["metadata"]["resourceVersion"]}
            await client.patch(SECRET, secret, {"metadata": version, "data": manifest["data"]}, namespace)
    except AlreadyExists:
        # Another replica was quicker; its certificate is as good as ours, and it is the one that counts.
        return await provision(client, secret, namespace, names, now)
    return made


async def _read(client: Client, secret: str, namespace: str) -> JSON | None:
    try:
        found: JSON = await client.get(SECRET, secret, namespace)
    except NotFound:
        return None
    return found


def _certificate_in(secret: JSON) -> ServingCertificate | None:
    data = secret.get("data") or {}
    parts = [base64.b64decode(data.get(name) or "") for name in ("ca.crt", "tls.crt", "tls.key")]
    return ServingCertificate(*parts) if all(parts) else None


def _name(common: str) -> x509.Name:
    # A common name has at most 64 characters; host names are checked against the alternative names anyway.
    return x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, ORGANIZATION),
            x509.NameAttribute(NameOID.COMMON_NAME, common[:64]),
        ]
    )


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + LIFETIME)
    )
