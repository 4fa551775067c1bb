"""Serving webhooks for as long as a process runs: certificate, registration, server, renewal.

The certificate is looked at again every little while, and so is what the API server was told: a renewed one is
presented without the server going down, and a registration that somebody overwrote is put right. A renewed certificate
is presented one look after its authority was registered, for API servers learn of that one by one; until then the
former one, whose authority is still in the bundle, goes on. After each look the registration is read back and tried
(:mod:`.trust`): a replica that would not be trusted is not ready.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog

from spinney.api.resource import Resource
from spinney.kube.client import Client
from spinney.kube.errors import KubeError
from spinney.kube.webhooks.certificates import provision, service_names, still_trusts
from spinney.kube.webhooks.server import Reviewer, ServicePlace, WebhookServer, certificate_in
from spinney.kube.webhooks.trust import distrust
from spinney.runtime.certificates import ServingCertificate

log = structlog.get_logger()

LOOK_AGAIN_SECONDS: Final = 30.0
SOON_SECONDS: Final = 1.0
"""Between looks while the API server would not trust what is served."""


@dataclass(frozen=True, kw_only=True)
class WebhookSettings:
    """Where webhooks are served, with which certificate, and how the API server is told of them."""

    place: ServicePlace
    bind_address: str
    port: int
    secret_name: str
    """The Secret with the certificate that the process makes and renews itself."""
    directory: Path | None
    """Where a certificate is that somebody else provides."""
    configurations: Mapping[str, Resource]
    """What is registered with the API server, by name."""
    register: Callable[[bytes], Awaitable[None]]
    """Has the API server ask, and trust the authorities of this bundle."""


class WebhookProcess:
    """Serves admission beside the controllers, on every replica, leading or not. Mutable: learns its port."""

    def __init__(
        self,
        admission: Reviewer,
        client: Client,
        settings: WebhookSettings,
        *,
        leaving: Callable[[], bool] = lambda: False,
    ) -> None:
        self._admission = admission
        self._client = client
        self._settings = settings
        self._leaving = leaving
        self.port: int | None = None
        self._problem: str | None = "webhooks are not served yet"

    def unready(self) -> str | None:
        """Return why writes that are reviewed would be refused if this replica were asked, or None, as last found."""
        return self._problem

    async def run(self) -> None:
        """Serve until cancelled."""
        settings = self._settings
        presented = await self._certificate()
        server = WebhookServer(
            self._admission, presented, host=settings.bind_address, port=settings.port, leaving=self._leaving
        )
        async with server.serving() as self.port:
            self._problem = "the API server was not told yet whom to trust"
            await self._register(presented)
            known = presented
            while True:
                await self._prove(self.port)
                await self._client.runtime.clock.sleep(LOOK_AGAIN_SECONDS if self._problem is None else SOON_SECONDS)
                before, known = known, await self._look_again(known)
                if known != presented and (known == before or not still_trusts(known, presented)):
                    server.present(known)
                    presented = known
                    log.info("webhook certificate replaced", expires=str(known.expires))

    async def _prove(self, port: int) -> None:
        """Find out whether the API server, as it was told, would trust what is served; remember why not."""
        settings = self._settings
        try:
            self._problem = await distrust(self._client, settings.configurations, port, settings.bind_address)
        except KubeError as error:
            log.warning("webhook registration not read", error=str(error))
            return
        if self._problem is not None:
            log.warning("webhooks not trusted", problem=self._problem)

    async def _look_again(self, known: ServingCertificate) -> ServingCertificate:
        """Return the certificate in force, registered; what went wrong is logged, and tried again at the next look."""
        try:
            found = await self._certificate()
            found.context()
            await self._register(found)
        except (KubeError, OSError, ValueError) as error:
            log.warning("webhook certificate not looked at", error=str(error))
            return known
        return found

    async def _certificate(self) -> ServingCertificate:
        settings = self._settings
        if settings.directory is not None:
            return certificate_in(settings.directory)
        names = service_names(settings.place.name, settings.place.namespace)
        now = self._client.runtime.clock.now()
        return await provision(self._client, settings.secret_name, settings.place.namespace, names, now)

    async def _register(self, certificate: ServingCertificate) -> None:
        """Have the API server ask here, and trust who signed the certificate; without that, others see to it."""
        if certificate.authority:
            await self._settings.register(certificate.authority)
