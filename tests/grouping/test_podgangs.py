"""What is written for a gang: a PodGang that our scheduler and every backend read alike."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest

from spinney.api import labels as marks
from spinney.api.core import Pod, PodStatus
from spinney.api.podgang import PodGang, TopologyPackConstraint
from spinney.api.struct import JSON
from spinney.gangs.source_workloads import made_for
from spinney.gangs.sources import podgang as source
from spinney.gangs.sources.context import SourceContext
from spinney.gangs.tree import Gang, is_satisfied
from spinney.grouping import podgangs
from spinney.grouping.attributes import Conventions
from spinney.grouping.describing import describe
from spinney.grouping.finished import FinishedPods, noting
from spinney.grouping.loading import built_in
from spinney.grouping.owners import Owner
from spinney.grouping.world import World
from tests.grouping.builders import a_pod, an_owner, grouped


def written(owner: Owner, pods: Mapping[str, Sequence[Pod]] | None = None, /, **labels: str) -> PodGang:
    """Return the PodGang of a workload that has these pods, by group."""
    gang = grouped(a_pod(labels=labels), owner).gang
    return podgangs.pod_gang(gang, "spinney-scheduler", pods or {})


def floors(gang: PodGang) -> dict[str, int]:
    """Return the groups of a gang, each with its minimum."""
    return {group.name: group.min_replicas for group in gang.spec.pod_groups}


def read(gang: PodGang) -> Gang:
    """Return a PodGang as our scheduler reads it."""
    return source.gang(gang, SourceContext())


def a_job_set(**metadata: Any) -> Owner:
    """Return a JobSet of three replicated jobs with two pods each."""

    def job(name: str) -> JSON:
        return {"name": name, "template": {"spec": {"parallelism": 2}}}

    return an_owner("jobset.x-k8s.io/v1/JobSet", spec={"replicatedJobs": [job("a"), job("b"), job("c")]}, **metadata)


JOB_SET_LABELS = {"jobset.sigs.k8s.io/replicatedjob-name": "a", "jobset.sigs.k8s.io/job-index": "0"}


def test_two_of_three_replicated_jobs_are_enough_where_that_is_asked() -> None:
    """The floor in replicated jobs reaches the scheduler: any two of them satisfy the gang, one and a half do not."""
    gang = read(written(a_job_set(annotations={"kai.scheduler/batch-min-member": "2"}), **JOB_SET_LABELS))
    placed = {"a-replica-0": 2, "c-replica-0": 2, "b-replica-0": 0}
    assert is_satisfied(gang.root, lambda pod_set: placed[pod_set.name])
    placed["c-replica-0"] = 1
    assert not is_satisfied(gang.root, lambda pod_set: placed[pod_set.name])


def test_all_replicated_jobs_are_needed_by_default() -> None:
    """Without the annotation two of three are not enough."""
    gang = read(written(a_job_set(), **JOB_SET_LABELS))
    assert not is_satisfied(gang.root, lambda pod_set: 0 if pod_set.name.startswith("b") else 2)


def test_a_segment_keeps_its_leader_and_workers_in_one_domain() -> None:
    """The constraint of a segment holds for the parts that it has."""
    annotations = {"kai.scheduler/topology": "dc", "kai.scheduler/segment-topology-required-placement": "rack"}
    spec = {
        "leaderWorkerTemplate": {
            "size": 5,
            "subGroupPolicy": {"subGroupSize": 2},
            "workerTemplate": {"metadata": {"annotations": annotations}},
        }
    }
    labels = {"leaderworkerset.sigs.k8s.io/worker-index": "0"}
    made = written(an_owner("leaderworkerset.x-k8s.io/v1/LeaderWorkerSet", spec=spec), **labels)
    (segment,) = made.spec.topology_constraint_group_configs
    assert segment.pod_group_names == ("leader", "workers")
    assert segment.topology_constraint is not None
    assert {group.name: group.min_replicas for group in made.spec.pod_groups} == {
        "segment-1": 2,
        "leader": 1,
        "workers": 2,
    }
    assert made.metadata.annotations[marks.KAI_TOPOLOGY] == "dc"


def test_a_role_keeps_the_domain_that_its_template_asks_for() -> None:
    """Each Job of the replicated job ``b`` needs one rack, and should be on one host; the others may be anywhere."""
    asked = {"kai.scheduler/topology": "dc", "kai.scheduler/topology-required-placement": "rack"}
    asked |= {"kai.scheduler/topology-preferred-placement": "host"}
    owner = a_job_set()
    packed = {**owner.spec["replicatedJobs"][1], "replicas": 2}
    packed["template"] = {**packed["template"], "metadata": {"annotations": asked}}
    owner.spec["replicatedJobs"][1] = packed
    made = written(owner, **JOB_SET_LABELS)
    packs = {
        group.name: group.topology_constraint.pack_constraint if group.topology_constraint is not None else None
        for group in made.spec.pod_groups
    }
    rack = TopologyPackConstraint(required="rack", preferred="host")
    assert packs == {"a-replica-0": None, "b-replica-0": rack, "b-replica-1": rack, "c-replica-0": None}


@pytest.mark.parametrize(
    ("of_owner", "of_pod", "expected"),
    [({}, {}, None), ({"pool": "a"}, {}, "a"), ({}, {"pool": "b"}, "b"), ({"pool": "a"}, {"pool": "b"}, "a")],
)
def test_a_gang_is_of_the_node_pool_of_its_workload(
    of_owner: dict[str, str], of_pod: dict[str, str], expected: str | None
) -> None:
    """What the workload says counts before what its pods say; a cluster may call the label what it likes."""
    owner = an_owner("batch/v1/Job", labels=of_owner)
    pools = [
        describe(
            a_pod(labels=of_pod), [owner], built_in(), Conventions(node_pool_label=label), World()
        ).gang.attributes.labels
        for label in ("pool", "")
    ]
    assert pools[0].get("pool") == expected
    assert pools[1].get("pool") == of_owner.get("pool")


def test_names_are_made_valid_and_what_they_were_is_kept() -> None:
    """A Ray group may be called anything; a group of pods may not."""
    spec = {"workerGroupSpecs": [{"groupName": "GPU_workers", "replicas": 2}]}
    made = written(an_owner("ray.io/v1/RayCluster", "r" * 60, spec=spec), **{"ray.io/group": "GPU_workers"})
    name = made.spec.pod_groups[1].name
    assert name.startswith("gpu-workers-")
    assert made.metadata.annotations[marks.ORIGINAL_NAMES] == f'{{"{name}":"GPU_workers"}}'
    assert len(made.metadata.name) <= 63


def test_labels_by_which_others_find_their_objects_are_not_inherited() -> None:
    """A Job that is part of something is not taken for a PodCliqueSet's."""
    labels = {"app.kubernetes.io/part-of": "set", "grove.io/podclique": "x", "team": "red"}
    made = written(an_owner("batch/v1/Job", labels=labels))
    assert made.metadata.labels["team"] == "red"
    assert not {"app.kubernetes.io/part-of", "grove.io/podclique"} & made.metadata.labels.keys()


