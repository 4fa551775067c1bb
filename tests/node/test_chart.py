"""The chart on a real node: a set's life in real containers, and an installation's from first to last. In order."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from spinney.api.grove import POD_CLIQUE_SET
from spinney.api.struct import JSON
from spinney.kube.client import Client
from spinney.kube.config import load_kubeconfig
from spinney.kube.errors import KubeError
from spinney.kube.retrying import NEVER, RetryPolicy
from spinney.nodes import ClusterSpec, Fleet, NodeGroup
from spinney.runtime import Runtime

from .machine import CHART, IMAGE, SYSTEM, TEAM, Machine
from .workloads import a_wide_set, an_ordered_set

pytestmark = [pytest.mark.node, pytest.mark.timeout(900)]

READY = "condition=Ready"
KINDS = [
    "deployments",
    "services",
    "serviceaccounts",
    "configmaps",
    "secrets",
    "roles",
    "rolebindings",
    "clusterroles",
    "clusterrolebindings",
    "networkpolicies",
    "poddisruptionbudgets",
    "validatingwebhookconfigurations",
    "mutatingwebhookconfigurations",
    "leases",
]
VALUES: JSON = {"image": IMAGE}


@pytest.fixture(scope="module")
def before(cluster: Machine) -> set[str]:
    """What there was before anything was installed."""
    return cluster.names(*KINDS)


@pytest.fixture(scope="module")
def release(cluster: Machine, before: set[str]) -> Machine:
    """The chart, installed with its defaults."""
    cluster.install(CHART, VALUES)
    return cluster


def started(pod: JSON) -> str:
    """Return when the container of a pod started."""
    return str(pod["status"]["containerStatuses"][0]["state"]["running"]["startedAt"])


def ready_since(pod: JSON) -> str:
    """Return since when a pod is ready."""
    (condition,) = [each for each in pod["status"]["conditions"] if each["type"] == "Ready"]
    return str(condition["lastTransitionTime"])


def uids(machine: Machine, name: str) -> set[str]:
    """Return which pods a set has."""
    return {each["metadata"]["uid"] for each in machine.pods(name)}


def test_containers_start_in_order(release: Machine) -> None:
    """Placed together by our scheduler, workers start once their leader is ready; nothing failed on the way."""
    release.apply(an_ordered_set("ordered", terminationDelay="5s"))
    release.wait("podclique/ordered-0-worker", "jsonpath={.status.readyReplicas}=2")
    pods = {each["metadata"]["labels"]["grove.io/podclique"]: each for each in release.pods("ordered")}
    leader, worker = pods["ordered-0-leader"], pods["ordered-0-worker"]
    assert leader["spec"]["schedulerName"] == worker["spec"]["schedulerName"] == "spinney-scheduler"
    assert started(worker) >= ready_since(leader)
    logged = [line for line in release.logs("grove-operator") if line["level"] in ("warning", "error")]
    # For some seconds after a CRD was made the API server answers watches of its kind with 429, and says so.
    assert [line for line in logged if line.get("error") != "storage is (re)initializing"] == []


def test_a_rolling_update_replaces_every_pod(release: Machine) -> None:
    """After a change of the pods every one of them is new and ready."""
    former = uids(release, "ordered")
    release.apply(an_ordered_set("ordered", revision="two", terminationDelay="5s"))
    release.wait("podcliqueset/ordered", "jsonpath={.status.updateProgress.updateEndedAt}")
    release.wait("podclique/ordered-0-worker", "jsonpath={.status.readyReplicas}=2")
    assert not former & uids(release, "ordered")
    assert {each["spec"]["containers"][0]["env"][-1]["value"] for each in release.pods("ordered")} == {"two"}


def test_a_gang_that_stays_broken_is_made_anew(release: Machine) -> None:
    """With a pod that is not ready for longer than terminationDelay, the whole gang goes and comes again."""
    former = release.pods("ordered")
    (leader,) = [each for each in former if each["metadata"]["labels"]["grove.io/podclique"] == "ordered-0-leader"]
    release.kubectl("exec", leader["metadata"]["name"], "--namespace", TEAM, "--", "touch", "/tmp/broken")
    for pod in former:
        release.wait(f"pod/{pod['metadata']['name']}", "delete")
    release.wait("podclique/ordered-0-worker", "jsonpath={.status.readyReplicas}=2")


@dataclass
class Writing:
    """Writes of PodCliqueSets, one after the other: how many, and what was said to those that were refused."""

    written: int = 0
    refused: list[str] = field(default_factory=list)


@asynccontextmanager
async def writing(release: Machine, retry: RetryPolicy) -> AsyncIterator[Writing]:
    """Write for the time of the block; ``retry`` says whether a write that did not happen is sent again."""
    runtime, seen, stopped = Runtime.system(), Writing(), asyncio.Event()
    transport = load_kubeconfig(release.kubeconfig, runtime=runtime)
    client = Client(transport, runtime, retry=retry)

    async def write() -> None:
        while not stopped.is_set():
            try:
                await client.create(POD_CLIQUE_SET, an_ordered_set(f"written-{seen.written}"), dry_run=True)
            except KubeError as error:
                seen.refused.append(str(error))
            seen.written += 1

    task = asyncio.create_task(write())
    try:
        yield seen
    finally:
        stopped.set()
        await task
        await transport.close()
        runtime.executor.close()


async def test_writes_go_on_while_the_leader_is_stopped(release: Machine) -> None:
    """Webhooks answer all the time: no write is refused while the leader's pod is deleted and another takes over."""
    release.rolled_out()
    leader, _ = release.leader()
    async with writing(release, NEVER) as seen:
        await asyncio.to_thread(release.kubectl, "delete", "pod", leader, "--namespace", SYSTEM)
        await asyncio.to_thread(release.rolled_out)
    assert seen.refused == []
    assert seen.written > 20
    assert release.leader()[0] != leader


