"""The kind comes and goes, or the class of the configuration: pods never wait for a request that there is not."""

import pytest
from structlog.testing import capture_logs

from spinney.api.apiextensions import CUSTOM_RESOURCE_DEFINITION
from spinney.api.core import POD, POD_TEMPLATE
from spinney.kube.errors import ConnectionRefused
from spinney.kube.transport import Response
from tests.autoscaling.asking import CRD, asking, given_requests, install, requests, waiting
from tests.scheduler.process.world import NS, World, given_a_world, status


@pytest.mark.parametrize(
    "answer",
    [ConnectionRefused("no connection"), Response(200, {}, b'{"kind":"APIGro'), Response(200, {}, b"<html>Sign in")],
)
@given_a_world
async def test_an_outage_while_kinds_are_looked_for_ends_nothing(world: World, answer: Response | Exception) -> None:
    """The API server is away, or is not it, each time it is asked what it serves; pods are placed after as before."""
    discovering = False

    def fault(method: str, path: str) -> Response | Exception | None:
        return answer if discovering and (path.startswith("/apis/autoscaling") or path in ("/api", "/apis")) else None

    world.transport.fault = fault
    async with asking(world):
        await world.settle(1)
        discovering = True
        await world.settle(200)
        discovering = False
        await world.add_node("n1")
        await world.add_pod("p1")
        await world.settle(5)
        assert (await world.places())["p1"] == "n1"


@given_requests
async def test_without_a_class_pods_of_before_ask_for_themselves(world: World) -> None:
    """Where the class is taken out of the configuration, pods name no request any more, whatever fails at first."""
    async with asking(world):
        await world.add_gang("g", 2, gpus=8)
        await world.settle(5)
    failing = True

    def fault(method: str, path: str) -> Response | None:
        return status(503, "ServiceUnavailable") if failing and (method, path[-4:]) == ("PATCH", "/g-1") else None

    world.transport.fault = fault
    async with asking(world, ""):
        await world.settle(5)
        failing = False
        await world.settle(20)
        assert {reason for reason, _ in (await waiting(world)).values()} == {"Unschedulable"}
        for pod in (await world.client.list(POD, NS)).items:
            assert not [key for key in pod["metadata"].get("annotations") or {} if "autoscaling" in key]


@given_a_world
async def test_without_the_kind_pods_ask_for_themselves(world: World) -> None:
    """On a cluster that does not serve ProvisioningRequests nothing is lost."""
    async with asking(world):
        await world.add_gang("g", 2, gpus=8)
        await world.settle(5)
        assert {reason for reason, _ in (await waiting(world)).values()} == {"Unschedulable"}


@given_a_world
async def test_the_kind_may_go_and_come_back(world: World) -> None:
    """Without it pods ask for themselves, and name no request that keeps nodes from them; with it gangs do again."""
    with capture_logs() as told:
        async with asking(world):
            await world.add_gang("g", 2, gpus=8)
            await world.settle(300)
            for _ in range(2):
                await install(world.client)
                await world.settle(65)
                assert len(await requests(world)) == 1
                assert {reason for reason, _ in (await waiting(world)).values()} == {"WaitingForProvisioning"}

                await world.client.delete(CUSTOM_RESOURCE_DEFINITION, CRD)
                await world.settle(65)
                assert {reason for reason, _ in (await waiting(world)).values()} == {"Unschedulable"}
                for pod in (await world.client.list(POD, NS)).items:
                    assert not [key for key in pod["metadata"].get("annotations") or {} if "autoscaling" in key]
                assert not (await world.client.list(POD_TEMPLATE, NS)).items
    said = [line["event"] for line in told if line["event"].startswith("ProvisioningRequests are")]
    assert [each.split(",")[0] for each in said] == [
        "ProvisioningRequests are not served",
        *["ProvisioningRequests are served", "ProvisioningRequests are not served"] * 2,
    ]


@given_requests
async def test_a_kind_that_went_while_nobody_led_is_noticed(world: World) -> None:
    """Pods that named a request of before ask for themselves, also where it was not known at once that it is gone."""
    async with asking(world):
        await world.add_gang("g", 2, gpus=8)
        await world.settle(5)
    await world.client.delete(CUSTOM_RESOURCE_DEFINITION, CRD)
    away = True

    def fault(_method: str, path: str) -> Exception | None:
        return ConnectionRefused("no connection") if away and path.startswith("/apis/autoscaling") else None

    world.transport.fault = fault
    async with asking(world):
        await world.settle(30)
        away = False
        await world.settle(100)
        for pod in (await world.client.list(POD, NS)).items:
            assert not [key for key in pod["metadata"].get("annotations") or {} if "autoscaling" in key]
