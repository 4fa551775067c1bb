"""When the scheduling of a group began: noted once for each group, and never many at the same time."""

import asyncio
from contextlib import AbstractAsyncContextManager

import pytest

from spinney.kube.transport import Request, Response, StreamingResponse, Transport
from tests.conftest import Cluster

from .world import a_node, a_world

AT_ONCE = 4
"""Writes at the same time: each more would open a connection, and nobody waits for them."""


class Noting:
    """A transport that notes which starts are written, and how many at the same time."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.starts: list[str] = []
        self.most = 0
        self._under_way = 0

    async def request(self, request: Request) -> Response:
        """Carry a request; one that writes a start takes a while."""
        if b"scheduleStartTime" not in (request.body or b""):
            return await self._inner.request(request)
        self._under_way += 1
        self.most = max(self.most, self._under_way)
        try:
            for _ in range(50):
                await asyncio.sleep(0)
            answer = await self._inner.request(request)
            if answer.status == 200:  # else a newer version of the group was met, and it is written again
                self.starts.append(request.path)
            return answer
        finally:
            self._under_way -= 1

    def stream(self, request: Request) -> AbstractAsyncContextManager[StreamingResponse]:
        return self._inner.stream(request)

    async def close(self) -> None:
        await self._inner.close()


@pytest.mark.parametrize("cluster_name", ["embedded"], indirect=True)
async def test_a_start_is_written_once_and_few_at_a_time(cluster: Cluster) -> None:
    """Members that reach Permit together are one start, and many groups do not open a connection each."""
    async with a_world(cluster) as world:
        noting = world.transport = Noting(world.client.transport)
        await world.nodes(a_node("n1", cpu="64"))
        names = [f"gang-{number}" for number in range(3 * AT_ONCE)]
        for name in names:
            await world.gang(name, 3)
        async with world.scheduling():
            await world.until(lambda: all(world.status(name).schedule_start_time for name in names))
        assert len(noting.starts) == len(set(noting.starts)) == len(names)
        assert noting.most <= AT_ONCE
