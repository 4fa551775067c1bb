"""Whatever is recommended lets the gang start, is as small as it is said to be, and nothing that helps is withheld.

The oracle makes small clusters at random, applies the patches of each remedy to the objects as JSON, and lets the
schedulers run on what comes out. ``SPINNEY_REMEDIES`` says how many clusters; the suite takes a few of each kind.
"""

import json
import os
import random
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import msgspec
import pytest

from spinney.api.labels import EXPECTED_DURATION
from spinney.api.merge_patch import merge
from spinney.api.struct import JSON, to_json
from spinney.cli.bodies.why import remedy_lines
from spinney.explain.rendering import as_text
from spinney.gangs.tree import GangKey
from spinney.runtime import Runtime
from spinney.sim import Cluster
from spinney.sim.advice.advice import Advisor
from spinney.sim.advice.answer import Answer
from spinney.sim.advice.subjects import find
from spinney.sim.embedded.shapes import BLOCK, RACK, topology_binding
from spinney.sim.remedies.change import Maker, Remedy, maker_of
from spinney.sim.remedies.search import Findings, remedies
from spinney.sim.remedies.trial import progress
from spinney.sim.snapshots.snapshot import BY_NAME, ClusterSnapshot, identity, projected
from spinney.sim.whatif.simulation import Simulation

CLUSTERS = int(os.environ.get("SPINNEY_REMEDIES", "2"))
FAMILIES = ("spinney", "kai", "native", "coscheduling", "pod")
SCHEDULERS = {
    "spinney": "spinney-scheduler",
    "kai": "kai-scheduler",
    "native": "default-scheduler",
    "coscheduling": "default-scheduler",
    "pod": "spinney-scheduler",
}


@pytest.fixture(scope="module")
def runtime() -> Iterator[Runtime]:
    """Time for simulations."""
    found = Runtime.system()
    yield found
    found.executor.close()


def found_for(snapshot: ClusterSnapshot, name: str, runtime: Runtime, best: int = 20) -> tuple[GangKey, Findings]:
    """Return the gang of that name that waits, and what would let it start."""
    advisor = Advisor(snapshot, runtime=runtime, best=0)
    waiting = next(each for each in advisor.cycle.waiting if each.gang.name == name)
    found = remedies(snapshot, waiting.gang, None, runtime=runtime, explanation=waiting.explanation, best=best)
    return waiting.gang, found


def carried_out(snapshot: ClusterSnapshot, remedy: Remedy) -> ClusterSnapshot:
    """Return the cluster after the patches of a remedy, applied to the objects as JSON."""
    for patch in remedy.patches:
        resource = BY_NAME.get((patch.api_version, patch.kind))
        if resource is None:  # what pods are made from: these go with it
            made = Maker(patch.namespace, patch.api_version, patch.kind, patch.name)
            snapshot = snapshot.without_objects([pod for pod in snapshot.pods if maker_of(pod) == made])
            continue
        present = next(
            (each for each in snapshot.objects[resource] if identity(each) == (patch.namespace, patch.name)), None
        )
        if patch.delete:
            snapshot = snapshot.without_objects([present])
        elif patch.create is not None:
            snapshot = snapshot.with_objects([projected(resource, patch.create)])
        else:
            snapshot = snapshot.with_objects([projected(resource, merge(to_json(present), patch.merge))])
    return snapshot


def starts(snapshot: ClusterSnapshot, gang: GangKey, runtime: Runtime) -> bool:
    """Tell whether the schedulers place the minimum of a gang."""
    simulation = Simulation(snapshot, runtime=runtime)
    simulation.run()
    return progress(simulation, gang)[0]


# -- examples ----------------------------------------------------------------------------------------------------------


def texts(cluster: Cluster, name: str, runtime: Runtime) -> list[str]:
    """Return the remedies for a gang of a cluster, in words."""
    return [each.text for each in found_for(cluster.snapshot(), name, runtime)[1].remedies]


