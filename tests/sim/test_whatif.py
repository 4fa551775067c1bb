"""A simulation decides what the scheduler would, carries it out, and says how two configurations differ."""

from pathlib import Path

import pytest

from spinney.api.struct import JSON
from spinney.cluster.pods import PodKey
from spinney.runtime import Runtime
from spinney.scheduler.config import PluginOption, SchedulerConfig
from spinney.sim import Cluster
from spinney.sim.snapshots.expanding import ExpansionContext, InvalidWorkload, expand
from spinney.sim.snapshots.files import write_snapshot
from spinney.sim.snapshots.snapshot import ClusterSnapshot
from spinney.sim.whatif.outcomes import Outcome, differences
from spinney.sim.whatif.simulation import Simulation
from tests.cli.workloads import a_training_job


def simulate(
    shape: str, *manifests: JSON, config: SchedulerConfig | None = None, more: ClusterSnapshot | None = None
) -> Outcome:
    """Run a workload on an empty cluster of this shape."""
    runtime = Runtime.system()
    snapshot = more if more is not None else Cluster(shape).snapshot()
    added = expand(manifests, ExpansionContext.of(snapshot, runtime.clock.now()))
    outcome = Simulation(snapshot.with_objects(added), config, runtime=runtime).run()
    runtime.executor.close()
    return outcome


def test_a_set_is_placed_as_its_gangs() -> None:
    """A PodCliqueSet becomes gangs through the operator's own core and is placed whole."""
    outcome = simulate("4x8", a_training_job("train", workers=4))

    assert sorted(outcome.placed.values()) == ["gpu-000", "gpu-001", "gpu-002", "gpu-003"]
    assert {str(gang) for gang in outcome.gangs.values()} == {"default/train-0"}
    assert outcome.settled


def test_scaled_gangs_follow_their_base() -> None:
    """A scaled gang keeps its gates until the base gang is placed, then it goes too."""
    manifest = a_training_job("train", workers=1, within=None)
    group = {"name": "grow", "cliqueNames": ["worker"], "replicas": 3, "minAvailable": 1}
    manifest["spec"]["template"]["podCliqueScalingGroups"] = [group]
    outcome = simulate("4x8", manifest)

    assert len(outcome.placed) == 3
    assert outcome.cycles == 3
    too_large = a_training_job("base", workers=1, gpus=9, within=None)
    too_large["spec"]["template"]["podCliqueScalingGroups"] = [group]
    waiting = {str(each.gang): each.message for each in simulate("4x8", too_large).waiting}
    assert waiting["default/base-0-grow-0"] == "gated by grove.io/podgang-pending-creation"


def test_a_missing_topology_keeps_the_gates() -> None:
    """A required level that no binding translates holds the pods back instead of placing them anywhere."""
    manifest = a_training_job("train", workers=2)
    manifest["spec"]["template"]["topologyConstraint"]["topologyName"] = "unknown"
    outcome = simulate("4x8", manifest)

    assert outcome.placed == {}
    assert [each.message for each in outcome.waiting] == ["gated by grove.io/podgang-pending-creation"]


def test_configurations_are_compared_gang_by_gang() -> None:
    """Only gangs that fare differently are listed."""
    spread = SchedulerConfig(
        plugins=tuple(
            PluginOption("nodeplacement", {"gpu": "spread", "cpu": "spread"}) if each.name == "packing" else each
            for each in SchedulerConfig().plugins
        )
    )
    jobs = [
        a_training_job("two", workers=2, gpus=1, within=None),
        a_training_job("one", workers=1, gpus=8, within=None),
    ]
    found = differences(simulate("2x8", jobs[0]), simulate("2x8", jobs[0], config=spread))

    assert [(str(each.gang), each.before, each.after) for each in found] == [
        ("default/two-0", "2 placed on gpu-000", "2 placed on gpu-000, gpu-001")
    ]
    assert differences(simulate("2x8", jobs[1]), simulate("2x8", jobs[1])) == []


# -- kube-scheduler's pods ---------------------------------------------------------------------------------------------


def a_pod(name: str, *, cpu: str = "1", labels: dict[str, str] | None = None, **spec: object) -> JSON:
    """Return a pod for the default scheduler."""
    container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
    metadata = {"name": name, "labels": labels or {}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **spec}}


def a_native_group(minimum: int, **constraints: object) -> JSON:
    policy = {"gang": {"minCount": minimum}}
    spec = {"schedulingPolicy": policy, **({"schedulingConstraints": constraints} if constraints else {})}
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "gang"},
        "spec": spec,
    }


