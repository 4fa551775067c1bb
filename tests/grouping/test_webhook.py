"""An API server asks the grouper about new pods over its webhook, and creates them whatever becomes of that."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from spinney.api import labels as marks
from spinney.api.admission import MUTATING_WEBHOOK_CONFIGURATION
from spinney.api.core import NAMESPACE, POD
from spinney.api.podgang import POD_GANG
from spinney.api.rbac import CLUSTER_ROLE
from spinney.api.struct import JSON
from spinney.grouping.configuration import AdmissionConfiguration, GrouperConfiguration, LoadedGrouperConfiguration
from spinney.grouping.grouper import Grouper
from spinney.grouping.loading import built_in
from spinney.grouping.webhook import (
    SERVICE,
    WEBHOOK,
    PodReviews,
    asking,
    register,
    webhook_process,
)
from spinney.kube.client import Client
from spinney.kube.crds import install_crds
from spinney.kube.errors import NotFound
from spinney.kube.webhooks.certificates import new_certificate
from spinney.kube.webhooks.registration import unregister
from spinney.kube.webhooks.server import ServicePlace, WebhookServer
from spinney.runtime import Runtime
from spinney.runtime.tasks import end
from spinney.server import ApiServer, ServerOptions
from spinney.server.admission.calling import CallFailed
from spinney.sim.embedded.stack import OUR_BACKENDS
from spinney.sim.embedded.transport import InProcessTransport
from tests.conftest import Cluster
from tests.grouping.staging import WITHIN
from tests.grouping.test_controller import A_JOB
from tests.grouping.world import JOB, a_pod, a_world, reference
from tests.virtual_time import on_virtual_time

SPEC: JSON = {"parallelism": 2, "completions": 2, **A_JOB}
PLACE = ServicePlace(SERVICE, "system")
SERVED = ("spinney-scheduler",)
TENANT = "tenant"


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have an API server wait long, for a busy machine may take longer than it would in a cluster."""
    monkeypatch.setattr("spinney.grouping.webhook.TIMEOUT_SECONDS", 30)
    monkeypatch.setattr("spinney.grouping.admission.READ_SECONDS", 25.0)


class Line:
    """Carries reviews to a grouper in this process, unless it is broken. Mutable: counts them."""

    def __init__(self) -> None:
        self.reviews: PodReviews | None = None
        self.carried: list[str] = []

    async def call(self, client: JSON, body: bytes, timeout: float) -> bytes:
        """Bring a review to the grouper."""
        if self.reviews is None:
            raise CallFailed("nobody answers")
        self.carried.append(json.loads(body)["request"]["object"]["metadata"]["name"])
        return await self.reviews.answer(client["service"]["path"], body)

    async def close(self) -> None:
        """Nothing is open."""


@asynccontextmanager
async def grouping(client: Client, written: GrouperConfiguration) -> AsyncIterator[Grouper]:
    await install_crds(client)
    for name in (TENANT, PLACE.namespace):
        await client.create(NAMESPACE, {"metadata": {"name": name, "labels": {"team": name}}})
    grouper = Grouper(client, LoadedGrouperConfiguration(written, built_in(), OUR_BACKENDS))
    running = asyncio.create_task(grouper.run())
    try:
        await grouper.manager.wait_until_ready()
        yield grouper
    finally:
        grouper.manager.stop()
        await running


@asynccontextmanager
async def asked(written: GrouperConfiguration) -> AsyncIterator[tuple[Client, Line]]:
    """Give a cluster on virtual time whose API server asks a grouper."""
    runtime, line = Runtime.virtual(seed=1), Line()
    server = ApiServer(runtime, webhooks=line)
    client = Client(InProcessTransport(server), runtime)
    async with server.running(), grouping(client, written) as grouper:
        line.reviews = PodReviews(grouper)
        await register(client, grouper, written, PLACE, b"")
        yield client, line


async def a_job(client: Client) -> JSON:
    """Create a Job; returns the reference that its pods carry."""
    return reference(JOB, await client.create(JOB, {"metadata": {"name": "train"}, "spec": SPEC}, TENANT))


def is_told(pod: JSON) -> bool:
    """Tell whether a pod was told its gang."""
    return marks.POD_GANG in pod["metadata"].get("labels", {})


