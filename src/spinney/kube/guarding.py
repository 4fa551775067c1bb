"""Transports that ask before they write: one that may never, and one that may only with the lease.

Cancelling a leader's tasks is not enough: a process that was suspended wakes up in the middle of one, long after
another took the lease. So each write asks the clock first, and is abandoned when the lease can no longer be relied on.
"""

from abc import ABC, abstractmethod
from contextlib import AbstractAsyncContextManager

import msgspec

from spinney.kube.client import Client
from spinney.kube.errors import KubeError
from spinney.kube.lease import LeaderElection
from spinney.kube.retrying import SAFE_METHODS
from spinney.kube.transport import Request, Response, StreamingResponse, Transport
from spinney.runtime import Runtime


class GuardedTransport(ABC):
    """Passes reads on always and writes only as ``admit`` allows; fills the ``Transport`` protocol."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    @abstractmethod
    def admit(self, request: Request) -> Request:
        """Return a write as it may be sent, or raise because it may not."""

    async def request(self, request: Request) -> Response:
        """Send one request, a write only when it is admitted. A dry run writes nothing."""
        writes = request.method not in SAFE_METHODS and "dryRun" not in request.query
        return await self._transport.request(self.admit(request) if writes else request)

    def stream(self, request: Request) -> AbstractAsyncContextManager[StreamingResponse]:
        """Stream one request, a write only when it is admitted."""
        return self._transport.stream(request if request.method in SAFE_METHODS else self.admit(request))

    async def close(self) -> None:
        """Close the transport behind."""
        await self._transport.close()


class WriteRefused(KubeError):
    """Something tried to write through a read-only transport; a bug of the caller."""


class ReadOnlyTransport(GuardedTransport):
    """Passes reads on and refuses everything else."""

    def admit(self, request: Request) -> Request:
        """Refuse."""
        raise WriteRefused(f"{request} was not sent: this process only reads")


class NotLeading(KubeError):
    """A write was refused because this process does not hold the lease."""


class FencedTransport(GuardedTransport):
    """Passes reads on always, and writes only while ``election`` is held."""

    def __init__(self, transport: Transport, election: LeaderElection, runtime: Runtime) -> None:
        super().__init__(transport)
        self._election = election
        self._runtime = runtime

    def admit(self, request: Request) -> Request:
        """Give a write at most until another process could take the lease."""
        now = self._runtime.clock.monotonic()
        if now >= self._election.held_until:
            lease = f"{self._election.namespace}/{self._election.name}"
            raise NotLeading(f"{request} was not sent: {self._election.identity} does not hold lease {lease}")
        slack = self._election.times.lease_duration - self._election.times.renew_deadline
        remaining = self._election.held_until + slack - now
        allowed = remaining if request.timeout is None else min(request.timeout, remaining)
        return msgspec.structs.replace(request, timeout=allowed)


def fenced(client: Client, election: LeaderElection) -> Client:
    """Return a client like ``client`` that writes only while ``election`` is held."""
    return client.over(FencedTransport(client.transport, election, client.runtime))