async def test_a_leader_that_was_killed_leads_again(release: Machine) -> None:
    """A container that is killed is started again by the kubelet and keeps the lease of its pod.

    A write that the API server could not have reviewed in that second is sent again, and not refused.
    """
    leader, transitions = release.leader()
    pod = release.get("pod", leader, "--namespace", SYSTEM)
    container = pod["status"]["containerStatuses"][0]
    identity = container["containerID"].removeprefix("containerd://")
    async with writing(release, RetryPolicy()) as seen:
        await asyncio.to_thread(
            release.inside, "ctr", "--namespace", "k8s.io", "task", "kill", "--signal", "SIGKILL", identity
        )
        await asyncio.to_thread(_back, release, leader, container["restartCount"] + 1)
    assert seen.refused == []
    assert seen.written > 20
    release.apply(an_ordered_set("after-the-crash"))
    release.wait("podclique/after-the-crash-0-worker", "jsonpath={.status.readyReplicas}=2")
    assert release.leader() == (leader, transitions)
    release.kubectl("delete", "podcliqueset", "after-the-crash", "--namespace", TEAM, "--timeout=120s")


def _back(release: Machine, leader: str, restarts: int) -> None:
    """Wait until the container of a pod was started again, and is ready."""
    wanted = f"jsonpath={{.status.containerStatuses[0].restartCount}}={restarts}"
    release.wait(f"pod/{leader}", wanted, namespace=SYSTEM)
    release.wait(f"pod/{leader}", READY, namespace=SYSTEM)


def test_a_change_of_configuration_rolls_who_reads_it(release: Machine) -> None:
    """What was refused by the configuration is taken after its change, and workloads are not touched."""
    constrained = an_ordered_set("packed", topologyConstraint={"topologyName": "racks", "pack": {"required": "rack"}})
    topology = {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "ClusterTopologyBinding",
        "metadata": {"name": "racks"},
        "spec": {"levels": [{"domain": "rack", "key": "topology.kubernetes.io/rack"}]},
    }
    workload, former = uids(release, "ordered"), release.get("pods", "--namespace", SYSTEM)["items"]
    with pytest.raises(AssertionError, match="topology"):
        release.apply(constrained)
    release.install(CHART, {**VALUES, "config": {"topologyAwareScheduling": {"enabled": True}}})
    release.apply(topology)
    release.apply(constrained)
    release.kubectl("delete", "podcliqueset", "packed", "--namespace", TEAM, "--timeout=120s")
    now = {each["metadata"]["uid"] for each in release.get("pods", "--namespace", SYSTEM)["items"]}
    stayed = {each["metadata"]["labels"]["app.kubernetes.io/name"] for each in former if each["metadata"]["uid"] in now}
    assert stayed == {"spinney-scheduler"}
    assert uids(release, "ordered") == workload