@on_virtual_time
async def test_pods_are_told_by_the_answer_to_a_review() -> None:
    """What they say themselves stays; a pod without labels and annotations gets them."""
    async with asked(GrouperConfiguration(scheduler_names=SERVED)) as (client, _):
        owner = await a_job(client)
        assert is_told(await client.create(POD, a_pod("train-0", owner), TENANT))
        own = await client.create(POD, a_pod("train-1", owner, labels={"a": "b"}, annotations={"c": "d"}), TENANT)
        assert is_told(own)
        assert own["metadata"]["labels"]["a"] == "b"
        assert own["metadata"]["annotations"]["c"] == "d"


@on_virtual_time
async def test_the_api_server_asks_only_about_pods_that_are_concerned() -> None:
    """Not about those of other schedulers or of Grove's gangs, nor without the labels that are asked for."""
    written = GrouperConfiguration(
        scheduler_names=SERVED, pod_labels={"grouped": "yes"}, namespace_labels={"team": TENANT}
    )
    concerned = {"grouped": "yes"}
    async with asked(written) as (client, line):
        owner = await a_job(client)
        for pod in (
            a_pod("others", owner, scheduler="default-scheduler", labels=concerned),
            a_pod("groves", owner, labels={**concerned, marks.POD_GANG: "theirs"}),
            a_pod("unlabelled", owner),
            a_pod("train-0", owner, labels=concerned),
        ):
            await client.create(POD, pod, TENANT)
        await client.create(POD, a_pod("elsewhere", labels=concerned), PLACE.namespace)
        await client.patch(POD, "train-0", {"metadata": {"labels": {"a": "b"}}}, TENANT)
        assert line.carried == ["train-0"]


@on_virtual_time
async def test_a_webhook_that_does_not_answer_keeps_no_pod_from_being_created() -> None:
    """The grouper tells it afterwards."""
    async with asked(GrouperConfiguration(scheduler_names=SERVED)) as (client, line):
        line.reviews = None
        pod = await client.create(POD, a_pod("train-0", await a_job(client)), TENANT)
        assert not is_told(pod)
        await asyncio.sleep(10)
        assert is_told(await client.get(POD, "train-0", TENANT))


@on_virtual_time
async def test_the_configuration_goes_with_the_role_or_when_it_is_switched_off() -> None:
    """A grouper that is uninstalled leaves no webhook behind that nothing answers."""
    async with asked(GrouperConfiguration(scheduler_names=SERVED)) as (client, _):
        found = await client.get(MUTATING_WEBHOOK_CONFIGURATION, WEBHOOK)
        assert "ownerReferences" not in found["metadata"]
        await unregister(client, MUTATING_WEBHOOK_CONFIGURATION, WEBHOOK)
        with pytest.raises(NotFound):
            await client.get(MUTATING_WEBHOOK_CONFIGURATION, WEBHOOK)
        await unregister(client, MUTATING_WEBHOOK_CONFIGURATION, WEBHOOK)


async def test_it_is_served_over_tls_and_registered() -> None:
    """Certificate, server and registration are the grouper's own; it is ready when an API server would trust it."""
    runtime, addresses = Runtime.system(), dict[str, str]()
    server = ApiServer(runtime, ServerOptions(service_addresses=addresses))
    client = Client(InProcessTransport(server), runtime)
    here = AdmissionConfiguration(bind_address="127.0.0.1", port=0)
    written = GrouperConfiguration(scheduler_names=SERVED, admission=here)
    async with server.running(), grouping(client, written) as grouper:
        await client.create(CLUSTER_ROLE, {"metadata": {"name": "spinney-grouper"}, "rules": []})
        process = webhook_process(grouper, client, written, namespace=PLACE.namespace)
        serving = asyncio.create_task(process.run())
        try:
            async with asyncio.timeout(WITHIN):
                while process.unready() is not None:  # noqa: ASYNC110 - it is looked at by a probe, which polls
                    await asyncio.sleep(0.05)
            addresses[f"{PLACE.namespace}/{PLACE.name}"] = f"127.0.0.1:{process.port}"
            assert is_told(await client.create(POD, a_pod("train-0", await a_job(client)), TENANT))
            (owner,) = (await client.get(MUTATING_WEBHOOK_CONFIGURATION, WEBHOOK))["metadata"]["ownerReferences"]
            assert (owner["kind"], owner["name"]) == ("ClusterRole", "spinney-grouper")
        finally:
            await end(serving)
    runtime.executor.close()


