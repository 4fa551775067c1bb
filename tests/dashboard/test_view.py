"""While nobody looks at a view few rows are made; whoever comes finds those of the moment."""

import json

from spinney.api.core import Node
from spinney.api.struct import convert
from spinney.dashboard.view import View
from spinney.kube.cache import Change
from spinney.kube.client import Client
from spinney.kube.keys import Key
from spinney.runtime import Runtime
from spinney.server import ApiServer
from spinney.sim.embedded.transport import InProcessTransport


def _nodes_in(view: View) -> list[str]:
    return [row["name"] for row in json.loads(view.state())["nodes"]]


async def test_who_comes_sees_what_happened_while_nobody_looked() -> None:
    """The first viewer has the rows made; for those who come beside them they are made as things change."""
    runtime = Runtime.system()
    view = View(Client(InProcessTransport(ApiServer(runtime)), runtime), source="test")
    for name in ("a", "b"):
        node = convert(Node, {"metadata": {"name": name}, "status": {"allocatable": {"cpu": "8", "pods": "10"}}})
        view.board.take_in(Change(Key("", name), None, node, "1"))
        assert name not in _nodes_in(view)
        with view.seen():
            assert name in _nodes_in(view)
            with view.seen():
                assert name in _nodes_in(view)
    assert _nodes_in(view) == ["a", "b"]
