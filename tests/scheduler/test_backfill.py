"""The backfill plugin: who waits is given a place and a time; others pass only if they do not delay it."""

import dataclasses
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from msgspec.structs import replace

from spinney.api.labels import EXPECTED_DURATION
from spinney.api.time import timestamp
from spinney.cluster.pods import PodKey
from spinney.gangs.tree import GangKey
from spinney.scheduler.config import PluginOption, SchedulerConfig
from spinney.scheduler.cycle.scheduler import Scheduler
from spinney.scheduler.fairshare import GPU, Amounts, QueueInfo
from spinney.scheduler.fairshare.amounts import NO_BOUND
from spinney.scheduler.intake.inventory import Inventory
from spinney.scheduler.plugins.backfill.memory import Memory
from tests.scheduler.building import (
    NAMESPACE,
    NOW,
    QUEUE,
    a_gang,
    a_node,
    a_pod,
    a_scheduler,
    an_inventory,
    placements,
    put_gang,
)

JUST_NOW = NOW - timedelta(seconds=5)
A_MINUTE_AGO = NOW - timedelta(minutes=1)
TWO_HOURS_AGO = NOW - timedelta(hours=2)


def backfilling(**arguments: str) -> SchedulerConfig:
    config = SchedulerConfig()
    return replace(config, plugins=(*config.plugins, PluginOption("backfill", arguments=arguments)))


def a_job(
    inventory: Inventory,
    name: str,
    count: int,
    gpus: int,
    created: datetime,
    *,
    lasts: str = "",
    queue: str = QUEUE,
    priority: int = 50,
    **about: object,
) -> None:
    """Put a gang that waits into the inventory."""
    annotations = {EXPECTED_DURATION: lasts} if lasts else {}
    pods = (a_pod(f"{name}-{n}", gang=name, gpus=gpus, annotations=annotations, **about) for n in range(count))  # type: ignore[arg-type]
    put_gang(inventory, a_gang(name, minimum=count, created=created, queue=queue, priority=priority), pods)


def a_running_job(inventory: Inventory, node: str, gpus: int, *, lasts: str = "1h") -> None:
    """Put a job of one pod on a node, which says how long it runs if anything is said."""
    annotations = {EXPECTED_DURATION: lasts} if lasts else {}
    pod = a_pod("running-0", gang="running", gpus=gpus, node=node, annotations=annotations)
    put_gang(inventory, a_gang("running"), [pod])


def a_pair_with_a_running_job(*, lasts: str = "1h") -> Inventory:
    """Two nodes of eight GPUs, half of one in use for another hour, and a gang that needs both."""
    inventory = an_inventory(a_node("left"), a_node("right"))
    a_running_job(inventory, "left", 4, lasts=lasts)
    a_job(inventory, "large", 2, 8, A_MINUTE_AGO, lasts="3h")
    return inventory


def placed(inventory: Inventory, config: SchedulerConfig | None = None) -> Mapping[str, str]:
    return placements(a_scheduler(inventory, config=config if config is not None else backfilling()))


def why(inventory: Inventory, name: str, config: SchedulerConfig | None = None) -> str:
    return message_of(a_scheduler(inventory, config=config if config is not None else backfilling()), name)


def message_of(scheduler: Scheduler, name: str) -> str:
    (found,) = [each for each in scheduler.run_cycle().unschedulable if each.gang.name == name]
    return found.message


def test_a_job_that_ends_in_time_passes() -> None:
    """A job that ends before the place of an older gang is free may use that place."""
    inventory = a_pair_with_a_running_job()
    a_job(inventory, "short", 1, 4, JUST_NOW, lasts="59m")
    assert set(placed(inventory)) == {"short-0"}


def test_a_job_that_would_delay_a_gang_waits() -> None:
    """A job that would still run when the older gang's place is free waits behind it."""
    inventory = a_pair_with_a_running_job()
    a_job(inventory, "long", 1, 4, JUST_NOW, lasts="61m")
    a_job(inventory, "silent", 1, 4, JUST_NOW)
    assert placed(inventory) == {}


def test_a_deadline_of_the_pod_is_a_run_time_too() -> None:
    """A pod that Kubernetes ends after activeDeadlineSeconds has ended by then."""
    inventory = a_pair_with_a_running_job()
    a_job(inventory, "short", 1, 4, JUST_NOW, active_deadline_seconds=600)
    assert set(placed(inventory)) == {"short-0"}


