"""TLS towards an API server: whom we trust, and who we say we are."""

import ssl
from dataclasses import dataclass, field

from spinney.kube.errors import ConfigurationError
from spinney.runtime.private_files import load_chain


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """A certificate chain and its key, both PEM."""

    certificate: bytes
    key: bytes = field(repr=False)


def client_context(
    *, authorities: bytes | None, insecure: bool = False, certificate: ClientCertificate | None = None
) -> ssl.SSLContext:
    """Return a context that trusts ``authorities`` (PEM), or the system's when None, and presents ``certificate``."""
    if authorities is None:
        context = ssl.create_default_context()
    else:
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


def check_certificate(certificate: ClientCertificate) -> None:
    """Raise where a certificate and its key cannot be used."""
    _present(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), certificate)


def _present(context: ssl.SSLContext, certificate: ClientCertificate) -> None:
    try:
        load_chain(context, certificate.certificate, certificate.key)
    except ssl.SSLError as problem:
        raise ConfigurationError(
            f"the client certificate and key cannot be used ({problem}); check that both are PEM and belong together"
        ) from problem
