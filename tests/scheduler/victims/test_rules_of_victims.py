"""What holds whatever is searched for: nothing over-committed, and nobody taken whom no rule names."""

from collections import defaultdict

from hypothesis import given, settings
from hypothesis import strategies as st

from spinney.cluster.statuses import ACTIVE_ALLOCATED
from tests.examples import examples
from tests.scheduler.victims.worlds import World, evicted, load, promised, run, state, worlds

EVERYTHING = ("allocate", "consolidation", "reclaim", "preempt", "stalegangeviction")
SEARCHES = st.sampled_from(["consolidation", "reclaim", "preempt"])


@settings(max_examples=examples(80), deadline=None)
@given(worlds())
def test_no_node_is_promised_more_than_it_has(world: World) -> None:
    """What stays, moves and arrives fits every node once what was evicted is gone."""
    session = run(world, *EVERYTHING)
    room = {f"n{number}": gpus for number, gpus in enumerate(world.nodes)}
    assert all(used <= room[node] for node, used in load(session).items())
    table, rows = session.nodes.table, session.nodes.all.rows
    assert (table.idle[rows] >= 0).all()
    assert (table.idle[rows] + table.releasing[rows] >= 0).all()


@settings(max_examples=examples(80), deadline=None)
@given(worlds(), SEARCHES)
def test_victims_are_those_the_rule_names(world: World, action: str) -> None:
    """Only preemptible jobs are disturbed: moved, of other queues, or of lower priority in the same queue."""
    session = run(world, action)
    jobs = {job.name: job for job in world.jobs}
    for eviction in session.evictions:
        assert eviction.beneficiary is not None
        victim, taker = jobs[eviction.gang.name], jobs[eviction.beneficiary.name]
        assert victim.preemptible
        assert victim is not taker
        assert str(eviction.beneficiary) in eviction.message
        if action == "consolidation":
            assert eviction.moves_to
            assert taker.preemptible
        elif action == "reclaim":
            assert victim.queue != taker.queue
        else:
            assert victim.queue == taker.queue
            assert victim.priority < taker.priority


@settings(max_examples=examples(60), deadline=None)
@given(worlds(min_runtime=True), st.sampled_from(["reclaim", "preempt"]))
def test_jobs_that_just_started_keep_their_gang(world: World, action: str) -> None:
    """A job within its min-runtime loses at most the pods beyond its minimum."""
    session = run(world, action)
    jobs = {job.name: job for job in world.jobs}
    for key in {eviction.gang for eviction in session.evictions}:
        if jobs[key.name].fresh:
            job = session.job(key)
            assert job.gang_satisfied


@settings(max_examples=examples(80), deadline=None)
@given(worlds())
def test_no_gang_is_left_in_part(world: World) -> None:
    """A job that lost or got pods has its minimum or nothing."""
    session = run(world, *EVERYTHING)
    touched = {eviction.gang for eviction in session.evictions} | {promise.gang for promise in session.pipelines}
    for key in touched:
        job = session.job(key)
        assert job.gang_satisfied or not any(task.status in ACTIVE_ALLOCATED for task in job.tasks)


@settings(max_examples=examples(80), deadline=None)
@given(worlds(), SEARCHES)
def test_a_search_that_finds_nothing_leaves_no_trace(world: World, action: str) -> None:
    """Where nothing was committed every ledger bit is as before, however many scenarios were tried."""
    untouched = state(run(world))
    session = run(world, action)
    if not session.evictions and not session.pipelines:
        assert state(session) == untouched


@settings(max_examples=examples(40), deadline=None)
@given(worlds())
def test_searches_are_deterministic(world: World) -> None:
    """The same cluster gives the same decisions."""
    first, second = run(world, *EVERYTHING), run(world, *EVERYTHING)
    assert (evicted(first), promised(first)) == (evicted(second), promised(second))


@settings(max_examples=examples(60), deadline=None)
@given(worlds(), SEARCHES)
def test_each_beneficiary_is_placed(world: World, action: str) -> None:
    """Nobody is disturbed for a job that is not placed in the end, unless a later search took its promise."""
    session = run(world, action)
    lost: dict[str, set[str]] = defaultdict(set)
    for eviction in session.evictions:
        assert eviction.beneficiary is not None
        lost[eviction.beneficiary.name].add(eviction.pod.name)
    placed = {promise.gang.name for promise in session.pipelines}
    if len(lost) == 1:
        assert set(lost) <= placed
