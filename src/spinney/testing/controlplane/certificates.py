"""The certificates of one control plane, as files in one directory: its programs read them from there."""

from datetime import datetime
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from spinney.runtime.certificates import Authority, Pair, private_pem
from spinney.runtime.private_files import write_private


class CertificateFiles:
    """Signs certificates and writes them, with their keys (mode 0600), into one directory."""

    def __init__(self, directory: Path, *, now: datetime) -> None:
        self._directory = directory
        self._authority = Authority("spinney-test-ca", now=now)
        self.path = self._write("ca.crt", self._authority.pem)

    def serving(self, name: str, hosts: list[str]) -> tuple[Path, Path]:
        """Write a server's certificate for ``hosts`` (names and addresses); return certificate and key."""
        return self._write_pair(name, self._authority.serving(hosts))

    def client(self, user: str, groups: tuple[str, ...] = ()) -> tuple[Path, Path]:
        """Write a client certificate that says who ``user`` is; return certificate and key."""
        return self._write_pair(user.replace(":", "-"), self._authority.client(user, groups))

    def key_pair(self, name: str) -> tuple[Path, Path]:
        """Write a bare key pair, such as the one that signs service account tokens; return public and private."""
        key = ec.generate_private_key(ec.SECP256R1())
        public = key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        return self._write(f"{name}.pub", public), self._write(f"{name}.key", private_pem(key))

    def _write_pair(self, name: str, pair: Pair) -> tuple[Path, Path]:
        return self._write(f"{name}.crt", pair.certificate), self._write(f"{name}.key", pair.key)

    def _write(self, name: str, content: bytes) -> Path:
        path = self._directory / name
        write_private(path, content)
        return path
