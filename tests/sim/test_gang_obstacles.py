"""Whatever keeps a gang out is named as it is for a single pod, whoever places the gang."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from spinney.api.struct import JSON, to_json
from spinney.explain.rendering import as_text
from spinney.gangs.tree import Member
from spinney.runtime import Runtime
from spinney.scheduler import NodeInfo, NodeSet, Plugin, PodGroupInfo, PodInfo, Session
from spinney.sim import Cluster
from spinney.sim.advice.advice import Advisor
from spinney.sim.advice.answer import Answer
from spinney.sim.advice.subjects import find
from spinney.sim.policies.files import with_plugins
from spinney.sim.whatif.simulation import matching_profile
from tests.sim.test_remedies import SCHEDULERS, manifest

SESSIONS = ("spinney", "kai")
FAMILIES = (*SESSIONS, "native", "coscheduling")


@pytest.fixture(scope="module")
def runtime() -> Iterator[Runtime]:
    """Time for simulations."""
    found = Runtime.system()
    yield found
    found.executor.close()


def a_gang(family: str, *, queue: str = "default-queue", **spec: Any) -> list[JSON]:
    """Return a gang of two pods of 8 GPUs, as the family describes one."""
    name = "train"
    containers = [{"name": "c", "resources": {"requests": {"nvidia.com/gpu": "8"}}}]
    spec = {"schedulerName": SCHEDULERS[family], "containers": containers, **spec}
    labels, annotations = {"kai.scheduler/queue": queue}, {}
    match family:
        case "spinney":
            body: JSON = {"podgroups": [{"name": "w", "podReferences": [], "minReplicas": 2}]}
            group = manifest("scheduler.grove.io/v1alpha1", "PodGang", name, "default", labels=labels, spec=body)
            labels = {**labels, "grove.io/podgang": name, "grove.io/podclique": "w"}
        case "kai":
            body = {"minMember": 2, "queue": queue}
            group = manifest("scheduling.run.ai/v2alpha2", "PodGroup", name, "default", spec=body)
            annotations = {"pod-group-name": name}
        case "native":
            body = {"schedulingPolicy": {"gang": {"minCount": 2}}}
            group = manifest("scheduling.k8s.io/v1beta1", "PodGroup", name, "default", spec=body)
            spec["schedulingGroup"] = {"podGroupName": name}
        case _:
            group = manifest("scheduling.x-k8s.io/v1alpha1", "PodGroup", name, "default", spec={"minMember": 2})
            labels = {**labels, "scheduling.x-k8s.io/pod-group": name}
    pods = [
        manifest("v1", "Pod", f"{name}-{number}", "default", labels=labels, annotations=annotations, spec=spec)
        for number in range(2)
    ]
    return [group, *pods]


def two_nodes(**spec: Any) -> Cluster:
    """Return two nodes that would do, but for what ``spec`` adds to theirs."""
    cluster = Cluster("2x8")
    for node in cluster.snapshot().nodes:
        changed = to_json(node)
        changed["spec"] = {**changed.get("spec", {}), **spec}
        cluster.submit(changed)
    return cluster


def told(cluster: Cluster, runtime: Runtime, plugins: tuple[type[Plugin], ...] = ()) -> tuple[Answer, str]:
    """Return what is said about the gang: the answer, and its reasons as text."""
    snapshot = cluster.snapshot()
    config, registry = with_plugins(matching_profile(snapshot), plugins)
    answer = Advisor(snapshot, config, runtime=runtime, registry=registry).answer(find(snapshot, "train"))
    return answer, "\n".join((*answer.sentences, *map(as_text, answer.explanations)))


OBSTACLES: dict[str, tuple[Callable[[], Cluster], JSON, str]] = {
    "cordon": (lambda: two_nodes(unschedulable=True), {}, "gpu-000 is cordoned"),
    "taint": (
        lambda: two_nodes(taints=[{"key": "team", "value": "a", "effect": "NoSchedule"}]),
        {},
        "gpu-000 has the taint team=a:NoSchedule, not tolerated by the pod",
    ),
    "selector": (two_nodes, {"nodeSelector": {"disk": "ssd"}}, "gpu-000 lacks the label disk=ssd"),
    "affinity": (
        two_nodes,
        {
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": "gpu", "operator": "In", "values": ["h100", "b200"]}]}
                        ]
                    }
                }
            }
        },
        "gpu-000 does not match the pod's node affinity: gpu in (h100, b200)",
    ),
    "volume": (
        two_nodes,
        {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "dataset"}}]},
        'persistentvolumeclaim "dataset" not found',
    ),
    "claim": (two_nodes, {"resourceClaims": [{"name": "gpu", "resourceClaimName": "gpus"}]}, "gpus"),
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("obstacle", OBSTACLES)
def test_what_keeps_a_gang_out_is_named(family: str, obstacle: str, runtime: Runtime) -> None:
    """The node, the taint, the label, the volume or the claim stands in the reasons, for gangs of every scheduler."""
    nodes, spec, words = OBSTACLES[obstacle]
    cluster = nodes()
    cluster.submit(*a_gang(family, **spec))

    answer, text = told(cluster, runtime)

    assert answer.state == "pending"
    assert words in text
    assert "what it waits for is not known" not in text


APART: dict[str, tuple[JSON, str]] = {
    "port": (
        {"containers": [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}]},
        "2 pods of it use host port 80, so each needs a node of its own; 1 can take one",
    ),
    "anti-affinity": (
        {
            "containers": [{"name": "c"}],
            "affinity": {
                "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [
                        {
                            "labelSelector": {"matchLabels": {"kai.scheduler/queue": "default-queue"}},
                            "topologyKey": "topology.kubernetes.io/rack",
                        }
                    ]
                }
            },
        },
        "2 pods of it avoid each other by their anti-affinity, so each needs a rack of its own; 1 can take one",
    ),
}


@pytest.mark.parametrize("family", SESSIONS)
@pytest.mark.parametrize("rule", APART)
def test_pods_that_keep_each_other_out_are_told_so(family: str, rule: str, runtime: Runtime) -> None:
    """Each of them has room as long as the other has none; the rule is named, and room is not claimed for both."""
    spec, words = APART[rule]
    cluster = Cluster("1x8")
    cluster.submit(*a_gang(family, **spec))

    answer, text = told(cluster, runtime)

    assert answer.state == "pending"
    assert words in text
    assert "1 of 2 pods found room" in text
    assert "add 1 node like gpu-000 (8 GPUs each)" in "\n".join(each.text for each in answer.remedies)


@pytest.mark.parametrize("family", SESSIONS)
def test_a_queue_that_does_not_exist_is_named(family: str, runtime: Runtime) -> None:
    """A gang that names a queue nobody made is told so; to make it, and to name another, was tried."""
    cluster = two_nodes()
    cluster.queue("real", quota=-1)
    cluster.submit(*a_gang(family, queue="nowhere"))

    answer, text = told(cluster, runtime)

    assert "queue nowhere does not exist" in text
    assert [each.text for each in answer.remedies] == [
        "create queue nowhere, with no quota and no limit",
        "submit it to queue real",
    ]


class Maintenance(Plugin):
    """Refuses every node, with words of its own."""

    name = "maintenance"

    def on_session_open(self, session: Session) -> None:
        session.add_predicate_fn(closed_on_mondays)


def closed_on_mondays(task: PodInfo, job: PodGroupInfo, node: NodeInfo) -> str | None:
    return "the racks are being moved until noon"


@pytest.mark.parametrize("family", SESSIONS)
def test_a_plugin_is_quoted(family: str, runtime: Runtime) -> None:
    """What a plugin has against every node is said in its words, and nothing is recommended that it would refuse."""
    cluster = two_nodes()
    cluster.submit(*a_gang(family))

    answer, text = told(cluster, runtime, (Maintenance,))

    assert "the racks are being moved until noon" in text
    assert not answer.remedies


class Halves(Plugin):
    """Has a gang use one of the two nodes."""

    name = "halves"

    def on_session_open(self, session: Session) -> None:
        session.add_subset_nodes_fn(one_by_one)


def one_by_one(
    job: PodGroupInfo, group: Member, tasks: Sequence[PodInfo], node_set: NodeSet
) -> Sequence[NodeSet] | None:
    if group is not job.root:
        return None
    return [node_set.where(node_set.labelled("kubernetes.io/hostname", node.name)) for node in node_set]


@pytest.mark.parametrize("family", SESSIONS)
def test_a_plugin_that_divides_the_nodes_is_named(family: str, runtime: Runtime) -> None:
    """Where the cluster has room and no set of nodes that a plugin allows has, that plugin is said to be in the way."""
    cluster = two_nodes()
    cluster.submit(*a_gang(family))

    _, text = told(cluster, runtime, (Halves,))

    assert "plugin halves keeps its pods on one part of the nodes, and no part has room for all of them" in text
    assert "what it waits for is not known" not in text


def a_sharing_pod(name: str, family: str, **annotations: str) -> JSON:
    """Return a pod that asks for parts of GPUs."""
    spec = {"schedulerName": SCHEDULERS[family], "containers": [{"name": "c"}]}
    return manifest("v1", "Pod", name, "default", annotations=annotations, spec=spec)


@pytest.mark.parametrize("family", SESSIONS)
@pytest.mark.parametrize(
    ("wanted", "lacking"),
    [
        ({"gpu-fraction": "0.6"}, "1 share of 0.6 GPU"),
        ({"gpu-fraction": "0.5", "gpu-fraction-num-devices": "2"}, "1 share of 2 x 0.5 GPU"),
    ],
)
def test_a_part_of_a_gpu_that_is_lacking_has_an_amount(
    family: str, wanted: dict[str, str], lacking: str, runtime: Runtime
) -> None:
    """A pod that finds no part of a GPU is told which, and that its node could take it once others are gone."""
    cluster = Cluster("1x2")
    cluster.submit(*(a_sharing_pod(f"old-{each}", family, **{"gpu-fraction": "0.6"}) for each in range(2)))
    cluster.step()
    cluster.submit(a_sharing_pod("train", family, **wanted))

    answer, text = told(cluster, runtime)

    assert f"gpu-000 lacks {lacking}" in text
    assert "the pod found no room" in text
    assert "1 may fit once pods are evicted" in text
    assert any(each.text.startswith("end default/old") for each in answer.remedies)


@pytest.mark.parametrize("family", SESSIONS)
def test_a_part_of_a_gpu_that_no_gpu_has_is_not_freed_by_evicting(family: str, runtime: Runtime) -> None:
    """More memory than a GPU has is not there when the node is empty either."""
    cluster = Cluster("1x2")
    cluster.submit(a_sharing_pod("train", family, **{"gpu-memory": "400000"}))

    answer, text = told(cluster, runtime)

    assert "too small for the rest even when empty" in text
    assert "may fit once pods are evicted" not in text
    assert answer.remedies == ()


@pytest.mark.parametrize(
    ("requests", "said"),
    [
        ({"nvidia.com/gpu": "16"}, "the pod requests 16 GPUs, but the largest node offers 8 GPUs"),
        ({"cpu": "2000"}, "the pod requests 2000 CPU cores, but the largest node offers 96 CPU cores"),
        ({"memory": "8Ei"}, "the pod requests 64 TiB of memory or more, but the largest node offers"),
        ({"example.com/npu": "1"}, "the pod requests 1 example.com/npu, but no node offers any"),
    ],
)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_pod_that_is_larger_than_every_node_is_told_so(
    family: str, requests: dict[str, str], said: str, runtime: Runtime
) -> None:
    """Whoever places it: that no node is large enough is said, with both amounts."""
    cluster = two_nodes()
    cluster.submit(*a_gang(family, containers=[{"name": "c", "resources": {"requests": requests}}]))

    answer, text = told(cluster, runtime)

    assert said in text
    assert answer.remedies == ()
