"""The gang of a pod, kind by kind."""

from collections.abc import Iterator

import pytest

from spinney.api.core import Pod
from spinney.api.struct import JSON
from spinney.grouping.roles import RememberedRoles
from spinney.grouping.terms import RuleRefused
from tests.grouping.builders import a_pod, an_owner, grouped

JOBSET_LABELS = {"jobset.sigs.k8s.io/replicatedjob-name": "b", "jobset.sigs.k8s.io/job-index": "0"}


def floors(found: object) -> dict[str, int | None]:
    return {each.name: each.min_member for each in found.gang.shape.sub_groups}  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("succeeded", "floor"),
    [(0, 4), (4, 4), (6, 2), (8, 1)],
)
def test_pods_of_a_job_that_have_finished_are_not_needed_again(succeeded: int, floor: int) -> None:
    """The last pods of a Job do not wait for more than will ever exist."""
    job = an_owner(
        "batch/v1/Job",
        spec={"parallelism": 4, "completions": 8},
        status={"succeeded": succeeded},
        annotations={"kai.scheduler/batch-min-member": "4"},
    )
    assert grouped(a_pod(), job).gang.shape.min_member == floor


def test_a_floor_that_can_never_be_reached_is_kept_and_reported() -> None:
    """The gang waits as it was asked to, and says why it will wait for ever."""
    job = an_owner("batch/v1/Job", spec={"parallelism": 2}, annotations={"kai.scheduler/min-member": "5"})
    found = grouped(a_pod(), job).gang
    assert found.shape.min_member == 5
    assert found.problems == ("needs 5 pods, but will have 2",)


@pytest.mark.parametrize(("text", "fault"), [("5", "'5' is not a duration"), ("-5m", "'-5m' is less than nothing")])
@pytest.mark.parametrize(
    "key", ["spinney.dev/checkpoint-grace", "spinney.dev/min-runtime", "spinney.dev/expected-duration"]
)
def test_a_declaration_that_cannot_be_read_is_reported(key: str, text: str, fault: str) -> None:
    """A gang that wants to checkpoint and does not say for how long is told so, and is evicted like any other."""
    job = an_owner("batch/v1/Job", spec={"parallelism": 1}, annotations={key: text})
    (problem,) = grouped(a_pod(), job).gang.problems
    assert problem.startswith(f"annotation {key} of Job ")
    assert fault in problem


def test_pods_of_a_deployment_are_gangs_of_their_own_unless_asked() -> None:
    """Services start pod by pod; with a minimum the pods of a Deployment are one gang."""
    replica_set = an_owner("apps/v1/ReplicaSet", "web-1")
    plain = grouped(a_pod("web-1-a"), replica_set, an_owner("apps/v1/Deployment", "web")).gang
    asked = an_owner("apps/v1/Deployment", "web", spec={"replicas": 3}, annotations={"kai.scheduler/min-member": "3"})
    together = grouped(a_pod("web-1-a"), replica_set, asked).gang
    assert (plain.name, plain.shape.min_member, plain.attributes.priority_class) == (
        "pg-web-1-a-uid-web-1-a",
        1,
        "inference",
    )
    assert (together.name, together.shape.min_member) == ("pg-web-uid-web", 3)


def test_a_stateful_set_that_starts_in_order_needs_one_pod_at_a_time() -> None:
    """Pod 1 is made only when pod 0 is ready, so a larger floor would never be met."""
    spec: JSON = {"replicas": 4, "podManagementPolicy": "OrderedReady"}
    asked = {"kai.scheduler/min-member": "4"}
    in_order = grouped(a_pod(), an_owner("apps/v1/StatefulSet", spec=spec, annotations=asked)).gang
    at_once = an_owner("apps/v1/StatefulSet", spec={**spec, "podManagementPolicy": "Parallel"}, annotations=asked)
    assert in_order.shape.min_member == 1
    assert in_order.problems
    assert grouped(a_pod(), at_once).gang.shape.min_member == 4


