"""The same requests to the embedded server and to kube-apiserver: clients cannot tell the answers apart.

What is compared is said in :mod:`tests.fidelity.pair`; what is known to differ, and why, in the documentation.
"""

import json
from collections.abc import AsyncIterator

import pytest

from spinney.testing.controlplane import ControlPlane
from tests.fidelity.exchanges import DEFINITION, GEARS, STORIES, Exchange
from tests.fidelity.kinds import KIND_STORIES
from tests.fidelity.manifests import MANIFEST_STORIES
from tests.fidelity.pair import Pair, paired

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

_STORIES = {**STORIES, **KIND_STORIES, **MANIFEST_STORIES}


@pytest.fixture
async def pair(controlplane: ControlPlane) -> AsyncIterator[Pair]:
    """Both servers, with a namespace for this test."""
    async with paired(controlplane) as pair:
        yield pair


@pytest.mark.parametrize("story", _STORIES)
async def test_answers_are_the_same(pair: Pair, story: str) -> None:
    """Every request of a story is answered alike by both servers."""
    if story == "custom resources":
        await pair.ask(DEFINITION)
        await pair.until(Exchange("GET", GEARS))
    differing = []
    for exchange in _STORIES[story]:
        real, ours = await pair.ask(exchange)
        if exchange.known and real == ours:
            differing.append(f"{exchange}\n  is said to differ ({exchange.known}) and does not: {json.dumps(ours)}")
        if real != ours and not exchange.known:
            differing.append(f"{exchange}\n  real: {json.dumps(real)}\n  ours: {json.dumps(ours)}")
    assert not differing, "\n".join(differing)
