"""From pending pods to bound pods on a real API server, beside the stock kube-scheduler.

    python -m benchmarks.scheduler.end_to_end [--nodes 1000] [--pods 5000] [--gangs 500] [--repeat 1]

One kube-apiserver and etcd of Kubernetes 1.37, plain Node objects, no kubelets. Two loads: pods that belong to nothing,
and one-GPU pods in native gangs of eight. Pods are created first; then a contender is started as a process of its own,
and a watcher in another process notes when each pod is seen to be bound. Every contender proves who it is by the same
kind of certificate and writes one Scheduled event per pod; the stock scheduler runs with its defaults (protobuf, node
sampling), gang scheduling on and 5 000 requests per second allowed. The bare client binds pods without deciding
anything.

``pods/s`` counts from the start of the process to the last bind; p50 and p99 are of the time from that start to a pod's
bind; ``events`` is when the last event had been stored. A scheduler that binds first and tells later gains in
``pods/s``, so the ratio to the last event is printed beside the one to the last bind. Processor time is per pod, until
the last event: of the contender with its start, and of API server and etcd together, less what those use at rest. A
busy machine raises it too, but far less than it lowers rates; the number of cores divided by the sum of both is the
rate at which they would be fully used.
"""

import argparse
import asyncio
import sys
from pathlib import Path

from rich.console import Console

from benchmarks.load.bench import a_bench
from benchmarks.load.contenders import BARE, BARE_SILENT, OURS, STOCK, compile_ours
from benchmarks.load.measuring import LIMIT, compared, gangs, measure_all, plain, table

GANG_SIZE = 8


async def run(options: argparse.Namespace) -> None:
    """Run every contender on every load and print the tables."""
    compile_ours()
    loads = {
        "plain": plain(options.pods, 1.5),
        "gangs": gangs(options.gangs, GANG_SIZE, 4.0),
    }
    contenders = [each for each in (STOCK, OURS, BARE, BARE_SILENT) if not options.only or each.name in options.only]
    console = Console(width=None if sys.stdout.isatty() else 140)
    async with a_bench(options.nodes, logs=options.logs) as bench:
        for load in (loads[name] for name in options.loads.split(",")):
            shown = await measure_all(bench, contenders, load, repeat=options.repeat, limit=options.limit)
            console.print(table(load, shown, STOCK.name))
            if STOCK.name in shown and OURS.name in shown:
                ours, stock = shown[OURS.name], shown[STOCK.name]
                console.print(
                    f"{compared(ours, stock, STOCK.name)} to the last bind (target {load.target}x), "
                    f"{ours.told / stock.told:.2f}x to the last event\n"
                )


def main() -> None:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=5000, help="plain pods")
    parser.add_argument("--gangs", type=int, default=500, help=f"gangs of {GANG_SIZE} one-GPU pods")
    parser.add_argument("--repeat", type=int, default=1, help="runs of each contender; the median is shown")
    parser.add_argument("--loads", default="plain,gangs")
    parser.add_argument("--only", action="append", help="measure only this contender; may be repeated")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds after which a contender is stopped")
    parser.add_argument("--logs", type=Path, help="copy the logs of all programs to this directory")
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
