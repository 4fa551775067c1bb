"""openb in other proportions: stand-ins for published pod lists that one does not have.

The published lists hold the pods of ``default``, only in other proportions. A list that is not there is drawn anew from
``default`` (accepted models as in ``gpuspec10``), in an order of arrival of its own, as the experiment defines it. The
published figures beside it are those of the real list; on stand-ins like these FGD came within half a point of them.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Final

from benchmarks.traces.openb import PACKING, published, run, spread
from benchmarks.traces.tables import Table
from spinney.explain.amounts import counted
from spinney.sim.replay.formats.openb import AT_ONCE, kind_of, read_openb, typical
from spinney.sim.replay.trace import WHOLE, Ask, Job, Machine, Trace

LISTS: Final = {
    "cpu100": 0.1,
    "cpu250": 0.25,
    "gpushare60": 0.6,
    "gpushare100": 1.0,
    "gpuspec20": 0.2,
    "gpuspec25": 0.25,
    "gpuspec33": 0.33,
    "multigpu30": 0.3,
    "multigpu40": 0.4,
    "multigpu50": 0.5,
}
"""What part of the pods asks for no GPU, of the GPU request shares a GPU, of the GPU pods accepts only some models, or
of the GPU request is for several GPUs."""
_LOAD: Final = 1.3


def measure(directory: Path, seeds: list[int]) -> Iterator[Table]:
    """Replay a stand-in for each list."""
    table = Table(
        "proportions",
        "Stand-ins for the ten published pod lists that were not at hand: the pods of default in their proportions, in "
        f"orders of our own; mean ± standard deviation over {counted(len(seeds), 'seed')}. "
        "Published: the real lists, ten seeds.",
        ["pod list", "BestFit, published", "FGD, published", "Spinney", "fragmentation: FGD", "Spinney", "CPU s"],
    )
    known = published(directory)
    base, some = (next(directory.glob(f"openb_pods_{name}.csv*")) for name in ("default", "gpuspec10"))
    machines = read_openb(base, None, None).machines
    pods, choosy = _listed(base), _listed(some)
    for name, part in LISTS.items():
        drawn = in_proportion(name, part, pods, choosy)
        found = [run(experiment(name, machines, drawn, seed), PACKING) for seed in seeds]
        best, fgd = known.get((name, "BestFit"), []), known.get((name, "FGD"), [])
        table.add(
            name,
            spread([each[0] for each in best]),
            spread([each[0] for each in fgd]),
            f"**{spread([each.allocated for each in found])}**",
            spread([each[1] for each in fgd]),
            spread([each.fragmentation for each in found]),
            f"{fmean(each.seconds for each in found):.1f}",
        )
    yield table


def in_proportion(name: str, part: float, pods: Sequence[Ask], choosy: Sequence[Ask]) -> list[Ask]:
    """Return a list of pods like the published one of that name."""
    draw = random.Random(name)
    kinds: dict[str, list[Ask]] = defaultdict(list)
    for ask in pods:
        kinds[kind_of(ask)].append(ask)
    without, shares, several = kinds["no GPU"], kinds["part of a GPU"], kinds["several GPUs"]
    whole = kinds["one GPU"] + several
    if name.startswith("cpu"):
        count = round(len(shares + whole) * part / (1 - part))
        more = draw.choices(without, k=max(count - len(without), 0))
        return shares + whole + draw.sample(without, min(count, len(without))) + more
    if name.startswith("gpushare"):
        draw.shuffle(whole)
        shared, rest = _gpus(shares), _gpus(whole)
        while whole and shared < part * (shared + rest):
            rest -= whole.pop().gpu_milli
            shares.append(draw.choice(shares))
            shared += shares[-1].gpu_milli
        return without + shares + whole
    if name.startswith("gpuspec"):
        return _with_models(list(choosy), part, draw)
    singles = shares + kinds["one GPU"]
    while _gpus(several) < part / (1 - part) * _gpus(singles):
        several.append(draw.choice(several))
    return without + singles + several


def _with_models(pods: list[Ask], part: float, draw: random.Random) -> list[Ask]:
    """Have more pods accept only some models: those that a pod of the same kind accepts already."""
    accepted: dict[str, list[frozenset[str]]] = defaultdict(list)
    for ask in pods:
        if ask.models:
            accepted[kind_of(ask)].append(ask.models)
    undemanding = [place for place, ask in enumerate(pods) if ask.gpus and not ask.models and accepted[kind_of(ask)]]
    missing = round(part * sum(ask.gpus > 0 for ask in pods)) - sum(map(len, accepted.values()))
    for place in draw.sample(undemanding, missing):
        pods[place] = replace(pods[place], models=draw.choice(accepted[kind_of(pods[place])]))
    return pods


def experiment(name: str, machines: tuple[Machine, ...], pods: Sequence[Ask], seed: int) -> Trace:
    """Return the experiment: all in random order and then clones, until 130 % of the GPUs are asked for."""
    draw = random.Random(f"{name} {seed}")
    wanted = _LOAD * WHOLE * sum(machine.gpus for machine in machines)
    order = draw.sample(pods, len(pods))
    asked = _gpus(order)
    while asked > wanted:
        asked -= order.pop(draw.randrange(len(order))).gpu_milli
    while len(order) >= len(pods):
        clone = draw.choice(pods)
        if asked + (clone.milli if clone.gpus else 0) > wanted:
            break
        order.append(clone)
        asked += clone.gpu_milli
    jobs = tuple(
        Job(f"p{place:05d}", float(place // AT_ONCE), ask, kind=kind_of(ask)) for place, ask in enumerate(order)
    )
    return Trace(f"openb_{name}", machines, jobs, offered_once=True, demand=typical(Counter(pods)))


def _listed(path: Path) -> list[Ask]:
    return [job.ask for job in read_openb(path, None, None).jobs if "-tuned-" not in job.name]


def _gpus(pods: Sequence[Ask]) -> int:
    return sum(ask.gpu_milli for ask in pods)
