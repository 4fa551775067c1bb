"""A search for victims that finds a place for which nobody has to go."""

from spinney.scheduler import Plugin, Session
from spinney.scheduler.fairshare import GPU, Amounts, QueueInfo
from tests.scheduler.building import a_gang, a_node, a_pod, a_scheduler, an_inventory, put_gang


class OnlyByReclaim(Plugin):
    """Lets pods on the new node only while room is reclaimed."""

    name = "onlybyreclaim"

    def on_session_open(self, session: Session) -> None:
        session.add_predicate_fn(
            lambda _task, _job, node: node.name != "new" or session.action == "reclaim", stateful=True
        )


def test_a_place_that_is_never_taken_up_is_not_given_every_second() -> None:
    """A rule may refuse later what it let pass in the search: the job is told so, and no cycle follows for it."""
    inventory = an_inventory(a_node("old"), a_node("new", labels={"pool": "new"}))
    for name, quota in (("giving", 0), ("taking", 8 * GPU)):
        inventory.put_queue(QueueInfo(name=name, quota=Amounts(-1, -1, quota)))
    put_gang(inventory, a_gang("runs", queue="giving"), [a_pod("runs-0", gang="runs", gpus=8, node="old")])
    waiting = a_pod("waits-0", gang="waits", gpus=8, node_selector={"pool": "new"})
    put_gang(inventory, a_gang("waits", queue="taking"), [waiting])
    scheduler = a_scheduler(inventory, OnlyByReclaim)
    first, second = scheduler.run_cycle(), scheduler.run_cycle()
    assert [pipeline.node for pipeline in first.pipelines] == ["new"]
    assert first.next_moment is not None
    assert not second.pipelines
    assert second.next_moment is None
    (told,) = second.unschedulable
    assert "the job was given a place for which nobody has to go, and did not come to it" in str(told)


def test_who_is_given_what_the_victims_of_another_leave_keeps_it_until_they_go() -> None:
    """Evictions may take longer than a cycle: the job is promised the same place each time, and nobody else goes."""
    inventory = an_inventory(a_node("n0"), a_node("n1"))
    for name, priority, node in (("large", 40, "n0"), ("other", 45, "n1")):
        put_gang(inventory, a_gang(name, priority=priority), [a_pod(f"{name}-0", gang=name, gpus=8, node=node)])
    for name in ("first", "second"):
        put_gang(inventory, a_gang(name, priority=60), [a_pod(f"{name}-0", gang=name, gpus=4)])
    scheduler = a_scheduler(inventory)
    for _ in range(4):
        result = scheduler.run_cycle()
        assert [eviction.pod.name for eviction in result.evictions] == ["large-0"]
        assert {pipeline.gang.name for pipeline in result.pipelines} == {"first", "second"}
        assert not result.unschedulable
