"""The same operator on the embedded and on a real API server: server-side apply, conditions, gates, deletion."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

from spinney.api import labels as marks
from spinney.api.conditions import is_true
from spinney.api.core import POD, SERVICE, Pod
from spinney.api.grove import POD_CLIQUE, POD_CLIQUE_SET, PodClique
from spinney.api.podgang import BACKEND_READY, INITIALIZED, POD_GANG, PodGang
from spinney.api.resource import Resource
from spinney.backends import Profile, Profiles
from spinney.backends.kube import KubeSchedulerConfig
from spinney.kube.crds import install_crds
from spinney.operator.operator import Operator, Settings
from spinney.operator.pod_states import has_gate
from spinney.testing.builders import a_clique, a_pod_clique_set, a_scaling_group
from tests.conftest import Cluster
from tests.operator.harness import SPINNEY


@asynccontextmanager
async def an_operator(cluster: Cluster, settings: Settings) -> AsyncIterator[Operator]:
    """Run an operator on the test's cluster."""
    await install_crds(cluster.client)
    operator = Operator(cluster.connect("spinney-operator"), settings)
    running = asyncio.create_task(operator.run())
    waiting = asyncio.create_task(operator.manager.wait_until_ready())
    await asyncio.wait({running, waiting}, return_when=asyncio.FIRST_COMPLETED)
    if running.done():
        await running
    try:
        yield operator
    finally:
        operator.stop()
        await running


async def until(holds: Callable[[], Awaitable[bool]], what: str) -> None:
    """Look again and again until something holds."""
    try:
        async with asyncio.timeout(60):
            while not await holds():  # noqa: ASYNC110 - of everything that an operator writes
                await asyncio.sleep(0.1)
    except TimeoutError:
        raise AssertionError(f"not reached: {what}") from None


async def pods_of(cluster: Cluster) -> list[Pod]:
    """Return the pods of the test's namespace."""
    return list((await cluster.client.list(POD, cluster.namespace, type=Pod)).items)


async def names_of(cluster: Cluster, resource: Resource) -> list[str]:
    """Return the names of what was made for the set."""
    selector = f"{marks.PART_OF}=model"
    listing = await cluster.client.list(resource, cluster.namespace, label_selector=selector)
    return sorted(each["metadata"]["name"] for each in listing.items)


async def test_a_set_comes_up_is_scaled_and_goes(cluster: Cluster) -> None:
    """Gangs are initialized, gates opened, replicas scaled, and nothing is written once all is quiet."""
    async with an_operator(cluster, Settings(profiles=SPINNEY)):
        cliques = [a_clique("leader", 1), a_clique("worker", 2)]
        groups = [a_scaling_group("sg", ["worker"], 2, 1)]
        pcs = a_pod_clique_set("model", cliques, groups, namespace=cluster.namespace)
        await cluster.client.apply(POD_CLIQUE_SET, pcs, field_manager="user")

        async def released() -> bool:
            pods = await pods_of(cluster)
            return sum(not has_gate(pod) for pod in pods) == 3 and len(pods) == 5

        await until(released, "three pods of the base gang released, two of the scaled gang gated")
        gang = await cluster.client.get(POD_GANG, "model-0", cluster.namespace, type=PodGang)
        assert is_true(gang.status.conditions, INITIALIZED)
        assert is_true(gang.status.conditions, BACKEND_READY)
        assert await names_of(cluster, SERVICE) == ["model-0"]
        await cluster.client.patch(
            POD_CLIQUE, "model-0-leader", {"spec": {"replicas": 2}}, cluster.namespace, subresource="scale"
        )

        async def scaled() -> bool:
            clique = await cluster.client.get(POD_CLIQUE, "model-0-leader", cluster.namespace, type=PodClique)
            return clique.status.replicas == 2 and len(await pods_of(cluster)) == 6

        await until(scaled, "a second leader")
        await until(partial(quiet, cluster), "nothing is written for three seconds")
        await cluster.client.delete(POD_CLIQUE_SET, "model", cluster.namespace)

        async def gone() -> bool:
            left = [await names_of(cluster, kind) for kind in (POD_CLIQUE, POD_GANG, SERVICE)]
            return left == [[], [], []]

        if cluster.embedded:
            return  # the fixture's server does no garbage collection
        await until(gone, "everything of the set deleted")


async def test_native_gangs_are_made_on_what_the_cluster_serves(cluster: Cluster) -> None:
    """With gang scheduling on, members join a native group whose minimum is the gang's."""
    native = Profile("default-scheduler", KubeSchedulerConfig(gang_scheduling=True))
    async with an_operator(cluster, Settings(profiles=Profiles((native,)))):
        pcs = a_pod_clique_set("model", [a_clique("worker", 3, 2)], namespace=cluster.namespace)
        await cluster.client.apply(POD_CLIQUE_SET, pcs, field_manager="user")

        async def joined() -> bool:
            pods = await pods_of(cluster)
            return sum(pod.spec.scheduling_group is not None for pod in pods) == 2 and len(pods) == 3

        await until(joined, "two members of the native gang and one pod beside it")


async def quiet(cluster: Cluster) -> bool:
    """Say whether nothing is written for three seconds."""
    before = await versions(cluster)
    await asyncio.sleep(3)
    return await versions(cluster) == before


async def versions(cluster: Cluster) -> list[str]:
    """Return the versions of everything the operator writes."""
    found: list[str] = []
    for resource in (POD_CLIQUE_SET, POD_CLIQUE, POD_GANG, POD, SERVICE):
        listing = await cluster.client.list(resource, cluster.namespace)
        found += [each["metadata"]["resourceVersion"] for each in listing.items]
    return found
