"""Taints with NoExecute drive pods off their nodes, as kube-controller-manager has it."""

import asyncio

from spinney.api.struct import JSON
from tests.server.api import NODES, PODS, Api, a_pod, given_an_api

BROKEN = {"key": "gpu", "value": "broken", "effect": "NoExecute"}
TOLERATED: JSON = {"key": "gpu", "operator": "Exists", "effect": "NoExecute"}


async def taint(api: Api, *taints: JSON) -> None:
    """Give the node these taints alone."""
    await api.patch(f"{NODES}/n", {"spec": {"taints": list(taints) or None}})


def on_the_node(name: str, *tolerations: JSON) -> JSON:
    """Return a pod that is bound to the node and goes at once when it is deleted."""
    return a_pod(name, nodeName="n", tolerations=list(tolerations), terminationGracePeriodSeconds=0)


@given_an_api
async def test_what_does_not_tolerate_it_goes_at_once(api: Api) -> None:
    """Pods there and pods that are bound later are deleted and say why; what tolerates it, or is elsewhere, stays."""
    async with api.server.running():
        await api.create(NODES, {"metadata": {"name": "n"}})
        await api.create(PODS, on_the_node("gone"))
        await api.create(PODS, on_the_node("stays", TOLERATED))
        await api.create(PODS, a_pod("elsewhere", nodeName="m"))
        held = on_the_node("held")
        held["metadata"]["finalizers"] = ["example.com/mine"]
        await api.create(PODS, held)
        await taint(api, BROKEN)
        await asyncio.sleep(1)
        assert await api.names(PODS) == ["elsewhere", "held", "stays"]
        conditions = (await api.get(f"{PODS}/held"))["status"]["conditions"]
        assert [each["reason"] for each in conditions if each["type"] == "DisruptionTarget"] == [
            "DeletionByTaintManager"
        ]
        await api.create(PODS, on_the_node("late"))
        await asyncio.sleep(1)
        assert await api.names(PODS) == ["elsewhere", "held", "stays"]


@given_an_api
async def test_what_tolerates_it_for_a_while_goes_then(api: Api) -> None:
    """The shortest of the tolerations counts, from when the taint was seen; what it is written meanwhile does not."""
    async with api.server.running():
        await api.create(NODES, {"metadata": {"name": "n"}})
        briefly, longer = ({**TOLERATED, "tolerationSeconds": seconds} for seconds in (30, 90))
        await api.create(PODS, on_the_node("brief", longer, briefly))
        await taint(api, BROKEN)
        await asyncio.sleep(20)
        await api.patch(f"{PODS}/brief", {"metadata": {"labels": {"a": "b"}}})
        await asyncio.sleep(9)
        assert await api.names(PODS) == ["brief"]
        await asyncio.sleep(2)
        assert await api.names(PODS) == []


@given_an_api
async def test_what_is_taken_back_in_time_evicts_nobody(api: Api) -> None:
    """A taint that goes, and other effects, leave pods where they are; the time begins anew with the next one."""
    async with api.server.running():
        await api.create(NODES, {"metadata": {"name": "n"}, "spec": {"taints": [{**BROKEN, "effect": "NoSchedule"}]}})
        await api.create(PODS, on_the_node("kept", {**TOLERATED, "tolerationSeconds": 30}))
        await taint(api, BROKEN)
        await asyncio.sleep(20)
        await taint(api)
        await asyncio.sleep(20)
        await taint(api, BROKEN)
        await asyncio.sleep(20)
        assert await api.names(PODS) == ["kept"]
