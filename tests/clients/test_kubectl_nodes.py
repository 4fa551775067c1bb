"""kubectl on nodes: wait, cordon, taint, drain."""

import asyncio

import pytest

from spinney.server import ApiServer
from tests.clients.kubectl import Kubectl
from tests.clients.manifests import NODE, POD
from tests.server.api import PODS, Api, a_binding

pytestmark = pytest.mark.real


async def test_nodes_are_waited_for_and_cordoned(kubectl: Kubectl) -> None:
    """Wait sees the Ready condition, cordon and label change the node, describe shows it; uncordon undoes it."""
    await kubectl.apply(NODE)
    assert "condition met" in await kubectl.run("wait", "--for=condition=Ready", "node/n1", "--timeout=40s")
    await kubectl.run("cordon", "n1")
    await kubectl.run("label", "node", "n1", "zone=a")
    assert "Ready,SchedulingDisabled" in await kubectl.run("get", "nodes", "--show-labels")
    assert "zone=a" in await kubectl.run("describe", "node", "n1")
    await kubectl.run("uncordon", "n1")
    assert (await kubectl.lines("get", "nodes", "--no-headers"))[0][1] == "Ready"


async def test_nodes_are_tainted(kubectl: Kubectl) -> None:
    """Taint adds, changes and removes taints by key and effect."""
    await kubectl.apply(NODE)
    await kubectl.run("taint", "node", "n1", "gpu=broken:NoSchedule", "gpu=broken:NoExecute")
    await kubectl.run("taint", "node", "n1", "gpu=sick:NoSchedule", "--overwrite")
    await kubectl.run("taint", "node", "n1", "gpu:NoExecute-")
    taints = "jsonpath={range .spec.taints[*]}{.key}={.value}:{.effect};{end}"
    assert await kubectl.run("get", "node", "n1", "-o", taints) == "gpu=sick:NoSchedule;"


async def test_draining_a_node_evicts_its_pods(server: ApiServer, kubectl: Kubectl) -> None:
    """Drain cordons the node and evicts what runs there."""
    await kubectl.apply(NODE)
    await kubectl.apply(POD)
    await Api(server).create(f"{PODS}/web/binding", a_binding("web", "n1"))
    await Api(server).patch(f"{PODS}/web/status", {"status": {"phase": "Succeeded"}})
    assert "drained" in await kubectl.run("drain", "n1", "--force", "--timeout=40s")
    assert "SchedulingDisabled" in await kubectl.run("get", "node", "n1")
    assert "not found" in await kubectl.run("get", "pod", "web", code=1)


async def test_draining_waits_for_a_disruption_budget(server: ApiServer, kubectl: Kubectl) -> None:
    """A pod that its budget protects is tried again until the budget allows the eviction."""
    api = Api(server)
    await kubectl.apply(NODE)
    await kubectl.apply(POD)
    await api.create(f"{PODS}/web/binding", a_binding("web", "n1"))
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    await api.patch(f"{PODS}/web/status", {"status": ready})
    await kubectl.run("create", "pdb", "b", "--selector=app=web", "--min-available=1")
    draining = await kubectl.start("drain", "n1", "--force", "--timeout=50s", "--grace-period=0")
    assert draining.stdout is not None
    said = b""
    async with asyncio.timeout(50):
        while b"Cannot evict pod as it would violate" not in said:
            line = await draining.stdout.readline()
            assert line, said.decode()
            said += line
        await api.delete("/apis/policy/v1/namespaces/default/poddisruptionbudgets/b")
        rest, _ = await draining.communicate()
    assert draining.returncode == 0, (said + rest).decode()
    assert "NotFound" in await kubectl.run("get", "pod", "web", code=1)
