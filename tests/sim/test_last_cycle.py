"""What a running cluster tells besides its objects stands in the answer: evictions, and a scheduler that differs."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from spinney.api.core import POD, Container, Pod, PodSpec
from spinney.api.events import Event, EventSource, ObjectReference
from spinney.api.meta import Metadata, ObjectMeta, OwnerReference
from spinney.cli import main
from spinney.explain.reasons import Explanation, QueueReport
from spinney.gangs.tree import GangKey
from spinney.runtime import Runtime
from spinney.scheduler.process.endpoint import RefusedGang
from spinney.sim import Cluster
from spinney.sim.advice.advice import Advisor
from spinney.sim.advice.forecast import disagreements
from spinney.sim.advice.subjects import find
from spinney.sim.overview.history import past_evictions
from spinney.sim.snapshots.files import write_snapshot
from spinney.sim.snapshots.snapshot import ClusterSnapshot
from spinney.sim.whatif.outcomes import Waiting

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
GANG = GangKey("podgang", "default", "train")
LIMIT = QueueReport(queue="team", rule="OverLimit", resource="nvidia.com/gpu", bound=8, used=8, requested=8)


def an_event(name: str, message: str, *, minutes: int) -> Event:
    """Return an event about a pod that had to go, so many minutes ago."""
    return Event(
        metadata=ObjectMeta(name=f"{name}.{minutes}", namespace="default"),
        involved_object=ObjectReference(kind="Pod", namespace="default", name=name),
        reason="Evict",
        message=message,
        source=EventSource(component="spinney-scheduler"),
        last_timestamp=NOW - timedelta(minutes=minutes),
    )


def test_the_newest_eviction_is_told_of_pods_that_are_gone() -> None:
    """Events outlive their pods: who evicted one, for whom and when is said though another has taken its place."""
    events = [
        an_event("train-w-x2x", "preempted for team/urgent", minutes=5),
        an_event("train-w-abc", "reclaimed for research/big", minutes=60),
        an_event("other-w-abc", "not ours", minutes=1),
    ]

    assert past_evictions(events, {"train-w"}, NOW) == [
        "Pod train-w-x2x was evicted 5m ago by spinney-scheduler: preempted for team/urgent (and 1 earlier eviction)"
    ]


def test_the_moment_of_events_as_kube_scheduler_writes_them_is_read() -> None:
    """Events of events.k8s.io have ``eventTime`` and nothing else."""
    event = msgspec.structs.replace(
        an_event("train-0", "Preempted by a pod on node n1", minutes=0),
        last_timestamp=None,
        event_time="2026-01-01T11:58:00.000000Z",
        source=EventSource(),
        reporting_component="default-scheduler",
    )

    assert past_evictions([event], {"train-0"}, NOW) == [
        "Pod train-0 was evicted 2m ago by default-scheduler: Preempted by a pod on node n1"
    ]


def test_a_gang_for_which_others_were_evicted_was_not_evicted_itself() -> None:
    """The scheduler tells it under the same reason; "why" said that it had been evicted."""
    event = an_event("train-0", "Evicted 1 pod to make room: team/small-0", minutes=1)

    assert past_evictions([event], {"train-0"}, NOW) == []


@pytest.mark.parametrize(
    ("said", "simulated", "words"),
    [
        (Explanation(subject="default/train", queue=LIMIT), None, "refused default/train, and this simulation places"),
        (None, Explanation(subject="default/train"), "did not refuse default/train, this simulation does"),
        (
            Explanation(subject="default/train", queue=LIMIT),
            Explanation(subject="default/train"),
            "gives another reason: the words of podgang",
        ),
        (
            Explanation(subject="default/train", queue=LIMIT),
            Explanation(subject="default/train", queue=msgspec.structs.replace(LIMIT, used=7)),
            "",
        ),
    ],
)
def test_a_scheduler_that_says_otherwise_is_quoted(
    said: Explanation | None, simulated: Explanation | None, words: str
) -> None:
    """Where the last cycle and the simulation differ in kind that is said, and why it may be; amounts may differ."""
    refused = {GANG: RefusedGang(*GANG, message="the words of podgang", explanation=said)} if said is not None else {}
    waiting = (
        [Waiting(gang=GANG, pods=(), message="simulated words", explanation=simulated)] if simulated is not None else []
    )

    told = " ".join(disagreements([GANG], refused, waiting))

    assert (words in told and "--config" in told) if words else not told


@pytest.fixture
def scheduler() -> Iterator[str]:
    """The endpoint of a scheduler whose last cycle refused the gang because of its queue."""
    body = msgspec.json.encode(
        [
            RefusedGang(
                *GANG, message="queue team is full", explanation=Explanation(subject="default/train", queue=LIMIT)
            )
        ]
    )

    class Endpoint(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path.startswith("/explanations") else 404)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Write nothing."""

    with HTTPServer(("127.0.0.1", 0), Endpoint) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_why_reads_the_running_scheduler(tmp_path: Path, scheduler: str) -> None:
    """``--explanations`` names the endpoint of a scheduler; a difference is said, and one that is not there too."""
    cluster = Cluster("1x8")
    cluster.gang("train", pods=2, gpus=8)
    file = tmp_path / "snapshot.json.gz"
    write_snapshot(cluster.snapshot(), file)

    answer = CliRunner().invoke(main, ["why", "train", "--from", str(file), "--explanations", scheduler])
    nobody = CliRunner().invoke(main, ["why", "train", "--from", str(file), "--explanations", "http://127.0.0.1:9"])

    assert "the running scheduler gives another reason: queue team is full" in answer.output
    assert nobody.exit_code == 1
    assert "kubectl port-forward" in nobody.output


def test_the_eviction_of_a_pod_that_its_job_made_anew_is_told() -> None:
    """The pods of a Job are called after it, not after the gang that the grouper made: nothing was said of theirs."""
    owner = OwnerReference(api_version="batch/v1", kind="Job", name="train", uid="1", controller=True)
    pod = Pod(
        metadata=Metadata(name="train-new", namespace="default", owner_references=(owner,)),
        spec=PodSpec(scheduler_name="spinney-scheduler", containers=(Container(name="main"),)),
    )
    runtime = Runtime.system()
    snapshot = ClusterSnapshot(objects={POD: (pod,)})
    advisor = Advisor(snapshot, runtime=runtime, best=0, events=[an_event("train-old", "reclaimed", minutes=5)])
    answer = advisor.reasons(find(snapshot, "pod/train-new", "default"))
    runtime.executor.close()

    assert any("Pod train-old was evicted" in line for line in answer.history)
