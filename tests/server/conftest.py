"""What the tests of this room share."""

import pytest

from tests.server.api import Api, an_api


@pytest.fixture
async def api() -> Api:
    """An embedded server as it is without options."""
    return an_api()