def test_generated_objects_are_protected_while_that_is_on(release: Machine) -> None:
    """With the authorizer tokens are filled and others are refused; switched off, nobody is refused any more."""
    release.install(CHART, {**VALUES, "config": {"authorizer": {"enabled": True}}})
    release.wait("validatingwebhookconfiguration/authorizer-webhook", "jsonpath={.webhooks[0].failurePolicy}=Fail")
    release.apply(an_ordered_set("protected"))
    release.wait("podclique/protected-0-worker", "jsonpath={.status.readyReplicas}=2")
    told = release.kubectl("delete", "service", "protected-0", "--namespace", TEAM, fails=True)
    assert "only system:serviceaccount:spinney-system:grove-operator may change it" in told
    release.install(CHART, VALUES)
    release.wait("validatingwebhookconfiguration/authorizer-webhook", "delete")
    release.kubectl("delete", "service", "protected-0", "--namespace", TEAM)
    release.kubectl("delete", "podcliqueset", "protected", "--namespace", TEAM, "--timeout=120s")


async def test_many_pods_run_beside_the_real_ones(release: Machine) -> None:
    """On two hundred simulated nodes beside the real one, a gang of four hundred pods comes up."""
    runtime = Runtime.system()
    transport = load_kubeconfig(release.kubeconfig, runtime=runtime)
    labels = {"type": "simulated"}
    group = NodeGroup(name="simulated-{index}", count=200, capacity={"cpu": 4, "memory": "8Gi"}, labels=labels)
    fleet = Fleet(Client(transport, runtime), ClusterSpec(nodes=(group,)), runtime=runtime)
    async with fleet.running():
        release.apply(a_wide_set("wide", 400))
        waiting = ("podclique/wide-0-worker", "jsonpath={.status.readyReplicas}=400")
        await asyncio.to_thread(release.wait, *waiting)
        nodes = {each["spec"]["nodeName"] for each in await asyncio.to_thread(release.pods, "wide")}
        assert all(name.startswith("simulated-") for name in nodes)
        delete = ("delete", "podcliqueset", "wide", "--namespace", TEAM, "--timeout=180s")
        await asyncio.to_thread(release.kubectl, *delete)
        gone = ("pods", "delete", "--selector", "app.kubernetes.io/part-of=wide")
        await asyncio.to_thread(release.wait, *gone)
    release.kubectl("delete", "nodes", "--selector", "type=simulated")
    await transport.close()
    runtime.executor.close()


def test_an_uninstallation_leaves_what_was_there(release: Machine, before: set[str]) -> None:
    """What remains is what docs/operate.md lists: users' sets with all they have, CRDs, a Secret and Leases."""
    pods = uids(release, "ordered")
    release.helm("uninstall", "spinney", "--namespace", SYSTEM, "--wait")
    for kind in ("validating", "mutating"):
        for name in release.kubectl("get", f"{kind}webhookconfigurations", "--output", "name").split():
            release.kubectl("wait", name, "--for=delete", "--timeout=60s")
    others = (f"/{TEAM}/", "/kube-node-lease/")
    left = {each for each in release.names(*KINDS) - before if not any(other in each for other in others)}
    assert left == {
        f"Secret/{SYSTEM}/grove-webhook-server-cert",
        f"Lease/{SYSTEM}/grove-operator-leader-election",
        f"Lease/{SYSTEM}/spinney-scheduler",
    }
    assert before <= release.names(*KINDS)
    assert {f"Namespace//{SYSTEM}", "CustomResourceDefinition//podcliquesets.grove.io"} <= release.names(
        "namespaces", "customresourcedefinitions"
    )
    assert uids(release, "ordered") == pods
    release.kubectl("label", "podcliqueset", "ordered", "written=by-nobody-in-between", "--namespace", TEAM)
    release.install(CHART, VALUES)
    release.kubectl("delete", "podcliqueset", "ordered", "--namespace", TEAM, "--timeout=120s")
