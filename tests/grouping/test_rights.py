"""The grouper does its work with the rights that are granted for its enabled rules, and with no others."""

import asyncio
from contextlib import AbstractAsyncContextManager

from msgspec.structs import replace

from spinney.api.core import CONFIG_MAP, EVENT, NAMESPACE, POD, Pod
from spinney.api.podgang import POD_GANG, PodGang
from spinney.api.rbac import CLUSTER_ROLE, CLUSTER_ROLE_BINDING
from spinney.api.scheduling import PRIORITY_CLASS
from spinney.backends import every_backend
from spinney.cli.installing.rights import grouper_rights, rules
from spinney.grouping.configuration import check
from spinney.grouping.grouper import Grouper
from spinney.kube.cache import WatchCache
from spinney.kube.client import Client
from spinney.kube.crds import install_crds
from spinney.kube.transport import Request, Response, StreamingResponse
from spinney.runtime import Runtime
from spinney.server import ApiServer, ServerOptions
from spinney.sim.embedded.transport import InProcessTransport
from tests.grouping.test_controller import A_JOB
from tests.grouping.world import JOB, a_pod, reference
from tests.virtual_time import on_virtual_time

WHO = "grouper"
CONFIGURATION = """
kind: GrouperConfiguration
scheduler: {profiles: [{name: kai-scheduler, default: true}, {name: spinney-scheduler}]}
kindDefaultsConfigMap: {namespace: test, name: defaults}
"""
DEFAULTS = '[{"typeName": "Job", "priorityName": "of-jobs"}]'


def _as(request: Request) -> Request:
    return replace(request, headers={**request.headers, "Impersonate-User": WHO})


class _As:
    """A transport that speaks for somebody."""

    def __init__(self, transport: InProcessTransport) -> None:
        self._transport = transport

    async def request(self, request: Request) -> Response:
        return await self._transport.request(_as(request))

    def stream(self, request: Request) -> AbstractAsyncContextManager[StreamingResponse]:
        return self._transport.stream(_as(request))

    async def close(self) -> None:
        """Close the transport behind."""
        await self._transport.close()


async def gang_made(without: str = "") -> tuple[PodGang, list[str]]:
    """Return the PodGang that a grouper with its own rights makes for a Job and its pod, and what it complains of."""
    runtime = Runtime.virtual(seed=1)
    server = ApiServer(runtime, ServerOptions(authorization="RBAC"))
    client = Client(InProcessTransport(server), runtime)
    async with server.running():
        await install_crds(client)
        await client.create(NAMESPACE, {"metadata": {"name": "test"}})
        await client.create(CONFIG_MAP, {"metadata": {"name": "defaults"}, "data": {"types": DEFAULTS}}, "test")
        await client.create(PRIORITY_CLASS, {"metadata": {"name": "of-jobs"}, "value": 7})
        granted = check(f"{CONFIGURATION}without: [{without}]\n" if without else CONFIGURATION)
        role = {"metadata": {"name": WHO}, "rules": rules(grouper_rights(granted, every_backend()))}
        await client.create(CLUSTER_ROLE, role)
        binding = {
            "metadata": {"name": WHO},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": WHO},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": WHO}],
        }
        await client.create(CLUSTER_ROLE_BINDING, binding)
        # The rules are all there, also where the right to read a kind is not.
        grouper = Grouper(Client(_As(InProcessTransport(server)), runtime, field_manager=WHO), check(CONFIGURATION))
        running = asyncio.create_task(grouper.run())
        made = await client.create(JOB, {"metadata": {"name": "job"}, "spec": A_JOB}, "test")
        pods = WatchCache(client, POD, Pod, runtime=runtime)
        watching = asyncio.create_task(pods.run())
        changed = asyncio.Event()
        pods.subscribe(lambda change: changed.set())
        await client.create(POD, a_pod("job-0", reference(JOB, made), scheduler="kai-scheduler"), "test")
        async with asyncio.timeout(60):
            while not any("pod-group-name" in pod.metadata.annotations for key in pods if (pod := pods.get(key))):
                changed.clear()
                await changed.wait()
        await asyncio.sleep(10)  # of virtual time: everything that was read has been thought about
        gangs = await client.list(POD_GANG, "test", type=PodGang)
        grouper.manager.stop()
        watching.cancel()
        await asyncio.gather(running, watching, return_exceptions=True)
        (gang,) = gangs.items
        said = [event["message"] for event in (await client.list(EVENT, "test")).items if event["type"] == "Warning"]
        return gang, said


@on_virtual_time
async def test_it_works_with_exactly_its_rights() -> None:
    """A Job's pods are grouped under the printed rights, with the defaults of kinds and the scheduler's PodGroup."""
    gang, said = await gang_made()
    assert said == []
    assert [owner.kind for owner in gang.metadata.owner_references] == ["Job"]
    assert gang.spec.priority_class_name == "of-jobs"


@on_virtual_time
async def test_an_owner_that_may_not_be_read_is_not_needed() -> None:
    """Without the right to read Jobs the last owner that can be read counts, the pod itself, and it says so."""
    gang, (said,) = await gang_made(without="batch/Job")
    assert said.startswith("Job job may not be read, so the rule for batch/Job is not applied; grant ")
    assert [owner.kind for owner in gang.metadata.owner_references] == ["Pod"]