def test_nodes_that_the_gang_does_not_need_are_free_to_all() -> None:
    """Only the place of the gang is kept: elsewhere nobody has to end in time."""
    inventory = a_pair_with_a_running_job()
    inventory.apply(a_node("spare", gpus=4))
    a_job(inventory, "long", 1, 4, JUST_NOW, lasts="100h")
    assert placed(inventory) == {"long-0": "spare"}


def test_what_the_gang_leaves_on_its_nodes_may_be_used_for_longer() -> None:
    """Room that is left beside the gang when it starts belongs to anybody, once."""
    inventory = an_inventory(a_node("only"))
    a_running_job(inventory, "only", 4)
    a_job(inventory, "large", 1, 6, A_MINUTE_AGO)
    a_job(inventory, "long", 1, 2, JUST_NOW, lasts="100h")
    a_job(inventory, "longer", 1, 2, NOW, lasts="100h")
    assert set(placed(inventory)) == {"long-0"}


def test_the_place_and_the_time_are_shown() -> None:
    """Whoever waits is told when and where it is expected to start."""
    message = why(a_pair_with_a_running_job(), "large")
    assert (
        "expected to start at 2026-01-01T01:00:00Z on left, right; too few forecasts so far to say how sure that is"
        in message
    )


def test_the_interval_is_shown_once_forecasts_have_come_out() -> None:
    """After enough jobs have started as late as they did, the interval in which such jobs start is told."""
    scheduler = a_scheduler(a_pair_with_a_running_job(), config=backfilling())
    memory = Memory()
    for number in range(40):
        memory.forecasts.made(number, "uid", "default-queue", 86_400.0 * number, 3600.0)
        memory.forecasts.came_out(number, 86_400.0 * number + 3600.0 + 60 * number)
    session = scheduler.open_session()
    session.memory["backfill"] = memory
    session.close()
    (waiting,) = scheduler.run_cycle().unschedulable
    assert "80 % of such jobs start between 2026-01-01T01:0" in waiting.message


def test_what_starts_at_once_is_learned_in_the_same_order_in_every_process() -> None:
    """A replay gives the same history anew: jobs are remembered in the order of the snapshot, not of a set."""
    names = [f"job-{number}" for number in range(20)]
    inventory = an_inventory(a_node("only", gpus=len(names)))
    for name in names:
        put_gang(inventory, a_gang(name), [a_pod(f"{name}-0", gang=name, gpus=1, node="only")])
    memory = a_scheduler(inventory, config=backfilling()).open_session().memory["backfill"]
    assert isinstance(memory, Memory)
    assert [key.name for key in memory.running] == names


def test_without_known_ends_nothing_is_promised_until_the_gang_has_aged() -> None:
    """Where run times are not known others pass, but not once the gang has waited longer than allowed."""
    inventory = a_pair_with_a_running_job(lasts="")
    a_job(inventory, "oldest", 2, 8, TWO_HOURS_AGO)
    a_job(inventory, "small", 1, 4, JUST_NOW)
    assert set(placed(inventory, backfilling(agingSeconds="7201"))) == {"small-0"}
    assert placed(inventory, backfilling(agingSeconds="7200")) == {}
    assert "when they are free is not known" in why(inventory, "oldest", backfilling(agingSeconds="7200"))


def test_a_job_without_a_place_is_told_when_such_jobs_start() -> None:
    """A single pod is told an interval although places are kept for gangs only, until that interval is over."""
    inventory = an_inventory(a_node("only"))
    a_running_job(inventory, "only", 8)
    a_job(inventory, "single", 1, 4, JUST_NOW)
    scheduler = a_scheduler(inventory, config=backfilling(minPods="2"))
    memory = Memory()
    for number in range(40):
        memory.forecasts.made(number, f"uid-{number}", "default-queue", 86_400.0 * number, 3600.0)
        memory.forecasts.came_out(number, 86_400.0 * number + 3600.0 + 60 * number)
    session = scheduler.open_session()
    session.memory["backfill"] = memory
    session.close()
    message = message_of(scheduler, "single")
    assert "no place is kept for it; 80 % of such jobs start between 2026-01-01T01:0" in message


