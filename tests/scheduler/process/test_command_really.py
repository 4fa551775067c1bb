"""``spinney scheduler`` on a real kube-apiserver: it places native gangs, plain pods, and the operator's gangs."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from spinney.api.conditions import is_true
from spinney.api.core import NODE, POD, Pod
from spinney.api.grove import POD_CLIQUE_SET
from spinney.api.podgang import POD_GANG, SCHEDULED, PodGang
from spinney.api.struct import JSON
from spinney.api.workload_v1beta1 import POD_GROUP
from spinney.kube.client import Client
from spinney.kube.crds import install_crds
from spinney.operator.operator import Operator, Settings
from spinney.sim.embedded.stack import OUR_BACKENDS
from tests.conftest import Cluster
from tests.scheduler.process.test_command import a_command

pytestmark = pytest.mark.real

SCHEDULER = "spinney-scheduler"


@pytest.fixture
def cluster_name() -> str:
    """Only the real cluster is of interest here."""
    return "real"


@asynccontextmanager
async def the_command(cluster: Cluster) -> AsyncIterator[None]:
    """Run ``spinney scheduler`` for the time of the block; it must end well."""
    assert cluster.kubeconfig is not None
    command = await a_command(cluster.kubeconfig, "--scheduler-name", SCHEDULER)
    try:
        yield
    finally:
        if command.returncode is None:
            command.terminate()
        _, said = await command.communicate()
    assert command.returncode == 0, said.decode()


async def some_nodes(client: Client, count: int, gpus: int) -> None:
    """Create nodes as a load generator does: labelled by rack and block, ready, without a kubelet."""
    amounts = {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}
    ready = {"type": "Ready", "status": "True", "reason": "x", "message": "x"}
    moments = dict.fromkeys(("lastHeartbeatTime", "lastTransitionTime"), "2026-01-01T00:00:00Z")
    for number in range(count):
        labels = {"kubernetes.io/hostname": f"n{number}", "topology.kubernetes.io/rack": f"r{number // 2}"}
        status = {"capacity": amounts, "allocatable": amounts, "conditions": [{**ready, **moments}]}
        await client.create(NODE, {"metadata": {"name": f"n{number}", "labels": labels}, "status": status})
        await client.patch(NODE, f"n{number}", {"spec": {"taints": None}})


def a_pod(name: str, *, gpus: int = 0, **more: object) -> JSON:
    """Return a pod as the load generator makes them."""
    resources: JSON = {"requests": {"cpu": "1", "memory": "1Gi"}}
    if gpus:
        resources["limits"] = {"nvidia.com/gpu": str(gpus)}
    container = {"name": "c", "image": "pause", "resources": resources}
    spec = {"schedulerName": SCHEDULER, "terminationGracePeriodSeconds": 0, "containers": [container], **more}
    return {"metadata": {"name": name}, "spec": spec}


async def placed(cluster: Cluster, count: int, of: Callable[[Pod], bool] = lambda pod: True) -> dict[str, str]:
    """Wait until so many pods have nodes, and return where they are."""
    async with asyncio.timeout(100):
        while True:
            pods = (await cluster.client.list(POD, cluster.namespace, type=Pod)).items
            found = {pod.metadata.name: pod.spec.node_name for pod in pods if pod.spec.node_name and of(pod)}
            if len(found) >= count:
                return found
            await asyncio.sleep(0.1)


async def test_it_places_what_a_load_generator_makes(cluster: Cluster) -> None:
    """Native gangs of eight are placed whole, as many as there is room for, and plain pods beside them."""
    await some_nodes(cluster.client, 4, gpus=8)
    for gang in range(5):
        spec = {"schedulingPolicy": {"gang": {"minCount": 8}}}
        await cluster.client.create(POD_GROUP, {"metadata": {"name": f"g{gang}"}, "spec": spec}, cluster.namespace)
        for number in range(8):
            member = {"schedulingGroup": {"podGroupName": f"g{gang}"}}
            await cluster.client.create(POD, a_pod(f"g{gang}-{number}", gpus=1, **member), cluster.namespace)
    for number in range(6):
        await cluster.client.create(POD, a_pod(f"p-{number}"), cluster.namespace)
    async with the_command(cluster):
        found = await placed(cluster, 4 * 8 + 6)
        await asyncio.sleep(1)
        found = await placed(cluster, len(found))
        whole = Counter(name.partition("-")[0] for name in found)
        assert sorted(whole.values()) == [6, 8, 8, 8, 8], "four gangs whole, the fifth not at all, every plain pod"
        assert max(Counter(found[name] for name in found if name.startswith("g")).values()) == 8


async def test_it_places_the_operators_gangs(cluster: Cluster) -> None:
    """A PodCliqueSet becomes pods, its gang is placed, and the PodGang says so."""
    await install_crds(cluster.client)
    await some_nodes(cluster.client, 2, gpus=4)
    container = {"name": "main", "image": "pause", "resources": {"limits": {"nvidia.com/gpu": "2"}}}
    cliques = [
        {
            "name": name,
            "spec": {"roleName": name, "replicas": 2, "minAvailable": 2, "podSpec": {"containers": [container]}},
        }
        for name in ("prefill", "decode")
    ]
    template = {"cliques": cliques, "terminationDelay": "4h", "cliqueStartupType": "CliqueStartupTypeAnyOrder"}
    spec = {"replicas": 1, "template": template}
    operator = Operator(cluster.connect("grove-operator"), Settings(profiles=OUR_BACKENDS))
    running = asyncio.create_task(operator.run())
    try:
        async with the_command(cluster):
            await cluster.client.create(POD_CLIQUE_SET, {"metadata": {"name": "w"}, "spec": spec}, cluster.namespace)
            found = await placed(cluster, 4)
            assert Counter(found.values()) == {"n0": 2, "n1": 2}
            async with asyncio.timeout(60):
                while True:
                    gangs = (await cluster.client.list(POD_GANG, cluster.namespace, type=PodGang)).items
                    if gangs and all(is_true(gang.status.conditions, SCHEDULED) for gang in gangs):
                        break
                    await asyncio.sleep(0.1)
            assert [gang.status.placement_score for gang in gangs] == [1.0]
        await cluster.client.delete_collection(POD_CLIQUE_SET, cluster.namespace)
        async with asyncio.timeout(60):
            while True:
                if not (await cluster.client.list(POD_CLIQUE_SET, cluster.namespace)).items:
                    break
                await asyncio.sleep(0.1)
    finally:
        operator.stop()
        await running
