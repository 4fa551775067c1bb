"""What the coscheduler needs to take in a cluster when it starts, in each order in which lists may come.

    python -m benchmarks.coscheduling.first_read [--groups 2000] [--nodes 1000]

One-GPU pods, each in a PodGroup of its own. No API server: objects are handed to the coscheduler as its caches would.
Lists are read at the same time, so nodes may come before or after the pods, and groups after both. Processor time until
the first pod is ready to be tried.
"""

import argparse
import asyncio
import time
from itertools import permutations
from typing import Any

from benchmarks.peers import hall
from benchmarks.peers.families import FAMILIES, Gang
from spinney.api.core import Node, Pod
from spinney.api.coscheduling import PodGroup
from spinney.api.struct import JSON, convert
from spinney.cli.manifests.offline_backends import Unreachable
from spinney.coscheduling.process.configuration import parse_configuration
from spinney.coscheduling.process.intake import CoschedulingIntake
from spinney.coscheduling.process.process import CoschedulerProcess
from spinney.kube.cache import Change
from spinney.kube.client import Client
from spinney.kube.keys import key_of
from spinney.runtime import Runtime
from spinney.testing.peers import COSCHEDULING

FAMILY = next(family for family in FAMILIES if family.peer is COSCHEDULING)


def cluster(groups: int, nodes: int) -> dict[str, list[Any]]:
    """Return everything there is, by kind."""
    gangs = [Gang(f"gang-{number:05d}", 1, 1) for number in range(groups)]
    return {
        "groups": [convert(PodGroup, _stored(FAMILY.group(gang))) for gang in gangs],
        "nodes": [convert(Node, _stored(hall.a_node(number))) for number in range(nodes)],
        "pods": [convert(Pod, _stored(pod)) for pod in FAMILY.pods(gangs)],
    }


def _stored(obj: JSON) -> JSON:
    obj["metadata"] |= {"uid": obj["metadata"]["name"], "resourceVersion": "1"}
    return obj


async def take_in(found: dict[str, list[Any]], order: tuple[str, ...], runtime: Runtime) -> float:
    """Return the processor time of taking in all lists in this order, until a pod is ready."""
    process = CoschedulerProcess(Client(Unreachable(), runtime), parse_configuration(FAMILY.configuration))
    process.cluster.subscribe(process.groups.pod_changed)
    process.groups.completed = process._completed
    process.shared.gangs.subscribe(process.groups)
    intake = CoschedulingIntake(
        process.shared, process.services, process.queue, process._composed.rankings, gone=lambda _key: None
    )
    take = {"groups": intake.take_in, "nodes": intake.node, "pods": intake.pod}
    began = time.process_time()
    for kind in order:
        for each in found[kind]:
            take[kind](Change(key_of(each), None, each, "1"))
    assert process.queue.pop() is not None
    return time.process_time() - began


async def run(groups: int, nodes: int) -> None:
    """Measure every order and print."""
    runtime, found = Runtime.system(), cluster(groups, nodes)
    for order in permutations(found):
        print(f"{', '.join(order):24s} {await take_in(found, order, runtime):6.2f} s", flush=True)
    runtime.executor.close()


def main() -> None:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=2000)
    parser.add_argument("--nodes", type=int, default=1000)
    options = parser.parse_args()
    asyncio.run(run(options.groups, options.nodes))


if __name__ == "__main__":
    main()