def test_those_behind_are_expected_when_those_before_them_have_room_or_have_ended() -> None:
    """Of jobs that ask for the same, the second starts where the first ended if no other room is there before."""
    inventory = an_inventory(a_node("left"), a_node("right"))
    for name, lasts in (("left", "1h"), ("right", "3h")):
        pod = a_pod(f"{name}-0", gang=name, gpus=8, node=name, annotations={EXPECTED_DURATION: lasts})
        put_gang(inventory, a_gang(name), [pod])
    a_job(inventory, "first", 1, 8, A_MINUTE_AGO, lasts="90m")
    a_job(inventory, "second", 1, 8, JUST_NOW, lasts="90m")
    a_job(inventory, "third", 1, 8, NOW, lasts="90m")
    scheduler = a_scheduler(inventory, config=backfilling(minPods="2"))
    session = scheduler.open_session()
    memory = session.memory["backfill"]
    session.close()
    scheduler.run_cycle()
    assert isinstance(memory, Memory)
    forecasts = [memory.forecasts.of(GangKey("kai", NAMESPACE, name), name) for name in ("first", "second", "third")]
    assert [each and each.expected for each in forecasts] == [3600.0, 2.5 * 3600.0, 3 * 3600.0]


def test_nodes_are_not_kept_where_that_would_leave_more_idle_than_the_gang_has_waited_for() -> None:
    """Beside a job that has run for days, and may run on, others pass although the gang has waited for two hours."""

    def beside(age: timedelta) -> Mapping[str, str]:
        inventory = an_inventory(a_node("left"), a_node("right"))
        for name in ("left", "right"):
            gang = dataclasses.replace(a_gang(name), last_start=NOW - age)
            put_gang(inventory, gang, [a_pod(f"{name}-0", gang=name, gpus=4, node=name)])
        a_job(inventory, "large", 2, 8, TWO_HOURS_AGO)
        a_job(inventory, "small", 1, 4, JUST_NOW)
        return placed(inventory)

    assert beside(timedelta(0)) == {}, "beside jobs that have just started they are kept"
    assert set(beside(timedelta(days=3))) == {"small-0"}


def test_more_may_be_idle_for_a_gang_behind_which_others_wait() -> None:
    """What is kept for it serves those of its queue next that ask for no more, and nobody of another queue."""

    def passes(gpus: int, queue: str = QUEUE) -> bool:
        inventory = an_inventory(a_node("left"), a_node("right"))
        for name in (QUEUE, "other"):
            inventory.put_queue(QueueInfo(name=name, quota=NO_BOUND))
        for name in ("left", "right"):
            gang = dataclasses.replace(a_gang(name), last_start=NOW - timedelta(hours=3))
            put_gang(inventory, gang, [a_pod(f"{name}-0", gang=name, gpus=4, node=name)])
        a_job(inventory, "first", 2, 8, TWO_HOURS_AGO)
        if gpus:
            a_job(inventory, "behind", 2, gpus, TWO_HOURS_AGO + timedelta(minutes=1), queue=queue)
        a_job(inventory, "small", 1, 4, JUST_NOW)
        return set(placed(inventory)) == {"small-0"}

    assert [passes(0), passes(8), passes(5), passes(8, "other")] == [True, False, False, True]


def test_a_gang_that_could_not_start_anyway_makes_no_room_worth_more() -> None:
    """One that lacks pods is not served next, however long it has waited."""

    def passes(behind: Callable[[Inventory], None]) -> bool:
        inventory = an_inventory(a_node("left"), a_node("right"))
        inventory.put_queue(QueueInfo(name=QUEUE, quota=NO_BOUND))
        for name in ("left", "right"):
            gang = dataclasses.replace(a_gang(name), last_start=NOW - timedelta(hours=3))
            put_gang(inventory, gang, [a_pod(f"{name}-0", gang=name, gpus=4, node=name)])
        a_job(inventory, "first", 2, 8, TWO_HOURS_AGO)
        behind(inventory)
        a_job(inventory, "small", 1, 4, JUST_NOW)
        return set(placed(inventory)) == {"small-0"}

    def incomplete(inventory: Inventory) -> None:
        pods = [a_pod(f"behind-{number}", gang="behind", gpus=4) for number in range(2)]
        put_gang(inventory, a_gang("behind", minimum=3, created=NOW - timedelta(days=7)), pods)

    assert passes(lambda inventory: None)
    assert not passes(lambda inventory: a_job(inventory, "behind", 2, 4, NOW - timedelta(days=7)))
    assert passes(incomplete)


