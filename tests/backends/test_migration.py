"""The page about changing the scheduler is walked through, step by step, with the configurations it shows.

Operator, schedulers, nodes and admission run on an embedded cluster, which stays while they are restarted. Each node
holds one pod.
"""

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from spinney.api import labels as marks
from spinney.api import volcano
from spinney.api.conditions import find_condition
from spinney.api.core import EVENT, NAMESPACE, NODE, POD, Pod
from spinney.api.grove import POD_CLIQUE_SET
from spinney.api.meta import Condition
from spinney.api.podgang import BACKEND_READY, POD_GANG, PodGang
from spinney.backends import every_backend
from spinney.coscheduling.process.configuration import CoschedulerConfiguration
from spinney.kube.client import Client
from spinney.kube.errors import ApiError
from spinney.nodes import ClusterSpec
from spinney.nodes.spec import NodeGroup
from spinney.operator.configuration import check
from spinney.operator.operator import Settings
from spinney.runtime import Runtime
from spinney.scheduler.config import SchedulerConfig
from spinney.server import ApiServer
from spinney.sim.embedded.stack import Stack, StackOptions
from spinney.sim.embedded.transport import InProcessTransport
from spinney.testing.builders import a_clique, a_pod_clique_set, a_pod_spec
from tests.e2e.reviewing import Reviews
from tests.virtual_time import on_virtual_time

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "migration.md").read_text()
STEPS = re.findall(r"^## \d\. (.*)$", PAGE, re.MULTILINE)
FILES = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
KUBE = "default-scheduler"

NODES = ClusterSpec(nodes=(NodeGroup(name="node-{index}", count=5, capacity={"cpu": "1", "memory": "1Gi"}),))

PAIRS = [
    ("kai-scheduler", "spinney-scheduler"),  # the page's
    ("volcano", "kai-scheduler"),
    ("coscheduling", "volcano"),
    (KUBE, "coscheduling"),
    ("spinney-scheduler", KUBE),
]
"""Each backend once on either side."""


@dataclass
class Town:
    """A cluster whose operator comes and goes. Mutable: it knows what was done by hand."""

    old: str
    new: str
    runtime: Runtime = field(default_factory=lambda: Runtime.virtual(seed=5))
    reviews: Reviews = field(default_factory=Reviews)

    def __post_init__(self) -> None:
        self.server = ApiServer(self.runtime, webhooks=self.reviews)
        self.client = self.connect("user")

    def connect(self, field_manager: str) -> Client:
        return Client(InProcessTransport(self.server), self.runtime, field_manager=field_manager)

    def configuration(self, step: int) -> str:
        """Return the configuration that the page shows for a step, with the pair's names in it."""
        names = {"kai-scheduler": self.old, "spinney-scheduler": self.new}
        blocks = {1: FILES[0], 2: FILES[1], 4: FILES[2], 5: FILES[3]}
        text = re.sub("|".join(names), lambda found: names[found[0]], blocks[step])
        return text.replace(f"name: {KUBE}\n", f"name: {KUBE}\n      config: {{gangScheduling: true}}\n")

    @asynccontextmanager
    async def restarted(self, step: int) -> AsyncIterator[None]:
        """Run everything, with the operator configured as in a step."""
        options = StackOptions(
            nodes=NODES,
            operator=Settings.of(check(self.configuration(step), every_backend())),
            scheduler=SchedulerConfig(scheduler_names=("spinney-scheduler", "kai-scheduler", "volcano")),
            coscheduler=CoschedulerConfiguration.in_place_of_kube_scheduler(),
        )
        stack = Stack(self.connect, options)
        async with stack.running():
            await self.reviews.connect(stack.operator.admission, self.client)
            yield

    async def apply(self, name: str, pods: int, *, scheduler: str = "") -> None:
        """Apply a workload of so many pods."""
        spec = a_pod_spec(cpu="1") | ({"schedulerName": scheduler} if scheduler else {})
        pcs = a_pod_clique_set(name, [a_clique("worker", pods, pod_spec=spec)], labels={marks.KAI_QUEUE: "research"})
        await self.client.apply(POD_CLIQUE_SET, pcs)

    async def pods(self, name: str) -> list[Pod]:
        """Return the living pods of a workload."""
        found = await self.client.list(POD, "test", type=Pod, label_selector=f"{marks.PART_OF}={name}")
        return [pod for pod in found.items if not pod.metadata.deleting]

    async def placed(self, name: str, count: int) -> set[str | None]:
        """Wait until so many pods of a workload are ready; returns their uids."""

        async def ready() -> bool:
            pods = await self.pods(name)
            return len(pods) == count and all(pod.is_true("Ready") for pod in pods)

        await self.until(ready, f"{count} pods of {name} are ready")
        return {pod.metadata.uid for pod in await self.pods(name)}

    async def backend_of(self, gang: str) -> str:
        """Wait for a gang and return the backend it belongs to."""

        async def exists() -> bool:
            found = await self.client.list(POD_GANG, "test", field_selector=f"metadata.name={gang}")
            return bool(found.items)

        await self.until(exists, f"{gang} exists")
        return (await self.client.get(POD_GANG, gang, "test", type=PodGang)).metadata.labels[marks.SCHEDULER_NAME]

    async def told(self, gang: str) -> Condition:
        """Return what a gang says about its backend."""
        found = await self.client.get(POD_GANG, gang, "test", type=PodGang)
        condition = find_condition(found.status.conditions, BACKEND_READY)
        assert condition is not None
        return condition

    async def gone(self, name: str) -> None:
        """Delete a workload and wait until nothing of it is left."""
        await self.client.delete(POD_CLIQUE_SET, name, "test")

        async def nothing() -> bool:
            kinds = (POD_CLIQUE_SET, POD_GANG, POD)
            listed = [await self.client.list(kind, "test") for kind in kinds]
            names = [each["metadata"]["name"] for listing in listed for each in listing.items]
            return not any(each == name or each.startswith(f"{name}-") for each in names)

        await self.until(nothing, f"{name} is gone")

    async def close(self, node: str, *, closed: bool = True) -> None:
        """Close a node, or open it."""
        await self.client.patch(NODE, node, {"spec": {"unschedulable": closed}})

    async def until(self, holds: Callable[[], Awaitable[bool]], what: str) -> None:
        """Look every now and then, for some virtual minutes, until something holds."""
        for _ in range(480):
            if await holds():
                return
            await self.runtime.clock.sleep(0.5)
        raise AssertionError(f"not reached: {what}")

    async def a_while(self) -> None:
        """Let half a minute pass in which things could go wrong."""
        await self.runtime.clock.sleep(30)


