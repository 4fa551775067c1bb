"""Whatever numbers a workload has, its pods agree on their gang, and the gang can be had with them."""

from collections import Counter
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from spinney.api.core import Pod
from spinney.api.struct import JSON
from spinney.grouping.attributes import Conventions
from spinney.grouping.describing import Grouping, describe
from spinney.grouping.loading import built_in
from spinney.grouping.made_gangs import pods_made
from spinney.grouping.owners import Owner
from spinney.grouping.podgangs import needed, pod_gang
from spinney.grouping.world import World

COUNT = st.integers(1, 6)
TEMPLATE: JSON = {"spec": {"containers": [{"name": "c", "image": "i"}]}}


def workload(kind: str, spec: JSON) -> JSON:
    """Return a manifest; ``kind`` is apiVersion and kind."""
    api_version, _, name = kind.rpartition("/")
    return {
        "apiVersion": api_version,
        "kind": name,
        "metadata": {"name": "w", "namespace": "n", "uid": "u"},
        "spec": spec,
    }


def role(count: int, **more: Any) -> JSON:
    """Return a role of a Kubeflow job."""
    return {"replicas": count, "template": TEMPLATE, **more}


JOBSETS = st.lists(st.tuples(COUNT, COUNT), min_size=1, max_size=3).map(
    lambda sizes: workload(
        "jobset.x-k8s.io/v1alpha2/JobSet",
        {
            "replicatedJobs": [
                {"name": f"j{n}", "replicas": groups, "template": {"spec": {"parallelism": pods, "template": TEMPLATE}}}
                for n, (groups, pods) in enumerate(sizes)
            ]
        },
    )
)
LEADER_WORKER_SETS = st.tuples(COUNT, st.integers(1, 9), st.none() | st.integers(2, 4)).map(
    lambda drawn: workload(
        "leaderworkerset.x-k8s.io/v1/LeaderWorkerSet",
        {
            "replicas": drawn[0],
            "leaderWorkerTemplate": {
                "size": drawn[1],
                "workerTemplate": TEMPLATE,
                "subGroupPolicy": {"subGroupSize": min(drawn[2], drawn[1])} if drawn[2] and drawn[1] > 2 else {},
            },
        },
    )
)
RAY_CLUSTERS = st.lists(st.tuples(COUNT, COUNT), max_size=3).map(
    lambda groups: workload(
        "ray.io/v1/RayCluster",
        {
            "headGroupSpec": {"template": TEMPLATE},
            "workerGroupSpecs": [
                {"groupName": f"g{n}", "replicas": max(sizes), "minReplicas": min(sizes), "template": TEMPLATE}
                for n, sizes in enumerate(groups)
            ],
        },
    )
)
TORCH_JOBS = st.tuples(COUNT, COUNT, st.none() | COUNT).map(
    lambda drawn: workload(
        "kubeflow.org/v1/PyTorchJob",
        {
            "pytorchReplicaSpecs": {"Master": role(drawn[0]), "Worker": role(drawn[1])},
            **({"elasticPolicy": {"minReplicas": min(drawn[2], sum(drawn[:2]))}} if drawn[2] else {}),
        },
    )
)
OTHERS = st.one_of(
    st.tuples(COUNT, COUNT).map(
        lambda n: workload("kubeflow.org/v1/TFJob", {"tfReplicaSpecs": {"PS": role(n[0]), "Worker": role(n[1])}})
    ),
    st.tuples(COUNT, COUNT).map(
        lambda n: workload(
            "kubeflow.org/v1/MPIJob", {"mpiReplicaSpecs": {"Launcher": role(n[0]), "Worker": role(n[1])}}
        )
    ),
    COUNT.map(lambda n: workload("batch/v1/Job", {"parallelism": n, "completions": n, "template": TEMPLATE})),
)


def groupings(manifest: JSON) -> list[tuple[Pod, Grouping]]:
    """Return every pod that a workload makes, with its gang."""
    owner = msgspec.convert({**manifest, "status": {}}, type=Owner)
    rule = built_in().rules[owner.group_kind]
    pods = [msgspec.convert(each, type=Pod) for each in pods_made(manifest, rule)]
    world = World(peers=lambda owner, pod: pods)
    return [(pod, describe(pod, (owner,), built_in(), Conventions(), world)) for pod in pods]


@given(st.one_of(JOBSETS, LEADER_WORKER_SETS, RAY_CLUSTERS, TORCH_JOBS, OTHERS))
def test_the_pods_of_a_workload_agree_and_are_enough(manifest: JSON) -> None:
    """All pods of a gang see the same gang; each is in a part of it, and no part needs more pods than it has."""
    found = groupings(manifest)
    for name in {grouping.gang.name for _, grouping in found}:
        members = [grouping for _, grouping in found if grouping.gang.name == name]
        gang = members[0].gang
        assert len({msgspec.json.encode(pod_gang(each.gang, "s", {})) for each in members}) == 1
        leaves = {group.name: group.min_member for group in gang.shape.sub_groups if group.min_member is not None}
        had = Counter(each.sub_group for each in members)
        assert not any(each.alone for each in members)
        known: set[str | None] = set(leaves) if leaves else {None}
        assert set(had) <= known
        assert all(had[leaf] >= floor for leaf, floor in leaves.items())
        assert 1 <= needed(gang) <= len(members)
