"""Reaching webhooks: over HTTPS, or whatever carries calls in a simulation."""

import base64
import binascii
import ssl
from collections.abc import Mapping
from typing import Any, Protocol

import aiohttp

from spinney.api.struct import JSON


class CallFailed(Exception):
    """A webhook did not answer."""


class WebhookCaller(Protocol):
    """Carries an AdmissionReview to a webhook and brings its answer."""

    async def call(self, client: JSON, body: bytes, timeout: float) -> bytes:
        """POST ``body`` to where ``client`` (a webhook's ``clientConfig``) points; raise :class:`CallFailed`."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...


class HttpsCaller:
    """Calls webhooks over HTTPS. There is no cluster network: services are reached at the addresses it is given."""

    def __init__(self, service_addresses: Mapping[str, str]) -> None:
        self._addresses = service_addresses
        self._session: aiohttp.ClientSession | None = None
        self._contexts: dict[str, ssl.SSLContext] = {}

    async def call(self, client: JSON, body: bytes, timeout: float) -> bytes:
        """POST ``body`` and return the answer."""
        url, name = self._place(client)
        if self._session is None:
            self._session = aiohttp.ClientSession()
        options: dict[str, Any] = {"server_hostname": name} if name else {}
        try:
            async with self._session.post(
                url,
                data=body,
                headers={"content-type": "application/json", "accept": "application/json"},
                ssl=self._context(client.get("caBundle", "")),
                timeout=aiohttp.ClientTimeout(total=timeout),
                allow_redirects=False,
                **options,
            ) as response:
                answer = await response.read()
                if response.status != 200:
                    raise CallFailed(f"{url} answered with status {response.status}")
                return answer
        except TimeoutError as error:
            raise CallFailed(f"{url} did not answer within {timeout:g} seconds") from error
        except (aiohttp.ClientError, ssl.SSLError, OSError) as error:
            raise CallFailed(f"{url} cannot be reached: {error}") from error

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _place(self, client: JSON) -> tuple[str, str]:
        """Return the URL of a webhook, and the host name its certificate must have if that is another one."""
        if client.get("url"):
            return str(client["url"]), ""
        service = client.get("service") or {}
        namespace, name = service.get("namespace", ""), service.get("name", "")
        address = self._addresses.get(f"{namespace}/{name}")
        if address is None:
            raise CallFailed(
                f"service {namespace}/{name} has no address here: the embedded cluster has no network;"
                f" give the server service_addresses={{'{namespace}/{name}': 'host:port'}}"
            )
        path = str(service.get("path") or "/").lstrip("/")
        return f"https://{address}/{path}", f"{name}.{namespace}.svc"

    def _context(self, bundle: str) -> ssl.SSLContext:
        context = self._contexts.get(bundle)
        if context is None:
            try:
                authority = base64.b64decode(bundle, validate=True).decode() if bundle else None
                context = ssl.create_default_context(cadata=authority)
            except (binascii.Error, UnicodeDecodeError, ssl.SSLError) as error:
                raise CallFailed(f"its caBundle cannot be used: {error}") from error
            self._contexts[bundle] = context
        return context
