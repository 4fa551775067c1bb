"""Rows follow watch events: who holds which cells, what is reserved, cordoned or failed, and what is gone."""

import random
from datetime import UTC, datetime, timedelta
from typing import Any

from spinney.api.core import NODE, POD, Node, Pod
from spinney.api.events import Event, ObjectReference
from spinney.api.podgang import POD_GANG, PodGang
from spinney.api.resource import Resource
from spinney.api.struct import JSON, convert
from spinney.dashboard.board import Board
from spinney.dashboard.history import GANGS, MOMENTS, SAMPLES, ShownHistory
from spinney.dashboard.rows import Delta, Held, NodeRow, QueueRow
from spinney.gangs.tree import GangKey
from spinney.kube.cache import Change
from spinney.kube.keys import Key
from spinney.runtime import InlineExecutor, Runtime
from spinney.sim.engine import SteppedClock
from spinney.sim.overview.queue_table import QueueLine, Share

KINDS: dict[Resource, type[Any]] = {NODE: Node, POD: Pod, POD_GANG: PodGang}
GANG = "podgang/default/train"
A_RUNTIME = Runtime(SteppedClock(datetime(2026, 1, 1, tzinfo=UTC)), random.Random(0), InlineExecutor())


def a_board() -> Board:
    """Return a board of two nodes of four GPUs in two racks, with a gang that has no pods yet."""
    board = Board(A_RUNTIME)
    for number in (0, 1):
        see(board, NODE, a_node(number))
    see(board, POD_GANG, {"metadata": {"name": "train", "namespace": "default"}, "spec": {"podgroups": []}})
    return board


