"""The scheduler that a backend was made for, on the real control plane of a scenario."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from spinney.api import kai, volcano
from spinney.api.schema.crd import manifests
from spinney.api.struct import JSON
from spinney.testing.peers import KAI, VOLCANO, Peer, PeerMissing, crds, install, running
from spinney.testing.peers.recipes import KAI_PARENT_QUEUE, a_kai_queue
from tests.conftest import Cluster
from tests.e2e.workloads.parts import QUEUE

_OPEN_WITHIN = 180.0  # seconds in which Volcano's controller opens a queue on a busy machine


def crds_beside(peer: Peer) -> list[JSON]:
    """Return the CRDs that Spinney brings along where a peer has brought its own."""
    theirs = {crd["metadata"]["name"] for crd in crds(peer)}
    return [crd for crd in manifests() if crd["metadata"]["name"] not in theirs]


@asynccontextmanager
async def serving(peer: Peer, cluster: Cluster) -> AsyncIterator[None]:
    """Install a peer and run it for the time of the block; a machine on which it is not built skips the test."""
    assert cluster.plane is not None
    try:
        await install(peer, cluster.client)
    except PeerMissing as missing:
        pytest.skip(f"NO PEER: {missing}")
    if peer is KAI:
        await cluster.client.apply(kai.QUEUE, a_kai_queue(QUEUE, KAI_PARENT_QUEUE))
    with running(peer, cluster.plane.kubeconfig, cluster.plane.directory) as programs:
        if peer is VOLCANO:
            await _until_open(cluster)
        try:
            yield
        except BaseException:
            print(programs.logs())  # noqa: T201 - pytest shows it with the failure
            raise
        programs.check()


async def _until_open(cluster: Cluster) -> None:
    """Wait until Volcano's controller has opened the default queue, as a set that names it is refused before that."""
    selector = f"metadata.name={volcano.DEFAULT_QUEUE}"
    async with asyncio.timeout(_OPEN_WITHIN):
        listing = await cluster.client.list(volcano.QUEUE, field_selector=selector)  # tried again until it is served
        if any(map(_is_open, listing.items)):
            return
        version = listing.resource_version
        async for event in cluster.client.watch(volcano.QUEUE, field_selector=selector, resource_version=version):
            if _is_open(event.object):
                return
    raise AssertionError(f"the watch of queue {volcano.DEFAULT_QUEUE} ended before Volcano had opened it")


def _is_open(queue: JSON) -> bool:
    return bool(queue.get("status", {}).get("state") == "Open")
