"""Whatever comes in whichever order, with however many names of resources, no pod fails by an error."""

import os
from typing import Any

import pytest
from msgspec.structs import replace

from spinney.api.core import Node, Pod
from spinney.api.resource import Resource
from spinney.api.resource_claims import DEVICE_CLASS, RESOURCE_CLAIM, RESOURCE_SLICE, ResourceClaim, ResourceSlice
from spinney.gangs.tree import Gang
from spinney.kube.cache import Change
from spinney.kube.keys import key_of
from spinney.scheduler.fairshare import QueueInfo
from tests.scheduler.histories import Author, Gone, Look

from .bench import NAMESPACE, SCHEDULER, Bench, a_group

HISTORIES = int(os.environ.get("SPINNEY_RESOURCE_HISTORIES", "12"))
CHUNKS = 4


async def live(seed: int) -> None:
    """Live through one history."""
    author, bench = Author(seed, SCHEDULER), Bench()
    for event in author.write():
        found = event.found if isinstance(event, Gone) else event
        match found:
            case Look():
                await bench.run(seconds=5)
            case QueueInfo():
                continue
            case Gang():
                group = a_group(found.key.name, min(found.pod_sets.values(), key=str).min_member)
                change = Change(key_of(group), group, None if isinstance(event, Gone) else group, "1")
                bench.intake.take_in(change)
            case Pod():
                pod = replace(found, metadata=replace(found.metadata, namespace=NAMESPACE))
                if not isinstance(event, Gone):
                    bench.put(pod)
                elif bench.cluster.pod(bench.key(pod.metadata.name)) is not None:
                    bench.delete(pod.metadata.name)
            case Node():
                if isinstance(event, Gone):
                    bench.intake.node(Change(key_of(found), found, None, "1"))
                else:
                    bench.put(found)
            case _:
                kinds: dict[Any, Resource] = {ResourceClaim: RESOURCE_CLAIM, ResourceSlice: RESOURCE_SLICE}
                resource = kinds.get(type(found), DEVICE_CLASS)
                metadata = replace(found.metadata, namespace=NAMESPACE if found.metadata.namespace else None)
                found = replace(found, metadata=metadata)
                gone = isinstance(event, Gone)
                news: Change[Any] = Change(key_of(found), found if gone else None, None if gone else found, "1")
                bench.intake.constraint(resource, news)
    failed = bench.registry.get_sample_value("spinney_coscheduler_attempts_total", {"result": "failed"})
    assert not failed, f"seed {seed}: {[str(refused.status) for refused in bench.refused.values()]}"


@pytest.mark.parametrize("cluster_name", ["embedded"], indirect=True)
@pytest.mark.parametrize("chunk", range(CHUNKS))
async def test_the_coscheduler_lives_through_any_history(cluster_name: str, chunk: int) -> None:
    """Cycles in the middle of random histories end with a node or a refusal, never with an error."""
    for seed in range(chunk, HISTORIES, CHUNKS):
        await live(seed)
