"""One object that cannot be read ends no answer about the others, as it ends no scheduler."""

from collections.abc import Sequence
from pathlib import Path

from structlog.testing import capture_logs

from spinney.api.core import Pod
from spinney.api.struct import JSON, convert
from spinney.runtime import Runtime
from spinney.sim.advice.advice import Advisor
from spinney.sim.advice.subjects import find
from spinney.sim.snapshots.files import read_snapshot
from spinney.sim.whatif.simulation import Simulation
from tests.sim.replay.recordings import a_node, a_pod, a_queue, taken


def placed_and_left_out(directory: Path, *objects: JSON, more: Sequence[Pod] = ()) -> tuple[dict[str, str], list[str]]:
    """Return the node of each pod that a cluster places, and which objects were told to be left out."""
    runtime = Runtime.system()
    with capture_logs() as logs:
        simulation = Simulation(read_snapshot(taken(directory, 0, *objects)), runtime=runtime)
        simulation.add(more)
        outcome = simulation.run()
    runtime.executor.close()
    told = [each["object"] for each in logs if "cannot be read" in each["event"]]
    return {key.name: node for key, node in outcome.placed.items()}, told


def test_a_queue_with_an_odd_duration_leaves_the_others(tmp_path: Path) -> None:
    """KAI's API takes any text for one: 'why', 'queues', 'simulate' and the dashboard ended with one such queue."""
    queues = a_queue("odd", reclaimMinRuntime="abc"), a_queue("sound")
    found = placed_and_left_out(tmp_path, a_node("n"), *queues, a_pod("p", minute=0, queue="sound"))
    assert found == ({"p": "n"}, ["queues.scheduling.run.ai odd"])


def test_a_node_takes_no_pod_beside_one_that_cannot_be_read(tmp_path: Path) -> None:
    """What such a pod holds is not known."""
    odd = a_pod("odd", "a")
    odd["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "many"
    pods = convert(Pod, odd), convert(Pod, a_pod("p", minute=0))
    found = placed_and_left_out(tmp_path, a_node("a"), a_node("b"), more=pods)
    assert found == ({"p": "b"}, ["pods default/odd"])


def test_it_is_told_once_however_much_is_tried(tmp_path: Path) -> None:
    """'why' tries changes on copies of the cluster, and each copy has the object."""
    runtime = Runtime.system()
    odd = a_queue("odd", reclaimMinRuntime="abc")
    full = [a_pod("runs", "a", gpus=8, queue="sound"), a_pod("waits", minute=0, gpus=8, queue="sound")]
    snapshot = read_snapshot(taken(tmp_path, 0, a_node("a"), odd, a_queue("sound"), *full))
    with capture_logs() as logs:
        answer = Advisor(snapshot, runtime=runtime).answer(find(snapshot, "waits", "default"))
    runtime.executor.close()

    assert answer.tried
    assert [each["log_level"] for each in logs if "cannot be read" in each["event"]].count("warning") == 1


def test_a_pod_that_asks_for_less_than_nothing_is_told_with_its_field(tmp_path: Path) -> None:
    """No API server takes one, but a file may hold it: it was placed, or refused by an OverflowError."""
    for name, amount in (("cpu", "-4"), ("memory", "-1e30"), ("nvidia.com/gpu", "-1")):
        odd = a_pod("odd", minute=0)
        odd["spec"]["containers"][0]["resources"]["requests"][name] = amount
        runtime = Runtime.system()
        with capture_logs() as logs:
            snapshot = read_snapshot(taken(tmp_path, 0, a_node("a"), odd, a_pod("p", minute=0)))
            advisor = Advisor(snapshot, runtime=runtime)
            answer = advisor.answer(find(snapshot, "pod/odd", "default"))
        runtime.executor.close()
        field = f"spec.containers[0].resources.requests[{name}]"
        assert f"NegativeRequest: {field}: '{amount}' is negative; expected 0 or more" in {
            each["error"] for each in logs
        }
        assert answer.state == "unreadable"
        assert {key.name for key in advisor.cycle.placed} == {"p"}
