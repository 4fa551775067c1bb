"""Gangs on Lingjun's real, uneven tree of switches with KAI, Volcano and ours: how many of each size find a domain.

    python -m benchmarks.peers.lingjun DIRECTORY                          # two seeds, all of the tree
    python -m benchmarks.peers.lingjun DIRECTORY --sizes 2,3,4,6,8,8,12,16,24 --racks 12 --seeds 10 --quiet 5

DIRECTORY holds the traces, which are not part of Spinney. Needs what ``make controlplane`` and ``make peers`` build.
Gangs are drawn as in ``benchmarks.traces.switches``, from sizes of which each asks for as many hosts as the others: a
pod takes a host, up to 8 must share a rack, more an aggregation switch. All contenders get the same gangs in the same
order on one API server, and nothing ends. KAI and ours read the same groups, which may not be preempted or moved;
Volcano gets groups and HyperNodes of its own, as ours does not read those.

One at a time, a gang comes when the one before is answered: all its pods are bound, or all say that they cannot be
scheduled and are not bound in ``--grace`` seconds after that, twenty periods of KAI and Volcano (Volcano was seen to
refuse a gang just after its start and to bind it a moment later). One that is refused goes on waiting. All at once, the
gangs wait when the contender starts, created a second apart: creation times, by which all three order them, have whole
seconds. A run is over when every gang is answered and nothing was bound for ``--quiet`` seconds. A gang that is not
answered in ``--limit`` seconds is counted as silent, one that is bound after it was refused as late.

Exact (HiGHS, ``pip install 'spinney[plan]'``): each gang that has room beside those before it, wherever these are put.
"""

import argparse
import asyncio
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.load import cluster
from benchmarks.load.bench import Bench, a_bench
from benchmarks.load.contenders import Contender, compile_ours
from benchmarks.load.measuring import progress
from benchmarks.peers import checking, hall
from benchmarks.peers.asking import LAST, watched_by
from benchmarks.peers.families import FAMILIES, GANG, KAI_PROMISED, TIERS, Family, Gang, with_plugin
from benchmarks.traces.switches import LARGEST_OF_RACK, Racks, fitting, instance, tree_of
from benchmarks.traces.tables import Table
from spinney.api import kai
from spinney.api.core import POD, Pod
from spinney.api.resource import Resource
from spinney.api.struct import JSON
from spinney.cli.terminal.logs import log_to_stderr
from spinney.kube.cache import Change
from spinney.testing.controlplane import ControlPlane
from spinney.testing.peers import KAI, VOLCANO
from spinney.testing.peers.recipes import KAI_PARENT_QUEUE

SIZES: Final = (8,) * 8 + (16,) * 4 + (32,) * 2 + (64,)
ONE, ALL = "one", "all"
WAYS: Final = {ONE: "one at a time", ALL: "all at once"}
HYPER_NODE: Final = Resource("topology.volcano.sh", "v1alpha1", "HyperNode", "hypernodes", namespaced=False)


@dataclass(frozen=True)
class Found:
    """What came of the gangs: the sizes of those that found a domain, and what was wrong."""

    sizes: list[int]
    silent: int
    late: int
    seconds: float
    faults: list[str]


class Onlooker:
    """Who was bound where, and who was refused. Mutable: it follows the pods of the namespace."""

    def __init__(self, gangs: Iterable[Gang]) -> None:
        self.places: dict[str, str] = {}
        self.faults: list[str] = []
        self.last_bind = time.monotonic()
        self._size = {gang.name: gang.size for gang in gangs}
        self._bound: Counter[str] = Counter()
        self._told: dict[str, set[str]] = {gang: set() for gang in self._size}
        self._changed = asyncio.Event()

    def see(self, change: Change[Pod]) -> None:
        """Take in what happened to a pod."""
        name, pod = change.key.name, change.new
        if pod is None or name == LAST:
            if name in self.places:
                self.faults.append(f"pod {name} was bound to {self.places[name]} and is gone")
            return
        gang, node = pod.metadata.labels[GANG], pod.spec.node_name
        if any(each.type == "PodScheduled" and each.reason == "Unschedulable" for each in pod.status.conditions):
            self._told[gang].add(name)
        if node and name not in self.places:
            self.places[name] = node
            self._bound[gang] += 1
            self.last_bind = time.monotonic()
        self._changed.set()

    def is_placed(self, gang: Gang) -> bool:
        """Tell whether all pods of a gang are bound."""
        return self._bound[gang.name] == gang.size

    def is_refused(self, gang: Gang) -> bool:
        """Tell whether all pods of a gang say that they cannot be scheduled, and none is bound."""
        return not self._bound[gang.name] and len(self._told[gang.name]) == gang.size

    async def answered(self, gangs: Sequence[Gang], *, limit: float) -> bool:
        """Wait until each of some gangs is placed or refused; returns whether that was within the limit."""
        return await self._until(lambda: all(self.is_placed(gang) or self.is_refused(gang) for gang in gangs), limit)

    async def placed(self, gang: Gang, *, limit: float) -> bool:
        """Wait until a gang is placed; returns whether that was within the limit."""
        return await self._until(lambda: self.is_placed(gang), limit)

    async def quiet(self, seconds: float) -> None:
        """Wait until nothing was bound for some time."""
        while await self._until(self._has_more_than(len(self.places)), seconds):
            pass

    def _has_more_than(self, pods: int) -> Callable[[], bool]:
        return lambda: len(self.places) > pods

    async def _until(self, holds: Callable[[], bool], limit: float) -> bool:
        try:
            async with asyncio.timeout(limit):
                while not holds():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return False
        return True