def test_a_cordoned_node_is_all_it_takes(runtime: Runtime) -> None:
    """Where uncordoning a node lets the gang in, that comes first, with the command."""
    cluster = Cluster("4x8")
    cluster.gang("train", pods=4, gpus=8)
    node = to_json(cluster.snapshot().nodes[2])
    node["spec"] = {"unschedulable": True}
    cluster.submit(node)

    _, found = found_for(cluster.snapshot(), "train", runtime)

    assert found.remedies[0].text == "uncordon gpu-002"
    assert found.remedies[0].changes[0].command == "kubectl uncordon gpu-002"


def test_a_limit_is_raised_in_every_queue_that_needs_it(runtime: Runtime) -> None:
    """A limit of the parent is raised with that of the queue, each by as much as it takes, and only where it is low."""
    cluster = Cluster("4x8")
    cluster.queue("org", quota=8, limit=20)
    cluster.queue("team", quota=8, limit=16, parent="org")
    cluster.gang("train", pods=3, gpus=8, queue="team")

    assert (
        "raise the limit of queue team from 16 to 24 GPUs, and raise the limit of queue org from 20 to 24 GPUs"
        in texts(cluster, "train", runtime)
    )


def test_the_command_raises_the_limit(runtime: Runtime) -> None:
    """What is raised has a command, like all that kubectl can do."""
    cluster = Cluster("4x8")
    cluster.queue("team", quota=8, limit=16)
    cluster.gang("train", pods=3, gpus=8, queue="team")

    _, found = found_for(cluster.snapshot(), "train", runtime)

    assert [change.command for remedy in found.remedies for change in remedy.changes if change.lever == "limit"] == [
        "kubectl patch queue.v2.scheduling.run.ai team --type merge -p "
        """'{"spec":{"resources":{"gpu":{"limit":24}}}}'"""
    ]


def test_a_queue_that_does_not_exist_is_created(runtime: Runtime) -> None:
    """A gang of a missing queue starts once the queue exists, beside the others, or once it names another one."""
    cluster = Cluster("4x8")
    cluster.queue("org", quota=8)
    cluster.queue("team", quota=8, parent="org")
    cluster.gang("train", pods=2, gpus=4, queue="research")

    gang, found = found_for(cluster.snapshot(), "train", runtime)

    assert [each.text for each in found.remedies] == [
        "create queue research below queue org, with no quota and no limit",
        "submit it to queue team",
    ]
    created = found.remedies[0]
    (patch,) = created.patches
    assert patch.create is not None
    assert json.dumps(patch.create, separators=(",", ":")) in created.changes[0].command
    assert starts(carried_out(cluster.snapshot(), created), gang, runtime)


def test_a_created_queue_has_the_quota_that_the_gang_needs(runtime: Runtime) -> None:
    """A gang that may not be preempted needs quota, so the queue that is missing is created with it."""
    cluster = Cluster("4x8")
    cluster.queue("team", quota=8)
    cluster.submit(manifest("scheduling.k8s.io/v1", "PriorityClass", "inference", None, value=125))
    cluster.gang("serve", pods=2, gpus=4, queue="research", priority_class="inference")

    assert "create queue research, with a quota of 8 GPUs and no limit" in texts(cluster, "serve", runtime)


def test_the_parent_of_a_queue_that_does_not_exist_is_created(runtime: Runtime) -> None:
    """A queue whose parent is missing cannot be used, until the parent is there."""
    cluster = Cluster("4x8")
    cluster.queue("team", quota=8, parent="org")
    cluster.gang("train", pods=2, gpus=4, queue="team")

    assert texts(cluster, "train", runtime) == ["create queue org, with no quota and no limit"]


