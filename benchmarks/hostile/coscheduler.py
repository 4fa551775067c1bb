"""The same objects for the coscheduler, which decides about one pod after the other."""

import asyncio
from collections.abc import Iterator
from time import process_time
from typing import Any, Final

from msgspec.structs import replace
from tests.coscheduling.bench import NAMESPACE, SCHEDULER, Bench, a_group

from benchmarks.hostile.objects import DISTINCT, GANG, PODS, a_pod, nodes
from spinney.api.core import Pod
from spinney.api.labels import COSCHEDULING_GROUP
from spinney.coscheduling.framework import Code
from spinney.runtime import run_virtual

COSCHEDULER: Final = (*DISTINCT, "gang", "gang-refused")
"""The scenarios that mean something to it."""


def decided(scenario: str, scale: float, count: int) -> dict[str, object]:
    """Return what it took to take the objects in and to decide about all of them, and the longest decision."""
    return run_virtual(_decide(scenario, scale, count))


async def _decide(scenario: str, scale: float, count: int) -> dict[str, object]:
    bench = Bench()
    bench.put(*nodes(count, scenario))
    started = process_time()
    for each in _objects(scenario, scale):
        bench.put(each)
    bench.put(a_group("ordinary", 2))
    bench.put(*(_labelled(a_pod(f"ordinary-{number}"), "ordinary") for number in range(2)))
    taken_in = process_time() - started
    started = before = process_time()
    longest = 0.0
    while bench.scheduler.burst(1.0, 1):
        longest, before = max(longest, process_time() - before), process_time()
        await asyncio.sleep(0)
    await bench.run()
    failed = [refused for refused in bench.refused.values() if refused.status.code is Code.ERROR]
    return {
        "taken_in": taken_in,
        "first": process_time() - started,
        "longest": longest,
        "bound": len(bench.binds),
        "refused": len(bench.refused),
        "reasons": [failed[0].status.message] if failed else [],
        "ordinary": {"ordinary-0", "ordinary-1"} <= bench.binds.keys(),
    }


def _objects(scenario: str, scale: float) -> Iterator[Any]:
    if scenario in DISTINCT:
        for number in range(round(PODS * scale)):
            yield _labelled(DISTINCT[scenario](number))
        return
    size = round(GANG * scale)
    requests = {"cpu": "1m"} if scenario == "gang" else {"nvidia.com/gpu": "1"}
    yield a_group("large", size)
    for number in range(size):
        yield _labelled(a_pod(f"p{number}", requests=requests), "large")


def _labelled(pod: Pod, group: str = "") -> Pod:
    """Return a pod as the coscheduler knows it: by its scheduler name, namespace and label of groups."""
    member = {COSCHEDULING_GROUP: group} if group else {}
    metadata = replace(pod.metadata, namespace=NAMESPACE, labels={**pod.metadata.labels, **member})
    return replace(pod, metadata=metadata, spec=replace(pod.spec, scheduler_name=SCHEDULER))
