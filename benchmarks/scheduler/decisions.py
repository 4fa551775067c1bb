"""How fast the session scheduler decides, how well it fills, and how soon it says no. No API server takes part.

    python -m benchmarks.scheduler.decisions [--nodes 10000] [--seed 0] [--only PART] [--profile]

* fill: eight-GPU nodes in racks and blocks; gangs of 8 to 512 one-GPU pods, each in one rack where it can and in one
  block where it must; default plugins; one cycle until nothing more fits. An independent checker then verifies that no
  node is over-committed, no gang is split or partial, and every gang lies in one block.
* verdict: one more gang on the cluster just filled: refusal with its reasons.
* mixed: the same with 200 request classes, 100 queues, and gangs whose pods may not share a node.
* rules: gangs of one size, with pods on 16 nodes that have rules about pods of their own kind, and without those.
* plugins: the same as fill with plugins of a beginner, and with one that says it must be asked every time.
* sizes: gangs of one size, and single pods, with the constraint of fill and without.
* growth: the same as fill on a tenth of the nodes, and on all nodes with work for a tenth of them.
* session: :mod:`benchmarks.scheduler.sessions`, in a process of its own.

Ratios are of processor time per pod, which other work on the machine changes least.
"""

import argparse
import os
import subprocess
import sys
import time
from itertools import takewhile

import structlog

from benchmarks.load.processes import peak_memory
from benchmarks.scheduler import shapes
from benchmarks.scheduler.filling import Fill, fill
from benchmarks.scheduler.plugins import (
    BusiestFirst,
    FewPerRack,
    FirstPodElsewhere,
    FreeGpu,
    LabelledRack,
    NamespaceLimit,
)
from spinney.runtime import collection_held_off
from spinney.runtime.collection import settle_garbage_collector
from spinney.scheduler.config import DEFAULT_ACTIONS, SchedulerConfig
from spinney.scheduler.cycle.scheduler import Scheduler

PARTS = ("fill", "verdict", "mixed", "rules", "plugins", "sizes", "growth", "session")
SIZES = (1, 8, 64, 512)
AGENTS = 16
PODS_PER_SECOND, VERDICT_SECONDS = 50_000, 0.010
_ROUNDS = 100
_TURNS = 5
"""How often clusters that are filled in some milliseconds are filled: one look at them is mostly noise."""


def measure_verdict(filled: Fill) -> None:
    """Ask for one more gang on the cluster that was just filled."""
    inventory, result = filled.inventory, filled.result
    for bind in result.binds:
        inventory.cluster.assume(bind.pod, bind.node)
    for unschedulable in result.unschedulable:
        members = inventory.gangs.snapshot().gangs.get(unschedulable.gang)
        for key in list(members.pods) if members is not None else ():
            inventory.cluster.delete_pod(key)
        inventory.remove_gang(unschedulable.gang)
    shapes.put_work(inventory, shapes.Work("one-more", max(shapes.SIZES)))
    for actions in (("allocate",), DEFAULT_ACTIONS):
        _time_verdict(Scheduler(SchedulerConfig(actions=actions), inventory))


def _time_verdict(scheduler: Scheduler) -> None:
    taken = []
    for _ in range(_ROUNDS):
        session = scheduler.open_session()
        start, cpu = time.perf_counter(), time.process_time()
        with collection_held_off():
            scheduler.run_actions(session)
            (verdict,) = scheduler.result(session).unschedulable
        taken.append((time.process_time() - cpu, time.perf_counter() - start))
        session.close()
    busy, seconds = min(taken)
    print(
        f"verdict: one more gang refused and explained in {1000 * seconds:.2f} ms ({1000 * busy:.2f} ms CPU; "
        f"less than {1000 * VERDICT_SECONDS:.0f} ms is wanted), fastest of {_ROUNDS}, "
        f"by {', '.join(scheduler.config.actions)}\n  {verdict.message[:160]}"
    )


