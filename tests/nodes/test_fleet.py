"""A fleet of simulated nodes on a cluster, embedded and real: what its pods and nodes do, seen through the API."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from spinney.api.coordination import LEASE
from spinney.api.core import NODE, POD
from spinney.api.resource import Resource
from spinney.api.struct import JSON, convert
from spinney.kube.client import PatchKind
from spinney.kube.errors import Conflict, Invalid, NotFound
from spinney.nodes import ClusterSpec, Fleet, Health, NodeGroup
from spinney.nodes.pods import BoundPod
from spinney.nodes.status import unready_patch
from tests.conftest import Cluster
from tests.nodes.builders import NOON, a_pod_manifest
from tests.weighing import held_by

PDB = Resource("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets")


@asynccontextmanager
async def a_fleet(cluster: Cluster, count: int = 2, *, adopts: bool = False, **settings: JSON) -> AsyncIterator[Fleet]:
    """Run nodes n0, n1, ... with 4 cores, 8 GPUs and 10 pods each."""
    group = {
        "name": "n{index}",
        "count": count,
        "capacity": {"cpu": 4, "memory": "8Gi", "pods": 10, "nvidia.com/gpu": 8},
        "labels": {"zone": "a"},
    }
    spec = ClusterSpec.from_document({"nodes": [group], **settings})
    async with Fleet(cluster.client, spec, runtime=cluster.runtime, adopts=adopts).running() as fleet:
        yield fleet


async def until(cluster: Cluster, name: str, holds: Callable[[JSON], bool], *, resource: Resource = POD) -> JSON:
    """Follow an object until something holds of it, and return it then."""
    namespace = cluster.namespace if resource.namespaced else None
    async for event in cluster.client.watch(resource, namespace, field_selector=f"metadata.name={name}"):
        if event.type != "DELETED" and holds(event.object):
            return event.object
    raise AssertionError(f"the watch of {name} ended")


async def until_gone(cluster: Cluster, name: str) -> None:
    """Wait until a pod is deleted."""
    listing = await cluster.client.list(POD, cluster.namespace, field_selector=f"metadata.name={name}")
    if not listing.items:
        return
    version = listing.resource_version
    async for event in cluster.client.watch(
        POD, cluster.namespace, field_selector=f"metadata.name={name}", resource_version=version
    ):
        if event.type == "DELETED":
            return


def condition(obj: JSON, kind: str) -> JSON:
    """Return one condition of an object, empty if it is not there."""
    conditions: list[JSON] = obj.get("status", {}).get("conditions") or []
    return next((c for c in conditions if c["type"] == kind), {})


def is_ready(obj: JSON) -> bool:
    """Tell whether an object has Ready True."""
    return bool(condition(obj, "Ready").get("status") == "True")


def phase_is(phase: str) -> Callable[[JSON], bool]:
    """Return the question whether a pod has this phase."""
    return lambda pod: bool(pod["status"].get("phase") == phase)


async def test_a_label_that_a_node_was_given_later_counts(cluster: Cluster) -> None:
    """Pods that select it run there, also several at once; a pod that selects another is rejected as before."""
    pools = {"strays": "other", **{f"fits-{number}": "mine" for number in range(6)}}
    async with a_fleet(cluster, count=1):
        await cluster.client.patch(NODE, "n0", {"metadata": {"labels": {"pool": "mine"}}})
        manifests = [a_pod_manifest(name, node="n0", nodeSelector={"pool": pool}) for name, pool in pools.items()]
        await asyncio.gather(*(cluster.client.create(POD, each, cluster.namespace) for each in manifests))
        for name in pools.keys() - {"strays"}:
            await until(cluster, name, phase_is("Running"))
        assert (await until(cluster, "strays", phase_is("Failed")))["status"]["reason"] == "NodeAffinity"


async def test_nodes_are_registered_ready_and_with_what_they_have(cluster: Cluster) -> None:
    """Each node of the description is there, Ready, with its capacity, labels and a lease, and without taints."""
    async with a_fleet(cluster) as fleet:
        assert fleet.names == ["n0", "n1"]
        node = await cluster.client.get(NODE, "n1")
        assert is_ready(node)
        assert node["status"]["capacity"]["nvidia.com/gpu"] == "8"
        assert node["status"]["allocatable"]["memory"] == "8Gi"
        assert node["metadata"]["labels"]["zone"] == "a"
        assert not node["spec"].get("taints")
        lease = await cluster.client.get(LEASE, "n1", "kube-node-lease")
        assert lease["spec"]["holderIdentity"] == "n1"
        assert lease["spec"]["leaseDurationSeconds"] == 40


async def test_a_bound_pod_runs_and_gets_ready(cluster: Cluster) -> None:
    """A pod bound to a simulated node is running and ready, with an address, after a single write."""
    async with a_fleet(cluster):
        created = await cluster.client.create(POD, a_pod_manifest("p"), cluster.namespace)
        pod = await until(cluster, "p", is_ready)
        assert pod["status"]["phase"] == "Running"
        assert pod["status"]["podIP"].startswith("10.128.")
        assert pod["status"]["containerStatuses"][0]["state"]["running"]
        assert condition(pod, "Initialized")["status"] == "True"
        assert pod["metadata"]["uid"] == created["metadata"]["uid"]


async def test_a_pod_bound_by_a_scheduler_keeps_its_scheduled_condition(cluster: Cluster) -> None:
    """What others wrote into the status, such as PodScheduled, survives what the node writes."""
    async with a_fleet(cluster):
        pod = await cluster.client.create(POD, a_pod_manifest("p", node=None), cluster.namespace)
        await cluster.client.bind(cluster.namespace, "p", pod["metadata"]["uid"], "n1")
        running = await until(cluster, "p", is_ready)
        assert running["spec"]["nodeName"] == "n1"
        assert condition(running, "PodScheduled")["status"] == "True"


async def test_a_status_for_an_earlier_incarnation_is_refused(cluster: Cluster) -> None:
    """A status write names the pod's uid, and the API server refuses it for a pod that took the name since."""
    pod = await cluster.client.create(POD, a_pod_manifest("p", node=None), cluster.namespace)
    stale = unready_patch(
        convert(BoundPod, pod | {"metadata": {"uid": "11111111-0000-4000-8000-000000000000"}}), now=NOON
    )
    with pytest.raises((Conflict, Invalid), match=r"(?i)uid"):
        await cluster.client.patch(POD, "p", stale, cluster.namespace, kind=PatchKind.STRATEGIC, subresource="status")


