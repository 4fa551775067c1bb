"""A transport that lets nothing be written without the lease.

Cancelling a leader's tasks is not enough: a process that was suspended wakes up in the middle of one, long after
another took the lease. So each write asks the clock first, and is abandoned when the lease can no longer be relied on.
"""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager

from spinney.kube.client import Client
from spinney.kube.errors import KubeError
from spinney.kube.lease import LeaderElection
from spinney.kube.retrying import SAFE_METHODS
from spinney.kube.transport import Response, StreamingResponse, Transport
from spinney.runtime import Runtime


class NotLeading(KubeError):  # noqa: N818 - named for the situation
    """A write was refused because this process does not hold the lease."""


class FencedTransport:
    """Passes reads on always, and writes only while ``election`` is held; fills the ``Transport`` protocol."""

    def __init__(self, transport: Transport, election: LeaderElection, runtime: Runtime) -> None:
        self._transport = transport
        self._election = election
        self._runtime = runtime

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] = {},
        headers: Mapping[str, str] = {},
        body: bytes | None = None,
        timeout: float | None = None,
    ) -> Response:
        """Send one request; a write has at most until another process could take the lease."""
        if method not in SAFE_METHODS:
            now = self._runtime.clock.monotonic()
            if now >= self._election.held_until:
                lease = f"{self._election.namespace}/{self._election.name}"
                raise NotLeading(f"{method} {path} was not sent: {self._election.identity} does not hold lease {lease}")
            slack = self._election.times.lease_duration - self._election.times.renew_deadline
            remaining = self._election.held_until + slack - now
            timeout = remaining if timeout is None else min(timeout, remaining)
        return await self._transport.request(method, path, query=query, headers=headers, body=body, timeout=timeout)

    def stream(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] = {},
        headers: Mapping[str, str] = {},
        timeout: float | None = None,
    ) -> AbstractAsyncContextManager[StreamingResponse]:
        """Stream a request as the transport behind does."""
        return self._transport.stream(method, path, query=query, headers=headers, timeout=timeout)

    async def close(self) -> None:
        """Close the transport behind."""
        await self._transport.close()


def fenced(client: Client, election: LeaderElection) -> Client:
    """Return a client like ``client`` that writes only while ``election`` is held."""
    return client.over(FencedTransport(client.transport, election, client.runtime))
