"""Whether the API server, as it was told, would trust the webhooks that are served here: found out by asking them.

The configurations are read back from the API server, and each is used as it would use it: a TLS connection that accepts
only the authorities of its ``caBundle`` and only the name of its Service, to this very process.
"""

import asyncio
import base64
import binascii
import ssl
from collections.abc import Mapping
from typing import Final

from spinney.api.resource import Resource
from spinney.api.struct import JSON
from spinney.kube.client import Client
from spinney.kube.errors import Forbidden, NotFound

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
