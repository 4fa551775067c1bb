"""The pytest fixture ``kube_api``: a Kubernetes API of its own for each test.

pytest imports this module wherever Spinney is installed, so it imports nothing until a test asks for the fixture.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from spinney.testing.kube_api import KubeApi

_MARKER = "kube_api(nodes=0, **options): what the fixture kube_api of this test is: nodes, and fields of ServerOptions"


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker."""
    config.addinivalue_line("markers", _MARKER)


@pytest.fixture
def kube_api(request: pytest.FixtureRequest) -> "Iterator[KubeApi]":
    """A Kubernetes API that nobody else uses; ``@pytest.mark.kube_api(nodes=4)`` brings simulated nodes."""
    from spinney.server import ServerOptions  # noqa: PLC0415 - tests without it do not pay for it
    from spinney.testing.kube_api import KubeApi  # noqa: PLC0415

    marker = request.node.get_closest_marker("kube_api")
    nodes, options = 0, {}
    if marker is not None:
        options = {**marker.kwargs}
        nodes = options.pop("nodes", 0)
    with KubeApi(nodes=nodes, options=ServerOptions(**options)) as api:
        yield api