def beside_long_jobs(submitted: timedelta, *, priority: int = 50) -> Inventory:
    """Two nodes whose jobs, submitted so long ago, have run for two days, a gang that waits longer, and a small job."""
    inventory = an_inventory(a_node("left"), a_node("right"))
    for name in (QUEUE, "other"):
        inventory.put_queue(QueueInfo(name=name, quota=NO_BOUND))
    for name in ("left", "right"):
        gang = a_gang(name, created=NOW - submitted, priority=priority)
        gang = dataclasses.replace(gang, last_start=NOW - timedelta(days=2))
        put_gang(inventory, gang, [a_pod(f"{name}-0", gang=name, gpus=1, node=name)])
    a_job(inventory, "large", 2, 8, NOW - timedelta(hours=60))
    a_job(inventory, "small", 1, 4, JUST_NOW)
    return inventory


def test_a_gang_that_would_run_by_now_in_strict_order_is_passed_no_more() -> None:
    """Whatever it costs others, nodes are kept for a gang once only jobs that came after it keep it from running."""
    before, after = timedelta(hours=61), timedelta(hours=59)
    assert set(placed(beside_long_jobs(before))) == {"small-0"}, "they came before it, and may run on"
    assert placed(beside_long_jobs(after)) == {}


def test_in_strict_order_older_jobs_that_wait_go_first() -> None:
    """While an older job waits for the same room a gang would not run yet in strict order either."""
    inventory = beside_long_jobs(timedelta(hours=59))
    opted_in = backfilling(queues=QUEUE)
    assert placed(inventory, opted_in) == {}
    a_job(inventory, "older", 1, 8, NOW - timedelta(hours=70), queue="other")
    assert set(placed(inventory, opted_in)) == {"small-0"}


def test_in_strict_order_a_higher_priority_comes_first() -> None:
    """Jobs of a higher priority have not passed a gang, however late they came."""
    after = timedelta(hours=59)
    assert set(placed(beside_long_jobs(after, priority=60))) == {"small-0"}
    assert placed(beside_long_jobs(after, priority=40)) == {}


def test_a_place_is_not_kept_from_a_higher_priority_of_the_same_queue() -> None:
    """A gang was promised idle nodes; a job that comes before it in its queue takes them, one of an equal does not."""
    for priority, bound in ((50, []), (60, ["urgent-0"])):
        inventory = a_pair_with_a_running_job()
        scheduler = a_scheduler(inventory, config=replace(backfilling(), actions=("allocate",)))
        assert not scheduler.run_cycle().binds
        a_job(inventory, "ordinary", 1, 8, JUST_NOW, lasts="61m")
        a_job(inventory, "urgent", 1, 8, JUST_NOW, lasts="61m", priority=priority)
        assert [bind.pod.name for bind in scheduler.run_cycle().binds] == bound


def test_only_the_first_of_a_queue_is_given_a_place_unless_told_otherwise() -> None:
    """EASY: a job may delay the second that waits; with more depth it may not."""
    inventory = an_inventory(a_node("left"), a_node("right"))
    for name, lasts in (("left", "2h"), ("right", "1h")):
        pod = a_pod(f"{name}-0", gang=name, gpus=4, node=name, annotations={EXPECTED_DURATION: lasts})
        put_gang(inventory, a_gang(name), [pod])
    a_job(inventory, "first", 1, 8, A_MINUTE_AGO)
    a_job(inventory, "second", 1, 8, A_MINUTE_AGO + timedelta(seconds=1))
    a_job(inventory, "long", 1, 4, JUST_NOW, lasts="100h")
    assert placed(inventory) == {"long-0": "left"}
    assert placed(inventory, backfilling(depth="2")) == {}
    assert placed(inventory, backfilling(depth="0")) == {}


def test_a_place_is_kept_from_queues_whose_turn_comes_first() -> None:
    """Once a gang was promised a place, a job of a queue that holds less does not take it."""
    inventory = a_pair_with_a_running_job()
    for name in (QUEUE, "other"):
        inventory.put_queue(QueueInfo(name=name, quota=NO_BOUND))
    scheduler = a_scheduler(inventory, config=replace(backfilling(), actions=("allocate",)))
    assert not scheduler.run_cycle().binds
    a_job(inventory, "long", 1, 4, JUST_NOW, lasts="61m", queue="other")
    assert not scheduler.run_cycle().binds
    a_job(inventory, "short", 1, 4, JUST_NOW, lasts="59m", queue="other")
    assert [bind.pod.name for bind in scheduler.run_cycle().binds] == ["short-0"]


