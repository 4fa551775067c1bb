"""Serving webhooks for as long as a process runs: certificate, registration, server, renewal.

The certificate is looked at again every little while, and so is what the API server was told: a renewed one is
presented without the server going down, and a registration that was overwritten is put right. A renewed certificate
is presented one look after its authority was registered, for API servers learn of that one by one; until then the
former one, whose authority is still in the bundle, goes on. After each look the registration is read back and used as
the API server would use it, over a TLS connection that accepts only the authorities of its ``caBundle`` and only the
name of its Service: a replica that would not be trusted is not ready.
"""

import asyncio
import base64
import binascii
import ssl
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final

import structlog

from spinney.api.resource import Resource
from spinney.api.struct import JSON
from spinney.kube.client import Client
from spinney.kube.errors import Forbidden, KubeError, NotFound
from spinney.kube.webhooks.certificates import provision, service_names, still_trusts
from spinney.kube.webhooks.configuration import WebhookServing
from spinney.kube.webhooks.server import Reviewer, ServicePlace, WebhookServer, certificate_in
from spinney.runtime.certificates import ServingCertificate

log = structlog.get_logger()

LOOK_AGAIN_SECONDS: Final = 30.0
SOON_SECONDS: Final = 1.0
"""Between looks while the API server would not trust what is served."""


class WebhookProcess:
    """Serves admission beside the controllers, on every replica, leading or not. Mutable: learns its port.

    ``setting`` is what chooses address and port, for messages. ``configurations`` are registered with the API server,
    by name; ``register`` has it ask, and trust a bundle.
    """

    def __init__(
        self,
        admission: Reviewer,
        client: Client,
        serving: WebhookServing,
        place: ServicePlace,
        *,
        setting: str,
        configurations: Mapping[str, Resource],
        register: Callable[[bytes], Awaitable[None]],
        leaving: Callable[[], bool] = lambda: False,
    ) -> None:
        self._admission = admission
        self._client = client
        self._serving = serving
        self._place = place
        self._setting = setting
        self._configurations = configurations
        self._tell = register
        self._leaving = leaving
        self.port: int | None = None
        self._problem: str | None = "webhooks are not served yet"

    def unready(self) -> str | None:
        """Return why writes that are reviewed would be refused if this replica were asked, or None, as last found."""
        return self._problem

    async def run(self) -> None:
        """Serve until cancelled."""
        serving = self._serving
        presented = await self._certificate()
        server = WebhookServer(
            self._admission,
            presented,
            host=serving.bind_address,
            port=serving.port,
            setting=self._setting,
            leaving=self._leaving,
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
        try:
            self._problem = await distrust(self._client, self._configurations, port, self._serving.bind_address)
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
        if self._serving.cert_provision_mode == "manual":
            return certificate_in(Path(self._serving.server_cert_dir))
        names = service_names(self._place.name, self._place.namespace)
        now = self._client.runtime.clock.now()
        return await provision(self._client, self._serving.secret_name, self._place.namespace, names, now)

    async def _register(self, certificate: ServingCertificate) -> None:
        """Have the API server ask here, and trust who signed the certificate; without that, others see to it."""
        if certificate.authority:
            await self._tell(certificate.authority)


CONNECT_SECONDS: Final = 5.0


async def distrust(client: Client, names: Mapping[str, Resource], port: int, host: str = "") -> str | None:
    """Return why a review that one of these configurations asks for would fail here, or None.

    A configuration that does not exist asks for none. One that may not be read is taken to be right.
    """
    for name, resource in names.items():
        try:
            found: JSON = await client.get(resource, name)
        except (NotFound, Forbidden):
            continue
        for webhook in found.get("webhooks", ()):
            problem = await _refusal(webhook.get("clientConfig", {}), port, host)
            if problem is not None:
                return f"{resource.kind} {name}: the API server would not trust this process: {problem}"
    return None


async def _refusal(told: JSON, port: int, host: str) -> str | None:
    service = told.get("service")
    if service is None:
        return None  # it was told to ask elsewhere
    try:
        # As an API server does: the bundle alone, or without one whomever the system trusts.
        context = ssl.create_default_context()
        if told.get("caBundle"):
            context = ssl.create_default_context(cadata=base64.b64decode(told["caBundle"], validate=True).decode())
        async with asyncio.timeout(CONNECT_SECONDS):
            name = f"{service['name']}.{service['namespace']}.svc"
            _, writer = await asyncio.open_connection(host or "localhost", port, ssl=context, server_hostname=name)
        writer.close()
        await writer.wait_closed()
    except (OSError, ValueError, binascii.Error) as error:  # what TLS refuses is an OSError
        return str(error) or type(error).__name__
    return None
