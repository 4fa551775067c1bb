"""Serving webhooks for as long as the operator runs: certificate, registration, server, renewal."""

from pathlib import Path
from typing import Final

import structlog

from spinney.kube.client import Client
from spinney.operator.admission import Admission
from spinney.operator.certificates import RENEW_BEFORE, provision, service_names
from spinney.operator.configuration import OperatorConfiguration
from spinney.operator.webhooks import ServicePlace, WebhookServer, certificate_in, register
from spinney.runtime.certificates import ServingCertificate

log = structlog.get_logger()

SERVICE: Final = "grove-operator"
MANUAL_RELOAD_SECONDS: Final = 600.0


class WebhookProcess:
    """Serves admission beside the controllers, on every replica, whoever leads."""

    def __init__(
        self, admission: Admission, client: Client, configuration: OperatorConfiguration, *, namespace: str
    ) -> None:
        self._admission = admission
        self._client = client
        self._configuration = configuration
        self._namespace = namespace

    async def run(self) -> None:
        """Serve until cancelled; a certificate that comes to its end is replaced by serving anew."""
        webhooks = self._configuration.server.webhooks
        clock = self._client.runtime.clock
        while True:
            certificate = await self._certificate()
            server = WebhookServer(self._admission, certificate, host=webhooks.bind_address, port=webhooks.port)
            async with server.serving():
                await clock.sleep(self._seconds_left(certificate))
            log.info("webhook certificate is renewed")

    async def _certificate(self) -> ServingCertificate:
        webhooks = self._configuration.server.webhooks
        if webhooks.cert_provision_mode == "manual":
            return certificate_in(Path(webhooks.server_cert_dir))
        names = service_names(SERVICE, self._namespace)
        now = self._client.runtime.clock.now()
        certificate = await provision(self._client, webhooks.secret_name, self._namespace, names, now)
        place = ServicePlace(SERVICE, self._namespace)
        enabled = self._configuration.authorizer.enabled
        await register(self._client, place, certificate.authority, authorizer=enabled)
        return certificate

    def _seconds_left(self, certificate: ServingCertificate) -> float:
        if self._configuration.server.webhooks.cert_provision_mode == "manual":
            return MANUAL_RELOAD_SECONDS
        left = certificate.expires - self._client.runtime.clock.now() - RENEW_BEFORE
        return max(60.0, left.total_seconds())
