"""The webhook server: admission reviews over HTTPS.

The certificate is of one's own making, or from a directory that another program fills.
"""

import contextlib
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import msgspec
import structlog
from aiohttp import web

from spinney.runtime.certificates import ServingCertificate
from spinney.runtime.serving import listen, stop_serving

log = structlog.get_logger()

MAX_BODY: Final = 8 * 1024 * 1024


class Reviewer(Protocol):
    """What answers admission reviews."""

    @property
    def paths(self) -> Sequence[str]:
        """The paths to which reviews are posted."""
        ...

    async def answer(self, path: str, body: bytes) -> bytes:
        """Return the review with its answer; a body that is no review raises :class:`msgspec.DecodeError`."""
        ...


@dataclass(frozen=True)
class ServicePlace:
    """The Service through which the API server reaches the webhooks."""

    name: str
    namespace: str
    port: int = 443


class WebhookServer:
    """Serves admission reviews over HTTPS. Mutable: the certificate may be replaced while it serves."""

    def __init__(
        self,
        admission: Reviewer,
        certificate: ServingCertificate,
        *,
        host: str = "",
        port: int = 0,
        setting: str = "",
        leaving: Callable[[], bool] = lambda: False,
    ) -> None:
        self._admission = admission
        self._context = certificate.context()
        self._host = host or None
        self._leaving = leaving
        self._port = port
        self._setting = setting  # what chooses them, for messages

    def present(self, certificate: ServingCertificate) -> None:
        """Present another certificate to new connections; those that exist go on."""
        self._context = certificate.context()

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[int]:
        """Serve for the time of the block, which is given the port."""
        application = web.Application(client_max_size=MAX_BODY)
        for path in self._admission.paths:
            application.router.add_post(path, self._handle)
        runner = web.AppRunner(application, access_log=None)
        await runner.setup()
        listening = self._context
        listening.sni_callback = self._choose  # called for every handshake, whether or not it names a host
        try:
            await listen(runner, self._host, self._port, setting=self._setting, tls=listening)
            port: int = runner.addresses[0][1]
            log.info("webhooks served", port=port)
            yield port
        finally:
            await stop_serving(runner)

    def _choose(self, connection: ssl.SSLObject, name: str | None, listening: ssl.SSLContext) -> None:
        connection.context = self._context

    async def _handle(self, request: web.Request) -> web.Response:
        try:
            answer = await self._admission.answer(request.path, await request.read())
        except msgspec.DecodeError as error:
            return web.Response(status=400, text=f"not an AdmissionReview: {error}")
        response = web.Response(body=answer, content_type="application/json")
        if self._leaving():
            response.force_close()  # the next request connects anew, to a replica that stays
        return response


def certificate_in(directory: Path) -> ServingCertificate:
    """Read a certificate that another program provides."""
    authority = directory / "ca.crt"
    return ServingCertificate(
        authority.read_bytes() if authority.exists() else b"",
        (directory / "tls.crt").read_bytes(),
        (directory / "tls.key").read_bytes(),
    )