def test_what_stands_above_a_known_kind_is_looked_through() -> None:
    """A wrapper of an unknown kind does not cost a workload its gang, and its queue is inherited."""
    job = an_owner("kubeflow.org/v1/TFJob", "train", spec={"tfReplicaSpecs": {"Worker": {"replicas": 3}}})
    wrapper = an_owner("example.com/v1/Wrapper", "wrap", labels={"kai.scheduler/queue": "team"})
    found = grouped(a_pod(), job, wrapper).gang
    assert (found.name, found.shape.min_member, found.attributes.queue) == ("pg-train-uid-train", 3, "team")


def test_a_job_of_a_cron_job_keeps_its_minimum_and_inherits_the_queue() -> None:
    """Each run of a CronJob is a gang of its own, as its Job says."""
    job = an_owner(
        "batch/v1/Job", "run-1", spec={"parallelism": 3}, annotations={"kai.scheduler/batch-min-member": "3"}
    )
    cron = an_owner("batch/v1/CronJob", "run", labels={"kai.scheduler/queue": "nightly"})
    found = grouped(a_pod(), job, cron).gang
    assert (found.name, found.shape.min_member, found.attributes.queue) == ("pg-run-1-uid-run-1", 3, "nightly")


def jobset(**spec: object) -> object:
    def job(name: str, pods: int, **more: object) -> JSON:
        return {"name": name, "replicas": 2, "template": {"spec": {"parallelism": pods}}, **more}

    depends = spec.pop("depends", None)
    second = job("b", 4, **({"dependsOn": [{"name": "a", "status": "Complete"}]} if depends else {}))
    return an_owner("jobset.x-k8s.io/v1alpha2/JobSet", spec={"replicatedJobs": [job("a", 1), second], **spec})


def test_pods_of_a_workload_are_looked_at_once_however_many_roles_wait_for_others() -> None:
    """What starts later counts with its first pod: for all such roles together the other pods are gone through once."""
    names = [f"r{number}" for number in range(30)]
    jobs = [{"name": name, "replicas": 1, "template": {"spec": {"parallelism": 1}}} for name in names]
    spec = {"replicatedJobs": jobs, "startupPolicy": {"startupPolicyOrder": "InOrder"}}
    owner = an_owner("jobset.x-k8s.io/v1alpha2/JobSet", spec=spec)
    made = [
        a_pod(name, labels={"jobset.sigs.k8s.io/replicatedjob-name": name, "jobset.sigs.k8s.io/job-index": "0"})
        for name in names[:20]
    ]
    looked_at: list[str] = []

    def peers(*_: object) -> Iterator[Pod]:
        for pod in made:
            looked_at.append(pod.metadata.name)
            yield pod

    parts = grouped(made[0], owner, peers=peers).gang.shape.sub_groups
    assert [each.name for each in parts if each.parent is None and each.counts] == names[:20]
    assert looked_at == names[:20]


@pytest.mark.parametrize("later", [{"depends": True}, {"startupPolicy": {"startupPolicyOrder": "InOrder"}}])
def test_replicated_jobs_that_start_later_are_needed_once_they_exist(later: JSON) -> None:
    """A JobSet whose parts are made one after the other does not wait for itself."""
    first = {**JOBSET_LABELS, "jobset.sigs.k8s.io/replicatedjob-name": "a"}
    before = grouped(a_pod(labels=first), jobset(**later)).gang  # type: ignore[arg-type]
    after = grouped(a_pod(labels=JOBSET_LABELS), jobset(**later)).gang  # type: ignore[arg-type]
    assert [each.name for each in before.shape.sub_groups if each.counts] == ["a", "a-replica-0", "a-replica-1"]
    assert (before.shape.min_sub_group, after.shape.min_sub_group) == (1, 2)


def test_workers_that_wait_for_their_leader_are_needed_once_one_exists() -> None:
    """With LeaderReady the leader starts alone; the floor grows with the first worker and falls when all are gone."""
    lws = an_owner(
        "leaderworkerset.x-k8s.io/v1/LeaderWorkerSet",
        spec={"startupPolicy": "LeaderReady", "leaderWorkerTemplate": {"size": 4}},
    )
    index = "leaderworkerset.sigs.k8s.io/worker-index"
    leader, worker = a_pod("l", labels={index: "0"}, nodeName="n"), a_pod("w", labels={index: "1"})
    going = a_pod("w", labels={index: "1"}, deletionTimestamp="2026-01-01T00:00:00Z")
    assert grouped(leader, lws).gang.shape.min_member == 1
    assert grouped(leader, lws, peers=lambda owner, pod: [worker]).gang.shape.min_member == 4
    assert grouped(leader, lws, peers=lambda owner, pod: [going]).gang.shape.min_member == 1


