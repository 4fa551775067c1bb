"""The backend and the stage of every scenario."""

import pytest

from tests.conftest import Cluster
from tests.e2e.backends import RUNNING, Backend
from tests.e2e.harness import Stages


@pytest.fixture(params=["embedded"])
def cluster_name(request: pytest.FixtureRequest) -> str:
    """Scenarios run on the embedded cluster; those that are also run on a real one say so."""
    name: str = request.param
    return name


@pytest.fixture(params=RUNNING, ids=str)
def backend(request: pytest.FixtureRequest) -> Backend:
    """Every backend that can run scenarios."""
    row: Backend = request.param
    return row


@pytest.fixture
def a_stage(cluster: Cluster, backend: Backend) -> Stages:
    """Opens the stage of the scenario."""
    return Stages(cluster, backend)