def members(count: int, *, cpu: str) -> list[JSON]:
    """Return members of the native group."""
    return [a_pod(f"m{i}", cpu=cpu, schedulingGroup={"podGroupName": "gang"}) for i in range(count)]


def test_pods_of_kube_scheduler_spread_by_its_scores() -> None:
    """Least allocated first: two pods go to two nodes, unlike with a scheduler that packs."""
    outcome = simulate("2x0", a_pod("a", cpu="20"), a_pod("b", cpu="20"))

    assert sorted(outcome.placed.values()) == ["node-000", "node-001"]


def test_higher_priority_goes_first() -> None:
    """With room for one, the pod of higher priority gets it."""
    outcome = simulate("1x0", a_pod("low", cpu="60", priority=1), a_pod("high", cpu="60", priority=9))

    assert list(outcome.placed) == [PodKey("default", "high")]
    assert outcome.waiting[0].message == "0/1 nodes are available: 1 Insufficient cpu."


def test_a_native_group_is_all_or_nothing() -> None:
    """Below its minimum no member stays; with room for the minimum the rest is judged alone."""
    assert simulate("2x0", a_native_group(3), *members(3, cpu="90")).placed == {}
    outcome = simulate("2x0", a_native_group(2), *members(3, cpu="90"))

    assert len(outcome.placed) == 2
    assert [len(each.pods) for each in outcome.waiting] == [1]


def test_a_native_group_stays_in_its_domain() -> None:
    """A required topology key confines the group to one value of it."""
    within = {"topology": [{"key": "topology.kubernetes.io/rack"}]}
    fits = simulate("8x0", a_native_group(4, **within), *members(4, cpu="90"))
    assert sorted(fits.placed.values()) == [f"node-00{i}" for i in range(4)]

    assert simulate("8x0", a_native_group(5, **within), *members(5, cpu="90")).placed == {}


@pytest.mark.parametrize("exists", [True, False])
def test_a_coscheduling_group_waits_for_its_members(exists: bool) -> None:
    """A group with too few pods, or whose object is missing, says so."""
    group = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "co"},
        "spec": {"minMember": 2},
    }
    pod = a_pod("only", labels={"scheduling.x-k8s.io/pod-group": "co"})
    outcome = simulate("1x0", *([group] if exists else []), pod)

    expected = (
        "1 of the 2 pods that the group needs exist" if exists else "default/co that the pods name does not exist"
    )
    assert expected in outcome.waiting[0].message


def test_schedulers_share_one_ledger() -> None:
    """What one scheduler places is taken for the other in the same simulation."""
    ours = a_training_job("train", workers=1, gpus=1, within=None)
    ours["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["containers"][0]["resources"]["requests"]["cpu"] = "60"
    outcome = simulate("1x8", ours, a_pod("theirs", cpu="60"))

    assert [pod.name.split("-")[0] for pod in outcome.placed] == ["train"]
    assert [each.gang.name for each in outcome.waiting] == ["theirs"]


def test_a_pod_that_another_scheduler_evicts_at_once_is_not_called_placed() -> None:
    """Ours gets the node first, and kube-scheduler takes it for a higher priority: one pod is on it, not two."""
    ours = a_pod("ours", cpu="60", schedulerName="spinney-scheduler", priority=0)
    outcome = simulate("1x0", ours, a_pod("theirs", cpu="60", priority=1000))

    assert [pod.name for pod in outcome.placed] == ["theirs"]
    assert outcome.placed.keys() <= outcome.gangs.keys()
    assert [each.pod.name for each in outcome.evictions] == ["ours"]


def test_an_invalid_set_is_refused_with_its_faults() -> None:
    """A workload that admission would refuse is not simulated."""
    with pytest.raises(InvalidWorkload, match=r"PodCliqueSet Bad: metadata.name"):
        simulate("1x8", a_training_job("Bad", workers=1))


def test_a_large_snapshot_reads_back(tmp_path: Path) -> None:
    """A cluster that was simulated can be written, loaded and simulated on."""
    cluster = Cluster("64x8")
    for number in range(20):
        cluster.gang(f"job{number}", pods=3, gpus=8)
    cluster.run()
    write_snapshot(cluster.snapshot(), tmp_path / "later.gz")
    later = Cluster.load(tmp_path / "later.gz")

    assert later.placements == cluster.placements
    later.gang("one-more", pods=4, gpus=8)
    later.step()
    assert len(later.nodes_of("one-more")) == 4
