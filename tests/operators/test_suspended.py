"""Suspended JobSets and TrainJobs wait in our queues without pods, and their own controllers make them once resumed."""

import asyncio
from pathlib import Path

import pytest
import yaml

from spinney.api.core import EVENT
from spinney.api.struct import JSON
from spinney.scheduler.config import SuspendedWorkloads
from tests.grouping.staging import WITHIN, Stage
from tests.operators.conftest import Ground
from tests.operators.published import for_our_nodes
from tests.operators.staging import a_stage, apply_torch_runtime

pytestmark = [pytest.mark.real, pytest.mark.operators, pytest.mark.timeout(1800)]

DATA = Path(__file__).resolve().parents[1] / "data" / "operators"


def suspended(name: str) -> JSON:
    """Return an example that waits in our queues, without pods."""
    found: JSON = for_our_nodes(yaml.safe_load((DATA / name).read_text()))
    metadata = {**found["metadata"], "labels": {"spinney.dev/admission": "queue"}}
    return {**found, "metadata": metadata, "spec": {**found["spec"], "suspend": True}}


async def until_said(stage: Stage, reason: str) -> str:
    """Wait until an event of a reason is there; return the kind of what it is about."""
    async with asyncio.timeout(WITHIN):
        async for event in stage.world.client.watch(EVENT, stage.world.namespace):
            if event.object["reason"] == reason:
                kind: str = event.object["involvedObject"]["kind"]
                return kind
    raise AssertionError(f"the watch ended before {reason}")


@pytest.mark.parametrize(("example", "pods"), [("jobset.yaml", 5), ("trainjob.yaml", 4)])
async def test_a_suspended_workload_starts_when_all_of_it_fits(ground: Ground, example: str, pods: int) -> None:
    """It has no pods while a node is lacking; with it, it is resumed, and its real pods are one gang."""
    manifest = suspended(example)
    ours = SuspendedWorkloads(kinds=("JobSet", "TrainJob"))
    async with a_stage(ground, "trainer", nodes=pods - 1, suspended_workloads=ours) as stage:
        await apply_torch_runtime(stage)
        async with stage.applied(manifest) as resource:
            assert await until_said(stage, "WaitingInQueue") == manifest["kind"]
            assert not stage.pods()
            await stage.add_nodes(1)
            await stage.until_running(pods)
            found = await stage.world.client.get(resource, manifest["metadata"]["name"], stage.world.namespace)
            assert found["spec"]["suspend"] is False
            assert sum(stage.floors()[0].values()) == pods