def test_pods_that_have_succeeded_are_not_needed_again() -> None:
    """Four are needed, three have done their part: one is enough; and never none while one was needed."""
    made = written(an_owner("batch/v1/Job", annotations={"kai.scheduler/min-member": "4"}))
    needed = [floors(podgangs.with_floors(made, {"default": done}))["default"] for done in (0, 3, 4, 9)]
    assert needed == [4, 1, 1, 1]


def test_a_part_that_is_done_needs_nobody() -> None:
    """Of a JobSet whose first job has finished only the second is needed, or it would wait for ever."""
    jobs = [{"name": name, "template": {"spec": {"parallelism": 2}}} for name in ("prepare", "train")]
    labels = {"jobset.sigs.k8s.io/replicatedjob-name": "train", "jobset.sigs.k8s.io/job-index": "0"}
    owner = an_owner("jobset.x-k8s.io/v1alpha2/JobSet", spec={"replicatedJobs": jobs})
    made, again = written(owner, **labels), written(owner, {"prepare-replica-0": [a_pod()]}, **labels)
    done = podgangs.with_floors(made, {"prepare-replica-0": 2})
    assert floors(done) == {"prepare-replica-0": 0, "train-replica-0": 2}
    assert floors(podgangs.with_floors(made, {}, done)) == floors(done), "its pods have been removed"
    assert floors(podgangs.with_floors(again, {}, done))["prepare-replica-0"] == 2, "it runs again"