def a_node(number: int, *, gpus: int = 4, ready: str = "True", **spec: Any) -> JSON:
    room = {"cpu": "8", "memory": "8Gi", "pods": "10", **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    labels = {"topology.kubernetes.io/rack": f"rack-{number}"}
    status = {"allocatable": room, "conditions": [{"type": "Ready", "status": ready}]}
    return {"metadata": {"name": f"n{number}", "labels": labels}, "spec": spec, "status": status}


def a_pod(
    name: str, *, node: str = "", gpus: int = 2, cpu: str = "1", nominated: str = "", gang: str = "train"
) -> JSON:
    requests = {"cpu": cpu, **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    labels = {"grove.io/podgang": gang, "grove.io/podclique": gang} if gang else {}
    return {
        "metadata": {"name": name, "namespace": "default", "uid": name, "labels": labels},
        "spec": {"nodeName": node, "containers": [{"name": "main", "resources": {"requests": requests}}]},
        "status": {"phase": "Running" if node else "Pending", "nominatedNodeName": nominated},
    }


def see(board: Board, kind: Resource, found: JSON, *, gone: bool = False) -> None:
    """Have the board hear of an object that changed or went."""
    made = convert(KINDS[kind], {"apiVersion": kind.api_version, "kind": kind.kind, **found})
    key = Key(made.metadata.namespace, made.metadata.name)
    board.take_in(Change(key, made if gone else None, None if gone else made, "1"))


def nodes(delta: Delta) -> dict[str, NodeRow]:
    """Return the nodes of a change by name."""
    return {row.name: row for row in delta.nodes}


def test_a_node_shows_who_holds_it_and_who_was_promised_the_rest() -> None:
    """What a pod holds and what another is nominated for are told apart, within the cells there are."""
    board = a_board()
    see(board, POD, a_pod("one", node="n0"))
    see(board, POD, a_pod("two", nominated="n0", gpus=4))

    row = nodes(board.delta())["n0"]

    assert row.path == ("rack-0",)
    assert row.cells == 4
    assert row.held == (
        Held(gang=GANG, queue="default-queue", cells=2),
        Held(gang=GANG, queue="default-queue", cells=2, reserved=True),
    )


def test_a_promise_ends_when_it_is_kept_or_given_up() -> None:
    """A pod that was bound elsewhere, and one that is gone, reserve nothing."""
    board = a_board()
    see(board, POD, a_pod("one", nominated="n0"))
    board.delta()
    see(board, POD, a_pod("one", node="n1"))

    changed = nodes(board.delta())

    assert changed["n0"].held == ()
    assert changed["n1"].held == (Held(gang=GANG, queue="default-queue", cells=2),)


def test_cordoned_and_failed_nodes_say_why() -> None:
    """A node that takes no pods is cordoned, one that does not answer has failed."""
    board = a_board()
    see(board, NODE, a_node(0, unschedulable=True))
    see(board, NODE, a_node(1, ready="Unknown"))

    changed = nodes(board.delta())

    assert (changed["n0"].state, changed["n1"].state) == ("cordoned", "failed")
    assert changed["n1"].why == "Ready is Unknown"


def test_only_what_differs_is_told_and_what_went_is_named() -> None:
    """A change that shows nothing new makes no event; a node and a gang that are gone are named."""
    board = a_board()
    see(board, POD, a_pod("one", node="n0"))
    board.delta()
    see(board, POD, a_pod("one", node="n0"))
    assert not board.delta(queues=False)

    see(board, POD, a_pod("one", node="n0"), gone=True)
    see(board, NODE, a_node(1), gone=True)
    see(board, POD_GANG, {"metadata": {"name": "train", "namespace": "default"}}, gone=True)
    delta = board.delta(queues=False)

    assert [row.name for row in delta.nodes] == ["n0"]
    assert (delta.gone_nodes, delta.gone_gangs) == (("n1",), (GANG,))


def test_a_gang_says_that_a_node_of_it_is_gone_and_no_longer_when_it_is_back() -> None:
    """Its pods do not change with that: the server takes them away later, or never."""
    board = a_board()
    see(board, POD, a_pod("one", node="n1"))
    told = []
    for gone in (False, True, False):
        see(board, NODE, a_node(1), gone=gone)
        told += [row.reason for row in board.delta().gangs]

    assert told == ["", "the node n1 does not exist: nothing runs its pods until it is back", ""]


def test_without_gpus_a_cell_is_an_eighth_of_the_cpu() -> None:
    """Whoever asks for any CPU has at least a part of a cell."""
    board = Board(A_RUNTIME)
    see(board, NODE, a_node(0, gpus=0))
    see(board, POD, a_pod("one", node="n0", gpus=0, cpu="2500m", gang=""))

    row = nodes(board.delta())["n0"]

    assert board.unit == "CPU"
    assert row.cells == 8
    assert row.held == (Held(queue="default-queue", cells=3),)


def test_a_node_without_labels_is_shown() -> None:
    """A node that is in no rack has a place of its own."""
    board = a_board()
    see(board, NODE, {"metadata": {"name": "bare"}, "status": {"allocatable": {"cpu": "1"}}})

    assert nodes(board.delta())["bare"].path == ("",)


def test_history_is_bounded() -> None:
    """However long the dashboard runs, it remembers the newest gangs, moments and samples."""
    clock = SteppedClock(datetime(2026, 1, 1, tzinfo=UTC))
    history = ShownHistory(clock)
    share = Share(quota="8", limit="unlimited", fair_share="unlimited", allocated="4", requested="6")
    rows = [QueueRow(line=QueueLine(name="q", shares={"nvidia.com/gpu": share}))]
    for number in range(max(GANGS, SAMPLES) + 5):
        history.state(GangKey("podgang", "default", f"g{number}"), "running", clock.now())
        history.sample_queues(rows)
        clock.move_to(clock.now() + timedelta(seconds=10))
    newest = GangKey("podgang", "default", f"g{max(GANGS, SAMPLES) + 4}")
    for number in range(MOMENTS + 5):
        history.state(newest, f"state-{number}", clock.now())

    assert history.moments(GangKey("podgang", "default", "g0")) == ()
    assert len(history.moments(newest)) == MOMENTS
    assert len(history.samples()["q"]) == SAMPLES
    assert history.samples()["q"][-1].fair_share is None


def test_an_eviction_is_told_with_who_did_it_and_for_whom() -> None:
    """An event about a pod that is already gone still reaches its gang's story, once."""
    history = ShownHistory(SteppedClock(datetime(2026, 1, 1, tzinfo=UTC)))
    key = GangKey("podgang", "default", "train")
    event = Event(
        reason="Evict",
        message="Preempted for default/urgent",
        involved_object=ObjectReference(kind="Pod", name="train-0"),
        reporting_component="spinney-scheduler",
        last_timestamp=datetime(2026, 1, 1, 0, 0, 5, tzinfo=UTC),
    )
    for _ in range(2):
        history.evicted(key, event)

    (moment,) = history.moments(key)
    assert (moment.what, moment.by) == ("evicted", "spinney-scheduler")
    assert moment.text == "train-0: Preempted for default/urgent"


def test_events_about_one_eviction_of_many_pods_are_one_moment() -> None:
    """Hundreds of pods that go together are told of once, so that what happened before stays in the story."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    history = ShownHistory(SteppedClock(at))
    key = GangKey("podgang", "default", "g")
    history.state(key, "running", at - timedelta(hours=1))
    for number in [*range(300), 7]:
        pod = ObjectReference(kind="Pod", namespace="default", name=f"g-{number}")
        moment = at + timedelta(seconds=number // 16)
        history.evicted(key, Event(involved_object=pod, message="made way", last_timestamp=moment))
    later = at + timedelta(hours=1)
    first = ObjectReference(kind="Pod", namespace="default", name="g-0")
    history.evicted(key, Event(involved_object=first, message="made way", last_timestamp=later))

    told = [(each.at, each.what, each.text) for each in history.moments(key)]

    assert told == [
        (at - timedelta(hours=1), "running", ""),
        (at, "evicted", "g-0 and 299 more pods: made way"),
        (later, "evicted", "g-0: made way"),
    ]
