"""The picture shows racks, GPUs in the colour of their gang, queues beside them, and what happened last."""

import io

from rich.console import Console

from spinney.api.core import Node, Pod
from spinney.api.kai import Queue
from spinney.api.struct import convert
from spinney.cli.picture import Scene, draw
from spinney.cli.shares import queue_shares
from tests.cli.pictures import a_node, a_pod, a_queue


def _drawn(scene: Scene, width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    with console.capture() as captured:
        console.print(draw(scene))
    return captured.get().splitlines()


def _scene() -> Scene:
    nodes = [convert(Node, a_node(f"gpu-{index}", rack=f"rack-{index // 2}")) for index in range(4)]
    pods = [
        convert(Pod, a_pod("train-0", gang="train", queue="team", node="gpu-1", gpus=3)),
        convert(Pod, a_pod("wait-0", gang="wait", queue="team", gpus=2)),
    ]
    queues = [convert(Queue, a_queue("company", 16)), convert(Queue, a_queue("team", 4, parent="company"))]
    return Scene(nodes=nodes, pods=pods, queues=queue_shares(queues, pods), event="Scheduled Pod train-0: to gpu-1")


def test_queues_are_drawn_beside_the_racks() -> None:
    """On a wide screen the first lines have a rack on the left and the queues on the right."""
    lines = _drawn(_scene(), 100)

    assert "rack-0" in lines[0]
    assert "queue" in lines[0]
    assert "company" in lines[1]
    assert "  team" in lines[2]


def test_a_narrow_screen_has_them_below() -> None:
    """On a narrow screen no line has both, and none is wider than the screen."""
    lines = _drawn(_scene(), 60)

    assert not any("rack-" in line and "queue" in line for line in lines)
    assert any("company" in line for line in lines)
    assert max(map(len, lines)) <= 60


def test_a_small_screen_leaves_out_what_names_share() -> None:
    """Where there is little room nodes are told apart by what their names differ in."""
    assert any("│ 1 ■■■·····" in line for line in _drawn(_scene(), 60))


def test_a_queue_holds_what_its_pods_and_children_hold() -> None:
    """Bound pods count as held, pending ones as waiting, both also for the queues above."""
    shares = {share.name: share for share in _scene().queues}

    assert (shares["team"].held, shares["team"].waiting, shares["team"].quota) == (3, 2, 4)
    assert (shares["company"].held, shares["company"].waiting) == (3, 2)
    assert (shares["company"].depth, shares["team"].depth) == (0, 1)


def test_queues_in_a_circle_are_counted_once() -> None:
    """Queues that name each other as parents do not hang the picture."""
    pods = [convert(Pod, a_pod("p", gang="g", queue="a", node="n", gpus=1))]
    queues = [convert(Queue, a_queue("a", 1, parent="b")), convert(Queue, a_queue("b", 1, parent="a"))]

    assert queue_shares(queues, pods) == []


def test_a_gpu_in_use_is_a_cell() -> None:
    """A node's line has a filled cell per GPU in use and an empty one per free GPU."""
    assert any("gpu-1 ■■■·····" in line for line in _drawn(_scene(), 100))


def test_the_last_event_is_the_last_line() -> None:
    """What happened last is one line at the end, cut to the screen."""
    assert _drawn(_scene(), 100)[-1].startswith("Scheduled Pod train-0")
