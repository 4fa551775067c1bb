"""How fast a large PodCliqueSet comes up, is scaled and goes: the operator on the embedded API server, in real time.

The shapes are those of Grove's published scale tests: one PodCliqueSet, one clique of two pods, N replicas, so N
PodCliques, N gangs and 2N pods. Pods are bound and reported ready by a stand-in that reacts to the watch; scheduler and
nodes are not what is measured here. Run ``python benchmarks/operator/bench_scale.py [--replicas 500]``.
"""

import argparse
import asyncio
import json
import time

from spinney.api.core import NAMESPACE, NODE, POD, Pod
from spinney.api.grove import POD_CLIQUE_SET, PodCliqueSet
from spinney.backends.profiles import Profile, Profiles
from spinney.kube.client import Client
from spinney.kube.crds import install_crds
from spinney.kube.errors import KubeError
from spinney.operator.operator import Operator, Settings
from spinney.operator.pod_states import has_gate
from spinney.runtime import Runtime
from spinney.server import ApiServer
from spinney.sim.transport import InProcessTransport
from spinney.testing.builders import a_clique, a_pod_clique_set

PROFILES = Profiles((Profile("default-scheduler"), Profile("spinney-scheduler")), "spinney-scheduler")
READY = {
    "status": {
        "phase": "Running",
        "conditions": [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "True"}],
    }
}


class Pods:
    """What is known of the pods, from the watch. Mutable."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.alive: set[str] = set()
        self.ready: set[str] = set()
        self.changed = asyncio.Event()

    async def follow(self) -> None:
        """Bind ungated pods, report them ready, and keep the counts."""
        async for event in self.client.watch(POD, "bench", type=Pod):
            pod = event.object
            name = pod.metadata.name
            if event.type == "DELETED":
                self.alive.discard(name)
                self.ready.discard(name)
            else:
                self.alive.add(name)
                if pod.is_true("Ready"):
                    self.ready.add(name)
                await self.advance(pod)
            self.changed.set()

    async def advance(self, pod: Pod) -> None:
        """Do the scheduler's and the kubelet's next step for a pod."""
        try:
            if pod.metadata.deleting:
                await self.client.delete(POD, pod.metadata.name, "bench", grace_period_seconds=0)
            elif not has_gate(pod) and not pod.spec.node_name:
                await self.client.bind("bench", pod.metadata.name, pod.metadata.uid, "node-1")
            elif pod.spec.node_name and not pod.is_true("Ready"):
                await self.client.patch(POD, pod.metadata.name, READY, "bench", subresource="status")
        except KubeError:
            return

    async def until(self, *, alive: int | None = None, ready: int | None = None) -> None:
        """Wait for counts."""
        while (alive is not None and len(self.alive) != alive) or (ready is not None and len(self.ready) != ready):
            self.changed.clear()
            await self.changed.wait()


async def available(client: Client, replicas: int) -> None:
    """Wait until the set reports its replicas as available."""
    async for event in client.watch(POD_CLIQUE_SET, "bench", type=PodCliqueSet):
        status = event.object.status
        if status.replicas == replicas and status.available_replicas == replicas:
            return


async def measure(replicas: int) -> dict[str, float]:
    """Return seconds by milestone."""
    runtime = Runtime.system()
    server = ApiServer(runtime)
    client = Client(InProcessTransport(server), runtime)
    results: dict[str, float] = {}
    async with server.running():
        await client.create(NAMESPACE, {"metadata": {"name": "bench"}})
        await client.create(NODE, {"metadata": {"name": "node-1"}})
        await install_crds(client)
        operator = Operator(Client(InProcessTransport(server), runtime), Settings(profiles=PROFILES))
        running = asyncio.create_task(operator.run())
        await operator.manager.wait_until_ready()
        pods = Pods(client)
        following = asyncio.create_task(pods.follow())
        pcs = a_pod_clique_set("scale", [a_clique("worker", 2)], replicas=replicas, namespace="bench")

        started = time.perf_counter()
        await client.apply(POD_CLIQUE_SET, pcs)
        await pods.until(alive=2 * replicas)
        results["pods created"] = time.perf_counter() - started
        await pods.until(ready=2 * replicas)
        results["pods ready"] = time.perf_counter() - started
        await available(client, replicas)
        results["set available"] = time.perf_counter() - started

        started = time.perf_counter()
        await client.patch(POD_CLIQUE_SET, "scale", {"spec": {"replicas": replicas // 2}}, "bench")
        await pods.until(alive=2 * (replicas // 2))
        results["scaled to half"] = time.perf_counter() - started

        started = time.perf_counter()
        await client.delete(POD_CLIQUE_SET, "scale", "bench")
        await pods.until(alive=0)
        results["deleted"] = time.perf_counter() - started

        operator.stop()
        await running
        following.cancel()
    runtime.executor.close()
    return {name: round(seconds, 2) for name, seconds in results.items()}


if __name__ == "__main__":
    import logging

    import structlog

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    parser = argparse.ArgumentParser()
    parser.add_argument("--replicas", type=int, default=500)
    print(json.dumps(asyncio.run(measure(parser.parse_args().replicas)), indent=2))