def test_a_single_pod_can_be_moved_to_a_queue_that_exists(runtime: Runtime) -> None:
    """The label of a pod without a gang names its queue, so a patch of the pod moves it."""
    cluster = Cluster("4x8")
    cluster.queue("team", quota=8)
    (pod,) = a_gang(random.Random(0), "solo", "pod", queues=["missing"])
    cluster.submit(pod)

    gang, found = found_for(cluster.snapshot(), "solo", runtime)

    moved = next(each for each in found.remedies if each.text == "submit it to queue team")
    assert [(each.kind, each.name) for each in moved.patches] == [("Pod", "solo")]
    assert starts(carried_out(cluster.snapshot(), moved), gang, runtime)


@pytest.mark.parametrize("attempts", range(12))
def test_a_search_that_ends_early_tells_only_what_was_tried(attempts: int, runtime: Runtime) -> None:
    """Whenever the time is over, what is recommended works, and that more could be tried is known."""
    cluster = Cluster("4x8")
    cluster.queue("org", quota=8, limit=20)
    cluster.queue("team", quota=8, limit=16, parent="org")
    cluster.gang("train", pods=3, gpus=8, queue="team")
    snapshot, gang = cluster.snapshot(), GangKey("podgang", "default", "train")
    left = iter(range(attempts))

    found = remedies(snapshot, gang, None, runtime=runtime, may_go_on=lambda _: next(left, None) is not None)

    assert found.tried == attempts
    assert not found.complete
    for remedy in found.remedies:
        assert starts(carried_out(snapshot, remedy), gang, runtime), remedy.text


def _goes_on(left: Iterator[int], seconds: float) -> bool:
    return next(left, None) is not None


def test_a_change_that_was_not_made_small_says_so(runtime: Runtime) -> None:
    """Where the time is over before less was tried, it is told; what is not told so is as small as it can be."""
    cluster = Cluster("8x8")
    cluster.gang("train", pods=2, gpus=8)
    snapshot, gang = cluster.snapshot(), GangKey("podgang", "default", "train")
    closed = (msgspec.structs.replace(node.spec, unschedulable=True) for node in snapshot.nodes)
    nodes = (msgspec.structs.replace(node, spec=spec) for node, spec in zip(snapshot.nodes, closed, strict=True))
    snapshot = snapshot.with_objects(nodes)
    whole = {each.text for each in remedies(snapshot, gang, None, runtime=runtime, best=20).remedies}
    hasty: set[str] = set()
    for attempts in range(20):
        left = iter(range(attempts))
        found = remedies(snapshot, gang, None, runtime=runtime, may_go_on=partial(_goes_on, left))
        for remedy in found.remedies:
            if remedy.smallest:
                assert remedy.text in whole
            else:
                hasty.update(remedy_lines(Answer(subject="train", remedies=(remedy,), tried=attempts, exhausted=False)))

    assert any("less may be enough: the search stopped before that was tried" in line for line in hasty)
    assert any("the search stopped early, and more could be tried with --patience" in line for line in hasty)


def test_steps_that_are_needed_together_are_one_remedy(runtime: Runtime) -> None:
    """Where a cordon and a limit are both in the way, neither is recommended alone."""
    cluster = Cluster("2x8")
    cluster.queue("team", quota=8, limit=8)
    cluster.gang("train", pods=2, gpus=8, queue="team")
    node = to_json(cluster.snapshot().nodes[1])
    node["spec"] = {"unschedulable": True}
    cluster.submit(node)

    assert "uncordon gpu-001, and raise the limit of queue team from 8 to 16 GPUs" in texts(cluster, "train", runtime)


def test_a_rack_that_is_too_small_leads_to_a_wider_level_or_more_nodes(runtime: Runtime) -> None:
    """Each remedy is as small as it can be: one level wider, two more nodes in the nearest rack."""
    cluster = Cluster("8x8")
    cluster.gang("train", pods=6, gpus=8, within="rack")

    found = texts(cluster, "train", runtime)

    assert "require one block instead of one rack" in found
    assert any(text.startswith("add 2 nodes like gpu-000 (8 GPUs each) in rack block-0.rack-") for text in found)