def test_who_reclaims_room_on_kept_nodes_gets_it() -> None:
    """A job that had others evicted is placed when they are gone, though a gang was given those nodes."""
    inventory = an_inventory(a_node("left"), a_node("right"))
    for name in (QUEUE, "other"):
        inventory.put_queue(QueueInfo(name=name, quota=Amounts(-1, -1, 8 * GPU)))
    for name in ("left", "right"):
        pod = a_pod(f"{name}-0", gang=name, gpus=8, node=name, annotations={EXPECTED_DURATION: "1h"})
        put_gang(inventory, a_gang(name), [pod])
    a_job(inventory, "large", 2, 8, A_MINUTE_AGO, lasts="1h")
    a_job(inventory, "entitled", 1, 8, JUST_NOW, lasts="3h", queue="other")
    scheduler = a_scheduler(inventory, config=backfilling(minPods="2"))
    (evicted,) = scheduler.run_cycle().evictions
    inventory.cluster.delete_pod(evicted.pod)
    result = scheduler.run_cycle()
    assert [bind.pod.name for bind in result.binds] == ["entitled-0"]
    assert not result.evictions


def test_who_may_reclaim_gets_kept_nodes_that_are_free() -> None:
    """A job whose queue is entitled to room does not wait for a gang that was given it, and nobody has to go."""
    inventory = an_inventory(a_node("left"), a_node("right", labels={"pool": "new"}))
    for name, quota in ((QUEUE, 0), ("other", 8 * GPU)):
        inventory.put_queue(QueueInfo(name=name, quota=Amounts(-1, -1, quota)))
    pod = a_pod("left-0", gang="left", gpus=8, node="left", annotations={EXPECTED_DURATION: "1h"})
    put_gang(inventory, a_gang("left"), [pod])
    a_job(inventory, "large", 2, 8, A_MINUTE_AGO, lasts="1h")
    scheduler = a_scheduler(inventory, config=backfilling(minPods="2"))
    scheduler.run_cycle()
    a_job(inventory, "entitled", 1, 8, JUST_NOW, lasts="3h", queue="other", node_selector={"pool": "new"})
    results = [scheduler.run_cycle() for _ in range(2)]
    assert [result.evictions for result in results] == [[], []]
    assert [[bind.node for bind in result.binds] for result in results] == [[], ["right"]]


def test_a_place_is_brought_forward_when_an_earlier_one_is_there() -> None:
    """Who was promised a place after another has the earlier one when the other is gone."""
    inventory = a_pair_with_a_running_job()
    a_job(inventory, "second", 2, 8, JUST_NOW, lasts="1h")
    scheduler = a_scheduler(inventory, config=backfilling(depth="2"))
    assert f"start at {timestamp(NOW + timedelta(hours=4))}" in message_of(scheduler, "second")
    for number in range(2):
        inventory.cluster.delete_pod(PodKey(NAMESPACE, f"large-{number}"))
    inventory.remove_gang(GangKey("kai", NAMESPACE, "large"))
    assert f"start at {timestamp(NOW + timedelta(hours=1))}" in message_of(scheduler, "second")


def test_queues_opt_in() -> None:
    """Jobs of queues that are not named are given no places."""
    inventory = a_pair_with_a_running_job()
    a_job(inventory, "long", 1, 4, JUST_NOW, lasts="61m")
    assert set(placed(inventory, backfilling(queues="other, another"))) == {"long-0"}
    assert placed(inventory, backfilling(queues="other, default-queue")) == {}


def test_shorter_jobs_come_first_until_others_have_waited_long() -> None:
    """With shortestFirst a shorter job is placed before an older one, until that has waited as long as it will run."""
    inventory = an_inventory(a_node("only", gpus=4))
    a_job(inventory, "older", 1, 4, A_MINUTE_AGO, lasts="2h")
    a_job(inventory, "shorter", 1, 4, JUST_NOW, lasts="1h")
    assert set(placed(inventory)) == {"older-0"}
    assert set(placed(inventory, backfilling(shortestFirst="true"))) == {"shorter-0"}
    a_job(inventory, "oldest", 1, 4, TWO_HOURS_AGO, lasts="2h")
    assert set(placed(inventory, backfilling(shortestFirst="true"))) == {"oldest-0"}