# -- on a real API server ----------------------------------------------------------------------------------------------


@asynccontextmanager
async def really_asked(cluster: Cluster, grouper: Grouper) -> AsyncIterator[None]:
    """Have a real API server ask a grouper in this process about the pods of the test's namespace."""
    certificate = new_certificate(("localhost",), cluster.runtime.clock.now())
    async with WebhookServer(PodReviews(grouper), certificate, host="127.0.0.1").serving() as port:
        written = GrouperConfiguration(namespace_labels={"kubernetes.io/metadata.name": cluster.namespace})
        manifest = asking(PLACE, certificate.authority, grouper.scheduler_names, written)
        manifest["metadata"]["name"] = f"{WEBHOOK}-{cluster.namespace}"
        (hook,) = manifest["webhooks"]
        path = hook["clientConfig"].pop("service")["path"]
        hook["clientConfig"]["url"] = f"https://localhost:{port}{path}"
        await cluster.client.apply(MUTATING_WEBHOOK_CONFIGURATION, manifest)
        try:
            async with asyncio.timeout(WITHIN):
                while not is_told(await tried(cluster)):  # noqa: ASYNC110 - API servers do not tell when they begin
                    await asyncio.sleep(0.1)
            yield
        finally:
            await cluster.client.delete(MUTATING_WEBHOOK_CONFIGURATION, manifest["metadata"]["name"])


async def tried(cluster: Cluster) -> JSON:
    """Return what would become of a pod."""
    pod = a_pod("tried", gpus=0, labels={marks.GANG: "tried"}, annotations={"kai.scheduler/min-member": "1"})
    found: JSON = await cluster.client.create(POD, pod, cluster.namespace, dry_run=True)
    return found


@pytest.mark.parametrize("cluster_name", [pytest.param("real", marks=pytest.mark.real)])
@pytest.mark.timeout(600)
async def test_a_real_api_server_creates_the_pods_of_a_real_job_in_their_gang(cluster: Cluster) -> None:
    """The Job controller's pods have no name when the webhook is asked; none of them is written by the grouper."""
    async with a_world(cluster, nodes=2) as world:
        assert world.grouper is not None
        async with really_asked(cluster, world.grouper):
            pod = {**a_pod("x", gpus=1)["spec"], "restartPolicy": "Never"}
            spec = {"parallelism": 3, "completions": 3, "template": {"spec": pod}}
            metadata = {"name": "three", "annotations": {"kai.scheduler/batch-min-member": "3"}}
            await cluster.client.create(JOB, {"metadata": metadata, "spec": spec}, cluster.namespace)
            await world.until(lambda: len(world.placed("three")) == 3, WITHIN)
            pods = (await cluster.client.list(POD, cluster.namespace)).items
            (gang,) = (await cluster.client.list(POD_GANG, cluster.namespace)).items
            assert {each["metadata"]["labels"][marks.POD_GANG] for each in pods} == {gang["metadata"]["name"]}
            assert world.counted("spinney_grouper_admissions_total", answer="gang") >= 3
            writers = {each["manager"] for pod in pods for each in pod["metadata"]["managedFields"]}
            assert "spinney-grouper" not in writers


@pytest.mark.parametrize("cluster_name", [pytest.param("real", marks=pytest.mark.real)])
@pytest.mark.timeout(600)
async def test_a_tenant_of_a_real_api_server_joins_nobody_elses_gang(cluster: Cluster) -> None:
    """Labels that are forged, and owners of another namespace, do not put a pod into a gang."""
    async with a_world(cluster, nodes=1) as world:
        assert world.grouper is not None
        async with really_asked(cluster, world.grouper):
            paused = {**SPEC, "suspend": True}
            owner = await world.owner(JOB, "victim", paused)
            victim = await cluster.client.create(POD, a_pod("victim-0", owner, gpus=1), cluster.namespace)
            assert is_told(victim)
            forged = {**victim["metadata"]["labels"], "forged": "yes"}
            bare = await cluster.client.create(POD, a_pod("bare", gpus=1, labels=forged), cluster.namespace)
            assert not is_told(bare)
            assert bare["metadata"]["labels"][marks.GROUPED] == "alone"
            strange = {**owner, "uid": "11111111-2222-3333-4444-555555555555"}
            assert not is_told(await cluster.client.create(POD, a_pod("strange", strange), cluster.namespace))
