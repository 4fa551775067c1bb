"""A certificate authority for one control plane: serving and client certificates on elliptic curves."""

import ipaddress
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_VALID = timedelta(days=2)


class Authority:
    """Signs certificates and writes them, with their keys (mode 0600), into one directory."""

    def __init__(self, directory: Path, *, now: datetime) -> None:
        self._directory = directory
        self._now = now
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _subject("spinney-test-ca")
        certificate = (
            self._draft(self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.path = self._write_certificate("ca", certificate)

    def serving(self, name: str, hosts: list[str]) -> tuple[Path, Path]:
        """Write a server's certificate for ``hosts`` (names and addresses); return certificate and key."""
        alternatives = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
        return self._issue(name, _subject(name), ExtendedKeyUsageOID.SERVER_AUTH, alternatives)

    def client(self, user: str, groups: tuple[str, ...] = ()) -> tuple[Path, Path]:
        """Write a client certificate that says who ``user`` is; return certificate and key."""
        return self._issue(user.replace(":", "-"), _subject(user, groups), ExtendedKeyUsageOID.CLIENT_AUTH, None)

    def key_pair(self, name: str) -> tuple[Path, Path]:
        """Write a bare key pair, such as the one that signs service account tokens; return public and private."""
        key = ec.generate_private_key(ec.SECP256R1())
        public = self._directory / f"{name}.pub"
        public.write_bytes(
            key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        )
        return public, self._write_key(name, key)

    def _issue(
        self,
        name: str,
        subject: x509.Name,
        usage: x509.ObjectIdentifier,
        alternatives: x509.SubjectAlternativeName | None,
    ) -> tuple[Path, Path]:
        key = ec.generate_private_key(ec.SECP256R1())
        draft = self._draft(subject, key.public_key()).add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        if alternatives is not None:
            draft = draft.add_extension(alternatives, critical=False)
        return self._write_certificate(name, draft.sign(self._key, hashes.SHA256())), self._write_key(name, key)

    def _draft(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._now - timedelta(hours=1))
            .not_valid_after(self._now + _VALID)
        )

    def _write_certificate(self, name: str, certificate: x509.Certificate) -> Path:
        path = self._directory / f"{name}.crt"
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        return path

    def _write_key(self, name: str, key: ec.EllipticCurvePrivateKey) -> Path:
        path = self._directory / f"{name}.key"
        path.touch(mode=0o600)
        path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return path


def _subject(name: str, groups: tuple[str, ...] = ()) -> x509.Name:
    organisations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*organisations, x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