def a_node_with_a_long_job(ran: timedelta) -> tuple[Inventory, Scheduler]:
    """A full node whose job says that it runs ten hours, after it has run for a while, and a job that says a minute."""
    inventory = an_inventory(a_node("only"))
    pod = a_pod("long-0", gang="long", gpus=8, node="only", annotations={EXPECTED_DURATION: "10h"})
    put_gang(inventory, dataclasses.replace(a_gang("long"), last_start=NOW - ran), [pod])
    a_job(inventory, "short", 1, 8, JUST_NOW, lasts="1m")
    return inventory, a_scheduler(inventory, config=backfilling(giveWay="4"))


def test_a_long_job_that_loses_little_gives_way_to_a_short_one() -> None:
    """A job with hours before it that has run ten minutes is preempted for one of a minute, which then has the node."""
    inventory, scheduler = a_node_with_a_long_job(timedelta(minutes=10))
    (evicted,) = scheduler.run_cycle().evictions
    assert evicted.pod.name == "long-0"
    inventory.cluster.delete_pod(evicted.pod)
    assert placements(scheduler) == {"short-0": "only"}


def test_nobody_gives_way_who_loses_much_or_without_being_asked() -> None:
    """Three hours of work are too much for what is left of ten; and without the option nobody goes."""
    _, scheduler = a_node_with_a_long_job(timedelta(hours=3))
    assert not scheduler.run_cycle().evictions
    inventory, _ = a_node_with_a_long_job(timedelta(minutes=10))
    assert not a_scheduler(inventory, config=backfilling()).run_cycle().evictions


def test_who_gave_way_often_is_left_alone() -> None:
    """What a job lost before counts, too, so the same job does not give way for ever."""
    _, scheduler = a_node_with_a_long_job(timedelta(hours=1, minutes=30))
    assert scheduler.run_cycle().evictions, "it still has 8.5 hours before it, more than four times what it loses"
    assert not scheduler.run_cycle().evictions, "as if it had come back: it would lose the same again"


def test_nobody_gives_way_to_a_job_that_will_soon_run_anyway() -> None:
    """A job that finds room in four minutes saves less than the ten minutes of work that another would lose."""
    inventory, scheduler = a_node_with_a_long_job(timedelta(minutes=10))
    inventory.apply(a_node("other"))
    ending = a_pod("ending-0", gang="ending", gpus=8, node="other", annotations={EXPECTED_DURATION: "4m"})
    put_gang(inventory, dataclasses.replace(a_gang("ending"), last_start=NOW), [ending])
    assert not scheduler.run_cycle().evictions


def test_a_job_gives_way_to_a_line_of_short_ones() -> None:
    """Each of twenty saves a few minutes: together more than ten of work, and the time until all of them are gone."""
    inventory, scheduler = a_node_with_a_long_job(timedelta(minutes=10))
    inventory.apply(a_node("other"))
    ending = a_pod("ending-0", gang="ending", gpus=8, node="other", annotations={EXPECTED_DURATION: "4m"})
    put_gang(inventory, dataclasses.replace(a_gang("ending"), last_start=NOW), [ending])
    for number in range(19):
        a_job(inventory, f"waiting-{number}", 1, 8, JUST_NOW, lasts="1m")
    assert [evicted.pod.name for evicted in scheduler.run_cycle().evictions] == ["long-0"]


def test_nobody_is_put_off_for_longer_than_it_has_to_run() -> None:
    """Who would come after thirty jobs of nine hours gives way to none of them, nor to the one of a minute before."""
    inventory, scheduler = a_node_with_a_long_job(timedelta(minutes=1))
    for number in range(30):
        a_job(inventory, f"waiting-{number}", 1, 8, JUST_NOW, lasts="9h")
    assert not scheduler.run_cycle().evictions


def test_the_place_that_a_job_was_given_does_not_make_its_wait_longer() -> None:
    """It finds room in five minutes, where a place is kept for it: less than is lost, five and a half."""
    inventory, scheduler = a_node_with_a_long_job(timedelta(minutes=4, seconds=30))
    inventory.apply(a_node("other"))
    ending = a_pod("ending-0", gang="ending", gpus=8, node="other", annotations={EXPECTED_DURATION: "10m"})
    put_gang(inventory, dataclasses.replace(a_gang("ending"), last_start=NOW - timedelta(minutes=5)), [ending])
    assert not scheduler.run_cycle().evictions


