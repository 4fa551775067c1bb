"""The picture shows racks, GPUs in the colour of their gang, queues beside them, and what happened last."""

import io

from rich.console import Console

from spinney.api.core import Node, Pod
from spinney.api.kai import Queue
from spinney.api.struct import convert
from spinney.cli.pictures.picture import Picture, Scene
from spinney.cli.pictures.shares import queue_shares, uses_of
from tests.cli.pictures import a_node, a_pod, a_queue


def _drawn(scene: Scene, width: int, height: int | None = None) -> list[str]:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    with console.capture() as captured:
        console.print(Picture(scene, height=height), end="")
    return captured.get().splitlines()


def _scene() -> Scene:
    nodes = [convert(Node, a_node(f"gpu-{index}", rack=f"rack-{index // 2}")) for index in range(4)]
    pods = [
        convert(Pod, a_pod("train-0", gang="train", queue="team", node="gpu-1", gpus=3)),
        convert(Pod, a_pod("wait-0", gang="wait", queue="team", gpus=2)),
    ]
    queues = [convert(Queue, a_queue("company", 16)), convert(Queue, a_queue("team", 4, parent="company"))]
    return Scene(
        nodes=nodes, pods=pods, queues=queue_shares(queues, uses_of(pods)), event="Scheduled Pod train-0: to gpu-1"
    )


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
    assert any("│ 1 AAA·····" in line for line in _drawn(_scene(), 60))


def _demo(gangs: int = 5) -> Scene:
    """The demo's cluster: eight racks of four nodes, some gangs on it and one that waits."""
    nodes = [convert(Node, a_node(f"gpu-{index:03}", rack=f"rack-{index // 4}")) for index in range(32)]
    pods = [
        convert(Pod, a_pod(f"g{at}-0", gang=f"g{at}", queue="team", node=f"gpu-{at:03}", gpus=8)) for at in range(gangs)
    ]
    waiting = convert(Pod, a_pod("z-0", gang="z", queue="team", gpus=8))
    members = [*(f"g{at}" for at in range(gangs)), "z"]
    queues = [convert(Queue, a_queue("company", 256)), convert(Queue, a_queue("team", 96, parent="company"))]
    shares = queue_shares(queues, uses_of([*pods, waiting]))
    return Scene(nodes=nodes, pods=[*pods, waiting], gangs=members, queues=shares, event="Scheduled Pod g0-0: to gpu-0")


def test_the_demo_leaves_room_for_text_on_a_small_terminal() -> None:
    """On 80 by 24 characters all racks, queues and gangs take 14 lines, and the rest is for what is said."""
    lines = _drawn(_demo(), 80, height=14)

    assert len(lines) <= 14
    assert max(map(len, lines)) <= 80
    assert lines[0].count("rack-") == 8
    assert sum(line.count(letter) for line in lines if line.startswith("│") for letter in "ABCDE") == 5 * 8
    assert any("z " in line and "0/1" in line for line in lines)
    assert lines[-1].startswith("Scheduled Pod")


def test_gangs_that_wait_are_not_left_out() -> None:
    """Where not all gangs can be listed, those that wait are, and the others are counted."""
    lines = _drawn(_demo(gangs=30), 80, height=14)

    assert any("E z" in line and "0/1" in line for line in lines)  # the 31st letter
    assert any("more" in line for line in lines)


def test_thousands_of_nodes_make_one_screen() -> None:
    """A large cluster has a line per rack and a cell per node, and what does not fit is counted."""
    nodes = [convert(Node, a_node(f"gpu-{index:04}", rack=f"rack-{index // 16:03}")) for index in range(2000)]
    pods = [
        convert(Pod, a_pod(f"p-{index}", gang="g", queue="q", node=f"gpu-{index:04}", gpus=8)) for index in range(8)
    ]
    scene = Scene(nodes=nodes, pods=pods, gangs=["g"])
    wide, small = _drawn(scene, 200, height=59), _drawn(scene, 80, height=23)

    assert len(wide) <= 59
    assert "rack-000 AAAAAAAA········" in wide[0]
    assert sum(line.count("rack-") for line in wide) == 125
    assert len(small) <= 23
    assert any("more racks" in line for line in small)


def test_no_line_ends_with_blanks() -> None:
    """What is printed can be pasted: nothing is filled up to the width of the screen."""
    assert all(line == line.rstrip() for width in (60, 80, 100, 200) for line in _drawn(_demo(), width))


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

    assert queue_shares(queues, uses_of(pods)) == []


def test_a_gpu_in_use_is_a_cell() -> None:
    """A node's line has a filled cell per GPU in use and an empty one per free GPU."""
    assert any("gpu-1 AAA·····" in line for line in _drawn(_scene(), 100))


def test_colours_take_the_place_of_letters() -> None:
    """On a terminal with colours cells are squares in the colour of their gang; with NO_COLOR they have its letter."""

    def shown(*, no_color: bool) -> str:
        console = Console(
            file=io.StringIO(), width=100, force_terminal=True, color_system="standard", no_color=no_color
        )
        with console.capture() as captured:
            console.print(Picture(_scene()))
        return captured.get()

    assert "■" in shown(no_color=False)
    assert "■" not in shown(no_color=True)
    assert "AAA" in shown(no_color=True)


def test_the_last_event_is_the_last_line() -> None:
    """What happened last is one line at the end, cut to the screen."""
    assert _drawn(_scene(), 100)[-1].startswith("Scheduled Pod train-0")