def test_new_nodes_are_wanted_somewhere_only_where_a_level_is_required(runtime: Runtime) -> None:
    """A gang that may lie anywhere is told how many nodes to add, and not in which rack."""
    cluster = Cluster("1x8")
    cluster.gang("train", pods=2, gpus=8)
    _, found = found_for(cluster.snapshot(), "train", runtime)
    adding = [remedy.text for remedy in found.remedies if "add " in remedy.text]

    assert adding
    assert not any(" in a new " in text or " in rack" in text for text in adding)


def test_a_workload_that_is_in_the_way_is_restarted_elsewhere(runtime: Runtime) -> None:
    """Where two workloads each hold half of a node and may not be evicted, restarting one of them makes room."""
    cluster = Cluster("2x8")
    cluster.submit(manifest("scheduling.k8s.io/v1", "PriorityClass", "build", None) | {"value": 125})
    for name in ("left", "filler", "right"):
        cluster.gang(name, gpus=4, priority_class="build")
        cluster.step()
    cluster.delete("filler")
    cluster.gang("train", gpus=8)
    _, found = found_for(cluster.snapshot(), "train", runtime)

    (moving,) = [each for each in found.remedies if each.changes[0].lever == "move"]
    assert moving.text == "restart default/left, which finds room on other nodes"
    assert moving.changes[0].command == "kubectl delete pods -n default left-0"
    assert moving.price.moved == ("default/left",)


def test_nothing_is_restarted_that_would_not_run_again(runtime: Runtime) -> None:
    """A workload whose place the gang would take, and that has no other, is only ever said to be ended."""
    cluster = Cluster("1x8")
    cluster.submit(manifest("scheduling.k8s.io/v1", "PriorityClass", "build", None) | {"value": 125})
    cluster.gang("left", gpus=4, priority_class="build")
    cluster.step()
    cluster.gang("train", gpus=8)

    assert not any("restart" in text for text in texts(cluster, "train", runtime))


