"""A snapshot holds what scheduling reads of a cluster, nothing else, and says what it could not see."""

import io
import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spinney.api.core import NODE, POD, Node, NodeStatus
from spinney.api.grove import POD_CLIQUE_SET, PodCliqueSet
from spinney.api.kai import QUEUE, Queue
from spinney.api.kueue import CLUSTER_QUEUE, ClusterQueue
from spinney.api.meta import Metadata
from spinney.api.struct import JSON, to_json
from spinney.kube.crds import install_crds
from spinney.runtime import Runtime
from spinney.sim.embedded.stack import EmbeddedCluster
from spinney.sim.snapshots.files import (
    SnapshotReader,
    UnreadableSnapshot,
    read_snapshot,
    snapshot_bytes,
    write_snapshot,
)
from spinney.sim.snapshots.snapshot import ClusterSnapshot, Unseen, projected, take
from spinney.sim.whatif.simulation import Simulation
from spinney.testing.builders import a_clique, a_pod_clique_set, a_pod_spec
from tests.conftest import Cluster

SECRET = "s3cr3t"


def a_telling_pod(name: str) -> JSON:
    """Return a pod with a secret everywhere a pod can carry one."""
    container = {
        "name": "main",
        "image": "registry.example/app:1",
        "command": ["run", SECRET],
        "args": [SECRET],
        "env": [{"name": "TOKEN", "value": SECRET}],
        "resources": {"requests": {"cpu": "1"}},
    }
    kept = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps({"spec": SECRET})}
    return {
        "metadata": {"name": name, "annotations": kept},
        "spec": {"schedulerName": "nobody", "containers": [container]},
    }


async def test_what_pods_run_is_never_taken(cluster: Cluster) -> None:
    """Neither environment, nor commands, nor kubectl's copy of a manifest is in a snapshot; requests are."""
    await cluster.client.create(POD, a_telling_pod("telling"), cluster.namespace)
    snapshot = await take(cluster.client)

    raw = snapshot_bytes(snapshot)
    assert SECRET.encode() not in raw
    (pod,) = [pod for pod in snapshot.pods if pod.metadata.name == "telling"]
    assert pod.spec.containers[0].resources.requests == {"cpu": "1"}
    assert snapshot.unseen == ()


def test_templates_are_stripped_too(tmp_path: Path) -> None:
    """The pod specs inside a PodCliqueSet lose what containers run; the file reads back as it was written."""
    spec = a_pod_spec(cpu="2")
    spec["containers"][0]["env"] = [{"name": "TOKEN", "value": SECRET}]
    pcs = projected(POD_CLIQUE_SET, to_json(a_pod_clique_set("set", [a_clique("worker", 2, pod_spec=spec)])))
    snapshot = ClusterSnapshot(source="here").with_objects([pcs])
    write_snapshot(snapshot, tmp_path / "snapshot.json.gz")

    assert SECRET.encode() not in snapshot_bytes(snapshot)
    back = read_snapshot(tmp_path / "snapshot.json.gz")
    assert back == snapshot
    assert back.of(POD_CLIQUE_SET, PodCliqueSet)[0].spec.template.cliques[0].spec.pod_spec["containers"][0]["name"]


async def test_equal_clusters_give_equal_files(cluster: Cluster, tmp_path: Path) -> None:
    """Writing a snapshot twice gives the same bytes."""
    snapshot = await take(cluster.client)
    for name in ("a", "b"):
        write_snapshot(snapshot, tmp_path / name)

    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


# -- KAI's snapshots ---------------------------------------------------------------------------------------------------


def a_kai_zip(path: Path, **lists: Any) -> Path:
    """Write what KAI's snapshot plugin serves: objects without kind, absent lists as null."""
    raw = {"pods": None, "nodes": None, "queues": None, "podGroups": None, "bindRequests": None, **lists}
    tiers = [
        {"plugins": [{"name": "predicates"}, {"name": "nodeplacement", "arguments": {"gpu": "spread"}}, {"name": "x"}]}
    ]
    config = {"actions": "allocate, made-up", "tiers": tiers}
    content = {"config": config, "schedulerParams": {}, "rawObjects": raw}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("snapshot.json", json.dumps(content))
    path.write_bytes(buffer.getvalue())
    return path


