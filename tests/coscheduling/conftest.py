"""What the tests of this room share."""

from collections.abc import AsyncIterator

import pytest

from tests.conftest import Cluster

from .bench import Bench
from .world import World, a_world


@pytest.fixture
async def bench(cluster_name: str) -> Bench:
    """A scheduler without an API server; modules that use it confine ``cluster_name`` to virtual time."""
    return Bench()


@pytest.fixture
async def world(cluster: Cluster) -> AsyncIterator[World]:
    """The test's cluster with a coscheduler on it."""
    async with a_world(cluster) as world, world.scheduling():
        yield world
