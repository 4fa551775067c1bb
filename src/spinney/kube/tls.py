"""TLS towards an API server: whom we trust, and who we say we are."""

import os
import ssl
import tempfile
from dataclasses import dataclass, field

from spinney.kube.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """A certificate chain and its key, both PEM."""

    certificate: bytes
    key: bytes = field(repr=False)


def client_context(
    *, authorities: bytes | None, insecure: bool = False, certificate: ClientCertificate | None = None
) -> ssl.SSLContext:
    """Return a context that trusts ``authorities`` (PEM), or the system's when None, and presents ``certificate``."""
    context = ssl.create_default_context()
    if authorities is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        try:
            context.load_verify_locations(cadata=authorities.decode("ascii"))
        except (ssl.SSLError, UnicodeDecodeError) as problem:
            raise ConfigurationError(f"the certificate authority data is not PEM certificates: {problem}") from problem
    # As Go does: a listed intermediate is a root, and extensions that cluster CAs often lack are not demanded.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate is not None:
        _present(context, certificate)
    return context


def _present(context: ssl.SSLContext, certificate: ClientCertificate) -> None:
    # OpenSSL reads a chain only from a file; this one is readable by its owner alone and gone right after.
    descriptor, path = tempfile.mkstemp(prefix="spinney-", suffix=".pem")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(certificate.certificate.rstrip() + b"\n" + certificate.key)
        context.load_cert_chain(path)
    except ssl.SSLError as problem:
        raise ConfigurationError(
            f"the client certificate and key cannot be used ({problem}); check that both are PEM and belong together"
        ) from problem
    finally:
        os.unlink(path)  # noqa: PTH108 - beside mkstemp