class Experiment:
    """An API server with the hosts of some racks, and the gangs that are offered to whom."""

    def __init__(self, bench: Bench, sizes: Sequence[int], options: argparse.Namespace) -> None:
        self._bench = bench
        self._client = bench.client
        self._options = options
        self.gangs = [a_gang(number, size) for number, size in enumerate(sizes)]

    async def offer(self, family: Family, contender: Contender, way: str) -> Found:
        """Offer the gangs to one contender and count those that find a domain."""
        progress(f"{contender.name}: {len(self.gangs)} gangs, {WAYS[way]}")
        onlooker = Onlooker(self.gangs)
        async with watched_by(onlooker.see, self._client):
            offer = self._one_at_a_time if way == ONE else self._all_at_once
            silent, refused, start = await offer(family, contender, onlooker)
        faults = onlooker.faults + await checking.faults(self._client, onlooker.places, self.gangs)
        await family.clear(self._client)
        placed = [gang for gang in self.gangs if onlooker.is_placed(gang)]
        late = sum(gang in placed for gang in refused)
        return Found([gang.size for gang in placed], silent, late, onlooker.last_bind - start, faults)

    async def _one_at_a_time(
        self, family: Family, contender: Contender, onlooker: Onlooker
    ) -> tuple[int, list[Gang], float]:
        silent, refused, start = 0, [], time.monotonic()
        with contender.running(self._bench.plane, self._bench.kubeconfig):
            for gang in self.gangs:
                await family.create(self._client, [gang])
                silent += not await onlooker.answered([gang], limit=self._options.limit)
                if not await onlooker.placed(gang, limit=self._options.grace):
                    refused.append(gang)
                progress(f"{contender.name}: {gang.name} of {gang.size}: {_answer(onlooker, gang)}")
            await onlooker.quiet(self._options.quiet)
        return silent, refused, start

    async def _all_at_once(
        self, family: Family, contender: Contender, onlooker: Onlooker
    ) -> tuple[int, list[Gang], float]:
        for gang in self.gangs:
            await self._client.create(family.resource, family.group(gang))
            await asyncio.sleep(1.0)
        await cluster.for_each(family.pods(self.gangs), lambda pod: self._client.create(POD, pod))
        start = time.monotonic()
        with contender.running(self._bench.plane, self._bench.kubeconfig):
            await onlooker.answered(self.gangs, limit=self._options.limit)
            await onlooker.quiet(self._options.quiet)
        silent = sum(not onlooker.is_placed(gang) and not onlooker.is_refused(gang) for gang in self.gangs)
        return silent, [], start


def _answer(onlooker: Onlooker, gang: Gang) -> str:
    return "bound" if onlooker.is_placed(gang) else "refused" if onlooker.is_refused(gang) else "no answer"


def a_gang(number: int, size: int) -> Gang:
    """Return a gang of pods that take a host each."""
    level = hall.RACK if size <= LARGEST_OF_RACK else hall.BLOCK
    return Gang(f"gang-{number:03d}", size, size, level, queue=KAI_PROMISED, gpus=hall.GPUS, preemptible=False)


def host_of(racks: Racks) -> Callable[[int], JSON]:
    """Return what makes the hosts of racks: nodes that know their rack and, as their block, their switch."""
    places = [rack for rack, count in racks.items() for _ in range(count)]

    def host(number: int) -> JSON:
        node, (switch, rack) = cluster.a_node(number), places[number]
        node["metadata"]["labels"] |= {hall.RACK: f"{switch}-{rack}".lower(), hall.BLOCK: switch.lower()}
        return node

    return host


def all_promised(queue: str) -> JSON:
    """Return a queue of KAI's that is promised everything: gangs that may not be preempted are held to the promise."""
    share = {"quota": kai.UNLIMITED, "limit": kai.UNLIMITED, "overQuotaWeight": 1}
    return {"metadata": {"name": queue}, "spec": {"resources": dict.fromkeys(("gpu", "cpu", "memory"), share)}}


# -- Volcano ----------------------------------------------------------------------------------------------------------


def hyper_nodes(racks: Racks) -> list[JSON]:
    """Return Volcano's description of the tree."""
    found = []
    for switch, rack in racks:
        selector = {"labelMatch": {"matchLabels": {hall.RACK: f"{switch}-{rack}".lower()}}}
        found.append(_hyper_node(f"{switch}-{rack}".lower(), hall.RACK, [{"type": "Node", "selector": selector}]))
    for switch in dict.fromkeys(switch for switch, _ in racks):
        members = [
            {"type": "HyperNode", "selector": {"exactMatch": {"name": f"{switch}-{rack}".lower()}}}
            for each, rack in racks
            if each == switch
        ]
        found.append(_hyper_node(switch.lower(), hall.BLOCK, members))
    return found