def a_kai_cluster(path: Path, **more: Any) -> Path:
    """Write a KAI snapshot of one node with eight GPUs, a queue and a job of two pods."""
    resources = {"cpu": "64", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": "8"}
    share = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    node = {
        "metadata": {"name": "n1", "creationTimestamp": None},
        "spec": {},
        "status": {"allocatable": resources, "conditions": [{"type": "Ready", "status": "True"}], "images": None},
    }
    queue = {"metadata": {"name": "q"}, "spec": {"resources": {"gpu": share, "cpu": share, "memory": share}}}
    group = {"metadata": {"name": "job", "namespace": "team", "uid": "g"}, "spec": {"queue": "q", "minMember": 2}}
    container = {"name": "main", "resources": {"requests": {"nvidia.com/gpu": "4"}}, "env": None}
    pods = [
        {
            "metadata": {
                "name": f"p{i}",
                "namespace": "team",
                "uid": f"p{i}",
                "annotations": {"pod-group-name": "job"},
                "labels": None,
            },
            "spec": {"schedulerName": "kai-scheduler", "containers": [container], "tolerations": None},
            "status": {"phase": "Pending"},
        }
        for i in range(2)
    ]
    return a_kai_zip(path, nodes=[node], queues=[queue], podGroups=[group], pods=pods, **more)


def test_a_snapshot_of_kai_is_read_and_simulated(tmp_path: Path) -> None:
    """Every KAI user can have a snapshot simulated: what Go writes as null counts as absent."""
    snapshot = read_snapshot(a_kai_cluster(tmp_path / "kai.zip"))

    assert [queue.metadata.name for queue in snapshot.objects[QUEUE]] == ["q"]
    outcome = Simulation(snapshot, runtime=Runtime.system()).run()
    assert {str(pod): node for pod, node in outcome.placed.items()} == {"team/p0": "n1", "team/p1": "n1"}


def test_the_configuration_of_kai_comes_along(tmp_path: Path) -> None:
    """A KAI snapshot is simulated with the plugins and actions it was taken with, as far as we have them."""
    config = read_snapshot(a_kai_cluster(tmp_path / "kai.zip")).scheduler

    assert config is not None
    assert config.actions == ("allocate",)
    assert [plugin.name for plugin in config.plugins] == ["predicates", "nodeplacement"]
    assert not config.backtracking


def test_what_kai_is_binding_is_not_placed_again(tmp_path: Path) -> None:
    """A pod with a bind request under way holds its node already."""
    request = {"metadata": {"name": "p0", "namespace": "team"}, "spec": {"podName": "p0", "selectedNode": "n1"}}
    snapshot = read_snapshot(a_kai_cluster(tmp_path / "kai.zip", bindRequests=[request]))

    outcome = Simulation(snapshot, runtime=Runtime.system()).run()
    assert [pod.name for pod in outcome.placed] == ["p1"]


# -- files that are none -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "holds no objects"),
        (b"\x1f\x8b\x08broken", "is damaged"),
        (b"PK\x03\x04broken", "is damaged"),
        (b'{"format": "spinney.io/snapshot/v9", "objects": []}', "upgrade spinney"),
        (b"kind: Node\napiVersion: v1\nstatus: {allocatable: 3}\n", "Node without a name"),
        (b"\xff\xfe", "is damaged"),
        (b"kind: List\napiVersion: v1\nitems: 5\n", "List: items: found '5', expected a list"),
        (
            b"kind: List\napiVersion: v1\nitems: [x]\n",
            "expected Kubernetes objects with apiVersion and kind, found 'x'",
        ),
        (b"kind: Node\napiVersion: v1\nmetadata: [1]\n", "metadata: found .*, expected an object"),
        (
            b"kind: Node\napiVersion: v1\nmetadata: {name: n}\nstatus: [1]\n",
            "Node n: status: found .*, expected an obj",
        ),
        (b"kind: Pod\napiVersion: v1\nmetadata: {name: p}\nstatus: 4\n", "Pod p: status: found '4', expected an obj"),
    ],
)
def test_a_file_that_is_no_snapshot_is_refused(tmp_path: Path, content: bytes, expected: str) -> None:
    """The error names the file and what is wrong with it."""
    file = tmp_path / "file"
    file.write_bytes(content)
    with pytest.raises(UnreadableSnapshot, match=expected) as refused:
        read_snapshot(file)

    assert str(file) in str(refused.value)


@pytest.mark.parametrize("listed", [[], {"nodes": 5}, {"pods": ["p"]}], ids=str)
def test_a_zip_with_other_lists_is_refused(tmp_path: Path, listed: object) -> None:
    """What is no list of objects in a zip of KAI's form is refused with the file; what is empty is none."""
    with zipfile.ZipFile(tmp_path / "kai.zip", "w") as archive:
        archive.writestr("snapshot.json", json.dumps({"rawObjects": listed}))
    if listed:
        with pytest.raises(UnreadableSnapshot, match=r"kai\.zip: its snapshot\.json has rawObjects that are no lists"):
            read_snapshot(tmp_path / "kai.zip")
    else:
        assert not read_snapshot(tmp_path / "kai.zip").pods


