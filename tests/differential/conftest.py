"""The stock kube-scheduler, running for the time of a module."""

from collections.abc import AsyncIterator, Iterator

import pytest

from spinney.testing.controlplane import ControlPlane
from tests.cluster.filters.worlds import NAMESPACES

from .stock import PROFILE, StockScheduler


@pytest.fixture(scope="module")
def kube_scheduler(controlplane: ControlPlane) -> Iterator[ControlPlane]:
    """A control plane whose kube-scheduler serves the profile ``stock``, with its defaults."""
    with controlplane.scheduler({"profiles": [{"schedulerName": PROFILE}]}):
        yield controlplane


@pytest.fixture
async def stock(kube_scheduler: ControlPlane) -> AsyncIterator[StockScheduler]:
    """An empty cluster of that scheduler."""
    async with StockScheduler.on(kube_scheduler, NAMESPACES) as stock:
        yield stock