def measure_plugins(nodes: int, seed: int, plain: Fill) -> None:
    """Fill with plugins that ask node by node."""
    for plugin, part, wanted in (
        (LabelledRack, nodes, "a beginner's predicate on labels; at most 2x is wanted"),
        (FirstPodElsewhere, nodes, "a beginner's predicate on names; at most 4x is wanted"),
        (NamespaceLimit, nodes, "a limit per namespace with an event handler; at most 6x is wanted"),
        (FreeGpu, nodes, "a beginner's predicate on what is free; at most 2x is wanted"),
        (BusiestFirst, nodes, "a beginner's score"),
        (FewPerRack, min(nodes, 1000), "stateful: asked every time"),
    ):
        found = fill(part, shapes.uniform_work(part, seed), plugins=(plugin,))
        print(
            f"plugins: with {plugin.name} on {part} nodes {1 / found.per_pod:,.0f} pods per CPU second, "
            f"{found.per_pod / plain.per_pod:.1f}x the time of fill ({wanted})"
        )


def measure_rules(nodes: int) -> None:
    """Fill where pods with anti-affinity run, as on any real cluster, and where none do."""
    for size in (1, 8):
        free, ruled = (
            min(fill(nodes, shapes.alike_work(nodes, size, free=True), agents=each).per_pod for _ in range(_TURNS))
            for each in (0, AGENTS)
        )
        print(
            f"rules: gangs of {size} where {AGENTS} pods with anti-affinity run {1 / ruled:,.0f} pods per CPU second, "
            f"{ruled / free:.2f}x the time without those",
            flush=True,
        )


def measure_sizes(nodes: int) -> None:
    """Fill with gangs of one size after the other; the fastest of some turns counts."""
    for size in SIZES:
        for free in (False, True):
            turns = [fill(nodes, shapes.alike_work(nodes, size, free=free)) for _ in range(_TURNS)]
            found = min(turns, key=lambda each: each.per_pod)
            print(
                f"sizes: gangs of {size} {'without a constraint' if free else 'in a rack or block'} on {nodes} nodes "
                f"{1 / found.per_pod:,.0f} pods per CPU second, {1e6 * found.per_pod * size:,.0f} us a gang",
                flush=True,
            )


def measure_growth(nodes: int, seed: int, plain: Fill) -> None:
    """Compare with a tenth of the nodes, and with a tenth of the work."""
    small = fill(nodes // 10, shapes.uniform_work(nodes // 10, seed))
    asked, wanted = 0, nodes * shapes.GPUS // 10

    def is_within(work: shapes.Work) -> bool:
        nonlocal asked
        asked += work.size
        return asked <= wanted

    few = fill(nodes, takewhile(is_within, shapes.uniform_work(nodes, seed)))
    print(
        f"growth: {nodes // 10} to {nodes} nodes and ten times the pods: {plain.busy / small.busy:.1f}x the time, "
        f"{plain.busy / small.busy / (plain.pods / small.pods):.2f}x per pod\n"
        f"  {few.pods} to {plain.pods} pods on {nodes} nodes: {plain.busy / few.busy:.1f}x the time "
        f"for {plain.pods / few.pods:.1f}x the pods\n"
        f"  {nodes // 10} to {nodes} nodes and {small.pods} to {few.pods} pods: {few.busy / small.busy:.1f}x the time "
        "(at most linear is wanted each time)"
    )


def main() -> None:
    """Run the parts that are wanted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--only", action="append", choices=PARTS, help="may be repeated; fill is always run, to compare"
    )
    parser.add_argument("--profile", action="store_true", help="say where the time of fill goes")
    options = parser.parse_args()
    parts = options.only or PARTS
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    settle_garbage_collector()  # as ``spinney scheduler`` does
    if set(parts) != {"session"}:
        plain = fill(options.nodes, shapes.uniform_work(options.nodes, options.seed), profile=options.profile)
        memory = peak_memory(os.getpid())
        print(f"fill: {plain}\n  {PODS_PER_SECOND:,} pods/s are wanted; {memory:,.0f} MiB at most", flush=True)
        if "verdict" in parts:
            measure_verdict(plain)
        if "mixed" in parts:
            mixed = fill(options.nodes, shapes.mixed_work(options.nodes, options.seed), queues=True)
            print(f"mixed: {mixed}\n  {mixed.per_pod / plain.per_pod:.1f}x the time of fill (at most 4x is wanted)")
        if "rules" in parts:
            measure_rules(min(options.nodes, 1000))
        if "plugins" in parts:
            measure_plugins(options.nodes, options.seed, plain)
        if "sizes" in parts:
            measure_sizes(min(options.nodes, 1000))
        if "growth" in parts:
            measure_growth(options.nodes, options.seed, plain)
    if "session" in parts:
        subprocess.run([sys.executable, "-m", "benchmarks.scheduler.sessions"], check=True)


if __name__ == "__main__":
    main()
