"""Hostile requests beside kube-apiserver: every one has the same status, and where it fails the same reason."""

import ssl

import aiohttp
import pytest

from spinney.testing.controlplane import ControlPlane
from tests.server.attacks import STORY
from tests.server.test_under_attack import answered, guarded, node_bound

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


async def test_attacks_are_answered_alike(controlplane: ControlPlane) -> None:
    """Nothing that a real server refuses is accepted, and the other way round."""
    connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=str(controlplane.ca)))
    async with guarded(tls=False) as ours, aiohttp.ClientSession(connector=connector) as session:
        differing: list[tuple[object, ...]] = []
        for step in STORY:
            expected = await answered(session, controlplane.url, controlplane.token, step)
            found = await answered(session, ours.url, ours.token, step)
            for status, body in (expected, found):
                if status != step.status:
                    differing.append((step.about, expected[0], found[0], body.get("message", "")[:300]))
            if found[1].get("reason") != expected[1].get("reason"):
                differing.append((step.about, expected[1].get("reason"), found[1].get("reason"), ""))
        real = await node_bound(session, controlplane.url, controlplane.token)
        assert await node_bound(session, ours.url, ours.token) == real
        assert not differing, "\n".join(map(str, differing))
