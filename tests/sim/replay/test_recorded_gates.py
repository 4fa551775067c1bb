"""A pod of a recording arrives when its last scheduling gate opens: before, no scheduler may place it."""

from pathlib import Path

from spinney.sim.replay.reading import Wanted, read_trace
from tests.sim.replay.building import told
from tests.sim.replay.recordings import BEGIN, a_group, a_node, a_pod, replay_of, taken

GATE = [{"name": "example.com/quota"}]


def test_a_gated_pod_arrives_when_its_gate_opens(tmp_path: Path) -> None:
    """It arrived when it was created, and took the room that others had while it was held back."""
    first, gated = a_pod("first", minute=2), a_pod("held", minute=1, gpus=4, schedulingGates=GATE)
    taken(tmp_path, 0, a_node("a"))
    taken(tmp_path, 3, a_node("a"), gated, first)
    taken(tmp_path, 20, a_node("a"), a_pod("held", minute=1, gpus=4))
    taken(tmp_path, 30, a_node("a"), a_pod("held", "a", minute=1, gpus=4))
    trace, history = replay_of(tmp_path)

    assert told(trace, history) == [
        (120, "started", "default-first"),
        (1200, "ended", "default-first"),
        (1200, "started", "default-held"),
    ]


def test_a_gate_opened_before_its_pod_had_a_node(tmp_path: Path) -> None:
    """Where the next snapshot has the pod on a node, that moment is nearer than the snapshot."""
    bound = a_pod("p", "a", minute=1)
    moment = BEGIN.replace(minute=10).isoformat().replace("+00:00", "Z")
    bound["status"] = {"conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": moment}]}
    taken(tmp_path, 0, a_node("a"))
    taken(tmp_path, 3, a_node("a"), a_pod("p", minute=1, schedulingGates=GATE))
    taken(tmp_path, 20, a_node("a"), bound)
    taken(tmp_path, 40, a_node("a"), bound, a_pod("other", minute=39))
    trace = read_trace(tmp_path, Wanted())

    assert [(job.name, job.submitted) for job in trace.jobs] == [("default-p", 600), ("default-other", 39 * 60)]


def test_a_gang_is_of_the_pods_whose_gates_opened(tmp_path: Path) -> None:
    """A pod that is held back for ever kept its whole gang from starting, and one that was withdrawn so is no job."""
    pods = [a_pod(f"g-{number}", group="g", minute=1) for number in range(2)]
    held = a_pod("g-2", group="g", minute=1, schedulingGates=GATE)
    taken(tmp_path, 0, a_node("a"), a_group("g", minMember=2))
    taken(tmp_path, 2, a_node("a"), a_group("g", minMember=2), *pods, held, a_pod("gone", schedulingGates=GATE))
    taken(tmp_path, 3, a_node("a"), a_group("g", minMember=2), *pods, held)
    trace, history = replay_of(tmp_path)

    assert [(job.name, job.pods) for job in trace.jobs] == [("default-g", 2)]
    assert told(trace, history) == [(60, "started", "default-g")]