def test_pods_of_a_deployment_are_ended_with_it(runtime: Runtime) -> None:
    """To delete some of its pods frees nothing for long, so the Deployment is what is ended."""
    cluster = Cluster("2x8")
    for number in range(2):
        (pod,) = a_gang(random.Random(0), f"web-{number}", "pod", plain=True)
        pod["metadata"] |= {
            "labels": {"pod-template-hash": "5d9c"},
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d9c", "uid": "r", "controller": True}
            ],
        }
        pod["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "8"}}
        cluster.submit(pod)
    cluster.step()
    cluster.gang("train", pods=1, gpus=8)

    gang, found = found_for(cluster.snapshot(), "train", runtime)

    ended = next(each for each in found.remedies if each.text == "end default/web (16 GPUs)")
    assert [(each.kind, each.name, each.delete) for each in ended.patches] == [("Deployment", "web", True)]
    assert ended.changes[0].command == "kubectl delete deployment.v1.apps web -n default"
    assert starts(carried_out(cluster.snapshot(), ended), gang, runtime)


@pytest.mark.parametrize(
    ("annotations", "deadline", "words"),
    [
        ({}, {"activeDeadlineSeconds": 7200}, "when default/old has ended"),
        ({EXPECTED_DURATION: "2h"}, {}, "when default/old has ended, by the run time stated"),
    ],
)
def test_one_can_wait_for_a_workload_whose_end_is_known(
    annotations: JSON, deadline: JSON, words: str, runtime: Runtime
) -> None:
    """A deadline, or a run time that the pods state, says until when; without either nobody is told to wait."""
    cluster = Cluster("1x8")
    container = {"name": "c", "resources": {"limits": {"nvidia.com/gpu": "8"}}}
    spec = {"nodeName": "gpu-000", "containers": [container], **deadline}
    status = {"phase": "Running", "startTime": "2026-01-01T10:00:00Z"}
    cluster.submit(manifest("v1", "Pod", "old", "default", annotations=annotations, spec=spec, status=status))
    cluster.gang("train", gpus=8)

    _, found = found_for(cluster.snapshot(), "train", runtime)

    waiting = next(each for each in found.remedies if each.text == f"wait until 2026-01-01 12:00 UTC, {words}")
    assert waiting.patches == ()  # nobody has to change anything


def test_nobody_waits_for_pods_that_come_back(runtime: Runtime) -> None:
    """A deadline ends the pod of a controller that makes another one then, so waiting for it frees nothing."""
    cluster = Cluster("1x8")
    container = {"name": "c", "resources": {"limits": {"nvidia.com/gpu": "8"}}}
    spec = {"nodeName": "gpu-000", "containers": [container], "activeDeadlineSeconds": 7200}
    status = {"phase": "Running", "startTime": "2026-01-01T10:00:00Z"}
    pod = manifest("v1", "Pod", "old", "default", spec=spec, status=status)
    owner = {"apiVersion": "grove.io/v1alpha1", "kind": "PodClique", "name": "old", "uid": "o", "controller": True}
    pod["metadata"]["ownerReferences"] = [owner]
    cluster.submit(pod)
    cluster.gang("train", gpus=8)

    assert not any("wait until" in text for text in texts(cluster, "train", runtime))


def test_a_gang_that_starts_by_itself_is_told_so(runtime: Runtime) -> None:
    """A gang that only waits for evictions under way needs no change."""
    cluster = Cluster("2x8")
    cluster.gang("train", pods=2, gpus=8)

    found = remedies(cluster.snapshot(), GangKey("podgang", "default", "train"), None, runtime=runtime)

    assert found.starts_anyway


def test_a_large_gang_takes_few_attempts(runtime: Runtime) -> None:
    """The search begins where arithmetic says that a change is enough, so a large gang costs no more attempts."""
    cluster = Cluster("40x8")
    cluster.gang("train", pods=400, gpus=1)

    _, found = found_for(cluster.snapshot(), "train", runtime)

    assert [each.text for each in found.remedies] == [
        "let it start with 320 of 400 pods",
        "add 10 nodes like gpu-000 (8 GPUs each)",
    ]
    assert found.tried <= 5


def test_reasons_are_known_before_anything_is_tried(runtime: Runtime) -> None:
    """Why a gang waits can be told at once; what would let it start comes later and adds to it."""
    cluster = Cluster("1x8")
    cluster.gang("train", pods=2, gpus=8)
    snapshot = cluster.snapshot()
    advisor = Advisor(snapshot, runtime=runtime)

    reasons = advisor.reasons(find(snapshot, "train"))
    advised = advisor.advised(reasons)

    assert reasons.explanations
    assert not reasons.tried
    assert advised.explanations == reasons.explanations
    assert advised.remedies


def test_a_native_group_is_explained_by_what_refused_it(runtime: Runtime) -> None:
    """The pods that found room are counted, though they gave it up, and the rest is told what it lacks."""
    cluster = Cluster("2x8")
    group = manifest(
        "scheduling.k8s.io/v1beta1",
        "PodGroup",
        "train",
        "default",
        spec={"schedulingPolicy": {"gang": {"minCount": 3}}},
    )
    spec = {
        "schedulerName": "default-scheduler",
        "schedulingGroup": {"podGroupName": "train"},
        "containers": [{"name": "c", "resources": {"requests": {"nvidia.com/gpu": "8"}}}],
    }
    cluster.submit(group, *(manifest("v1", "Pod", f"train-{number}", "default", spec=spec) for number in range(3)))
    snapshot = cluster.snapshot()

    (told,) = Advisor(snapshot, runtime=runtime).reasons(find(snapshot, "train")).explanations

    assert (told.placed, told.needed) == (2, 3)
    assert "Insufficient nvidia.com/gpu" in as_text(told)
    assert "once pods are evicted" not in as_text(told), "its own pods held the nodes"


# -- the oracle --------------------------------------------------------------------------------------------------------


def a_cluster(chance: random.Random, runtime: Runtime) -> ClusterSnapshot:
    """Return a small cluster with racks, queues, obstacles and workloads that run, all at random."""
    objects: list[Any] = []
    nodes = chance.randint(2, 6)
    for number in range(nodes):
        spec: JSON = {}
        if chance.random() < 0.2:
            spec["unschedulable"] = True
        if chance.random() < 0.2:
            spec["taints"] = [{"key": "team", "value": chance.choice("ab"), "effect": "NoSchedule"}]
        labels = {
            "kubernetes.io/hostname": f"n{number}",
            RACK: f"r{number // 2}",
            BLOCK: f"b{number // 4}",
            "disk": chance.choice(["ssd", "hdd"]),
        }
        allocatable = {"cpu": "16", "memory": "64Gi", "pods": "110", "nvidia.com/gpu": str(chance.choice([4, 8]))}
        ready = "False" if chance.random() < 0.1 else "True"
        status = {"allocatable": allocatable, "conditions": [{"type": "Ready", "status": ready}]}
        objects.append(manifest("v1", "Node", f"n{number}", None, labels=labels, spec=spec, status=status))
    objects.append({"apiVersion": "grove.io/v1alpha1", "kind": "ClusterTopologyBinding", **topology_binding()})
    for queue in ("qa", "qb") if chance.random() < 0.6 else ():
        gpu = {"quota": chance.choice([-1, 4, 8]), "limit": chance.choice([-1, 8, 16]), "overQuotaWeight": 1}
        free = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
        spec = {"resources": {"gpu": gpu, "cpu": free, "memory": free}}
        objects.append(manifest("scheduling.run.ai/v2", "Queue", queue, None, spec=spec))
    for number in range(chance.randint(0, 3)):
        objects += a_gang(chance, f"old{number}", chance.choice(FAMILIES), plain=True)
    snapshot = ClusterSnapshot().with_objects(
        projected(BY_NAME[each["apiVersion"], each["kind"]], each) for each in objects
    )
    simulation = Simulation(snapshot, runtime=runtime)
    simulation.run()
    running = simulation.current()
    left = [pod for pod in running.pods if not pod.spec.node_name]
    return running.without_objects(left)


def a_gang(
    chance: random.Random, name: str, family: str, *, plain: bool = False, queues: Sequence[str] = ("qa", "qb")
) -> list[JSON]:
    """Return the object of a gang of some family, and its pods."""
    count = 1 if family == "pod" else chance.randint(1, 5)
    minimum = count if chance.random() < 0.7 else chance.randint(1, count)
    queue = {"kai.scheduler/queue": chance.choice(queues)}
    required = None if plain or chance.random() < 0.6 else chance.choice([RACK, BLOCK, "kubernetes.io/hostname"])
    spec: JSON = {
        "schedulerName": SCHEDULERS[family],
        "containers": [
            {"name": "c", "resources": {"requests": {"cpu": "1", "nvidia.com/gpu": str(chance.randint(1, 8))}}}
        ],
    }
    if not plain and chance.random() < 0.25:
        spec["nodeSelector"] = {"disk": "ssd"}
    labels, annotations, group = dict(queue), {}, None
    if family == "spinney":
        labels |= {"grove.io/podgang": name, "grove.io/podclique": "w"}
        pack = {"packConstraint": {"required": required}} if required else None
        body: JSON = {"podgroups": [{"name": "w", "podReferences": [], "minReplicas": minimum}]}
        if pack:
            body["topologyConstraint"] = pack
        group = manifest(
            "scheduler.grove.io/v1alpha1",
            "PodGang",
            name,
            "default",
            labels=queue,
            spec=body,
            annotations={"grove.io/topology-name": "gpu-topology"},
        )
    elif family == "kai":
        annotations = {"pod-group-name": name}
        body = {"minMember": minimum, "queue": queue["kai.scheduler/queue"]}
        if required:
            body["topologyConstraint"] = {"topology": "gpu-topology", "requiredTopologyLevel": required}
        group = manifest("scheduling.run.ai/v2alpha2", "PodGroup", name, "default", spec=body)
    elif family == "native":
        spec["schedulingGroup"] = {"podGroupName": name}
        body = {"schedulingPolicy": {"gang": {"minCount": minimum}}}
        if required:
            body["schedulingConstraints"] = {"topology": [{"key": required}]}
        group = manifest("scheduling.k8s.io/v1beta1", "PodGroup", name, "default", spec=body)
    elif family == "coscheduling":
        labels |= {"scheduling.x-k8s.io/pod-group": name}
        group = manifest("scheduling.x-k8s.io/v1alpha1", "PodGroup", name, "default", spec={"minMember": minimum})
    members = [name] if family == "pod" else [f"{name}-{number}" for number in range(count)]
    pods = [
        manifest(
            "v1", "Pod", each, "default", labels=labels, annotations=annotations, spec=spec, status={"phase": "Pending"}
        )
        for each in members
    ]
    if plain and chance.random() < 0.5:
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": name, "controller": True}
        for pod in pods:
            pod["metadata"]["ownerReferences"] = [owner]
    return [*([group] if group else []), *pods]


def manifest(api_version: str, kind: str, name: str, namespace: str | None, **parts: Any) -> JSON:
    """Return an object; labels and annotations go to its metadata."""
    metadata: JSON = {"name": name, "uid": f"{kind}-{name}", "creationTimestamp": "2026-01-01T00:00:00Z"}
    if namespace:
        metadata["namespace"] = namespace
    metadata |= {key: parts.pop(key) for key in ("labels", "annotations") if key in parts}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **parts}


