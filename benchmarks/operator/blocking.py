"""How long the operator's event loop, which also renews the lease, is busy without a pause while a large set comes up.

Run with ``python -m benchmarks.operator.blocking``. An embedded API server runs in a process of its own; a heartbeat
notes how much processor time passes between two of its beats. What counts is processor time of this thread, not time on
the clock: it is the same on a busy machine. The figure to look at is the part of the renew deadline.
"""

import argparse
import asyncio
import sys
import time
from pathlib import Path

import structlog

from benchmarks.server.contenders import embedded
from spinney.api.grove import POD_CLIQUE_SET
from spinney.backends import every_backend
from spinney.kube.client import Client
from spinney.kube.config import load_kubeconfig
from spinney.kube.crds import install_crds
from spinney.kube.lease import LeaseTimes
from spinney.operator.configuration import check
from spinney.operator.operator import Operator, Settings
from spinney.runtime import Runtime, settle_garbage_collector
from spinney.testing.builders import a_clique, a_pod_clique_set

PROFILES = "scheduler: {profiles: [{name: default-scheduler, default: true}]}"
BEAT = 0.005
LIMIT = 0.1
"""The part of the renew deadline that the loop may be busy at a time."""


class Heartbeat:
    """The most processor time that passed between two beats. Mutable."""

    def __init__(self) -> None:
        self.longest = 0.0

    async def beat_for_ever(self) -> None:
        """Beat until cancelled."""
        while True:
            before = time.thread_time()
            await asyncio.sleep(BEAT)
            self.longest = max(self.longest, time.thread_time() - before)


async def bring_up(kubeconfig: Path, replicas: int, pods: int) -> float:
    """Have a set come up until all of its pods exist; return the longest that the loop was busy."""
    settle_garbage_collector()
    runtime = Runtime.system()
    transport = load_kubeconfig(kubeconfig, runtime=runtime)
    client = Client(transport, runtime)
    await install_crds(client)
    operator = Operator(client, Settings.of(check(PROFILES, every_backend())))
    running = asyncio.create_task(operator.run())
    await operator.manager.wait_until_ready()
    heart = Heartbeat()
    beating = asyncio.create_task(heart.beat_for_ever())
    pcs = a_pod_clique_set("large", [a_clique("worker", replicas=pods)], replicas=replicas, namespace="default")
    await client.create(POD_CLIQUE_SET, pcs)
    complete = asyncio.Event()
    pods_seen = operator.caches.pods
    pods_seen.subscribe(lambda _: complete.set() if len(pods_seen) >= replicas * pods else None)
    await complete.wait()
    beating.cancel()
    operator.stop()
    await running
    await transport.close()
    runtime.executor.close()
    return heart.longest


async def measured(replicas: int, pods: int) -> float:
    """Return the longest that the loop was busy, at an embedded API server of its own."""
    async with embedded(keeping=False) as server:
        return await bring_up(server.kubeconfig, replicas, pods)


def main() -> int:
    """Measure, print, and say whether the limit is kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicas", type=int, default=2000, help="of the set, and so gangs")
    parser.add_argument("--pods", type=int, default=2, help="of each replica")
    options = parser.parse_args()
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(file=sys.stderr))
    longest = asyncio.run(measured(options.replicas, options.pods))
    part = longest / LeaseTimes().renew_deadline
    print(
        f"{options.replicas} gangs of {options.pods} pods: busy for {longest:.3f} s at most, {part:.1%} of the deadline"
    )
    return 0 if part <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
