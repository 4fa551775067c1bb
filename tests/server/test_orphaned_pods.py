"""Pods of deleted Nodes fail and go, once it is clear that the Node does not come back."""

import asyncio

from spinney.server.background.orphaned_pods import QUARANTINE_SECONDS
from tests.server.api import NODES, PODS, Api, a_pod, given_an_api

LATER = QUARANTINE_SECONDS + 1


async def a_node_with_pods(api: Api, *pods: str) -> None:
    """Create a Node, and pods that are bound to it."""
    await api.create(NODES, {"metadata": {"name": "n"}})
    for name in pods:
        await api.create(PODS, a_pod(name, nodeName="n"))


@given_an_api
async def test_they_fail_and_go(api: Api) -> None:
    """Watchers see that a pod failed because its node is gone before it is; others, and pods of no Node, stay."""
    async with api.server.running():
        await a_node_with_pods(api, "lost")
        await api.create(PODS, a_pod("elsewhere", nodeName="never-was"))
        held = a_pod("held", nodeName="n")
        held["metadata"] |= {"finalizers": ["example.com/mine"], "labels": {"phase": "Succeeded"}}
        await api.create(PODS, held)
        await api.delete(f"{NODES}/n")
        await asyncio.sleep(LATER)
        assert await api.names(PODS) == ["elsewhere", "held"]
        status = (await api.get(f"{PODS}/held"))["status"]
        assert status["phase"] == "Failed"
        found = [each["reason"] for each in status["conditions"] if each["type"] == "DisruptionTarget"]
        assert found == ["DeletionByPodGC"]


@given_an_api
async def test_a_label_is_not_the_node_of_a_pod(api: Api) -> None:
    """A pod that runs elsewhere, and has a label with the name of the Node that is gone, is left alone."""
    async with api.server.running():
        await a_node_with_pods(api, "lost")
        elsewhere = a_pod("elsewhere", nodeName="m")
        elsewhere["metadata"]["labels"] = {"nodeName": "n", "phase": "Failed"}
        await api.create(PODS, elsewhere)
        await api.delete(f"{NODES}/n")
        await asyncio.sleep(LATER)
        assert await api.names(PODS) == ["elsewhere"]


@given_an_api
async def test_they_stay_where_the_node_comes_back(api: Api) -> None:
    """A Node that is registered again in time finds its pods."""
    async with api.server.running():
        await a_node_with_pods(api, "kept")
        await api.delete(f"{NODES}/n")
        await asyncio.sleep(LATER / 2)
        await api.create(NODES, {"metadata": {"name": "n"}})
        await asyncio.sleep(LATER)
        assert await api.names(PODS) == ["kept"]


@given_an_api
async def test_what_is_terminating_or_bound_too_late_goes_as_well(api: Api) -> None:
    """A pod that waits for its node to stop it, and one that is bound to the Node that is gone, are not kept."""
    async with api.server.running():
        await a_node_with_pods(api, "terminating")
        await api.delete(f"{PODS}/terminating")
        await api.delete(f"{NODES}/n")
        await asyncio.sleep(LATER)
        assert await api.names(PODS) == []
        await api.create(PODS, a_pod("late", nodeName="n"))
        await asyncio.sleep(LATER)
        assert await api.names(PODS) == []
