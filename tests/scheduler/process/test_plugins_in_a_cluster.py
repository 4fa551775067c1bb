"""Plugins in a running scheduler: the examples decide on an embedded cluster, serve paths, and their time is told."""

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
from prometheus_client import CollectorRegistry

from spinney.api.core import NAMESPACE, NODE, POD, Pod
from spinney.kube.client import Client
from spinney.kube.manager import Manager
from spinney.kube.metrics import KubeMetrics
from spinney.kube.serving import HealthServer
from spinney.runtime import Runtime
from spinney.scheduler import Plugin, Session, default_registry
from spinney.scheduler.config import PluginOption, SchedulerConfig
from spinney.scheduler.process.cycle_metrics import CycleMetrics
from spinney.scheduler.process.process import SchedulerProcess
from spinney.server import ApiServer
from spinney.sim.embedded.transport import InProcessTransport
from tests.scheduler.process.world import running
from tests.scheduler.test_examples import example

NS = "team"


class Serving(Plugin):
    """Serves what it sees of a session, and a path that fails."""

    name = "serving"

    def on_session_open(self, session: Session) -> None:
        """Register the paths."""
        names = sorted(node.name for node in session.nodes.all)
        session.add_http_handler("/nodes", lambda query: f"{query.get('prefix', '')}{','.join(names)}".encode())
        session.add_http_handler("/broken", lambda query: b"" + query["missing"].encode())
        session.add_http_handler("/none", lambda query: next(name.encode() for name in names if name == "none"))
        session.add_http_handler("/exit", lambda query: sys.exit("enough"))
        session.add_http_handler("/nothing", lambda query: None)  # type: ignore[arg-type, return-value]
        session.add_http_handler("/data", lambda query: {"n1": 1})  # type: ignore[arg-type, return-value]


@asynccontextmanager
async def a_cluster_with(*plugins: type[Plugin]) -> AsyncIterator[tuple[Client, str]]:
    """Run a scheduler with further plugins on an embedded server; yield a client and the scheduler's address."""
    runtime = Runtime.system()
    server, registry, metrics = ApiServer(runtime), default_registry(), CollectorRegistry()
    for plugin in plugins:
        registry.register(plugin.name, plugin)
    config = SchedulerConfig(plugins=(*SchedulerConfig().plugins, *(PluginOption(each.name) for each in plugins)))
    health = HealthServer(metrics, host="127.0.0.1", port=0)
    async with server.running():
        client = Client(InProcessTransport(server), runtime)
        manager = Manager(client, runtime, health=health, metrics=KubeMetrics(metrics))
        process = SchedulerProcess(client, config, manager=manager, registry=registry, metrics=CycleMetrics(metrics))
        async with running(process):
            await health.wait_until_serving()
            await client.create(NAMESPACE, {"metadata": {"name": NS}})
            host, port = health.address
            yield client, f"http://{host}:{port}"
        runtime.executor.close()