def test_each_replica_of_a_leader_worker_set_is_as_large_as_its_pods_say() -> None:
    """A size that is changed holds for replicas that are made anew; those that run keep theirs until their turn."""
    lws = an_owner("leaderworkerset.x-k8s.io/v1/LeaderWorkerSet", spec={"leaderWorkerTemplate": {"size": 4}})
    roles = RememberedRoles()

    def least(**annotations: str) -> int | None:
        labels = {"leaderworkerset.sigs.k8s.io/worker-index": "0"}
        return grouped(a_pod(labels=labels, annotations=annotations), lws, roles=roles).gang.shape.min_member

    size = "leaderworkerset.sigs.k8s.io/size"
    assert [least(**{size: "2"}), least(**{size: "4"}), least(**{size: "2"}), least()] == [2, 4, 2, 4]
    with pytest.raises(RuleRefused, match="size of the pod: found 'two'"):
        least(**{size: "two"})


def test_segments_of_a_replica_are_as_large_as_its_pods_say() -> None:
    """A larger segment is for replicas that are made anew: one that runs was refused, as it has too few pods for it."""
    spec = {"leaderWorkerTemplate": {"size": 8, "subGroupPolicy": {"subGroupSize": 8}}}
    lws = an_owner("leaderworkerset.x-k8s.io/v1/LeaderWorkerSet", spec=spec)
    labels = {"leaderworkerset.sigs.k8s.io/worker-index": "3"}
    made = {f"leaderworkerset.sigs.k8s.io/{key}": number for key, number in (("size", "4"), ("subgroup-size", "2"))}
    assert grouped(a_pod(labels=labels, annotations=made), lws).sub_group == "segment-1"


def ray(name: str = "ray", **group: object) -> object:
    return an_owner("ray.io/v1/RayCluster", name, spec={"workerGroupSpecs": [{"groupName": "gpu", **group}]})


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        ({"replicas": 4, "minReplicas": 2}, {"headgroup": 1, "gpu": 2}),
        ({"replicas": 4, "minReplicas": 0}, {"headgroup": 1, "gpu": 4}),
        ({"replicas": 4, "minReplicas": 2, "numOfHosts": 3}, {"headgroup": 1, "gpu": 6}),
        ({"replicas": 0, "minReplicas": 0}, {"headgroup": 1}),
        ({"replicas": 4, "suspend": True}, {"headgroup": 1}),
    ],
)
def test_the_groups_of_a_ray_cluster_have_floors_of_their_own(group: JSON, expected: JSON) -> None:
    """Scaling a worker group changes its floor; one that is suspended or empty is not needed."""
    assert floors(grouped(a_pod(labels={"ray.io/group": "headgroup"}), ray(**group))) == expected  # type: ignore[arg-type]


def test_the_submitter_of_a_ray_job_is_a_gang_of_its_own() -> None:
    """A pod of no Ray group does not wait for the cluster that it submits to."""
    job = an_owner("ray.io/v1/RayJob", "job", status={"rayClusterName": "ray"})
    found = grouped(a_pod(), job, find=lambda kind, namespace, name: ray(replicas=2))
    assert found.alone


def test_each_cluster_of_a_ray_service_is_a_gang() -> None:
    """During an upgrade the pods of the new cluster are counted by the new cluster."""
    clusters = {"old": ray("old", replicas=2), "new": ray("new", replicas=5)}
    service = an_owner("ray.io/v1/RayService", "svc", status={"activeServiceStatus": {"rayClusterName": "old"}})

    def gang(cluster: str) -> tuple[str, int | None]:
        pod = a_pod(labels={"ray.io/cluster": cluster, "ray.io/group": "gpu"})
        found = grouped(pod, service, find=lambda kind, namespace, name: clusters[name]).gang
        return found.name, found.shape.min_member

    assert [gang("old"), gang("new")] == [("pg-svc-uid-svc-old", 3), ("pg-svc-uid-svc-new", 6)]


