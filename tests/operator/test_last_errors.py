"""What keeps an object from being reconciled stands in its status and in an event, and goes with its cause."""

import asyncio
import json

import pytest

from spinney.api.core import RESOURCE_QUOTA, SERVICE
from spinney.api.grove import (
    POD_CLIQUE,
    POD_CLIQUE_SCALING_GROUP,
    POD_CLIQUE_SET,
    PodCliqueSet,
    ResourceSharing,
)
from spinney.api.meta import ObjectMeta
from spinney.api.resource import Resource
from spinney.api.resource_claims import RESOURCE_CLAIM_TEMPLATE
from spinney.api.struct import JSON
from spinney.kube.client import Client
from spinney.kube.controller import Reconcile, Requeue
from spinney.kube.errors import Conflict, Invalid, ServiceUnavailable
from spinney.kube.events import EventRecorder
from spinney.kube.keys import Key
from spinney.kube.transport import Request, Response
from spinney.operator.status.last_errors import FAILURES_IN_A_ROW, TRIED_AGAIN_SECONDS, ErrorReports
from spinney.runtime import Runtime
from spinney.server import ApiServer
from spinney.sim.embedded.transport import InProcessTransport
from spinney.testing.builders import a_clique, a_pod_clique_set, a_pod_spec, a_scaling_group
from tests.operator.harness import World, a_world, given_a_world
from tests.virtual_time import on_virtual_time