_BANANA = {"nvidia.com/gpu": "banana"}
_CONTAINER = {"name": "main", "image": "i", "resources": {"limits": _BANANA}}


@pytest.mark.parametrize(
    ("found", "field"),
    [
        ({"kind": "Node", "status": {"capacity": _BANANA}}, "status.capacity[nvidia.com/gpu]"),
        ({"kind": "Pod", "spec": {"containers": [_CONTAINER]}}, "spec.containers[0].resources.limits[nvidia.com/gpu]"),
        (
            {"kind": "Pod", "spec": {"containers": [], "overhead": {"cpu": "1x"}}, "status": None},
            "spec.overhead[cpu]",
        ),
        (
            {
                "apiVersion": "scheduling.x-k8s.io/v1alpha1",
                "kind": "PodGroup",
                "spec": {"minMember": 1, "minResources": _BANANA},
            },
            "spec.minResources[nvidia.com/gpu]",
        ),
    ],
)
def test_what_is_no_quantity_is_named(tmp_path: Path, found: JSON, field: str) -> None:
    """An amount that is none is refused with file, object and field, before anything computes with it."""
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "metadata": {"name": "x"}, **found}))
    with pytest.raises(UnreadableSnapshot) as refused:
        read_snapshot(file)

    assert str(refused.value).startswith(f"{file}: {found['kind']} x: {field}: ")
    assert "is not a quantity; expected a number" in str(refused.value)


def test_a_snapshot_of_ours_is_held_to_quantities_too(tmp_path: Path) -> None:
    """A packed snapshot that somebody edited is refused like manifests."""
    node = Node(metadata=Metadata(name="n"), status=NodeStatus(allocatable={"cpu": "banana", "memory": 5, "pods": 1.5}))
    write_snapshot(ClusterSnapshot(objects={NODE: (node,)}), tmp_path / "cluster.gz")
    with pytest.raises(UnreadableSnapshot, match=r"Node n: status\.allocatable\[cpu\]: 'banana' is not a quantity"):
        read_snapshot(tmp_path / "cluster.gz")


def test_a_zip_of_something_else_is_refused(tmp_path: Path) -> None:
    """A zip that KAI did not make says what was expected."""
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("readme.txt", "hello")

    with pytest.raises(UnreadableSnapshot, match=r"is a zip without snapshot\.json"):
        read_snapshot(tmp_path / "other.zip")


def test_manifests_are_completed_as_a_cluster_would(tmp_path: Path) -> None:
    """A node written by hand is ready and offers its capacity; limits of a pod are its requests."""
    file = tmp_path / "cluster.yaml"
    file.write_text(
        "{apiVersion: v1, kind: List, items: ["
        "{apiVersion: v1, kind: Node, metadata: {name: n}, status: {capacity: {cpu: 4}}},"
        "{apiVersion: v1, kind: Pod, metadata: {name: p},"
        " spec: {containers: [{name: c, resources: {limits: {cpu: 2}}}]}}]}"
    )
    snapshot = read_snapshot(file)

    (node,), (pod,) = snapshot.objects[NODE], snapshot.objects[POD]
    assert node.ready
    assert node.status.allocatable == {"cpu": 4}
    assert pod.spec.containers[0].resources.requests == {"cpu": 2}
    assert (pod.metadata.namespace, pod.spec.scheduler_name) == ("default", "default-scheduler")


def test_what_was_not_seen_survives_the_file(tmp_path: Path) -> None:
    """Whoever reads the file later is told what its taker could not list."""
    snapshot = read_snapshot(a_kai_cluster(tmp_path / "kai.zip"))
    unseen = (Unseen(what="nodes", reason="may not be listed"),)
    write_snapshot(replace(snapshot, unseen=unseen), tmp_path / "s")

    assert read_snapshot(tmp_path / "s").unseen == unseen