def test_less_may_be_lost_the_more_jobs_wait_where_there_are_no_gpus() -> None:
    """Work of CPUs that is done again delays those who wait for CPUs."""

    def evicted(waiting: int) -> int:
        inventory = an_inventory(a_node("only", gpus=0))
        pod = a_pod("long-0", gang="long", cpu="60", node="only", annotations={EXPECTED_DURATION: "10h"})
        put_gang(inventory, dataclasses.replace(a_gang("long"), last_start=NOW - timedelta(minutes=30)), [pod])
        a_job(inventory, "short", 1, 0, JUST_NOW, lasts="1m", cpu="60")
        for number in range(waiting):
            a_job(inventory, f"waiting-{number}", 1, 0, JUST_NOW, lasts="9h", cpu="50")
        return len(a_scheduler(inventory, config=backfilling(giveWay="4")).run_cycle().evictions)

    assert (evicted(0), evicted(30)) == (1, 0)


def test_less_may_be_lost_the_more_jobs_wait() -> None:
    """Work that is done again delays all who wait for other room: with thirty of them half an hour is too much."""
    inventory, scheduler = a_node_with_a_long_job(timedelta(minutes=30))
    for number in range(30):
        a_job(inventory, f"waiting-{number}", 1, 7, JUST_NOW, lasts="9h")
    assert not scheduler.run_cycle().evictions
    assert a_node_with_a_long_job(timedelta(minutes=30))[1].run_cycle().evictions


def test_only_the_job_that_has_a_place_is_told_so() -> None:
    """Of jobs that are just alike the first is given a place; those refused like it are not told that they have it."""
    inventory = an_inventory(a_node("only"))
    a_running_job(inventory, "only", 8)
    for name in ("first", "second", "third"):
        a_job(inventory, name, 1, 8, A_MINUTE_AGO, lasts="1h")
    refused = a_scheduler(inventory, config=backfilling()).run_cycle().unschedulable
    assert [each.gang.name for each in refused if "a place is kept" in each.message] == ["first"]
    assert all("found no room" in each.message for each in refused)


def test_no_node_is_kept_that_pods_of_others_will_never_leave() -> None:
    """A gang that fits beside no pod of another scheduler keeps nothing from those who could run there meanwhile."""
    inventory = an_inventory(a_node("left"), a_node("right"))
    foreign = a_pod("monitoring", cpu="8", node="left")
    inventory.apply(replace(foreign, spec=replace(foreign.spec, scheduler_name="default-scheduler")))
    a_job(inventory, "gang", 2, 8, TWO_HOURS_AGO, cpu="60")
    a_job(inventory, "single", 1, 8, A_MINUTE_AGO)
    assert set(placed(inventory, backfilling(shortestFirst="true", minPods="2"))) == {"single-0"}
    reserving = replace(SchedulerConfig(), plugins=(*SchedulerConfig().plugins, PluginOption("reservation")))
    assert set(placed(inventory, reserving)) == {"single-0"}


def test_a_bounded_number_of_places_is_kept() -> None:
    """With depth 0 all jobs that wait are given places, up to a number that a cycle has time for."""
    inventory = an_inventory(a_node("only"))
    a_running_job(inventory, "only", 8)
    for number in range(150):
        a_job(inventory, f"job-{number:03d}", 1, 8, A_MINUTE_AGO, lasts="1h")
    refused = a_scheduler(inventory, config=backfilling(depth="0")).run_cycle().unschedulable
    assert sum("a place is kept" in each.message for each in refused) == 128


def test_run_times_beyond_all_dates_harm_nobody() -> None:
    """Jobs that may run for 68 years follow each other into the far future, of which nothing is told."""
    inventory = an_inventory(a_node("only"))
    a_running_job(inventory, "only", 8)
    for number in range(120):
        a_job(inventory, f"job-{number:03d}", 1, 8, A_MINUTE_AGO, active_deadline_seconds=2**31 - 1)
    result = a_scheduler(inventory, config=backfilling(depth="0")).run_cycle()
    assert not result.failures
    assert sum("a place is kept" in each.message for each in result.unschedulable) == 1
