"""``python -m benchmarks.scheduler.defrag``: what greedy plans of moves cost beside exact ones, on random clusters.

Twelve nodes of eight GPUs with thirty pods, most of them alone, some in gangs that start anew as a whole; two whole
nodes are wanted. Needs ``spinney[plan]``.
"""

import time
from random import Random

import numpy as np

from spinney.cluster.fitting import Demand
from spinney.cluster.pods import PodKey
from spinney.cluster.resources import GPU, Vector
from spinney.gangs.tree import GangKey
from spinney.sim.defrag.exact import exact
from spinney.sim.defrag.greedy import greedy
from spinney.sim.defrag.problem import MovableGang, MovablePod, Problem, price

NODES, PODS, GPUS, WANTED, PROBLEMS = 12, 30, 8, 2, 20


def main() -> None:
    """Solve the same problems in both ways."""
    fewest = needed = missed = 0
    seconds = {exact: 0.0, greedy: 0.0}
    for seed in range(PROBLEMS):
        problem = a_problem(seed)
        found = {}
        for solve in (exact, greedy):
            began = time.process_time()
            found[solve] = solve(problem)
            seconds[solve] += time.process_time() - began
        best, plan = found[exact], found[greedy]
        if best is None:
            continue
        if plan is None:
            missed += 1
            continue
        fewest += price(problem, best).restarts
        needed += price(problem, plan).restarts
    print(f"restarts: exact {fewest}, greedy {needed}; greedy found nothing in {missed} of {PROBLEMS}")
    print(f"CPU s each: exact {seconds[exact] / PROBLEMS:.2f}, greedy {seconds[greedy] / PROBLEMS:.4f}")


def a_problem(seed: int) -> Problem:
    """Return a cluster that is partly filled at random."""
    chance = Random(seed)
    free = np.tile(_gpus(GPUS), (NODES, 1))
    gangs: list[MovableGang] = []
    made = 0
    while made < PODS:
        pods = []
        for _ in range(chance.choice((1, 1, 1, 2, 4))):
            size = chance.choice((1, 1, 2, 4))
            rows = np.flatnonzero(free[:, GPU] >= size).tolist()
            if not rows:
                return _wanting(free, gangs)
            row = chance.choice(rows)
            free[row, GPU] -= size
            pods.append(MovablePod(PodKey("team", f"p{made}"), str(made), row, _gpus(size), np.ones(NODES, dtype=bool)))
            made += 1
        gangs.append(MovableGang(GangKey("kai", "team", f"g{made}"), tuple(pods), 0, chance.random() * 50))
    return _wanting(free, gangs)


def _wanting(free: np.ndarray, gangs: list[MovableGang]) -> Problem:
    names = tuple(f"n{row}" for row in range(NODES))
    return Problem(names, free, tuple(gangs), (Demand(_gpus(GPUS), WANTED),), (np.arange(NODES),))


def _gpus(count: int) -> Vector:
    vector = np.zeros(GPU + 1, dtype=np.int64)
    vector[GPU] = count
    return vector


if __name__ == "__main__":
    main()
