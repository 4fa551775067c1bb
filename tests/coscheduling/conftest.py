"""What the tests of this room share."""

import pytest

from .bench import Bench


@pytest.fixture
async def bench(cluster_name: str) -> Bench:
    """A scheduler without an API server; modules that use it confine ``cluster_name`` to virtual time."""
    return Bench()
