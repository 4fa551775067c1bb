"""The cluster that commands are tried on, shared by a module's tests."""

from collections.abc import Iterator

import pytest

from tests.cli.clusters import ServedCluster, served_cluster


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedCluster]:
    """An embedded cluster of four nodes with eight GPUs each, two nodes to a rack, over HTTP."""
    with served_cluster(tmp_path_factory.mktemp("served")) as cluster:
        yield cluster