async def test_pods_that_do_not_fit_are_rejected(cluster: Cluster) -> None:
    """The second pod that takes most of the node's devices fails, and fits once the first is gone."""
    async with a_fleet(cluster, 1):
        gpus = {"nvidia.com/gpu": 5}
        await cluster.client.create(POD, a_pod_manifest("first", requests=gpus), cluster.namespace)
        await until(cluster, "first", is_ready)
        await cluster.client.create(POD, a_pod_manifest("second", requests=gpus), cluster.namespace)
        rejected = await until(cluster, "second", phase_is("Failed"))
        assert rejected["status"]["reason"] == "UnexpectedAdmissionError"
        await cluster.client.create(POD, a_pod_manifest("hungry", requests={"cpu": 5}), cluster.namespace)
        assert (await until(cluster, "hungry", phase_is("Failed")))["status"]["reason"] == "OutOfcpu"
        await cluster.client.delete(POD, "first", cluster.namespace)
        await until_gone(cluster, "first")
        await cluster.client.create(POD, a_pod_manifest("third", requests=gpus), cluster.namespace)
        await until(cluster, "third", is_ready)


async def test_a_pod_completes_and_gives_back_what_it_used(cluster: Cluster) -> None:
    """A pod annotated to complete succeeds, and its devices can be used again while it is still there."""
    async with a_fleet(cluster, 1):
        gpus = {"nvidia.com/gpu": 8}
        brief = {"spinney.dev/complete-after": "300ms"}
        job = a_pod_manifest("job", requests=gpus, annotations=brief, restartPolicy="Never")
        await cluster.client.create(POD, job, cluster.namespace)
        done = await until(cluster, "job", phase_is("Succeeded"))
        assert done["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0
        assert condition(done, "Ready")["reason"] == "PodCompleted"
        await cluster.client.create(POD, a_pod_manifest("next", requests=gpus), cluster.namespace)
        await until(cluster, "next", is_ready)


async def test_a_failing_pod_is_restarted(cluster: Cluster) -> None:
    """A pod that fails is restarted where its policy says so, and shows its last exit."""
    async with a_fleet(cluster, 1):
        failing = {"spinney.dev/fail-after": "200ms", "spinney.dev/exit-code": "42"}
        manifest = a_pod_manifest("p", annotations=failing, restartPolicy="OnFailure")
        await cluster.client.create(POD, manifest, cluster.namespace)
        pod = await until(
            cluster, "p", lambda pod: any(c["restartCount"] for c in pod["status"].get("containerStatuses", []))
        )
        assert pod["status"]["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 42


async def test_a_worker_starts_when_its_leader_is_ready(cluster: Cluster) -> None:
    """A start-up condition on another clique of the gang holds a pod in its init container until it is met."""

    def member(name: str, clique: str, **extra: Any) -> JSON:
        labels = {"grove.io/podgang": "g-0", "grove.io/podclique": clique}
        return a_pod_manifest(name, labels=labels, **extra)

    waits = [{"name": "grove-initc", "image": "initc", "args": ["--podcliques=g-0-leader:1"]}]
    async with a_fleet(cluster):
        await cluster.client.create(POD, member("worker", "g-0-worker", init_containers=waits), cluster.namespace)
        held = await until(cluster, "worker", lambda pod: bool(pod["status"].get("initContainerStatuses")))
        assert held["status"]["phase"] == "Pending"
        assert "running" in held["status"]["initContainerStatuses"][0]["state"]
        await cluster.client.create(POD, member("leader", "g-0-leader", node="n1"), cluster.namespace)
        started = await until(cluster, "worker", is_ready)
        assert started["status"]["initContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 0


async def test_a_removed_node_leaves_nobody_waiting(cluster: Cluster) -> None:
    """Of pods that waited for others on a node that is gone, nothing is remembered."""
    waits = [{"name": "grove-initc", "image": "initc", "args": ["--podcliques=g-0-leader:1"]}]
    waiting = a_pod_manifest("worker", labels={"grove.io/podgang": "g-0"}, init_containers=waits)
    async with a_fleet(cluster) as fleet:
        before = held_by(fleet._kubelets._waiting)
        await cluster.client.create(POD, waiting, cluster.namespace)
        await until(cluster, "worker", lambda pod: bool(pod["status"].get("initContainerStatuses")))
        assert held_by(fleet._kubelets._waiting) > before
        await fleet.remove("n0")
        await until_gone(cluster, "worker")
        assert held_by(fleet._kubelets._waiting) == before


async def test_a_pod_bound_to_a_node_that_is_gone_goes_too(cluster: Cluster) -> None:
    """A scheduler that did not know yet binds to a removed node; the pod is taken away, so that another is made."""
    async with a_fleet(cluster) as fleet:
        await fleet.remove("n0")
        await cluster.client.create(POD, a_pod_manifest("late"), cluster.namespace)
        await until_gone(cluster, "late")


async def test_deleted_pods_go_after_their_stop_time(cluster: Cluster) -> None:
    """A pod that is deleted stays, terminating, for the time it takes to stop, and then is gone."""
    clock = cluster.runtime.clock
    async with a_fleet(cluster, pods={"stop": "300ms"}):
        await cluster.client.create(POD, a_pod_manifest("p"), cluster.namespace)
        ready = await until(cluster, "p", is_ready)
        asked_at = clock.monotonic()
        await cluster.client.delete(POD, "p", cluster.namespace)
        seen: list[tuple[str, bool]] = []
        async for event in cluster.client.watch(
            POD,
            cluster.namespace,
            field_selector="metadata.name=p",
            resource_version=ready["metadata"]["resourceVersion"],
        ):
            seen.append((event.type, "deletionTimestamp" in event.object["metadata"]))
            if event.type == "DELETED":
                break
        assert seen[0] == ("MODIFIED", True)
        assert clock.monotonic() - asked_at >= 0.3


async def test_a_failed_node_is_tainted_and_its_pods_stand_still(cluster: Cluster) -> None:
    """A node that fails is seen as unreachable, nothing happens on it, and all goes on when it recovers."""
    async with a_fleet(cluster) as fleet:
        await fleet.fail("n0")
        node = await cluster.client.get(NODE, "n0")
        assert condition(node, "Ready")["status"] == "Unknown"
        effects = {taint["effect"] for taint in node["spec"]["taints"]}
        assert effects == {"NoSchedule", "NoExecute"}
        await cluster.client.create(POD, a_pod_manifest("lost"), cluster.namespace)
        await cluster.client.create(POD, a_pod_manifest("fine", node="n1"), cluster.namespace)
        await until(cluster, "fine", is_ready)
        assert (await cluster.client.get(POD, "lost", cluster.namespace))["status"]["phase"] == "Pending"
        await fleet.recover("n0")
        await until(cluster, "lost", is_ready)
        assert fleet.health("n0") is Health.READY
        assert not (await cluster.client.get(NODE, "n0"))["spec"].get("taints")


async def test_pods_of_a_failed_node_are_unready_until_it_recovers(cluster: Cluster) -> None:
    """A node's failure makes its pods unready at once; with its recovery they are ready again, unrestarted."""
    async with a_fleet(cluster) as fleet:
        await cluster.client.create(POD, a_pod_manifest("p"), cluster.namespace)
        await until(cluster, "p", is_ready)
        await fleet.fail("n0")
        lost = await until(cluster, "p", lambda pod: not is_ready(pod))
        assert condition(lost, "Ready")["reason"] == "NodeNotReady"
        assert lost["status"]["phase"] == "Running"
        await fleet.recover("n0")
        back = await until(cluster, "p", is_ready)
        assert "reason" not in condition(back, "Ready")
        assert back["status"]["containerStatuses"][0]["restartCount"] == 0


async def test_pods_leave_a_failed_node_when_they_tolerate_it_no_longer(cluster: Cluster) -> None:
    """A pod is deleted when its toleration of the failure runs out, and is gone when the node comes back."""
    unreachable = {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"}
    async with a_fleet(cluster) as fleet:
        for name, toleration in (("patient", unreachable), ("hasty", unreachable | {"tolerationSeconds": 1})):
            await cluster.client.create(POD, a_pod_manifest(name, tolerations=[toleration]), cluster.namespace)
            await until(cluster, name, is_ready)
        await fleet.fail("n0")
        await until(cluster, "hasty", lambda pod: "deletionTimestamp" in pod["metadata"])
        patient = await cluster.client.get(POD, "patient", cluster.namespace)
        assert "deletionTimestamp" not in patient["metadata"]
        await fleet.recover("n0")
        await until_gone(cluster, "hasty")


async def test_a_pod_with_a_finalizer_ends_before_it_is_let_go(cluster: Cluster) -> None:
    """A deleted pod that somebody still holds fails, so that its owner sees the end, and goes when it is released."""
    async with a_fleet(cluster, 1):
        held = a_pod_manifest("p")
        held["metadata"]["finalizers"] = ["example.com/counted"]
        await cluster.client.create(POD, held, cluster.namespace)
        await until(cluster, "p", is_ready)
        await cluster.client.delete(POD, "p", cluster.namespace)
        await until(cluster, "p", phase_is("Failed"))
        await cluster.client.patch(POD, "p", {"metadata": {"finalizers": None}}, cluster.namespace)
        await until_gone(cluster, "p")


async def test_foreign_taints_survive_a_failure(cluster: Cluster) -> None:
    """Failing and recovering leaves the taints that somebody else put on the node."""
    async with a_fleet(cluster) as fleet:
        theirs = {"key": "example.com/maintenance", "effect": "PreferNoSchedule"}
        await cluster.client.patch(NODE, "n0", {"spec": {"taints": [theirs]}})
        await fleet.fail("n0", health=Health.NOT_READY)
        await fleet.recover("n0")
        assert (await cluster.client.get(NODE, "n0"))["spec"]["taints"] == [theirs]


async def test_draining_evicts_what_runs_there(cluster: Cluster) -> None:
    """Draining cordons the node and returns when its pods are gone; pods elsewhere stay."""
    async with a_fleet(cluster) as fleet:
        for name, node in (("a", "n0"), ("b", "n0"), ("c", "n1")):
            await cluster.client.create(POD, a_pod_manifest(name, node=node), cluster.namespace)
            await until(cluster, name, is_ready)
        await fleet.drain("n0")
        left = await cluster.client.list(POD, cluster.namespace)
        assert [pod["metadata"]["name"] for pod in left.items] == ["c"]
        assert (await cluster.client.get(NODE, "n0"))["spec"]["unschedulable"] is True
        await fleet.cordon("n0", unschedulable=False)
        assert not (await cluster.client.get(NODE, "n0"))["spec"].get("unschedulable")


async def test_draining_waits_for_a_disruption_budget(cluster: Cluster) -> None:
    """A budget that forbids an eviction holds the drain up until it allows it."""
    async with a_fleet(cluster) as fleet:
        selector = {"matchLabels": {"app": "guarded"}}
        budget = {"metadata": {"name": "guard"}, "spec": {"minAvailable": 1, "selector": selector}}
        await cluster.client.create(PDB, budget, cluster.namespace)
        await cluster.client.create(POD, a_pod_manifest("p", labels={"app": "guarded"}), cluster.namespace)
        await until(cluster, "p", is_ready)
        draining = asyncio.create_task(fleet.drain("n0"))
        await until(cluster, "n0", lambda node: node["spec"].get("unschedulable", False), resource=NODE)
        done, _ = await asyncio.wait({draining}, timeout=0.5)
        assert not done
        await cluster.client.delete(PDB, "guard", cluster.namespace)
        await draining
        await until_gone(cluster, "p")


async def test_nodes_join_and_leave_at_run_time(cluster: Cluster) -> None:
    """A node that joins runs pods; one that leaves takes its pods, its object and its lease with it."""
    async with a_fleet(cluster, 1) as fleet:
        assert await fleet.add(NodeGroup(name="late", capacity={"cpu": 1})) == ["late"]
        await cluster.client.create(POD, a_pod_manifest("p", node="late"), cluster.namespace)
        await until(cluster, "p", is_ready)
        await fleet.remove("late")
        await until_gone(cluster, "p")
        for resource, namespace in ((NODE, None), (LEASE, "kube-node-lease")):
            with pytest.raises(NotFound):
                await cluster.client.get(resource, "late", namespace)
        assert fleet.names == ["n0"]


async def test_a_fleet_adopts_the_nodes_and_pods_of_one_before_it(cluster: Cluster) -> None:
    """A second fleet of the same description takes over: a running pod goes on under its address, unrestarted."""
    async with a_fleet(cluster):
        await cluster.client.create(POD, a_pod_manifest("p"), cluster.namespace)
        before = await until(cluster, "p", is_ready)
    async with a_fleet(cluster):
        await cluster.client.create(POD, a_pod_manifest("q"), cluster.namespace)
        other = await until(cluster, "q", is_ready)
        after = await cluster.client.get(POD, "p", cluster.namespace)
        assert after["status"] == before["status"]
        assert other["status"]["podIP"] != after["status"]["podIP"]
        await cluster.client.delete(POD, "p", cluster.namespace)
        await until_gone(cluster, "p")


@pytest.mark.parametrize("cluster_name", ["embedded"], indirect=True)
async def test_a_smaller_fleet_runs_the_nodes_that_a_larger_one_left(cluster: Cluster) -> None:
    """They are ready and take pods, so somebody has to run these; what they have and their taints stay."""
    taint = {"key": "example.com/slow", "effect": "NoSchedule"}
    async with a_fleet(cluster, 2):
        await cluster.client.patch(NODE, "n1", {"spec": {"taints": [taint]}})
    async with a_fleet(cluster, 1, adopts=True) as fleet:
        assert fleet.names == ["n0", "n1"]
        await cluster.client.create(POD, a_pod_manifest("p", node="n1"), cluster.namespace)
        await until(cluster, "p", is_ready)
        node = await cluster.client.get(NODE, "n1")

    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "8"
    assert [each["key"] for each in node["spec"]["taints"]] == ["example.com/slow"]


async def test_leases_are_renewed(cluster: Cluster) -> None:
    """A node's lease is renewed again and again while the node is well."""
    async with a_fleet(cluster, heartbeats={"lease": "400ms"}):
        first = await cluster.client.get(LEASE, "n0", "kube-node-lease")
        async for event in cluster.client.watch(LEASE, "kube-node-lease", field_selector="metadata.name=n0"):
            if event.object["spec"]["renewTime"] > first["spec"]["renewTime"]:
                break


async def test_a_bad_annotation_fails_the_pod_with_its_name(cluster: Cluster) -> None:
    """A pod whose annotation cannot be understood fails, and its status says which annotation."""
    async with a_fleet(cluster, 1):
        manifest = a_pod_manifest("p", annotations={"spinney.dev/complete-after": "later"})
        await cluster.client.create(POD, manifest, cluster.namespace)
        failed = await until(cluster, "p", phase_is("Failed"))
        assert "spinney.dev/complete-after" in failed["status"]["message"]
