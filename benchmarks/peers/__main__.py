"""Ours beside KAI, Volcano, scheduler-plugins and Grove's operator, on one real API server: one table.

    python -m benchmarks.peers                          # 1 000 nodes, 4 000 pods: everything
    python -m benchmarks.peers --scale 0.05             # a twentieth of it, to see that it works
    python -m benchmarks.peers --peers kai --rows gangs-8,reclaim

Needs what ``make controlplane`` and ``make peers`` build; a peer that is not built is left out, and the table says so.
Each peer gets its own groups (KAI's PodGroups, Volcano's, those of scheduler-plugins), and ours reads the very same
objects under the same scheduler name. Pods exist before a contender starts; the clock runs from the start of its
process, so that imports and caches count. For ``reclaim``, ``verdict`` and ``scale-test`` it runs before the clock
does.

Columns: pods per second to the last bind, the time of the first and of the last bind (for ``verdict``: of the
condition on the pod; for ``scale-test``: all pods created, all gates gone), processor time of the contender and of API
server and etcd, the most memory the contender held, and whether everything was right, as a watch has seen it: no gang
in part, no node with more pods than GPUs at any time, racks and blocks kept, nobody evicted without need or for a gang
that fits nowhere; for ``scale-test``: no gate opened before the gang was there.
"""

import argparse
import asyncio
import signal
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from benchmarks.load.bench import Bench, a_bench
from benchmarks.load.contenders import compile_ours
from benchmarks.load.measuring import Figures, Load, measure, of_median_rate, progress
from benchmarks.peers import asking, checking, hall, operators
from benchmarks.peers.families import FAMILIES, Family, Gang
from spinney.cli.terminal.logs import log_to_stderr
from spinney.testing.peers import GROVE, Peer, PeerMissing, built

SCALE_TEST, RECLAIM, VERDICT = "scale-test", "reclaim", "verdict"
NODES, PODS, LARGE, RECLAIMED, REPLICAS = 1000, 4000, 512, 250, 500
Row = tuple[str, str, Figures]
"""What was run, by whom, and what was measured."""


