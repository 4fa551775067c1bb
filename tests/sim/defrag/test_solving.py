"""Plans of moves: valid always, and the exact ones as cheap as trying everything finds."""

from itertools import product
from random import Random

import numpy as np
import pytest

from spinney.cluster.fitting import Demand
from spinney.cluster.pods import PodKey
from spinney.cluster.resources import GPU
from spinney.gangs.tree import GangKey
from spinney.sim.defrag.exact import exact, is_installed
from spinney.sim.defrag.greedy import greedy
from spinney.sim.defrag.plan import make_plan
from spinney.sim.defrag.problem import MovableGang, MovablePod, MovePrice, Problem, Solution, price, price_of

WIDTH, GPUS = GPU + 1, 4
needs_solver = pytest.mark.skipif(not is_installed(), reason="the exact solver (spinney[plan]) is not installed")


def gpus(count: int) -> np.ndarray:
    vector = np.zeros(WIDTH, dtype=np.int64)
    vector[GPU] = count
    return vector


def a_problem(seed: int) -> Problem:
    """Return a few nodes of four GPUs, gangs of one to three pods on them, and a gang that wants room."""
    chance = Random(seed)
    nodes = chance.choice((3, 4))
    free = np.tile(gpus(GPUS), (nodes, 1))
    gangs: list[MovableGang] = []
    pods = 0
    for number in range(5):
        members: list[MovablePod] = []
        for _ in range(chance.choice((1, 1, 2, 3))):
            size, row = chance.choice((1, 1, 2, 3)), chance.randrange(nodes)
            if free[row, GPU] < size or pods >= 6:
                continue
            free[row, GPU] -= size
            usable = np.array([chance.random() < 0.9 or each == row for each in range(nodes)])
            members.append(MovablePod(PodKey("team", f"g{number}-{len(members)}"), f"{pods}", row, gpus(size), usable))
            pods += 1
        if members:
            spare = chance.choice((0, 0, 1)) if len(members) > 1 else 0
            gangs.append(MovableGang(GangKey("kai", "team", f"g{number}"), tuple(members), spare, chance.random() * 10))
    rows = np.arange(nodes)
    regions = (rows,) if chance.random() < 0.5 else (rows[: nodes // 2], rows[nodes // 2 :])
    demand = Demand(gpus(chance.choice((2, 3, 4))), chance.choice((1, 2)))
    return Problem(tuple(f"n{row}" for row in range(nodes)), free, tuple(gangs), (demand,), regions)


def test_gpu_hours_are_rounded_once() -> None:
    """Work of 0.0475 GPU hours is told as such: rounded to 0.05 it was printed as a tenth of an hour."""
    free = np.array([gpus(2), gpus(2)])
    pod = MovablePod(PodKey("team", "pod"), "uid", 0, gpus(2), np.ones(2, dtype=np.bool_))
    gang = MovableGang(GangKey("kai", "team", "gang"), (pod,), 0, 0.0475)
    plan = make_plan(Problem(("a", "b"), free, (gang,), (Demand(gpus(4), 1),), (np.arange(1),)), "room", "greedy")

    assert [move.gpu_hours for move in plan.moves] == [plan.gpu_hours] == [0.0475]


def room_after(problem: Problem, targets: dict[PodKey, int]) -> np.ndarray:
    room = problem.free.copy()
    for gang in problem.gangs:
        for pod in gang.pods:
            room[pod.row] += pod.request
            room[targets.get(pod.key, pod.row)] -= pod.request
    return room


def holds(problem: Problem, room: np.ndarray) -> bool:
    """Tell whether one region holds what is wanted."""
    (demand,) = problem.demands
    return any(int((room[rows, GPU] // demand.request[GPU]).sum()) >= demand.count for rows in problem.regions)


def cheapest(problem: Problem) -> MovePrice | None:
    """Return the price of the cheapest plan, found by trying every place for every pod."""
    pods = [(gang, pod) for gang in problem.gangs for pod in gang.pods]
    best: MovePrice | None = None
    for rows in product(*(np.flatnonzero(pod.usable).tolist() for _, pod in pods)):
        targets = {pod.key: row for (_, pod), row in zip(pods, rows, strict=True)}
        room = room_after(problem, targets)
        if (room < 0).any() or not holds(problem, room):
            continue
        costs = [price_of(gang, sum(targets[pod.key] != pod.row for pod in gang.pods)) for gang in problem.gangs]
        cost = MovePrice(sum(each.restarts for each in costs), sum(each.gpu_hours for each in costs))
        best = cost if best is None or cost < best else best
    return best


def assert_valid(problem: Problem, solution: Solution) -> None:
    """Nothing is overcommitted, everybody goes where it may, and the wanted room is there, in one region."""
    usable = {pod.key: pod.usable for gang in problem.gangs for pod in gang.pods}
    targets = {pod: row for moves in solution.moves.values() for pod, row in moves.items()}
    assert all(usable[pod][row] for pod, row in targets.items())
    room = room_after(problem, targets)
    (demand,) = problem.demands
    assert len(solution.rows) == demand.count
    assert any(set(solution.rows) <= set(rows.tolist()) for rows in problem.regions)
    for row in solution.rows:
        room[row] -= demand.request
    assert (room >= 0).all()


@needs_solver
@pytest.mark.parametrize("seed", range(40))
def test_an_exact_plan_is_as_cheap_as_any(seed: int) -> None:
    """The solver finds the fewest restarts and, of those, the fewest GPU hours; or nothing where nothing exists."""
    problem = a_problem(seed)
    best, found = cheapest(problem), exact(problem)
    assert (found is None) == (best is None)
    if found is not None and best is not None:
        assert_valid(problem, found)
        cost = price(problem, found)
        assert cost.restarts == best.restarts
        assert cost.gpu_hours == pytest.approx(best.gpu_hours, abs=1e-4)


def test_greedy_plans_are_valid_and_near_the_cheapest() -> None:
    """The plan for large clusters is never wrong, seldom missing, and seldom needs more than one restart too many."""
    found = missed = extra = 0
    for seed in range(60):
        problem = a_problem(seed)
        best, plan = cheapest(problem), greedy(problem)
        if plan is None:
            missed += best is not None
            continue
        assert best is not None
        assert_valid(problem, plan)
        cost = price(problem, plan)
        assert cost >= MovePrice(best.restarts, best.gpu_hours - 1e-9)
        found += 1
        extra += cost.restarts - best.restarts
    assert found >= 20
    assert missed <= found // 10
    assert extra <= found // 2


def test_room_that_is_there_costs_nothing() -> None:
    """Where the wanted room is free already, nobody is moved."""
    problem = Problem(("n0",), gpus(4)[None, :], (), (Demand(gpus(4), 1),), (np.arange(1),))
    plan = greedy(problem)
    assert plan is not None
    assert (plan.moves, plan.rows) == ({}, (0,))
