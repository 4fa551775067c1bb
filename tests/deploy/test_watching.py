"""The dashboard and the alerts ask only for what the processes really export."""

import asyncio
import json
import runpy
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache

import aiohttp
import pytest

pytest.importorskip("promql_parser", reason="`make install` brings it")

from prometheus_client.parser import text_string_to_metric_families

from spinney.api import kai
from spinney.api.core import NAMESPACE, NODE, POD, Pod
from spinney.api.labels import GROUPED, KAI_POD_GROUP, KAI_QUEUE
from spinney.api.resource import Resource
from spinney.api.scheduling import PRIORITY_CLASS
from spinney.cli.bodies.grouper import configured
from spinney.cli.installing.dashboard import dashboard, rows
from spinney.cli.installing.surroundings import alerts
from spinney.cli.processes import ProcessLease, managed
from spinney.coscheduling.process.process import CoschedulerProcess
from spinney.dashboard.history import QUERIES
from spinney.grouping.grouper import Grouper
from spinney.kube.client import Client
from spinney.kube.crds import install_crds
from spinney.kube.manager import Manager
from spinney.operator.operator import Operator, Settings
from spinney.runtime import Runtime
from spinney.scheduler.config import SchedulerConfig
from spinney.scheduler.process.cycle_metrics import CycleMetrics
from spinney.scheduler.process.process import SchedulerProcess
from spinney.server import ApiServer
from spinney.sim.embedded.stack import OUR_BACKENDS
from spinney.sim.embedded.transport import InProcessTransport

from .promql import OF_TARGETS, asked, legend_labels
from .rendering import ROOT

FILES: dict[str, str] = runpy.run_path(str(ROOT / "hack" / "chart.py"))["watching"]()
NS = "work"


@pytest.mark.parametrize("path", FILES)
def test_a_file_has_not_drifted(path: str) -> None:
    """The files for Grafana and Prometheus equal what ``make docs`` would write."""
    assert (ROOT / "deploy" / path).read_text() == FILES[path], "run `make docs`"


# -- what is exported --------------------------------------------------------------------------------------------------


@asynccontextmanager
async def running(client: Client, name: str) -> AsyncIterator[str]:
    """Run one of the processes as its command composes it; yield the address of its metrics."""
    manager = managed(client, lease=ProcessLease(name, "default"), endpoint=("127.0.0.1", 0))
    process = _process(name, manager)
    task = asyncio.create_task(process.run())
    try:
        await manager.wait_until_ready()
        assert manager.endpoint is not None
        yield "http://{}:{}/metrics".format(*manager.endpoint)
    finally:
        process.manager.stop()
        await task


def _process(name: str, manager: Manager) -> SchedulerProcess | CoschedulerProcess | Grouper | Operator:
    match name:
        case "scheduler":
            metrics = CycleMetrics(manager.metrics.registry)
            return SchedulerProcess(manager.client, SchedulerConfig(), manager=manager, metrics=metrics)
        case "coscheduler":
            return CoschedulerProcess(manager.client, manager=manager)
        case "grouper":
            return Grouper(manager.client, configured(None), manager=manager)
        case _:
            return Operator(manager.client, Settings(profiles=OUR_BACKENDS), manager=manager)


async def a_busy_cluster(client: Client) -> None:
    """Have each scheduler place a pod, take one away for another, and leave one waiting."""
    amounts = {"cpu": "2", "memory": "8Gi", "pods": "10", "nvidia.com/gpu": "2"}
    ready = {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
    await client.create(NAMESPACE, {"metadata": {"name": NS}})
    await client.create(PRIORITY_CLASS, {"metadata": {"name": "high"}, "value": 50})
    await client.create(PRIORITY_CLASS, {"metadata": {"name": "low"}, "value": 10})
    bounded = {"quota": 1, "limit": 4, "overQuotaWeight": 1}
    resources = {"gpu": bounded, "cpu": bounded, "memory": bounded}
    await client.create(kai.QUEUE, {"metadata": {"name": "team"}, "spec": {"resources": resources}})
    for scheduler in ("spinney-scheduler", "coscheduling"):
        selector = {"for": scheduler}
        await client.create(NODE, {"metadata": {"name": scheduler, "labels": selector}, "status": ready})
        for name, priority, gpus in (("first", "low", 2), ("huge", "low", 9), ("urgent", "high", 2)):
            limits = {"cpu": "1m", "memory": "1Mi", "nvidia.com/gpu": str(gpus)}
            spec = {
                "schedulerName": scheduler,
                "nodeSelector": selector,
                "priorityClassName": priority,
                "terminationGracePeriodSeconds": 0,
                "containers": [{"name": "main", "image": "pause", "resources": {"limits": limits}}],
            }
            pod = f"{name}-{scheduler}"
            metadata = {"name": pod, "namespace": NS, "labels": {KAI_QUEUE: "team"}}
            await client.create(POD, {"metadata": metadata, "spec": spec})
            if name != "huge":
                await until_bound(client, pod)
    await pods_of_others(client)


async def pods_of_others(client: Client) -> None:
    """Have the grouper meet a pod that is in a group already, and a pod of a Job."""
    job = Resource("batch", "v1", "Job", "jobs")
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "pause"}]}}
    made = await client.create(job, {"metadata": {"name": "job", "namespace": NS}, "spec": {"template": template}})
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "job", "uid": made["metadata"]["uid"]}
    theirs = {"name": "theirs", "annotations": {KAI_POD_GROUP: "theirs"}}
    for metadata in (theirs, {"name": "ours", "ownerReferences": [owner]}):
        spec = {"schedulerName": "spinney-scheduler", "containers": [{"name": "main", "image": "pause"}]}
        await client.create(POD, {"metadata": {"namespace": NS, **metadata}, "spec": spec})
    await until(client, "ours", lambda pod: GROUPED in pod.metadata.labels)


