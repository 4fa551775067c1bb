"""Before anything is simulated, why tells what happened: failures, evictions, how long and since when it waits."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from spinney.api.meta import Condition, ObjectMeta
from spinney.api.podgang import DISRUPTION_TARGET, PodGang, PodGangStatus
from spinney.cli import main
from spinney.sim.overview.history import Said, foreign_plugins, gang_eviction, lasted, newest

_CLUSTER = """
apiVersion: v1
kind: Node
metadata: {name: n}
status: {allocatable: {cpu: 8, pods: 9}}
---
apiVersion: grove.io/v1alpha1
kind: PodClique
metadata: {name: train-0-w, namespace: default}
spec: {roleName: w, replicas: 2, podSpec: {containers: [{name: main}]}}
status:
  lastErrors: [{code: ERR, description: "exceeded quota: pods=1", observedAt: "2026-01-01T00:00:00Z"}]
---
apiVersion: scheduler.grove.io/v1alpha1
kind: PodGang
metadata: {name: train-0, namespace: default}
spec:
  podgroups: [{name: train-0-w, minReplicas: 1, podReferences: [{namespace: default, name: p}]}]
status:
  conditions:
    - {type: DisruptionTarget, status: "True", reason: Evicted, message: "preempted by spinney-scheduler for team/big",
       lastTransitionTime: "2026-01-01T00:00:00Z"}
    - {type: Scheduled, status: "False", reason: Unschedulable, message: "an older word",
       lastTransitionTime: "2026-01-01T00:00:00Z"}
---
apiVersion: v1
kind: Pod
metadata:
  name: p
  creationTimestamp: "2026-01-01T00:00:00Z"
  labels: {grove.io/podgang: train-0, grove.io/podclique: train-0-w}
spec: {schedulerName: spinney-scheduler, containers: [{name: main, resources: {requests: {cpu: 4}}}]}
status:
  conditions:
    - {type: PodScheduled, status: "False", reason: Unschedulable, message: "the newest word",
       lastTransitionTime: "2026-01-01T00:05:00Z"}
"""


@pytest.fixture
def told(tmp_path: Path) -> list[str]:
    """What why says of a gang that was evicted, cannot be created whole, and was refused where there is room."""
    file = tmp_path / "cluster.yaml"
    file.write_text(_CLUSTER)
    answer = CliRunner().invoke(main, ["why", "podgang/train-0", "--from", str(file)])
    assert answer.exit_code == 0, answer.output
    return [line.strip() for line in answer.output.splitlines()]


def test_history_comes_before_simulation(told: list[str]) -> None:
    """What could not be created, who evicted it and for whom, and since when it waits and is refused, come first."""
    assert told[1].startswith("PodClique train-0-w failed ")
    assert told[1].endswith(" ago: exceeded quota: pods=1")
    assert told[2] == "it was evicted: preempted by spinney-scheduler for team/big"
    assert told[3].startswith("it has waited ")
    assert told[3].endswith(", since 2026-01-01 00:00:00Z; refused since 2026-01-01 00:05:00Z")


def test_a_gang_that_is_asked_and_one_that_is_promised_room_are_told_so(tmp_path: Path) -> None:
    """Who was asked to checkpoint was not evicted, and who was promised room was not refused."""
    file = tmp_path / "cluster.yaml"
    asked = _CLUSTER.replace("reason: Evicted", "reason: CheckpointRequested")
    of_pod = 'reason: Unschedulable, message: "the newest'
    file.write_text(asked.replace(of_pod, of_pod.replace("Unschedulable", "WaitingForRoom")))
    answer = CliRunner().invoke(main, ["why", "podgang/train-0", "--from", str(file)])
    assert "it was asked to checkpoint and go " in answer.output
    assert "refused" not in answer.output


def test_an_eviction_is_told_once(tmp_path: Path) -> None:
    """Pods and events say when it was; what the gang says of the same is left out."""
    file = tmp_path / "cluster.yaml"
    condition = "type: DisruptionTarget, status: 'True', message: preempted by spinney-scheduler for team/big"
    waits = 'type: PodScheduled, status: "False", reason: Unschedulable, message: "the newest word"'
    gone = _CLUSTER.rpartition("---")[2].replace("name: p\n", "name: gone\n").replace(waits, condition)
    file.write_text(f"{_CLUSTER}---{gone}")
    answer = CliRunner().invoke(main, ["why", "podgang/train-0", "--from", str(file)])

    told = [line.strip() for line in answer.output.splitlines() if "preempted by" in line]
    assert [line.partition(" ago: ")[2] for line in told] == ["preempted by spinney-scheduler for team/big"]


def test_a_gate_that_was_opened_is_no_refusal(tmp_path: Path) -> None:
    """What the API server wrote while a gate held a pod is not taken for a word of its scheduler."""
    file = tmp_path / "cluster.yaml"
    gated = 'reason: SchedulingGated, message: "blocked by gates"'
    file.write_text(_CLUSTER.replace('reason: Unschedulable, message: "the newest word"', gated))
    output = CliRunner().invoke(main, ["why", "pod/p", "--from", str(file)]).output

    assert "it has waited" in output
    assert "refused since" not in output
    assert "blocked by gates" not in output


def test_only_the_newest_word_of_the_scheduler_is_told(told: list[str]) -> None:
    """One line says what the scheduler said, and one that the simulation finds otherwise, with what that may mean."""
    said = [line for line in told if line.startswith("said by ")]
    assert len(said) == 1
    assert said[0].endswith("the newest word")
    assert any("this simulation places it: the cluster has changed since" in line for line in told)


def test_the_newest_of_equals_is_the_first() -> None:
    """What has no time is older than what has one; an empty word counts for nothing."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert newest([Said("a", "x"), Said("b", "y", now), Said("c", "z", now), Said("d", "", now)]) == Said("b", "y", now)
    assert newest([]) is None


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (59, "59s"), (310, "5m10s"), (3600, "1h"), (12000, "3h20m"), (187200, "2d4h")]
)
def test_times_have_at_most_two_units(seconds: int, text: str) -> None:
    """A wait is told as people say it."""
    assert lasted(timedelta(seconds=seconds)) == text


def test_plugins_that_the_simulation_lacks_are_named() -> None:
    """A refusal by a plugin of the running scheduler says which file to name; built-in ones are in the simulation."""
    said = (
        "0 of 3 pods found room; 2 node(s) were refused by plugin night-shift (gpu-001 rests); plugin topology keeps "
        "its pods on one part of the nodes; plugin acme.io/quota failed: ValueError: no answer; no plugin honours it"
    )
    assert foreign_plugins(Said("spinney-scheduler", said), {"topology"}) == ["night-shift", "acme.io/quota"]


@pytest.mark.parametrize(
    ("known", "repeated"),
    [("team/big", True), ("team/big (and 2 earlier evictions)", True), ("team/bigger", False)],
)
def test_only_the_same_eviction_is_not_told_again(known: str, repeated: bool) -> None:
    """An eviction for a gang whose name begins as another's is another eviction."""
    condition = Condition(type=DISRUPTION_TARGET, status="True", reason="Evicted", message="preempted for team/big")
    gang = PodGang(metadata=ObjectMeta(name="train-0"), status=PodGangStatus(conditions=(condition,)))
    line = f"Pod p was evicted 5m ago by spinney-scheduler: preempted for {known}"
    told = gang_eviction(gang, datetime(2026, 1, 1, tzinfo=UTC), known=[line])
    assert told == ([] if repeated else ["it was evicted: preempted for team/big"])
