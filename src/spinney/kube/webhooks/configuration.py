"""What configuration files say about serving webhooks."""

from typing import Literal

from spinney.api.struct import Struct


class WebhookServing(Struct, frozen=True, kw_only=True):
    """Where a process answers admission reviews, and with which certificate: part of its configuration file."""

    bind_address: str = ""
    """Address to listen on; empty is all."""
    port: int = 2750
    """Port to listen on; the Service of the webhooks points at it."""
    server_cert_dir: str
    """Where certificate and key are, as tls.crt and tls.key, in mode manual; read again now and then."""
    secret_name: str
    """The Secret that holds the certificate in mode auto."""
    cert_provision_mode: Literal["auto", "manual"] = "auto"
    """`auto`: the process makes and renews its own; `manual`: it is read, and registered where there is a ca.crt."""
