"""Certificates for the webhook server, made by the operator itself.

An authority and a serving certificate are kept in one Secret, which all replicas of the operator share. They are made
when the Secret has none that can be used and renewed when a third of their life is left. The authority before the
present one stays in the bundle, so that a replica which has not looked again yet is still trusted.
"""

import base64
from datetime import datetime
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from spinney.api.core import SECRET
from spinney.api.struct import JSON
from spinney.kube.client import Client
from spinney.kube.errors import Conflict
from spinney.runtime.certificates import LIFETIME, Authority, ServingCertificate, serving_certificate

AUTHORITY_NAME: Final = "Grove-CA"
ORGANIZATION: Final = "Grove"
RENEW_BEFORE: Final = LIFETIME / 3


def service_names(service: str, namespace: str) -> tuple[str, ...]:
    """Return the names under which a Service is reached."""
    return (service, f"{service}.{namespace}", f"{service}.{namespace}.svc", f"{service}.{namespace}.svc.cluster.local")


def new_certificate(names: tuple[str, ...], now: datetime) -> ServingCertificate:
    """Return a new authority and a certificate it signed."""
    authority = Authority(AUTHORITY_NAME, now=now, organization=ORGANIZATION)
    return serving_certificate(names, now=now, authority=authority)


async def provision(
    client: Client, secret: str, namespace: str, names: tuple[str, ...], now: datetime
) -> ServingCertificate:
    """Return the certificate in a Secret, after making or renewing it where that is due."""
    found = await client.find(SECRET, secret, namespace)
    current = _certificate_in(found) if found is not None else None
    if current is not None and current.is_for(names) and current.expires - now > RENEW_BEFORE:
        return current
    made = _with_former_authority(new_certificate(names, now), current, now)
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
    except Conflict:
        # Another replica was quicker; its certificate is as good as ours, and it is the one that counts.
        return await provision(client, secret, namespace, names, now)
    return made


def _certificate_in(secret: JSON) -> ServingCertificate | None:
    """Return what a Secret holds, if it is whole: an authority, and a certificate with its own key."""
    data = secret.get("data") or {}
    try:
        found = ServingCertificate(
            *(base64.b64decode(data.get(name) or "") for name in ("ca.crt", "tls.crt", "tls.key"))
        )
        certificate = x509.load_pem_x509_certificate(found.certificate)
        key = serialization.load_pem_private_key(found.key, password=None)
        whole = bool(_authorities(found)) and found.is_for(()) and certificate.public_key() == key.public_key()
    except (ValueError, TypeError, x509.ExtensionNotFound):
        return None
    return found if whole else None


def still_trusts(new: ServingCertificate, former: ServingCertificate) -> bool:
    """Tell whether a client that trusts the authorities of one certificate trusts the other one, too."""
    signers = _authorities(former)
    return bool(signers) and signers[0] in _authorities(new)


def _with_former_authority(
    made: ServingCertificate, former: ServingCertificate | None, now: datetime
) -> ServingCertificate:
    """Return a new certificate whose bundle also has the authority of the former one, unless that has ended."""
    if former is None or former.expires <= now:
        return made
    bundle = made.authority + _authorities(former)[0].public_bytes(serialization.Encoding.PEM)
    return ServingCertificate(bundle, made.certificate, made.key)


def _authorities(found: ServingCertificate) -> list[x509.Certificate]:
    """Return the authorities of a bundle; the first is the one that signed."""
    return x509.load_pem_x509_certificates(found.authority) if found.authority else []
