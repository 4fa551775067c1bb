"""The library: a cluster to try policies on, deterministic, with a clock that only moves when told."""

from datetime import timedelta
from pathlib import Path

import pytest

from spinney.scheduler import NodeInfo, Plugin, PodGroupInfo, PodInfo, Session
from spinney.scheduler.config import PluginOption, SchedulerConfig
from spinney.sim import Cluster
from spinney.sim.advice.subjects import NoSuchSubject
from spinney.sim.engine import EPOCH
from tests.cli.workloads import a_training_job

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_a_gang_is_placed_in_one_step() -> None:
    """Submitting and stepping places a gang within the level it names."""
    cluster = Cluster("8x8")
    cluster.gang("train", pods=4, gpus=8, within="rack")
    outcome = cluster.step()

    assert len(outcome.placed) == 4
    assert cluster.nodes_of("train") == ["gpu-000", "gpu-001", "gpu-002", "gpu-003"]
    assert cluster.pending == []


def test_what_does_not_fit_says_why() -> None:
    """The answer is text for people and data for programs."""
    cluster = Cluster("4x8")
    cluster.gang("large", pods=5, gpus=8)
    cluster.step()

    assert "4 of 5 pods found room" in cluster.why("large")
    assert cluster.answer("large").state == "pending"
    with pytest.raises(NoSuchSubject):
        cluster.why("nothing")


def test_a_file_is_submitted_as_it_is() -> None:
    """The workload of the quick start runs in the library too."""
    cluster = Cluster("8x8")
    cluster.submit(EXAMPLES / "first-workload.yaml")
    cluster.run()

    assert len(cluster.nodes_of("hello-0")) == 5


@pytest.mark.parametrize("loaded", [False, True])
def test_a_workload_that_is_submitted_again_is_made_anew(loaded: bool) -> None:
    """As with `simulate -f` only its new pods are there: they waited beside the old ones, in the same gang."""
    cluster = Cluster("2x4")
    cluster.submit(a_training_job("train", workers=3, gpus=4), lasting=timedelta(hours=1))
    cluster.step()
    cluster = Cluster(cluster.snapshot()) if loaded else cluster
    cluster.submit(a_training_job("train", workers=1, gpus=4))
    cluster.run()

    assert len(cluster.snapshot().pods) == len(cluster.placements) == 1


def test_time_passes_only_when_it_is_told_to() -> None:
    """Jobs end when their time is up, and what waited takes their place; an hour takes no time."""
    cluster = Cluster("2x8")
    cluster.gang("first", pods=2, gpus=8, lasting=timedelta(hours=1))
    cluster.gang("second", pods=2, gpus=8, lasting=timedelta(hours=2))
    start = cluster.clock.now()
    cluster.run(seconds=1800)

    assert cluster.nodes_of("second") == []
    cluster.run()
    assert cluster.clock.now() - start == timedelta(hours=3)
    assert [(each.what, each.pod.name) for each in cluster.history if each.pod.name.endswith("-0")] == [
        ("placed", "first-0"),
        ("ended", "first-0"),
        ("placed", "second-0"),
        ("ended", "second-0"),
    ]


class Afternoon(Plugin):
    """A policy somebody wrote in an afternoon: the last node is never used."""

    name = "afternoon"

    def on_session_open(self, session: Session) -> None:
        """Register the predicate."""
        session.add_predicate_fn(not_the_last)


def not_the_last(task: PodInfo, job: PodGroupInfo, node: NodeInfo) -> str | None:
    """Refuse one node."""
    return "it is kept free" if node.name == "gpu-003" else None


def test_a_plugin_class_takes_part() -> None:
    """A plugin passed in decides, and is named when it refuses."""
    cluster = Cluster("4x8", plugins=[Afternoon])
    cluster.gang("train", pods=4, gpus=8)
    cluster.step()

    assert cluster.placements == {}
    assert "afternoon" in cluster.why("train")


def test_queues_divide_the_cluster() -> None:
    """A queue's limit holds, and its books can be read."""
    cluster = Cluster("4x8")
    cluster.queue("all", quota=32)
    cluster.queue("small", parent="all", quota=8, limit=8)
    cluster.gang("fits", pods=1, gpus=8, queue="small")
    cluster.gang("over", pods=1, gpus=8, queue="small")
    cluster.step()

    assert cluster.nodes_of("fits")
    assert "limit" in cluster.why("over")
    books = {line.name: line.shares["nvidia.com/gpu"] for line in cluster.queues()}
    assert (books["small"].allocated, books["small"].requested) == ("8", "16")