@pytest.mark.parametrize(("version", "field"), [("v1beta1", "cohort"), ("v1beta2", "cohortName")])
async def test_the_queues_of_either_version_of_kueue_are_seen(version: str, field: str) -> None:
    """A cluster that serves only one of them has its ClusterQueues in the snapshot, with the cohort each is in."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    served = {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": anything}}
    names = {"plural": "clusterqueues", "kind": "ClusterQueue"}
    definition = {
        "metadata": {"name": "clusterqueues.kueue.x-k8s.io"},
        "spec": {"group": "kueue.x-k8s.io", "scope": "Cluster", "names": names, "versions": [served]},
    }
    runtime = Runtime.system()
    cluster = EmbeddedCluster(runtime)
    async with cluster.server.running():
        await install_crds(cluster.client, [definition])
        queue = replace(CLUSTER_QUEUE, version=version)
        await cluster.client.create(queue, {"metadata": {"name": "team"}, "spec": {field: "lab"}})
        (found,) = (await take(cluster.client)).of(CLUSTER_QUEUE, ClusterQueue)
    runtime.executor.close()

    assert (found.metadata.name, found.spec.shares_with) == ("team", "lab")


async def test_objects_of_an_older_crd_are_named() -> None:
    """An object that an older CRD let in and nobody can read is left out and named; the rest is taken."""
    names = {"kind": "Queue", "plural": "queues", "singular": "queue", "listKind": "QueueList"}
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v2", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    crd: JSON = {
        "metadata": {"name": "queues.scheduling.run.ai"},
        "spec": {"group": "scheduling.run.ai", "scope": "Cluster", "names": names, "versions": [version]},
    }
    runtime = Runtime.system()
    cluster = EmbeddedCluster(runtime)
    async with cluster.server.running():
        await install_crds(cluster.client, [crd])
        await cluster.client.create(QUEUE, {"metadata": {"name": "old"}, "spec": {"resources": "all of them"}})
        await cluster.client.create(QUEUE, {"metadata": {"name": "new"}, "spec": {}})
        taken = await take(cluster.client)
    runtime.executor.close()

    assert [queue.metadata.name for queue in taken.of(QUEUE, Queue)] == ["new"]
    assert [each.what for each in taken.unseen] == ["queues.scheduling.run.ai old"]
    assert "spec.resources" in taken.unseen[0].reason


async def test_what_stands_in_a_template_hides_nothing_else() -> None:
    """A field that a chart leaves empty is null, and not written; where a template cannot be read its set is named."""
    runtime = Runtime.system()
    cluster = EmbeddedCluster(runtime)
    async with cluster.server.running():
        await install_crds(cluster.client)
        for name, field in (
            ("plain", {}),
            ("empty", {"nodeName": None, "tolerations": None}),
            ("odd", {"nodeName": 7}),
        ):
            pcs = a_pod_clique_set(
                name, [a_clique("worker", 2, pod_spec=a_pod_spec(cpu="2") | field)], namespace="default"
            )
            await cluster.client.create(POD_CLIQUE_SET, to_json(pcs))
        taken = await take(cluster.client)
    runtime.executor.close()

    assert [pcs.metadata.name for pcs in taken.of(POD_CLIQUE_SET, PodCliqueSet)] == ["empty", "plain"]
    assert [each.what for each in taken.unseen] == ["podcliquesets.grove.io default/odd"]
    assert "nodeName" in taken.unseen[0].reason


def test_what_two_snapshots_hold_alike_is_decoded_once(tmp_path: Path) -> None:
    """Of a recording of a week nearly all is in each file: read one after another, it is there once."""
    one, other, third = (Node(metadata=Metadata(name=name)) for name in ("one", "other", "third"))
    files = []
    for number, nodes in enumerate([(one, other), (one, third), (one, other)]):
        files.append(tmp_path / f"{number}.json.gz")
        write_snapshot(ClusterSnapshot(objects={NODE: nodes}), files[-1])
    reader = SnapshotReader()
    first, second, last = (reader.read(file) for file in files)

    assert first.nodes[0] is second.nodes[0] is last.nodes[0]
    assert [each.metadata.name for each in last.nodes] == ["one", "other"]
    assert last.nodes[1] is not first.nodes[1]  # it was gone meanwhile, and only the last one is remembered


def test_an_object_that_is_none_is_said(tmp_path: Path) -> None:
    """A snapshot of ours with a number among its objects is refused in one sentence."""
    path = tmp_path / "snapshot.json"
    path.write_text('{"format": "spinney.io/snapshot/v1", "objects": [7]}')
    with pytest.raises(UnreadableSnapshot, match=r"snapshot.json: expected Kubernetes objects, found '7'"):
        read_snapshot(path)


def test_a_list_in_json_is_read_as_json(tmp_path: Path) -> None:
    """What is JSON and no YAML, such as tabs for indentation, is a cluster too: it does not take the slow way."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "4"}}}
    file = tmp_path / "nodes.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [node]}, indent="\t"))

    assert [each.metadata.name for each in read_snapshot(file).nodes] == ["n"]
