"""Heartbeats of a whole fleet: a Lease per node, renewed in small groups spread evenly over the interval.

The renewals of one group share one body, so a renewal costs the request and nothing else. A node's status is written
again, more rarely, when its turn comes round.
"""

from collections.abc import Mapping
from datetime import timedelta

import structlog

from spinney.api.coordination import LEASE
from spinney.api.core import NAMESPACE, NODE
from spinney.api.struct import encode
from spinney.api.time import micro_timestamp
from spinney.kube.client import Client, PatchKind
from spinney.kube.errors import KubeError, NotFound
from spinney.kube.reconciling import create_once, write_each
from spinney.nodes.node import Health, SimulatedNode, node_conditions
from spinney.nodes.spec import Heartbeats
from spinney.runtime import Runtime

log = structlog.get_logger()

LEASE_NAMESPACE = "kube-node-lease"

_SHORTEST_PAUSE = 0.1  # seconds between two groups
_CONCURRENCY = 16
_LEASE_LIVES = 4  # a lease outlives this many intervals, as a kubelet's does


class Heart:
    """Keeps the leases and the status of a fleet's nodes fresh. Reads the fleet's nodes; owns nothing but time."""

    def __init__(
        self, client: Client, nodes: Mapping[str, SimulatedNode], heartbeats: Heartbeats, runtime: Runtime
    ) -> None:
        self._client = client
        self._nodes = nodes
        self._interval = heartbeats.lease_seconds
        self._status_interval = timedelta(seconds=heartbeats.status_seconds)
        self._runtime = runtime
        self._status_written = {name: runtime.clock.now() for name in nodes}
        self._turn = 0

    async def create_lease(self, node: SimulatedNode) -> None:
        """Give a node its lease, unless it has one from before or heartbeats are off."""
        if not self._interval:
            return
        now = self._runtime.clock.now()
        self._status_written[node.name] = now
        lease = {
            "metadata": {"name": node.name, "namespace": LEASE_NAMESPACE},
            "spec": {
                "holderIdentity": node.name,
                "leaseDurationSeconds": max(1, round(self._interval * _LEASE_LIVES)),
                "renewTime": micro_timestamp(now),
            },
        }
        try:
            await create_once(self._client, LEASE, lease)
        except NotFound:
            await create_once(self._client, NAMESPACE, {"metadata": {"name": LEASE_NAMESPACE}})
            await create_once(self._client, LEASE, lease)

    async def run(self) -> None:
        """Beat until cancelled; with an interval of 0, never."""
        if not self._interval:
            return
        clock = self._runtime.clock
        due = clock.monotonic()
        while True:
            turns = max(1, min(len(self._nodes), int(self._interval / _SHORTEST_PAUSE)))
            # From turn to turn, not from the end of one to the next, or a slow server would stretch the interval; but
            # what a stalled process missed is not made up for.
            due = max(due + self._interval / turns, clock.monotonic() - self._interval)
            await clock.sleep(max(0.0, due - clock.monotonic()))
            self._turn = (self._turn + 1) % turns
            names = list(self._nodes)[self._turn :: turns]
            await self._beat(
                [self._nodes[name] for name in names if self._nodes[name].health is not Health.UNREACHABLE]
            )

    async def _beat(self, nodes: list[SimulatedNode]) -> None:
        body = encode({"spec": {"renewTime": micro_timestamp(self._runtime.clock.now())}})

        async def beat(node: SimulatedNode) -> None:
            try:
                await self._renew(node, body)
                await self._write_status_if_due(node)
            except KubeError as error:
                log.warning("heartbeat failed", node=node.name, error=str(error))

        await write_each(nodes, beat, at_once=_CONCURRENCY)

    async def _renew(self, node: SimulatedNode, body: bytes) -> None:
        try:
            await self._client.raw(
                "PATCH",
                LEASE.path(LEASE_NAMESPACE, node.name),
                body=body,
                headers={"content-type": PatchKind.MERGE.value},
            )
        except NotFound:
            await self.create_lease(node)

    async def _write_status_if_due(self, node: SimulatedNode) -> None:
        now = self._runtime.clock.now()
        if not self._status_interval or now - self._status_written[node.name] < self._status_interval:
            return
        self._status_written[node.name] = now
        patch = {"status": {"conditions": node_conditions(node, now=now)}}
        await self._client.patch(NODE, node.name, patch, kind=PatchKind.STRATEGIC, subresource="status")