async def a_node(client: Client, name: str, gpus: int, **labels: str) -> None:
    """Create a ready node."""
    amounts = {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}
    status = {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
    named = {key.replace("_", "/"): value for key, value in labels.items()}
    await client.create(NODE, {"metadata": {"name": name, "labels": named}, "status": status})


async def a_pod(client: Client, name: str, *, gpus: int = 1, **labels: str) -> None:
    """Create a pod that asks for GPUs."""
    container = {"name": "main", "image": "pause", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}
    spec = {"schedulerName": "spinney-scheduler", "containers": [container]}
    await client.create(POD, {"metadata": {"name": name, "namespace": NS, "labels": labels}, "spec": spec})


async def placed(client: Client, name: str) -> str:
    """Wait until a pod is bound, and return where."""
    async with asyncio.timeout(60):
        while True:
            pod = await client.get(POD, name, NS, type=Pod)
            if pod.spec.node_name:
                return pod.spec.node_name
            await asyncio.sleep(0.02)


async def get(url: str) -> tuple[int, str]:
    """Return the status and the text of an answer."""
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return answer.status, await answer.text()


async def test_the_examples_run_in_a_cluster() -> None:
    """All four together: pods go to regular nodes with a free GPU, busy ones first."""
    plugins = (
        example("gpu_predicate").GpuPredicate,
        example("gpu_utilization").GpuUtilization,
        example("namespace_tracker").NamespaceAllocationTracker,
        example("spot_instances").SpotInstances,
    )
    async with a_cluster_with(*plugins) as (client, address):
        await a_node(client, "a-spot", 8, **{"runai.io/instance-type": "spot"})
        await a_node(client, "regular", 1)
        await a_pod(client, "first")
        assert await placed(client, "first") == "regular"
        await a_pod(client, "second")
        assert await placed(client, "second") == "a-spot"
        _, metrics = await get(f"{address}/metrics")
        for plugin in plugins:
            spent = rf'spinney_scheduling_hook_seconds_total{{hook="on_session_open",plugin="{plugin.name}"}}'
            assert re.search(spent, metrics), f"the time of {plugin.name} is not told"


async def test_paths_of_plugins_are_served() -> None:
    """A plugin's path answers with its query; one that raises answers 500 and the scheduler goes on."""
    async with a_cluster_with(Serving) as (client, address):
        await a_node(client, "n1", 1)
        await a_pod(client, "p")
        await placed(client, "p")
        assert await get(f"{address}/nodes?prefix=all:") == (200, "all:n1")
        status, text = await get(f"{address}/broken")
        assert (status, "KeyError" in text) == (500, True)
        assert (await get(f"{address}/nowhere"))[0] == 404
        await a_node(client, "n2", 1)
        await a_pod(client, "q")
        assert await placed(client, "q") == "n2"


async def test_what_a_plugin_answers_with_must_be_bytes() -> None:
    """The answer names the plugin and what it gave; `None` was told as a path that nobody serves."""
    async with a_cluster_with(Serving) as (client, address), asyncio.timeout(60):
        await a_node(client, "n1", 1)
        await a_pod(client, "p")
        await placed(client, "p")
        assert await get(f"{address}/nothing") == (500, "PathFailed: plugin serving returned None, expected bytes\n")
        assert (await get(f"{address}/data"))[1].endswith("serving returned {'n1': 1} (dict), expected bytes\n")


async def test_whatever_a_path_of_a_plugin_raises_is_answered() -> None:
    """The plugin is named; what it raises ends neither the scheduler nor the request without an answer."""
    async with a_cluster_with(Serving) as (client, address), asyncio.timeout(60):
        await a_node(client, "n1", 1)
        await a_pod(client, "p")
        await placed(client, "p")
        said = {path: await get(f"{address}/{path}") for path in ("none", "exit")}
        assert said == {
            "none": (500, "PathFailed: plugin serving raised StopIteration\n"),
            "exit": (500, "PathFailed: plugin serving raised SystemExit: enough\n"),
        }
        assert (await get(f"{address}/nodes"))[0] == 200


async def test_explanations_are_served_in_full() -> None:
    """What waits is listed with the whole explanation, and can be narrowed down."""
    async with a_cluster_with() as (client, address):
        await a_node(client, "n1", 1)
        await a_pod(client, "large", gpus=2)
        async with asyncio.timeout(60):
            while True:
                found = json.loads((await get(f"{address}/explanations?namespace={NS}"))[1])
                if found:
                    break
                await asyncio.sleep(0.05)
        (refused,) = found
        assert (refused["namespace"], refused["name"]) == (NS, "large")
        assert "requests 2 GPUs" in refused["message"]
        assert refused["explanation"]
        assert json.loads((await get(f"{address}/explanations?name=other"))[1]) == []


async def test_cycles_are_served_whatever_number_is_asked_for() -> None:
    """Python reads no numbers of 5000 digits; such a one counts as what is no number."""
    async with a_cluster_with() as (client, address), asyncio.timeout(60):
        await a_node(client, "n1", 1)
        await a_pod(client, "p")
        await placed(client, "p")
        status, text = await get(f"{address}/cycles?after={'9' * 5000}")
        assert (status, bool(json.loads(text))) == (200, True)
