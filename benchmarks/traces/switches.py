"""Gangs on Lingjun's real, uneven tree of switches: how many find a rack or an aggregation switch, beside the optimum.

Small instances: some racks of the tree, and gangs of 2 to 24 hosts that ask for more than there is. A gang of up to 8
hosts must share a rack, a larger one an aggregation switch; all wait at the same moment. What can be placed is found by
mixed-integer programming (HiGHS, ``pip install 'spinney[plan]'``), which knows nothing of the scheduler: in the order
of arrival, each gang that has room beside those before it, wherever these are put; and the most hosts in any order.
"""

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from benchmarks.traces.openb import PACKING, WHOLE_QUEUE
from benchmarks.traces.replaying import replayed
from benchmarks.traces.tables import Table
from spinney.scheduler.config import PluginOption, SchedulerConfig
from spinney.sim.replay import Ask, Job, Machine, Trace
from spinney.sim.replay.checking import violations
from spinney.sim.replay.formats.tables import rows_of

SWITCH, RACK = "replay.spinney.dev/switch", "replay.spinney.dev/rack"
RACKS, ASKED, LARGEST_OF_RACK = 12, 1.2, 8
SIZES: Final = (2, 3, 4, 6, 8, 8, 12, 16, 24)
TIGHTEST: Final = SchedulerConfig(extra_plugins=(PluginOption("topology", {"planAhead": "0"}),))
Racks = Mapping[tuple[str, str], int]


def measure(directory: Path, seeds: list[int]) -> Iterator[Table]:
    """Count the gangs and hosts that are placed on some racks of the tree, by seed."""
    table = Table(
        "switches",
        f"Lingjun's tree of switches: gangs of {min(SIZES)} to {max(SIZES)} hosts on {RACKS} of its racks, drawn anew "
        f"for each of {len(seeds)} seeds, until {ASKED:.0%} of the hosts are asked for, all at once. Up to "
        f"{LARGEST_OF_RACK} hosts must share a rack, more an aggregation switch. Exact, by HiGHS: in order of arrival, "
        "each gang that has room beside those before it, wherever they are put; and the most hosts in any order.",
        [
            "placement",
            "gangs asked",
            "gangs that find one",
            "hosts",
            "instances with as many hosts as the exact solver",
        ],
    )
    tree = tree_of(directory)
    instances = [instance(tree, seed) for seed in seeds]
    asked = sum(len(gangs) for _, gangs in instances)

    def add(name: str, placed: Sequence[Sequence[int]], exact: Sequence[int]) -> None:
        hosts = [sum(each) for each in placed]
        alike = sum(found >= bound for found, bound in zip(hosts, exact, strict=True))
        table.add(name, asked, sum(len(each) for each in placed), sum(hosts), f"{alike} of {len(seeds)}")

    in_order = [fitting(racks, gangs) for racks, gangs in instances]
    bound = [sum(each) for each in in_order]
    add("exact, in order of arrival", in_order, bound)
    for name, config in (("**default**", PACKING), ("default, `planAhead: 0`", TIGHTEST)):
        add(name, [_placed(racks, gangs, config) for racks, gangs in instances], bound)
    best = [best_of(racks, gangs) for racks, gangs in instances]
    add("exact, any order", best, [sum(each) for each in best])
    largest = [_placed(racks, gangs, WHOLE_QUEUE) for racks, gangs in instances]
    add("**largestfirst**", largest, [sum(each) for each in best])
    yield table


def tree_of(directory: Path) -> Racks:
    """Return how many hosts each rack has; a rack is a pair of an aggregation switch and one on top of the rack."""
    found: dict[tuple[str, str], int] = {}
    for row in rows_of(next(directory.glob("lingjun_topo.csv*")), "PSW", "ASW"):
        rack = (row["PSW"], row["ASW"])
        found[rack] = found.get(rack, 0) + 1
    return found


def instance(tree: Racks, seed: int, *, count: int = RACKS, sizes: Sequence[int] = SIZES) -> tuple[Racks, list[int]]:
    """Return some racks of the tree, and the sizes of gangs that ask for more than they have."""
    chance = random.Random(seed)
    racks = {rack: tree[rack] for rack in chance.sample(sorted(tree), count)}
    gangs: list[int] = []
    while sum(gangs) < ASKED * sum(racks.values()):
        gangs.append(chance.choice(sizes))
    return racks, gangs


def _placed(racks: Racks, gangs: Sequence[int], config: SchedulerConfig) -> list[int]:
    """Return the sizes of the gangs that the scheduler places."""
    machines = tuple(
        Machine(f"{switch}-{rack}-{place}", 64_000, 262_144, 8, labels={SWITCH: switch, RACK: f"{switch}-{rack}"})
        for (switch, rack), count in racks.items()
        for place in range(count)
    )
    jobs = tuple(
        Job(f"gang-{number:02d}", 0.0, Ask(gpus=8), pods=size, topology=RACK if size <= LARGEST_OF_RACK else SWITCH)
        for number, size in enumerate(gangs)
    )
    trace = Trace("lingjun", machines, jobs, offered_once=True, levels=(SWITCH, RACK))
    events = replayed(trace, config, check=violations).events
    return [gangs[event.job] for event in events if event.what == "started"]


def fitting(racks: Racks, gangs: Sequence[int]) -> list[int]:
    """Return the gangs that find a rack or a switch in their order, if those before them may be put anywhere."""
    found: list[int] = []
    for size in gangs:
        if len(best_of(racks, [*found, size])) > len(found):
            found.append(size)
    return found


def best_of(racks: Racks, gangs: Sequence[int]) -> list[int]:
    """Return the gangs that find a rack or a switch if as many hosts as possible are to be in such gangs.

    Gangs of one size are alike, so they are counted: how many are in each rack, or under each switch. A gang under a
    switch takes any hosts that those in its racks leave.
    """
    highspy = import_module("highspy")
    highs: Any = highspy.Highs()
    highs.silent()
    hosts: dict[str, int] = {}
    for (switch, _), count in racks.items():
        hosts[switch] = hosts.get(switch, 0) + count
    in_rack: dict[tuple[str, str], list[Any]] = {rack: [] for rack in racks}
    under: dict[str, list[Any]] = {switch: [] for switch in hosts}
    counts: dict[int, list[Any]] = {}
    for size, asked in Counter(gangs).items():
        # Where gangs of this size may be: a switch, and the rack below it that they must share, if any.
        domains = list(racks) if size <= LARGEST_OF_RACK else [(switch, "") for switch in hosts]
        counts[size] = [highs.addIntegral(0, asked) for _ in domains]
        for (switch, rack), number in zip(domains, counts[size], strict=True):
            under[switch].append(size * number)
            if rack:
                in_rack[switch, rack].append(size * number)
        highs.addConstr(sum(counts[size]) <= asked)
    for place, used in in_rack.items():
        if used:
            highs.addConstr(sum(used) <= racks[place])
    for switch, used in under.items():
        highs.addConstr(sum(used) <= hosts[switch])
    highs.maximize(sum(size * number for size, numbers in counts.items() for number in numbers))
    left = {size: round(sum(highs.val(number) for number in numbers)) for size, numbers in counts.items()}
    found = []
    for size in gangs:
        if left[size]:
            left[size] -= 1
            found.append(size)
    return found