def fills(scale: float) -> dict[str, tuple[str, list[Gang]]]:
    """Return the loads that fill an empty cluster, by name: what they are called, and their gangs."""
    pods, large = round(PODS * scale), max(hall.GPUS, round(LARGE * scale))

    def gangs(size: int, level: str = "") -> list[Gang]:
        return [Gang(f"gang-{number:05d}", size, size, level) for number in range(max(1, pods // size))]

    return {
        "gangs-8": ("gangs of 8", gangs(8)),
        "gangs-64": ("gangs of 64", gangs(64)),
        "gangs-8-rack": ("gangs of 8, each in one rack", gangs(8, hall.RACK)),
        "gangs-64-rack": ("gangs of 64, each in one rack", gangs(64, hall.RACK)),
        "topology-512": (f"one gang of {large} in one block", [Gang("large", large, large, hall.BLOCK)]),
        "singles": ("one-GPU jobs", gangs(1)),
    }


ROWS = (*fills(1.0), RECLAIM, VERDICT, SCALE_TEST)


class Comparison:
    """What was measured so far. Mutable."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.nodes = max(hall.NODES_OF_A_RACK, round(NODES * options.scale))
        self.rows: list[Row] = []
        self.left_out: list[str] = []

    async def family(self, bench: Bench, family: Family) -> None:
        """Measure a peer and ours on every load that the peer can be given."""
        loads = fills(self.options.scale)
        for row in self.options.rows:
            if row in loads:
                await self._fill(bench, family, *loads[row])
            elif row == RECLAIM and family.reclaims:
                size = max(hall.GPUS, round(RECLAIMED * self.options.scale))
                await self._ask(bench, family, asking.reclaiming(size))
            elif row == VERDICT:
                await self._ask(bench, family, asking.hopeless())

    async def _fill(self, bench: Bench, family: Family, title: str, gangs: list[Gang]) -> None:
        if any(gang.level for gang in gangs) and not family.topology:
            return
        load = Load(
            f"{title} ({family.peer.name})",
            sum(gang.size for gang in gangs),
            lambda client, _: family.create(client, gangs),
            1.0,
            check=lambda client, places: checking.faults(client, places, gangs),
            clear=family.clear,
        )
        for contender in family.contenders(bench.plane):
            runs = [await measure(bench, contender, load, limit=self.options.limit) for _ in self._repeats]
            self._add(load.name, contender.name, runs)

    async def _ask(self, bench: Bench, family: Family, asked: asking.Asking) -> None:
        for contender in family.contenders(bench.plane):
            runs = [
                await asking.measure(bench, contender, family, asked, nodes=self.nodes, limit=self.options.limit)
                for _ in self._repeats
            ]
            self._add(f"{asked.name} ({family.peer.name})", contender.name, runs)

    async def operators(self) -> None:
        """Measure both operators."""
        replicas = max(1, round(REPLICAS * self.options.scale))
        runs = [await operators.measure(replicas) for _ in self._repeats]
        for name in runs[0]:
            self._add(f"scale test, {2 * replicas} pods", name, [run[name] for run in runs])

    def _add(self, load: str, contender: str, runs: list[Figures]) -> None:
        self.rows.append((load, contender, of_median_rate(runs)))

    @property
    def _repeats(self) -> range:
        return range(self.options.repeat)

    def is_built(self, peer: Peer) -> bool:
        """Tell whether a peer is to be measured and can be."""
        if self.options.peers and peer.name not in self.options.peers:
            return False
        try:
            built(peer)
        except PeerMissing as missing:
            self.left_out.append(str(missing))
            return False
        return True


def table(rows: Sequence[Row]) -> Table:
    """Show every run; the ratio is how much sooner ours had bound the last pod than the peer in the row above."""
    shown = Table(title_justify="left")
    for column in ("load", "", "pods/s", "ratio", "first", "last", "CPU-ms/pod", "server's", "peak MiB", "right"):
        shown.add_column(column, justify="left" if column in ("load", "") else "right")
    theirs: Figures | None = None
    for load, contender, run in rows:
        ours = contender.startswith("spinney")
        ratio = f"{theirs.last / run.last:.1f}x" if ours and theirs is not None and not run.stopped else ""
        if ratio and theirs is not None and theirs.stopped:
            ratio = f"> {ratio}"
        last = f"{run.bound} of {run.pods} after {run.last:.0f} s" if run.stopped else f"{run.last:.2f} s"
        used = [f"{1000 * seconds / run.pods:.2f}" for seconds in (run.cpu, run.server_cpu)]
        rate = "" if run.stopped else f"{run.rate:.0f}"
        right = "yes" if not run.faults else f"NO: {run.faults[0]}"
        first = f"{run.first:.2f} s" if run.bound else ""
        shown.add_row(load, contender, rate, ratio, first, last, *used, f"{run.memory:.0f}", right)
        theirs = None if ours else run
    return shown


async def run(options: argparse.Namespace) -> bool:
    """Measure what was asked for and print the table; returns whether everything was right."""
    compile_ours()
    comparison = Comparison(options)
    try:
        for family in FAMILIES:
            if not comparison.is_built(family.peer) or not set(options.rows) - {SCALE_TEST}:
                continue
            async with a_bench(comparison.nodes, node=hall.a_node, furnish=family.prepare) as bench:
                await comparison.family(bench, family)
        if SCALE_TEST in options.rows and comparison.is_built(GROVE):
            await comparison.operators()
    finally:
        console = Console(width=None if sys.stdout.isatty() else 180)
        console.print(f"{comparison.nodes} nodes of {hall.GPUS} GPUs")
        console.print(table(comparison.rows))
        for family in FAMILIES:
            if any(contender == str(family.peer) for _, contender, _ in comparison.rows):
                console.print(f"{family.peer}: {family.peer.remark}")
        for reason in comparison.left_out:
            console.print(f"left out: {reason}")
    progress("done")
    return not any(figures.faults for _, contender, figures in comparison.rows if contender.startswith("spinney"))


def main() -> None:
    """Read the options and measure; the exit code says whether ours was right."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help=f"part of {NODES} nodes and {PODS} pods to run")
    parser.add_argument("--rows", type=lambda text: text.split(","), default=list(ROWS), help=", ".join(ROWS))
    parser.add_argument("--peers", type=lambda text: text.split(","), help="kai, volcano, scheduler-plugins, grove")
    parser.add_argument("--repeat", type=int, default=1, help="runs of each contender; the median is shown")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds after which a contender is stopped")
    options = parser.parse_args()
    if unknown := set(options.rows) - set(ROWS):
        parser.error(f"no row is called {', '.join(sorted(unknown))}; there are {', '.join(ROWS)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))  # so that the control plane is stopped
    log_to_stderr()
    sys.exit(0 if asyncio.run(run(options)) else 1)


if __name__ == "__main__":
    main()