EVENT = Resource("", "v1", "Event", "events")
OUTSIDE = [ResourceSharing(name="outside", scope="AllReplicas")]
SPEC: JSON = {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example"}}]}}}


async def errors(world: World, resource: Resource, name: str) -> list[JSON]:
    """Return what an object says about its latest reconcile."""
    found: JSON = await world.client.get(resource, name, world.namespace)
    said: list[JSON] = found["status"].get("lastErrors", [])
    return said


async def warnings(world: World, kind: str) -> set[str]:
    """Return the reasons of the warnings about objects of a kind."""
    listing = await world.client.list(EVENT, world.namespace)
    return {each["reason"] for each in listing.items if each["involvedObject"]["kind"] == kind}


SHARING = {
    "set": (a_pod_clique_set("model", sharing=OUTSIDE), POD_CLIQUE_SET, "model"),
    "group": (
        a_pod_clique_set("model", [a_clique("a")], [a_scaling_group("g", ["a"], sharing=OUTSIDE)]),
        POD_CLIQUE_SCALING_GROUP,
        "model-0-g",
    ),
    "clique": (a_pod_clique_set("model", [a_clique("a", sharing=OUTSIDE)]), POD_CLIQUE, "model-0-a"),
}


@given_a_world
async def test_what_was_refused_for_long_comes_soon_after_its_reason_has_gone(world: World) -> None:
    """A quota that kept pods out for an hour, and is raised, keeps them out for about half a minute more at most."""
    quota: JSON = {"metadata": {"name": "none", "namespace": world.namespace}, "spec": {"hard": {"pods": "0"}}}
    await world.client.create(RESOURCE_QUOTA, quota)
    await world.bring_up(a_pod_clique_set("model", [a_clique("a", 2)]), 3600)
    assert await world.pods() == []
    (said,) = await errors(world, POD_CLIQUE, "model-0-a")
    assert "exceeded quota" in said["description"]
    await world.client.patch(RESOURCE_QUOTA, "none", {"spec": {"hard": {"pods": "2"}}}, world.namespace)
    await asyncio.sleep(TRIED_AGAIN_SECONDS * 1.1 + 1)  # the pauses differ a little
    assert len(await world.pods()) == 2


@pytest.mark.parametrize("level", SHARING)
@on_virtual_time
async def test_a_missing_claim_template_is_said_where_it_is_missed(level: str) -> None:
    """Set, scaling group and clique each say which template they lack; once it is there they run, and say nothing."""
    pcs, resource, name = SHARING[level]
    async with a_world() as world:
        await world.bring_up(pcs)
        (said,) = await errors(world, resource, name)
        assert said["code"] == "MissingTemplate"
        assert "'outside', which is neither among its resourceClaimTemplates" in said["description"]
        assert said["observedAt"]
        assert "MissingTemplate" in await warnings(world, resource.kind)
        template = {"metadata": {"name": "outside", "namespace": "test"}, "spec": SPEC}
        await world.client.create(RESOURCE_CLAIM_TEMPLATE, template)
        await asyncio.sleep(600)
        assert await errors(world, resource, name) == []
        assert all(pod.is_true("Ready") for pod in await world.pods())
        assert await world.pods()


@given_a_world
async def test_what_the_api_server_refuses_is_said(world: World) -> None:
    """A pod that may not be made is told of on its PodClique, a Service that may not on its set."""
    await world.apply(a_pod_clique_set("low", [a_clique("a", pod_spec=a_pod_spec(priorityClassName="none"))]))
    theirs = {"metadata": {"name": "taken-0", "namespace": "test"}, "spec": {"ports": [{"port": 80}]}}
    await world.client.create(SERVICE, theirs)
    await world.bring_up(a_pod_clique_set("taken"))
    (said,) = await errors(world, POD_CLIQUE, "low-0-a")
    assert (said["code"], "PriorityClass" in said["description"]) == ("Forbidden", True)
    (said,) = await errors(world, POD_CLIQUE_SET, "taken")
    assert (said["code"], "taken-0" in said["description"]) == ("NameTaken", True)
    status = (await world.client.get(POD_CLIQUE_SET, "taken", "test"))["status"]
    assert "observedGeneration" not in status


@on_virtual_time
async def test_errors_are_not_lost_when_the_rest_of_the_status_is_written() -> None:
    """The list is left alone by whoever writes the status, and goes when it is over, also after a restart."""
    async with a_world() as world:
        await world.bring_up(SHARING["clique"][0])
        patch = {"spec": {"replicas": 3}}
        await world.client.patch(POD_CLIQUE, "model-0-a", patch, "test", subresource="scale")
        await world.settle()
        assert len(await errors(world, POD_CLIQUE, "model-0-a")) == 1
        server = world.server
    template = {"metadata": {"name": "outside", "namespace": "test"}, "spec": SPEC}
    await world.client.create(RESOURCE_CLAIM_TEMPLATE, template)
    async with a_world(server=server) as world:
        await world.settle()
        assert await errors(world, POD_CLIQUE, "model-0-a") == []


@on_virtual_time
async def test_what_passes_by_itself_is_told_when_it_does_not_pass() -> None:
    """A conflict or a busy server is not worth a word until it has gone on; what cannot pass is told at once."""
    pcs = PodCliqueSet(metadata=ObjectMeta(name="model", namespace="test"), spec=a_pod_clique_set().spec)
    key = Key("test", "model")

    def reporting(client: Client, error: Exception) -> Reconcile:
        async def fail(key: Key) -> Requeue | None:
            raise error

        return ErrorReports(client, EventRecorder(client, "test"), POD_CLIQUE_SET, lambda key: pcs).of(fail)

    async def told(error: Exception, times: int) -> bool:
        runtime = Runtime.virtual()
        client = Client(InProcessTransport(ApiServer(runtime)), runtime)
        asked: list[str] = []

        async def apply(*_: object, **__: object) -> None:
            asked.append("status")

        client.apply = apply  # type: ignore[assignment, method-assign]
        reconcile = reporting(client, error)
        for _ in range(times):
            with pytest.raises(type(error)):
                await reconcile(key)
        return bool(asked)

    for passing in (Conflict(409), ServiceUnavailable(503), TimeoutError()):
        assert not await told(passing, FAILURES_IN_A_ROW - 1)
        assert await told(passing, FAILURES_IN_A_ROW)
    for lasting in (Invalid(422), ValueError("a fault of ours")):
        assert await told(lasting, 1)


class RefusesPods(InProcessTransport):
    """Refuses every new pod in other words than the time before, as a webhook with a request number does."""

    def __init__(self, server: ApiServer) -> None:
        super().__init__(server)
        self.asked: list[float] = []

    async def request(self, request: Request) -> Response:
        """Pass on what is about something else."""
        if request.method != "POST" or not request.path.endswith("/pods"):
            return await super().request(request)
        self.asked.append(asyncio.get_running_loop().time())
        body = {
            "kind": "Status",
            "code": 403,
            "reason": "Forbidden",
            "message": f"request {len(self.asked)} was denied",
        }
        return Response(403, {"content-type": "application/json"}, json.dumps(body).encode())


@on_virtual_time
async def test_telling_of_a_failure_does_not_make_it_try_again() -> None:
    """The time between two tries grows, whatever the API server's words are: a status that is written wakes nobody."""
    lines: list[RefusesPods] = []

    def line(server: ApiServer) -> RefusesPods:
        lines.append(RefusesPods(server))
        return lines[-1]

    async with a_world(line=line) as world:
        await world.bring_up(a_pod_clique_set("model", [a_clique("a", 1)]), seconds=600)
        asked = lines[0].asked
        assert len(asked) < 13 + 600 / TRIED_AGAIN_SECONDS  # doubled from ten milliseconds on, and then no more
        (said,) = await errors(world, POD_CLIQUE, "model-0-a")
        assert said["description"] == f"request {len(asked)} was denied"


class KeepsGates(InProcessTransport):
    """Denies every change of a pod for as long as a policy is in force, as a ValidatingAdmissionPolicy does."""

    def __init__(self, server: ApiServer) -> None:
        super().__init__(server)
        self.in_force = True

    async def request(self, request: Request) -> Response:
        """Pass on what is about something else."""
        if not self.in_force or request.method != "PATCH" or "/pods/" not in request.path:
            return await super().request(request)
        body = {
            "kind": "Status",
            "code": 422,
            "reason": "Invalid",
            "message": "ValidatingAdmissionPolicy 'p' denied it",
        }
        return Response(422, {"content-type": "application/json"}, json.dumps(body).encode())


@on_virtual_time
async def test_a_policy_that_keeps_gates_is_told_of() -> None:
    """What it says stands on the PodClique whose pods stay gated, and once it lets go they start."""
    lines: list[KeepsGates] = []

    def line(server: ApiServer) -> KeepsGates:
        lines.append(KeepsGates(server))
        return lines[-1]

    async with a_world(line=line) as world:
        await world.bring_up(a_pod_clique_set("model", [a_clique("a", 2)]), seconds=600)
        (said,) = await errors(world, POD_CLIQUE, "model-0-a")
        assert (said["code"], said["description"]) == ("Invalid", "ValidatingAdmissionPolicy 'p' denied it")
        lines[0].in_force = False
        await asyncio.sleep(TRIED_AGAIN_SECONDS * 1.1 + 5)
        assert [pod.is_true("Ready") for pod in await world.pods()] == [True, True]
        assert await errors(world, POD_CLIQUE, "model-0-a") == []