def test_what_is_preempted_comes_back_pending() -> None:
    """A gang of higher priority takes the place of a lower one, whose pods are made again and wait."""
    cluster = Cluster("1x8")
    cluster.gang("low", pods=1, gpus=8, priority_class="train")
    cluster.run()
    cluster.gang("high", pods=1, gpus=8, priority_class="build-preemptible")
    cluster.run()

    assert cluster.nodes_of("high") == ["gpu-000"]
    assert [pod.name for pod in cluster.pending] == ["low-0"]
    assert [(each.what, each.pod.name) for each in cluster.history] == [
        ("placed", "low-0"),
        ("evicted", "low-0"),
        ("placed", "high-0"),
    ]


def test_a_minimum_run_time_protects_until_it_is_over() -> None:
    """A cluster knows when its pods were bound, and asks again when their minimum run time is over."""
    protection = PluginOption("minruntime", {"defaultPreemptMinRuntime": "600s"})
    plugins = [each for each in SchedulerConfig().plugins if each.name != "minruntime"]
    cluster = Cluster("1x8", config=SchedulerConfig(plugins=(*plugins, protection)))
    cluster.gang("low", pods=1, gpus=8, priority_class="train")
    cluster.run()
    cluster.gang("high", pods=1, gpus=8, priority_class="build-preemptible")
    cluster.run(seconds=599)
    assert cluster.nodes_of("low") == ["gpu-000"]

    cluster.run()
    evicted = [each.at - EPOCH for each in cluster.history if each.what == "evicted"]
    assert evicted == [timedelta(minutes=10)]
    assert cluster.nodes_of("high") == ["gpu-000"]


def test_a_deleted_gang_makes_room() -> None:
    """Deleting a gang frees what it held."""
    cluster = Cluster("1x8")
    cluster.gang("old", pods=1, gpus=8)
    cluster.step()
    cluster.gang("new", pods=1, gpus=8)
    cluster.delete("old")
    cluster.step()

    assert cluster.nodes_of("new") == ["gpu-000"]


def test_a_deleted_gang_does_not_end() -> None:
    """Its time is over with it; one of the same name that comes later has its own."""
    cluster = Cluster("1x8")
    cluster.gang("job", pods=1, gpus=8, lasting=timedelta(hours=1))
    cluster.step()
    cluster.delete("job")
    cluster.run()
    assert [each.what for each in cluster.history] == ["placed"]

    cluster.gang("job", pods=1, gpus=8)
    cluster.run()
    assert cluster.nodes_of("job") == ["gpu-000"]
    assert cluster.clock.now() == EPOCH


class NotBefore(Plugin):
    """A policy that time alone changes: nothing is placed in the first ten minutes."""

    name = "notbefore"

    def on_session_open(self, session: Session) -> None:
        """Register the predicate, and say when it will answer differently."""
        moment = EPOCH + timedelta(minutes=10)
        if session.now < moment:
            session.wake_at(moment)
            session.add_predicate_fn(lambda task, job, node: "it is too early")


def test_a_plugin_is_asked_again_when_it_said_it_would_change_its_mind() -> None:
    """Nothing else happens at that moment."""
    cluster = Cluster("1x8", plugins=[NotBefore])
    cluster.gang("train", pods=1, gpus=8)
    cluster.run(seconds=599)
    assert cluster.pending
    cluster.run()

    assert [(each.what, each.at - EPOCH) for each in cluster.history] == [("placed", timedelta(minutes=10))]


def test_the_picture_shows_gangs_on_nodes() -> None:
    """A notebook draws racks, a cell per GPU, and the gangs, with names escaped."""
    cluster = Cluster("2x4")
    cluster.gang("train", pods=1, gpus=4)
    cluster.gang("waits", pods=3, gpus=4)
    cluster.step()
    picture = cluster._repr_html_()

    assert picture.count('title="train"') == 4 + 1
    assert "gpu-001" in picture
    assert "unschedulable on cluster" in picture


def test_the_same_calls_give_the_same_decisions() -> None:
    """Two clusters treated alike decide alike."""

    def story() -> list[object]:
        cluster = Cluster("8x8", seed=7)
        for number in range(12):
            cluster.gang(
                f"g{number}", pods=1 + number % 4, gpus=2 + 2 * (number % 3), lasting=timedelta(minutes=number)
            )
        cluster.run()
        return list(cluster.history)

    assert story() == story()