def uncordoned(snapshot: ClusterSnapshot) -> ClusterSnapshot:
    """Return the cluster with every node open for pods."""
    return _with_nodes(snapshot, unschedulable=False)


def untainted(snapshot: ClusterSnapshot) -> ClusterSnapshot:
    """Return the cluster without any taint."""
    return _with_nodes(snapshot, taints=())


def without_others(snapshot: ClusterSnapshot) -> ClusterSnapshot:
    """Return the cluster without any other workload."""
    return snapshot.without_objects(pod for pod in snapshot.pods if not pod.metadata.name.startswith("new"))


def _with_nodes(snapshot: ClusterSnapshot, **spec: Any) -> ClusterSnapshot:
    return snapshot.with_objects(
        msgspec.structs.replace(node, spec=msgspec.structs.replace(node.spec, **spec)) for node in snapshot.nodes
    )


IN_FULL = {"uncordon": uncordoned, "untaint": untainted, "end": without_others}
"""Changes made by hand to all of a cluster, by the name of the lever that makes them in part."""


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("seed", range(CLUSTERS))
def test_what_is_recommended_works(family: str, seed: int, runtime: Runtime) -> None:
    """Every remedy, carried out on the objects, lets the gang start; what is not recommended does not, done in full."""
    chance = random.Random(f"{family} {seed}")
    cluster = a_cluster(chance, runtime)
    added = a_gang(chance, "new", family, queues=("qa", "missing") if seed % 2 else ("qa", "qb"))
    snapshot = cluster.with_objects(projected(BY_NAME[each["apiVersion"], each["kind"]], each) for each in added)
    advisor = Advisor(snapshot, runtime=runtime, best=0)
    if not any(each.gang.name == "new" for each in advisor.cycle.waiting):
        return
    gang, found = found_for(snapshot, "new", runtime)
    if found.starts_anyway:
        assert starts(snapshot, gang, runtime)
        return
    for remedy in found.remedies:
        assert starts(carried_out(snapshot, remedy), gang, runtime), remedy.text
    if starts(snapshot, gang, runtime):
        return  # its minimum runs, and the rest waits
    helps = {frozenset(change.lever for change in remedy.changes) for remedy in found.remedies}
    for lever, change in IN_FULL.items():
        if frozenset({lever}) not in helps:
            assert not starts(change(snapshot), gang, runtime), f"{lever} is enough, and was not recommended"
