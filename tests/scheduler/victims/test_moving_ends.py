"""Nobody is moved again and again: what was promised is kept, and where that fails, it is not tried for ever."""

from datetime import timedelta
from random import Random
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.scheduler.framework.moves import Moves
from tests.scheduler.building import NOW
from tests.scheduler.victims.rounds import Rounds
from tests.scheduler.victims.worlds import Job, World

SWAP = World(
    (4, 8),
    (("a", 100),),
    (
        Job("right", gpus=2, places=("n1",), priority=60),
        Job("left", gpus=3, places=("n0",), priority=60),
        Job("large", gpus=5, places=("n1",), priority=60),
        Job("small", gpus=2),
    ),
)
"""Two GPUs are free, one on each node. Were ``left`` and ``right`` to change places, they would be on one."""
SEEDS: Final = (*range(8), 349)
"""Without the rules, moving does not end in the last."""
AS_KAI: Final[dict[str, Any]] = {"keep_promises": False, "move_again_seconds": 0.0}


def restarts(rounds: Rounds, count: int) -> list[set[str]]:
    """Run so many rounds; return the jobs that lost pods in each."""
    return [{eviction.gang.name for eviction in result.evictions} for result in rounds.run(count)]


@pytest.mark.parametrize("slowly", [False, True])
def test_two_jobs_change_places_once(slowly: bool) -> None:
    """Moved jobs come to the nodes they were promised, though they would prefer their old ones; so the third fits."""
    rounds = Rounds(SWAP, "allocate", "consolidation", slowly=slowly)
    assert [each for each in restarts(rounds, 6) if each] == [{"left", "right"}]
    small = next(record for record in rounds.inventory.cluster.pods() if record.name == "small-0")
    assert small.node == "n0"


def test_without_either_rule_they_are_moved_for_ever() -> None:
    """The cluster above is one where promises that are forgotten cost a restart every other round."""
    assert sum(map(bool, restarts(Rounds(SWAP, "allocate", "consolidation", **AS_KAI), 8))) == 4


def test_a_move_that_came_to_nothing_is_not_repeated() -> None:
    """Where a promise is lost, the job waits, and says why nobody is moved for it."""
    rounds = Rounds(SWAP, "allocate", "consolidation", keep_promises=False)
    assert [each for each in restarts(rounds, 6) if each] == [{"left", "right"}]
    session = rounds.scheduler.open_session()
    rounds.scheduler.run_actions(session)
    ((report,),) = session.victim_reports.values()
    assert "nobody is moved again for a job, or for one that was moved for it" in {
        each.reason for each in report.rejected
    }


def test_a_move_that_did_not_happen_does_not_count() -> None:
    """Evictions that were refused cost nobody anything, so they are decided again."""
    rounds = Rounds(SWAP, "allocate", "consolidation")
    assert all(len(rounds.decide().evictions) == 2 for _ in range(3))


def test_an_eviction_that_comes_late_still_counts() -> None:
    """Cycles in between, which decide the same again, do not make a promise forgotten."""
    rounds = Rounds(SWAP, "allocate", "consolidation")
    decided = [rounds.decide() for _ in range(3)]
    for eviction in decided[0].evictions:
        rounds.evict(eviction)
    assert not any(restarts(rounds, 3))
    assert any(record.name == "small-0" and record.node == "n0" for record in rounds.inventory.cluster.pods())


def test_a_promise_does_not_outlive_its_time() -> None:
    """A job that did not take up its place in time is one among others again."""
    rounds = Rounds(SWAP, "allocate", "consolidation", stuck_in_releasing_seconds=0.0)
    assert [each for each in restarts(rounds, 6) if each] == [{"left", "right"}]
    assert not any(record.name == "small-0" and record.node for record in rounds.inventory.cluster.pods())


def a_world(chance: Random) -> World:
    """Return a cluster that would be full if its jobs were placed well; they are not, so one or two wait."""
    while True:
        nodes = tuple(chance.choice((4, 6, 8)) for _ in range(chance.randint(2, 3)))
        sizes = [size for gpus in nodes for size in _parts(chance, gpus)]
        chance.shuffle(sizes)
        free = dict(enumerate(nodes))
        places = [_place(chance, free, gpus) for gpus in sizes]
        if 1 <= places.count("") <= 2:
            break
    queues = ("a", "b")[: chance.randint(1, 2)]
    jobs = [
        Job(f"job{number}", chance.choice(queues), gpus, (place,), priority=chance.choice((50, 60)))
        for number, (gpus, place) in enumerate(zip(sizes, places, strict=True))
    ]
    return World(nodes, tuple((queue, chance.randint(0, 8)) for queue in queues), tuple(jobs))


def _parts(chance: Random, whole: int) -> list[int]:
    parts = []
    while whole:
        parts.append(chance.randint(1, min(whole, 4)))
        whole -= parts[-1]
    return parts


def _place(chance: Random, free: dict[int, int], gpus: int) -> str:
    roomy = [node for node, left in free.items() if left >= gpus]
    if not roomy:
        return ""
    node = chance.choice(roomy)
    free[node] -= gpus
    return f"n{node}"


@pytest.mark.parametrize("kept", [True, False])
def test_every_sequence_of_moves_ends(kept: bool) -> None:
    """On random clusters no job has another moved twice, so soon nobody is moved any more."""
    for seed in SEEDS:
        rounds = Rounds(a_world(Random(seed)), "allocate", "consolidation", slowly=bool(seed % 2), keep_promises=kept)
        moves: list[tuple[str, str]] = []
        for result in rounds.run(5):
            moves += {
                (eviction.beneficiary.name, eviction.gang.name)
                for eviction in result.evictions
                if eviction.beneficiary is not None
            }
        assert len(moves) == len(set(moves)), f"seed {seed}"


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1))
def test_pods_that_replace_each_other_do_not_move_each_other_for_ever(wishes: list[tuple[int, int]]) -> None:
    """Whoever wants whom moved, and however often a moved pod comes back as a new job: moving ends."""
    moves, jobs = Moves(timedelta(days=1)), [0, 0, 0, 0]
    for _ in range(20):
        made = 0
        for gaining, moved in wishes:
            job = f"{gaining}-{jobs[gaining]}"
            if moves.bar(job, str(gaining), str(moved)) is None:
                moves.note(job, str(gaining), str(moved), NOW)
                jobs[moved] += 1
                made += 1
        if not made:
            return
    pytest.fail(f"still moving: {jobs}")


def test_what_was_moved_may_be_moved_again_after_a_day() -> None:
    """By then the cluster is another; the moment is known, so a search is made then."""
    moves = Moves(timedelta(days=1))
    moves.note("small", "small", "left", NOW)
    assert moves.bar("small", "small", "left") == NOW + timedelta(days=1)
    assert moves.bar("left", "left", "small") == NOW + timedelta(days=1)
    assert moves.bar("other", "other", "left") is None
    moves.forget_old(NOW + timedelta(days=1))
    assert moves.bar("small", "small", "left") is None
