"""A scheduler that asks for nodes by ProvisioningRequests, and what is there of them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from spinney.api.core import POD, Pod
from spinney.api.provisioning import BEST_EFFORT_ATOMIC, PROVISIONING_REQUEST
from spinney.api.struct import JSON
from spinney.autoscaling.provisioning import provisioning_for
from spinney.kube.client import Client
from spinney.kube.crds import install_crds
from spinney.kube.lease import LeaderElection
from spinney.kube.manager import Manager
from spinney.scheduler.config import NodeProvisioning, SchedulerConfig
from spinney.scheduler.intake.inventory import Inventory
from spinney.scheduler.plugins import default_registry
from spinney.scheduler.process.process import SchedulerProcess
from tests.scheduler.process.world import NS, World, a_world, running
from tests.virtual_time import opening

RETRY = 100
CRD = "provisioningrequests.autoscaling.x-k8s.io"


async def install(client: Client) -> None:
    """Serve ProvisioningRequests, with a schema that keeps everything."""
    open_schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": open_schema}}
    names = {"kind": "ProvisioningRequest", "plural": "provisioningrequests", "listKind": "ProvisioningRequestList"}
    spec: JSON = {"group": "autoscaling.x-k8s.io", "scope": "Namespaced", "names": names}
    spec |= {"versions": [{**version, "subresources": {"status": {}}}]}
    manifest = {"metadata": {"name": CRD}, "spec": spec}
    await install_crds(client, [manifest])


@asynccontextmanager
async def _a_world_with_requests() -> AsyncIterator[World]:
    async with a_world() as world:
        await install(world.client)
        yield world


given_requests = opening(_a_world_with_requests)
"""Run a test in a world that serves ProvisioningRequests, on virtual time."""


@asynccontextmanager
async def asking(
    world: World,
    class_name: str = BEST_EFFORT_ATOMIC,
    *,
    scheduler: str = "spinney-scheduler",
    election: LeaderElection | None = None,
) -> AsyncIterator[SchedulerProcess]:
    """Run a scheduler that asks for nodes by requests."""
    client = Client(world.transport, world.runtime, field_manager="spinney-scheduler")
    settings = NodeProvisioning(class_name=class_name, retry_seconds=RETRY)
    config = SchedulerConfig(
        scheduler_names=(scheduler,), default_staleness_grace_seconds=-1, provisioning_requests=settings
    )
    manager, inventory, registry = (
        Manager(client, client.runtime, election=election),
        Inventory.for_config(config),
        default_registry(),
    )
    requests, config = provisioning_for(manager, inventory, config, registry)
    process = SchedulerProcess(
        client, config, manager=manager, inventory=inventory, registry=registry, node_requests=requests
    )
    async with running(process):
        yield process


async def requests(world: World) -> list[JSON]:
    return list((await world.client.list(PROVISIONING_REQUEST, NS)).items)


async def answer(world: World, condition: str, message: str = "") -> None:
    """Answer the only request as Cluster Autoscaler does."""
    (request,) = await requests(world)
    said = {"type": condition, "status": "True", "reason": condition, "message": message}
    said["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    patch = {"status": {"conditions": [said]}}
    await world.client.patch(PROVISIONING_REQUEST, request["metadata"]["name"], patch, NS, subresource="status")


async def waiting(world: World) -> dict[str, tuple[str, str]]:
    """Return reason and message of each pod without a node."""
    found = {}
    for pod in (await world.client.list(POD, NS, type=Pod)).items:
        condition = pod.condition("PodScheduled")
        if not pod.spec.node_name and condition is not None:
            found[pod.metadata.name] = (condition.reason, condition.message)
    return found