def test_a_ray_job_whose_cluster_is_not_there_yet_is_refused_with_its_name() -> None:
    """The pod says what it waits for."""
    job = an_owner("ray.io/v1/RayJob", "job", status={"rayClusterName": "ray-1"})
    with pytest.raises(RuleRefused, match="RayCluster ray-1 does not exist yet"):
        grouped(a_pod(), job)


def test_the_driver_of_a_spark_application_is_alone_and_its_executors_are_a_gang() -> None:
    """The driver makes the executors, so it cannot wait for them."""
    application = an_owner(
        "sparkoperator.k8s.io/v1beta2/SparkApplication",
        spec={"executor": {"instances": 6}, "dynamicAllocation": {"minExecutors": 2}},
    )
    executor = grouped(a_pod(labels={"spark-role": "executor"}), application)
    assert grouped(a_pod(labels={"spark-role": "driver"}), application).alone
    assert (executor.sub_group, executor.gang.shape.min_member, executor.alone) == ("executor", 2, False)


def test_bare_pods_form_the_gang_they_name() -> None:
    """Pods without an owner say by a label which gang they are in, and by an annotation how many it needs."""
    pod = a_pod(labels={"spinney.dev/gang": "sweep"}, annotations={"kai.scheduler/min-member": "3"})
    found = grouped(pod).gang
    assert (found.name, found.shape.min_member) == ("sweep", 3)


def test_bare_pods_that_disagree_are_named() -> None:
    """The first pod by its name says how many are needed; the gang says which pods ask for another number."""
    pods = [
        a_pod(name, labels={"spinney.dev/gang": "sweep"}, annotations={"kai.scheduler/min-member": asked})
        for name, asked in (("a", "3"), ("b", "2"), ("c", "3"), ("d", "many"))
    ]
    found = grouped(pods[0], peers=lambda owner, pod: pods).gang
    assert found.shape.min_member == 3
    assert found.problems == ("needs 3 pods, as pod a says; pod b says 2",)


@pytest.mark.parametrize(("failed", "needed"), [("", 4), ("1", 3), ("0,2-3", 1), ("0-3", 1)])
def test_a_job_does_not_need_the_indexes_that_failed_for_good(failed: str, needed: int) -> None:
    """An indexed Job goes on without them (``backoffLimitPerIndex``), so its gang does."""
    job = an_owner(
        "batch/v1/Job",
        spec={"completions": 4, "parallelism": 4, "completionMode": "Indexed"},
        status={"failedIndexes": failed} if failed else {},
        annotations={"kai.scheduler/batch-min-member": "4"},
    )
    assert grouped(a_pod(), job).gang.shape.min_member == needed


def test_an_unknown_priority_class_is_passed_over_and_reported() -> None:
    """The next name is tried, and the gang says which one does not exist."""
    job = an_owner("batch/v1/Job", labels={"priorityClassName": "gone"})
    found = grouped(a_pod(priorityClassName="here"), job, priority_classes={"here"}).gang
    assert found.attributes.priority_class == "here"
    assert "'gone', which does not exist" in found.problems[0]


def test_a_nearer_owner_says_the_priority_before_a_higher_one_and_the_pod_comes_last() -> None:
    """Labels of the chain are looked at nearest first, then the pod's label and spec."""
    near = an_owner("batch/v1/Job", "near", labels={"priorityClassName": "near"})
    far = an_owner("batch/v1/CronJob", "far", labels={"priorityClassName": "far"})
    classes = {"near", "far", "pod"}
    pod = a_pod(labels={"priorityClassName": "pod"})
    assert grouped(pod, near, far, priority_classes=classes).gang.attributes.priority_class == "near"
    bare = an_owner("batch/v1/Job", "near")
    assert grouped(pod, bare, far, priority_classes=classes).gang.attributes.priority_class == "far"
