"""Lost requests, lost answers and crashes: the operator converges to the same state and never breaks an invariant."""

import asyncio
import random
from collections.abc import Mapping

import pytest

from spinney.api import labels as marks
from spinney.api.core import NAMESPACE, NODE
from spinney.api.grove import POD_CLIQUE, POD_CLIQUE_SCALING_GROUP, POD_CLIQUE_SET, PodCliqueSet
from spinney.api.podgang import POD_GANG
from spinney.kube.client import Client
from spinney.kube.crds import install_crds
from spinney.kube.errors import ConnectionFailed
from spinney.kube.transport import Response
from spinney.operator.operator import Operator, Settings
from spinney.operator.pod_states import has_gate
from spinney.runtime import Runtime, run_virtual
from spinney.server import ApiServer
from spinney.sim.transport import InProcessTransport
from spinney.testing.builders import a_clique, a_pod_clique_set, a_scaling_group
from tests.operator.harness import SPINNEY, Witness, World, follow, place_pods


class UnreliableTransport(InProcessTransport):
    """Loses some requests before, and some answers after, they were served; and delays them all a little.

    Watches are left alone; caches have tests of their own.
    """

    def __init__(self, server: ApiServer, chance: random.Random, *, losing: float) -> None:
        super().__init__(server)
        self._chance = chance
        self._losing = losing
        self.crashed = False

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] = {},
        headers: Mapping[str, str] = {},
        body: bytes | None = None,
        timeout: float | None = None,
    ) -> Response:
        """Send one request, perhaps in vain."""
        await asyncio.sleep(self._chance.random() * 0.02)
        if self.crashed or self._chance.random() < self._losing:
            raise ConnectionFailed(f"{method} {path}: lost on the way")
        response = await super().request(method, path, query=query, headers=headers, body=body, timeout=timeout)
        await asyncio.sleep(self._chance.random() * 0.02)
        if self.crashed or self._chance.random() < self._losing:
            raise ConnectionFailed(f"{method} {path}: the answer was lost")
        return response


def workload(replicas: int = 2) -> PodCliqueSet:
    """Return a set with standalone cliques, a scaling group and start-up order."""
    cliques = [a_clique("leader", 1), a_clique("worker", 3, 2), a_clique("decode", 2)]
    groups = [a_scaling_group("sg", ["worker", "decode"], 3, 1)]
    return a_pod_clique_set("model", cliques, groups, replicas=replicas, termination_delay="30s")


def an_operator(server: ApiServer, runtime: Runtime, seed: int, losing: float) -> tuple[Operator, UnreliableTransport]:
    """Return an operator that talks over an unreliable line."""
    transport = UnreliableTransport(server, random.Random(seed), losing=losing)
    return Operator(Client(transport, runtime), Settings(profiles=SPINNEY)), transport


def check_end(world: World, hostnames: list[str], gangs: list[str]) -> None:
    """Assert the state that every history must end in."""
    expected = [f"model-{i}-leader-0" for i in range(2)]
    for i in range(2):
        for j in range(3):
            expected += [f"model-{i}-sg-{j}-worker-{k}" for k in range(3)]
            expected += [f"model-{i}-sg-{j}-decode-{k}" for k in range(2)]
    assert hostnames == sorted(expected)
    assert gangs == sorted(f"model-{i}{suffix}" for i in range(2) for suffix in ("", "-sg-0", "-sg-1"))
    assert world.witness.violations == []


@pytest.mark.parametrize("seed", range(2))
def test_lost_requests_and_answers_do_no_harm(seed: int) -> None:
    """With one request in eight lost, on the way there or back, the workload comes up complete, and nothing twice."""

    async def story() -> None:
        runtime = Runtime.virtual(seed)
        server = ApiServer(runtime)
        client = Client(InProcessTransport(server), runtime)
        async with server.running():
            await client.create(NAMESPACE, {"metadata": {"name": "test"}})
            await client.create(NODE, {"metadata": {"name": "node-1"}})
            await install_crds(client)
            operator, transport = an_operator(server, runtime, seed, losing=0.0)
            world = World(client, runtime, operator, Witness(), server)
            tasks = [asyncio.create_task(each) for each in (operator.run(), follow(world), place_pods(world))]
            await operator.manager.wait_until_ready()
            transport._losing = 0.125
            await world.apply(workload(3))
            await asyncio.sleep(20)
            await client.patch(POD_CLIQUE_SCALING_GROUP, "model-1-sg", {"spec": {"replicas": 5}}, "test")
            await client.patch(POD_CLIQUE_SET, "model", {"spec": {"replicas": 2}}, "test")
            await asyncio.sleep(20)
            await client.patch(POD_CLIQUE_SCALING_GROUP, "model-1-sg", {"spec": {"replicas": 3}}, "test")
            await asyncio.sleep(60)
            transport._losing = 0.0
            await asyncio.sleep(360)
            pods = await world.pods()
            assert not any(has_gate(pod) for pod in pods)
            check_end(world, sorted(pod.spec.hostname for pod in pods), await world.names(POD_GANG))
            operator.stop()
            for task in tasks[1:]:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    run_virtual(story())


@pytest.mark.parametrize("seed", range(2))
def test_a_crash_at_any_moment_is_survived(seed: int) -> None:
    """An operator that is killed again and again while it works leaves nothing that its successors do not finish."""

    async def story() -> None:
        runtime = Runtime.virtual(seed)
        server = ApiServer(runtime)
        client = Client(InProcessTransport(server), runtime)
        chance = random.Random(seed)
        async with server.running():
            await client.create(NAMESPACE, {"metadata": {"name": "test"}})
            await client.create(NODE, {"metadata": {"name": "node-1"}})
            await install_crds(client)
            operator, transport = an_operator(server, runtime, seed, losing=0.0)
            world = World(client, runtime, operator, Witness(), server)
            others = [asyncio.create_task(each) for each in (follow(world), place_pods(world))]
            await world.apply(workload())
            for life in range(12):
                running = asyncio.create_task(operator.run())
                await asyncio.sleep(0.05 + chance.random() * 0.6)
                if life == 6:
                    victims = [pod for pod in await world.pods() if pod.metadata.labels[marks.REPLICA_INDEX] == "0"]
                    for victim in victims[:2]:
                        await client.delete(operator.caches.pods.resource, victim.metadata.name, "test")
                    await client.delete(POD_CLIQUE, "model-1-leader", "test")
                transport.crashed = True
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
                operator, transport = an_operator(server, runtime, seed + life, losing=0.0)
            running = asyncio.create_task(operator.run())
            await asyncio.sleep(60)
            pods = await world.pods()
            assert not any(has_gate(pod) for pod in pods)
            check_end(world, sorted(pod.spec.hostname for pod in pods), await world.names(POD_GANG))
            operator.stop()
            for task in others:
                task.cancel()
            await asyncio.gather(running, *others, return_exceptions=True)

    run_virtual(story())
