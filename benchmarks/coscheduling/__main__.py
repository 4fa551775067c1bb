"""The coscheduler beside the stock kube-scheduler, from the start of the process to the last bind.

    python -m benchmarks.coscheduling [--loads plain-1000,plain-5000,gangs-of-3,gangs-of-1000,waiting] [--scale 1.0]

One kube-apiserver and etcd of Kubernetes 1.37, plain Node objects, no kubelets; the same pods, the same native pod
groups, the same scheduler name for both, one Scheduled event per pod. Pods exist before a contender is started as a
process of its own; another process notes when each is seen to be bound. The stock scheduler runs with its defaults
(protobuf, node sampling), gang scheduling on and 5 000 requests per second allowed. Our modules are compiled before, as
an installation does it. A contender that is not done after ``--limit`` seconds is stopped, and the ratio is then a
bound ("at least 3.10x"); how far it has come is said on standard error.

``waiting`` measures what 1 000 gangs of three cost that fit nowhere, while nothing changes.
``--scale 0.1`` runs a tenth of everything.
"""

import argparse
import asyncio
import sys
from pathlib import Path

from rich.console import Console

from benchmarks.coscheduling.waiting import idleness_table, measure_waiting
from benchmarks.load.bench import a_bench
from benchmarks.load.contenders import COSCHEDULER, STOCK, Contender, compile_ours
from benchmarks.load.measuring import LIMIT, Load, compared, gangs, measure_all, plain, table

PLAIN_TARGET, GANGS_TARGET = 1.3, 3.0
WAITING = "waiting"


def loads(scale: float) -> dict[str, tuple[int, Load]]:
    """Return the loads by name, each with the number of nodes it runs on."""

    def scaled(number: int) -> int:
        return max(1, round(number * scale))

    return {
        "plain-1000": (scaled(1000), plain(scaled(5000), PLAIN_TARGET)),
        "plain-5000": (scaled(5000), plain(scaled(5000), PLAIN_TARGET)),
        "gangs-of-3": (scaled(1000), gangs(scaled(1000), 3, GANGS_TARGET)),
        "gangs-of-1000": (scaled(1000), gangs(4, scaled(1000), GANGS_TARGET)),
    }


async def compare(nodes: int, load: Load, options: argparse.Namespace, console: Console) -> None:
    """Run both contenders on one load, on a control plane of their own, and print what was measured."""
    async with a_bench(nodes, logs=options.logs) as bench:
        shown = await measure_all(bench, chosen(options), load, repeat=options.repeat, limit=options.limit)
    console.print(f"{nodes} nodes")
    console.print(table(load, shown, STOCK.name))
    if len(shown) == len((STOCK, COSCHEDULER)):
        console.print(f"{compared(shown[COSCHEDULER.name], shown[STOCK.name], STOCK.name)}; target {load.target}x\n")


async def compare_waiting(options: argparse.Namespace, console: Console) -> None:
    """Print what both contenders use while gangs wait, and while there are none."""
    count = max(1, round(1000 * options.scale))
    async with a_bench(max(1, round(100 * options.scale)), logs=options.logs) as bench:
        found = [
            await measure_waiting(bench, contender, gangs, 3, limit=options.limit)
            for contender in chosen(options)
            for gangs in (0, count)
        ]
    console.print(idleness_table(found))


def chosen(options: argparse.Namespace) -> list[Contender]:
    """Return the contenders to measure."""
    return [each for each in (STOCK, COSCHEDULER) if not options.only or each.name in options.only]


async def run(options: argparse.Namespace) -> None:
    """Compare on every load asked for."""
    console = Console(width=None if sys.stdout.isatty() else 140)
    compile_ours()
    known = loads(options.scale)
    for name in options.loads.split(","):
        if name == WAITING:
            await compare_waiting(options, console)
        else:
            await compare(*known[name], options, console)


def main() -> None:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loads", default=",".join([*loads(1.0), WAITING]), help="which, separated by commas")
    parser.add_argument("--scale", type=float, default=1.0, help="part of nodes, pods and gangs to run")
    parser.add_argument("--repeat", type=int, default=1, help="runs of each contender; the median is shown")
    parser.add_argument("--only", action="append", help="measure only this contender; may be repeated")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds after which a contender is stopped")
    parser.add_argument("--logs", type=Path, help="copy the logs of all programs to this directory")
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