async def until_bound(client: Client, name: str) -> None:
    """Wait until a pod has a node."""
    await until(client, name, lambda pod: bool(pod.spec.node_name))


async def until(client: Client, name: str, holds: Callable[[Pod], bool]) -> None:
    """Wait until a pod is as it should be."""
    found = await client.get(POD, name, NS, type=Pod)
    watch = client.watch(POD, NS, type=Pod, resource_version=found.metadata.resource_version)
    while not holds(found):
        event = await anext(watch)
        found = event.object if event.object.metadata.name == name else found


async def scrape() -> dict[str, str]:
    """Return what each process exports, once there is something to count."""
    runtime = Runtime.system()
    server = ApiServer(runtime)
    async with server.running(), AsyncExitStack() as stack, asyncio.timeout(60), aiohttp.ClientSession() as session:
        client = Client(InProcessTransport(server), runtime)
        await install_crds(client)
        names = ("operator", "grouper", "scheduler", "coscheduler")
        stack.callback(runtime.executor.close)  # after those who use it have stopped
        addresses = {name: await stack.enter_async_context(running(client, name)) for name in names}
        await a_busy_cluster(client)
        texts = {}
        for name, address in addresses.items():
            async with session.get(address) as answer:
                texts[name] = await answer.text()
        return texts


@cache
def exported() -> dict[str, list[dict[str, str]]]:
    """Return the labels of every series by metric, over all processes; metrics without series have an empty list."""
    found: dict[str, list[dict[str, str]]] = {}
    for text in asyncio.run(scrape()).values():
        for family in text_string_to_metric_families(text):
            endings = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum")}.get(family.type, ("",))
            for ending in endings:
                found.setdefault(f"{family.name}{ending}", [])
            for sample in family.samples:
                found.setdefault(sample.name, []).append(sample.labels)
    return found


# -- what is asked for -------------------------------------------------------------------------------------------------


def expressions() -> Iterator[tuple[str, str, str]]:
    """Return where an expression stands, the expression, and its legend."""
    for rule in (rule for group in alerts()["groups"] for rule in group["rules"]):
        yield f"alert {rule['alert']}", rule["expr"], ""
    for name, expression in QUERIES.items():
        yield f"history of queues: {name}", expression, ""
    for row in rows():
        for panel in row.panels:
            for query in panel.queries:
                yield f"panel {panel.title!r}", query.expression, query.legend


NEVER_HERE = {
    "spinney_scheduling_plugin_failures_total": {"plugin", "hook"},
    "spinney_coscheduler_plugin_failures_total": {"plugin", "point"},
    "spinney_api_retries_total": {"verb", "code"},
    "spinney_grouper_refusals_total": {"kind"},
}
"""Labels of what happens only when something fails."""


def problems(where: str, expression: str, legend: str) -> Iterator[str]:
    """Return what is wrong with an expression: metrics, labels or values that nobody exports."""
    answers: set[str] = set()
    for wanted in asked(expression):
        if wanted.metric not in exported():
            yield f"{where}: no process exports {wanted.metric}"
            continue
        series = exported()[wanted.metric]
        labels = {name for each in series for name in each} | NEVER_HERE.get(wanted.metric, set())
        if unknown := wanted.labels - labels - OF_TARGETS:
            yield f"{where}: {wanted.metric} has no label {unknown}, only {labels}"
        if wanted.equal and not any(wanted.equal.items() <= each.items() for each in series):
            yield f"{where}: no series of {wanted.metric} has {wanted.equal}"
        answers |= wanted.labels
    if unknown := legend_labels(legend) - answers:
        yield f"{where}: the legend shows {unknown}, which the answer does not have"


def test_expressions_ask_for_what_is_exported() -> None:
    """Each metric is exported, each label is one of its labels, and each value that is asked for is there."""
    found = list(expressions())
    assert len(found) > 40
    assert [problem for each in found for problem in problems(*each)] == []


@pytest.mark.parametrize(
    ("expression", "legend"),
    [
        ("spinney_queue_uses", ""),
        ('spinney_queue_use{team="a"}', ""),
        ('spinney_queue_use{resource="gpus"}', ""),
        ("sum by (gang) (spinney_queue_use)", ""),
        ("sum by (queue) (spinney_queue_use)", "{{parent}}"),
        ("rate(spinney_gang_wait_seconds[5m])", ""),
    ],
)
def test_an_expression_that_asks_for_something_else_is_found(expression: str, legend: str) -> None:
    """A metric, label, value or legend that nobody exports is a problem: the check above can fail."""
    assert list(problems("here", expression, legend))


def test_what_is_said_to_fail_only_is_not_exercised_elsewhere() -> None:
    """Labels are written down here only where no series shows them."""
    assert not [metric for metric in NEVER_HERE if exported()[metric]]


def test_the_dashboard_can_be_drawn() -> None:
    """Panels lie side by side without overlap, have names of their own, and are what the file says."""
    page = json.loads(FILES["grafana/spinney.json"])
    assert page == dashboard()
    cells = [
        (panel["gridPos"]["x"] + x, panel["gridPos"]["y"] + y)
        for panel in page["panels"]
        for x in range(panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["h"])
    ]
    assert len(cells) == len(set(cells))
    assert all(x < 24 for x, _ in cells)
    ids = [panel["id"] for panel in page["panels"]]
    assert len(ids) == len(set(ids))
    assert all(panel["type"] == "row" or panel["description"] for panel in page["panels"])
