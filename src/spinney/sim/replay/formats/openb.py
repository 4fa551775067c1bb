"""Alibaba's openb (2023): pods that share GPUs, offered one at a time in a given order until 130 % were asked for.

Beside the pods lie the nodes (``openb_nodes``), the order of arrival by seed (``openb_order_<list>``) and, for ties of
the published simulator, node ranks, which are not read here: equal nodes go by name. The second arrival of a row of the
list is a clone with a name of its own. Without an order file the pods come as they stand. A pod that finds no room when
it comes is forgotten; nothing ever ends.
"""

from collections import Counter
from pathlib import Path
from typing import Final

from spinney.sim.replay.formats.tables import InvalidTrace, TableRow, opened, rows_of
from spinney.sim.replay.trace import Ask, Job, Machine, Trace

AT_ONCE: Final = 1024
"""How many pods arrive at one moment. They are decided in their order, one after the other, so any number will do."""
_SHARE_OF_TYPICAL: Final = 0.95


def read_openb(pods: Path, nodes: Path | None, seed: int | None) -> Trace:
    """Return the experiment on a list of pods; ``seed`` names a column of the order file, the first without one."""
    machines = _machines(nodes if nodes is not None else _nodes_beside(pods))
    listed = list(rows_of(pods, "name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli"))
    asks = [_ask(row) for row in listed]
    order = _order(pods, seed, len(listed))
    seen: set[int] = set()
    clones = 0
    jobs = []
    for place, row in enumerate(order):
        name = listed[row]["name"]
        if row in seen:
            name, clones = f"{name}-tuned-{clones}", clones + 1
        seen.add(row)
        jobs.append(Job(name, float(place // AT_ONCE), asks[row], kind=kind_of(asks[row])))
    return Trace(
        name=pods.name.split(".")[0],
        machines=machines,
        jobs=tuple(jobs),
        offered_once=True,
        demand=typical(Counter(asks)),
    )


def kind_of(ask: Ask) -> str:
    """Return what reports call pods like this."""
    if not ask.gpus:
        return "no GPU"
    if ask.gpus > 1:
        return "several GPUs"
    return "one GPU" if ask.milli == 1000 else "part of a GPU"


def typical(asked: Counter[Ask]) -> tuple[tuple[Ask, int], ...]:
    """Return the commonest requests that make up 95 % of all, memory left aside; equally common: larger first."""
    counts: Counter[Ask] = Counter()
    for ask, count in asked.items():
        counts[Ask(cpu=ask.cpu, gpus=ask.gpus, milli=ask.milli, models=ask.models)] += count
    ranked = sorted(counts.items(), key=lambda each: (-each[1], -each[0].cpu, -each[0].gpu_milli))
    found: list[tuple[Ask, int]] = []
    for each in ranked:
        if sum(count for _, count in found) >= _SHARE_OF_TYPICAL * asked.total():
            break
        found.append(each)
    return tuple(found)


def _machines(path: Path) -> tuple[Machine, ...]:
    return tuple(
        Machine(
            name=row["sn"],
            cpu=row.whole("cpu_milli"),
            memory=row.whole("memory_mib"),
            gpus=row.whole("gpu"),
            model=row["model"],
        )
        for row in rows_of(path, "sn", "cpu_milli", "memory_mib", "gpu", "model")
    )


def _ask(row: TableRow) -> Ask:
    gpus = row.whole("num_gpu")
    return Ask(
        cpu=row.whole("cpu_milli"),
        memory=row.whole("memory_mib"),
        gpus=gpus,
        milli=row.whole("gpu_milli") if gpus else 1000,
        models=frozenset(filter(None, (row.get("gpu_spec") or "").split("|"))),
    )


def beside_openb(pods: Path) -> tuple[Path, ...]:
    """Return the files that are read with a list of pods, if they are there."""
    return _order_file(pods), *_nodes_files(pods)


def _order_file(pods: Path) -> Path:
    return pods.with_name(pods.name.replace("openb_pods_", "openb_order_"))


def _order(pods: Path, seed: int | None, count: int) -> list[int]:
    path = _order_file(pods)
    if path == pods or not path.exists():
        if seed is not None:
            raise InvalidTrace(f"{pods}: no order of arrival for seed {seed}; expected the file {path.name} beside it")
        return list(range(count))
    with opened(path) as file:
        seeds = file.readline().strip().split(",")
        wanted = seeds[0] if seed is None else str(seed)
        if wanted not in seeds:
            raise InvalidTrace(f"{path}: no seed {wanted}; there are {', '.join(seeds)}")
        column = seeds.index(wanted)
        cells = [line.rstrip("\r\n").split(",") for line in file]
    found = []
    for line, row in enumerate(cells, start=2):
        if len(row) > column and row[column]:
            if not row[column].isdecimal() or int(row[column]) >= count:
                raise InvalidTrace(
                    f"{path}:{line}: found {row[column]!r}, expected a row from 0 to {count - 1} of {pods.name}"
                )
            found.append(int(row[column]))
    return found


def _nodes_files(pods: Path) -> tuple[Path, ...]:
    return tuple(pods.with_name(f"openb_nodes{ending}") for ending in (".csv.gz", ".csv"))


def _nodes_beside(pods: Path) -> Path:
    *_, plain = files = _nodes_files(pods)
    for path in files:
        if path.exists():
            return path
    raise InvalidTrace(f"{pods}: no nodes; name them with --nodes, or put {plain.name} beside the pods")
