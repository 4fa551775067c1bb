"""A transport that lets nothing be written without the lease.

Cancelling a leader's tasks is not enough: a process that was suspended wakes up in the middle of one, long after
another took the lease. So each write asks the clock first, and is abandoned when the lease can no longer be relied on.
"""

import msgspec

from spinney.kube.client import Client
from spinney.kube.errors import KubeError
from spinney.kube.guarding import GuardedTransport
from spinney.kube.lease import LeaderElection
from spinney.kube.transport import Request, Transport
from spinney.runtime import Runtime


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