def test_a_workloads_gang_is_evicted_by_the_scheduler_when_it_stays_broken() -> None:
    """No operator recycles it, so the scheduler looks after it, with the grace that the workload asks for."""
    asked = {"kai.scheduler/staleness-grace-period": "5m"}
    gang = read(written(an_owner("batch/v1/Job", annotations=asked)))
    assert not gang.owned_by_operator
    assert gang.staleness_grace is not None
    assert gang.staleness_grace.total_seconds() == 300


@pytest.mark.parametrize(
    ("chain", "labels", "called"),
    [
        (["batch/v1/Job", "batch/v1/CronJob"], {}, ("cronjobs.batch", "cronjob")),
        (["batch/v1/Job", "example.com/v1/Team"], {}, ("team",)),
        (
            ["apps/v1/ReplicaSet", "serving.knative.dev/v1/Revision", "serving.knative.dev/v1/Service"],
            {"serving.knative.dev/revision": "revision"},
            ("service.serving.knative.dev", "services"),
        ),
    ],
    ids=["CronJob", "a kind without a rule", "Knative"],
)
def test_a_gang_is_found_by_what_owns_its_workload(
    chain: list[str], labels: Mapping[str, str], called: Sequence[str]
) -> None:
    """A run of a CronJob is asked about by the CronJob, too: its user has written nothing else."""
    owners = [an_owner(kind, kind.rpartition("/")[2].lower()) for kind in chain]
    by_name = {owner.metadata.name: owner for owner in owners}
    found = grouped(a_pod(labels=labels), *owners, find=lambda kind, namespace, name: by_name[name]).gang
    made = podgangs.pod_gang(found, "spinney-scheduler", {})
    top = owners[-1].metadata.name
    assert [made_for(made, word, top) is not None for word in called] == [True] * len(called)
    assert not made_for(made, called[0], "other")
    assert not made_for(made, "job", top)


def test_what_has_finished_and_is_gone_is_known_to_the_next_grouper() -> None:
    """The number stands on the PodGang, until the group has as many pods as it needs again."""
    gang = written(an_owner("kubeflow.org/v1/TFJob", spec={"tfReplicaSpecs": {"Worker": {"replicas": 3}}}))
    done = msgspec.structs.replace(a_pod("a"), status=PodStatus(phase="Succeeded"))
    first = FinishedPods()
    assert first.counts(gang, {"default": [done, a_pod("b"), a_pod("c")]}, None) == {"default": 1}
    left = {"default": [a_pod("b"), a_pod("c")]}
    noted = noting(gang, first.counts(gang, left, gang), left)
    assert noted.metadata.annotations[marks.FINISHED_AND_GONE] == '{"default":1}'
    again = FinishedPods()
    assert again.counts(gang, left, noted) == {"default": 1}
    assert again.counts(gang, {"default": [a_pod("b"), a_pod("c"), a_pod("d")]}, noted) == {"default": 0}
    assert again.counts(gang, left, noted) == {"default": 0}
    assert marks.FINISHED_AND_GONE in (podgangs.correction(noted, gang) or {})["metadata"]["annotations"]
