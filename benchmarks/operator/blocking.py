"""How long the operator's event loop, which also renews the lease, is busy without a pause while a large set comes up.

Run with ``python -m benchmarks.operator.blocking``. An embedded API server runs in a process of its own; a heartbeat
notes how much processor time passes between two of its beats. What counts is processor time of this thread, not time on
the clock: it is the same on a busy machine. The figure to look at is the part of the renew deadline.
"""

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import structlog

from spinney.api.grove import POD_CLIQUE_SET
from spinney.backends import every_backend
from spinney.kube.client import Client
from spinney.kube.config import load_kubeconfig
from spinney.kube.crds import install_crds
from spinney.kube.lease import LeaseTimes
from spinney.operator.configuration import check
from spinney.operator.operator import Operator, Settings
from spinney.runtime import Runtime, settle_garbage_collector
from spinney.server import ApiServer
from spinney.server.http.serving import HttpServer
from spinney.sim.embedded.transport import InProcessTransport
from spinney.testing.builders import a_clique, a_pod_clique_set

PROFILES = "scheduler: {profiles: [{name: default-scheduler, default: true}]}"
BEAT = 0.005
LIMIT = 0.1
"""The part of the renew deadline that the loop may be busy at a time."""
READY = "ready"


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


async def serve(kubeconfig: Path) -> None:
    """Run an API server until killed."""
    runtime = Runtime.system()
    server = ApiServer(runtime)
    async with HttpServer(server) as http, server.running():
        await install_crds(Client(InProcessTransport(server), runtime))
        http.write_kubeconfig(kubeconfig)
        print(READY, flush=True)
        await asyncio.Event().wait()


async def bring_up(kubeconfig: Path, replicas: int, pods: int) -> float:
    """Have a set come up until all of its pods exist; return the longest that the loop was busy."""
    settle_garbage_collector()
    runtime = Runtime.system()
    transport = load_kubeconfig(kubeconfig, runtime=runtime)
    client = Client(transport, runtime)
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


def main() -> int:
    """Measure, print, and say whether the limit is kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicas", type=int, default=2000, help="of the set, and so gangs")
    parser.add_argument("--pods", type=int, default=2, help="of each replica")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(file=sys.stderr))
    if options.serve is not None:
        asyncio.run(serve(options.serve))
    with tempfile.TemporaryDirectory() as directory:
        kubeconfig = Path(directory) / "kubeconfig"
        command = [sys.executable, "-m", "benchmarks.operator.blocking", "--serve", str(kubeconfig)]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert server.stdout is not None
        try:
            assert server.stdout.readline().strip() == READY
            longest = asyncio.run(bring_up(kubeconfig, options.replicas, options.pods))
        finally:
            server.kill()
            server.wait()
    part = longest / LeaseTimes().renew_deadline
    print(
        f"{options.replicas} gangs of {options.pods} pods: busy for {longest:.3f} s at most, {part:.1%} of the deadline"
    )
    return 0 if part <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