async def walk(town: Town) -> None:
    """Do what the page says, and see what it says."""
    client, old, new = town.client, town.old, town.new
    await client.create(NAMESPACE, {"metadata": {"name": "test"}})

    # 1. Where you are
    async with town.restarted(1):
        await _open_volcanos_queue(client)
        for node in ("node-3", "node-4"):
            await town.close(node)
        await town.apply("alpha", 2)
        alpha = await town.placed("alpha", 2)
        await town.apply("beta", 2)
        await town.a_while()
        beta = {pod.metadata.uid for pod in await town.pods("beta")}
        assert not any(pod.spec.node_name for pod in await town.pods("beta"))
        assert (len(beta), await town.backend_of("beta-0")) == (2, old)

    # 2. Enable the new profile beside the old one
    async with town.restarted(2):
        await town.a_while()
        assert await town.placed("alpha", 2) == alpha
        assert {pod.metadata.uid for pod in await town.pods("beta")} == beta
        assert not any(pod.spec.node_name for pod in await town.pods("beta"))
        await town.close("node-3", closed=False)
        assert await town.placed("beta", 2) == beta
        await town.apply("gamma", 1)
        await town.close("node-4", closed=False)
        gamma = await town.placed("gamma", 1)
        assert [await town.backend_of(gang) for gang in ("alpha-0", "beta-0", "gamma-0")] == [old, old, new]
        await client.patch(POD_CLIQUE_SET, "alpha", {"spec": {"replicas": 2}}, "test")
        assert await town.backend_of("alpha-1") == new
        await client.patch(POD_CLIQUE_SET, "alpha", {"spec": {"replicas": 1}}, "test")

        # 3. Recreate what you want to move
        await town.gone("alpha")
        await town.apply("alpha", 2)
        alpha = await town.placed("alpha", 2)
        assert await town.backend_of("alpha-0") == new

    # 4. Remove the old profile
    async with town.restarted(4):
        await town.a_while()
        assert await town.placed("alpha", 2) == alpha
        assert await town.placed("gamma", 1) == gamma
        assert await town.placed("beta", 2) == beta
        lost = (await town.pods("beta"))[0]
        await client.delete(POD, lost.metadata.name, "test", grace_period_seconds=0)
        await town.a_while()
        if old == KUBE:  # which is always enabled
            assert (await town.told("beta-0")).status == "True"
            assert len(await town.pods("beta")) == 2
        else:
            condition = await town.told("beta-0")
            assert (condition.status, condition.reason) == ("False", "BackendNotEnabled")
            events = [each for each in (await client.list(EVENT, "test")).items if each["reason"] == condition.reason]
            assert {each["involvedObject"]["kind"] for each in events} >= {"PodGang", "PodCliqueSet"}
            assert len(await town.pods("beta")) == 1
            await client.patch(POD_CLIQUE_SET, "beta", {"metadata": {"labels": {"seen": "yes"}}}, "test")
            with pytest.raises(ApiError, match=f"(?s){old}.*{new}"):
                await town.apply("delta", 1, scheduler=old)

    # 5. Going back
    async with town.restarted(5):
        back = await town.placed("beta", 2)
        assert len(back & beta) == 1
        assert (await town.told("beta-0")).status == "True"
        assert await town.placed("alpha", 2) == alpha
        for name in ("alpha", "beta", "gamma"):
            await town.gone(name)


@pytest.mark.parametrize(("old", "new"), PAIRS, ids=[f"{old} to {new}" for old, new in PAIRS])
@on_virtual_time
async def test_every_step_of_the_page_is_walked(old: str, new: str) -> None:
    """From one scheduler to another no pod that runs is disturbed, and everything is as the page says."""
    town = Town(old, new)
    async with town.server.running():
        await walk(town)


def test_the_page_has_the_steps_that_are_walked() -> None:
    """A step or a configuration added to the page must be added to the walk."""
    assert STEPS == [
        "Where you are",
        "Enable the new profile beside the old one",
        "Recreate what you want to move",
        "Remove the old profile",
        "Going back",
    ]
    assert len(FILES) == 4


def test_the_page_knows_every_backend() -> None:
    """The table of particulars has a row for each backend."""
    rows = [line for line in PAGE.splitlines() if line.startswith("| ")][1:]
    assert len(rows) == len({backend for pair in PAIRS for backend in pair}) == 5


async def _open_volcanos_queue(client: Client) -> None:
    await client.apply(volcano.QUEUE, {"metadata": {"name": volcano.DEFAULT_QUEUE}, "spec": {}})
    status = {"metadata": {"name": volcano.DEFAULT_QUEUE}, "status": {"state": "Open"}}
    await client.apply(volcano.QUEUE, status, subresource="status")