def _hyper_node(name: str, level: str, members: list[JSON]) -> JSON:
    return {"metadata": {"name": name}, "spec": {"tier": TIERS[level], "members": members}}


# -- the table --------------------------------------------------------------------------------------------------------


def contenders(plane: ControlPlane, names: Sequence[str]) -> list[tuple[Family, Contender]]:
    """Return KAI, Volcano and ours, each with the family whose objects it reads."""
    of = {family.peer.name: family for family in FAMILIES}
    ours, volcano = of[KAI.name], of[VOLCANO.name]
    volcano = with_plugin(volcano, {"name": "network-topology-aware"})
    theirs = [(family, family.contenders(plane)[0]) for family in (ours, volcano) if family.peer.name in names]
    return [*theirs, (ours, ours.contenders(plane)[1])]


async def run(options: argparse.Namespace) -> bool:
    """Offer the gangs of every seed to every contender, and print the table; returns whether everything was right."""
    compile_ours()
    tree = tree_of(options.directory)
    seeds = range(options.seed, options.seed + options.seeds)
    instances = [instance(tree, seed, count=options.racks or len(tree), sizes=options.sizes) for seed in seeds]
    found: dict[tuple[str, str], list[Found]] = {}
    for seed, (racks, sizes) in zip(seeds, instances, strict=True):
        progress(f"seed {seed}: {sum(racks.values())} hosts, {len(sizes)} gangs")
        await _run(options, racks, sizes, found)
    rows = {("", "asked"): [size for _, sizes in instances for size in sizes]}
    if options.exact:
        rows["", "exact, in their order"] = [size for racks, sizes in instances for size in fitting(racks, sizes)]
    rows |= {who: [size for each in runs for size in each.sizes] for who, runs in found.items()}
    kinds = sorted(set(options.sizes))
    table = Table("peers", "", ["offered", "", *(f"of {size}" for size in kinds), "gangs", "hosts"])
    for (way, name), sizes in rows.items():
        count = Counter(sizes)
        table.add(WAYS.get(way, ""), name, *(count[size] for size in kinds), len(sizes), sum(sizes))
    for (way, name), runs in found.items():
        for seed, each in zip(seeds, runs, strict=True):
            right = f"NO: {each.faults[0]} (and {len(each.faults) - 1} more)" if each.faults else "yes"
            print(
                f"{WAYS[way]}, {name}, seed {seed}: {len(each.sizes)} gangs, {sum(each.sizes)} hosts, "
                f"silent {each.silent}, late {each.late}, {each.seconds:.0f} s to the last bind, right: {right}"
            )
    print(f"\n{table}")
    return not any(each.faults for runs in found.values() for each in runs)


async def _run(
    options: argparse.Namespace, racks: Racks, sizes: Sequence[int], found: dict[tuple[str, str], list[Found]]
) -> None:
    async with a_bench(sum(racks.values()), node=host_of(racks)) as bench:
        client, chosen = bench.client, contenders(bench.plane, options.peers)
        for family in {family.peer.name: family for family, _ in chosen}.values():
            await family.prepare(client)
            if family.peer is KAI:
                await client.apply(kai.QUEUE, all_promised(KAI_PARENT_QUEUE))
            if family.peer.name == VOLCANO.name:
                await cluster.for_each(hyper_nodes(racks), lambda each: client.create(HYPER_NODE, each))
        experiment = Experiment(bench, sizes, options)
        for way in options.ways:
            for family, contender in chosen:
                result = await experiment.offer(family, contender, way)
                progress(f"{contender.name}: {sorted(Counter(result.sizes).items())}, {result.faults or 'right'}")
                found.setdefault((way, contender.name), []).append(result)


def main() -> None:
    """Read the options and run; the exit code says whether everything was right."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--seeds", type=int, default=2, help="how many")
    parser.add_argument("--seed", type=int, default=42, help="the first")
    parser.add_argument("--racks", type=int, default=0, help="so many of the tree's racks, drawn; all if left out")
    parser.add_argument("--sizes", type=lambda text: tuple(map(int, text.split(","))), default=SIZES)
    parser.add_argument("--peers", type=lambda text: text.split(","), default=[KAI.name, VOLCANO.name])
    parser.add_argument("--ways", type=lambda text: text.split(","), default=list(WAYS), help=", ".join(WAYS))
    parser.add_argument("--limit", type=float, default=120.0, help="seconds in which a gang is to be answered")
    parser.add_argument("--grace", type=float, default=2.0, help="seconds in which one that is refused may be bound")
    parser.add_argument("--quiet", type=float, default=10.0, help="seconds without a bind after which a run is over")
    parser.add_argument("--no-exact", dest="exact", action="store_false", help="without the exact solver")
    options = parser.parse_args()
    log_to_stderr()
    sys.exit(0 if asyncio.run(run(options)) else 1)


if __name__ == "__main__":
    main()
