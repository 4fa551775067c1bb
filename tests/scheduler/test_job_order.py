"""Whose turn it is: queues by their order, jobs by theirs."""

from collections.abc import Sequence
from typing import Any

from spinney.scheduler.evaluation.job_order import JobOrder
from spinney.scheduler.fairshare import QueueInfo, QueueTree
from spinney.scheduler.framework.extension_points import QueueTurn
from spinney.scheduler.framework.jobs import PodGroupInfo
from tests.scheduler.building import a_gang, a_pod, a_session, an_inventory, put_gang


class ByHolding:
    """Orders queues by how many jobs they were given, jobs by name."""

    def __init__(self, tree: QueueTree) -> None:
        self.queues = tree
        self.given: dict[str, int] = {}

    def job_key(self, job: PodGroupInfo) -> Any:
        """Order by name."""
        return job.name

    def job_keys(self, jobs: Sequence[PodGroupInfo]) -> list[Any]:
        """Order by name."""
        return list(map(self.job_key, jobs))

    def compare_queues(self, left: QueueTurn, right: QueueTurn) -> int:
        """Let the queue that was given less go first."""

        def held(turn: QueueTurn) -> tuple[int, str]:
            return self.given.get(turn.queue.name, 0) - len(turn.victims), turn.queue.name

        return (held(left) > held(right)) - (held(left) < held(right))

    def job_order_version(self) -> int:
        """Nothing changes but what the queues were given, which is looked at again anyway."""
        return 0

    def job_order_is_fixed(self) -> bool:
        """Nor the order of jobs."""
        return True

    def give(self, queue: str) -> None:
        """Count a job for a queue and its parent."""
        for name in (queue, self.queues[queue].parent):
            if name is not None:
                self.given[name] = self.given.get(name, 0) + 1


TREE = QueueTree(
    [
        QueueInfo(name="x"),
        QueueInfo(name="y"),
        QueueInfo(name="x1", parent="x"),
        QueueInfo(name="x2", parent="x"),
        QueueInfo(name="y1", parent="y"),
    ]
)


def some_jobs(**counts: int) -> list[PodGroupInfo]:
    """Return jobs named after their queues."""
    inventory = an_inventory()
    for queue, count in counts.items():
        for number in range(count):
            name = f"{queue}-{number}"
            put_gang(inventory, a_gang(name, queue=queue), [a_pod(name, gang=name)])
    return list(a_session(inventory).jobs)


def drained(orders: ByHolding, order: JobOrder) -> list[str]:
    """Return the names of jobs in the order they come, counting each for its queue."""
    names = []
    while order:
        job = order.pop()
        orders.give(job.queue)
        names.append(job.name)
    return names


def test_jobs_are_certain_to_come_next_where_no_other_queue_has_any() -> None:
    """Those of the only queue come in order, and may be skipped; with two queues nothing is certain."""
    order = JobOrder(ByHolding(TREE), some_jobs(x1=4))
    assert [job.name for job in order.upcoming(3)] == ["x1-0", "x1-1", "x1-2"]
    order.skip(2)
    assert (len(order), order.pop().name, order.pop().name, len(order)) == (2, "x1-2", "x1-3", 0)
    assert not order.upcoming(3)
    assert not JobOrder(ByHolding(TREE), some_jobs(x1=2, x2=1)).upcoming(3)


def test_queues_take_turns_at_every_level() -> None:
    """Top-level queues alternate, and so do the children of one queue."""
    orders = ByHolding(TREE)
    order = JobOrder(orders, some_jobs(x1=2, x2=2, y1=3))

    assert drained(orders, order) == ["x1-0", "y1-0", "x2-0", "y1-1", "x1-1", "y1-2", "x2-1"]


def test_a_job_put_back_waits_for_its_turn() -> None:
    """A job that grows step by step lines up again behind others."""
    orders = ByHolding(TREE)
    order = JobOrder(orders, some_jobs(x1=1, y1=2))
    first = order.pop()
    orders.give(first.queue)
    order.push(first)

    assert len(order) == 3
    assert drained(orders, order)[0] == "y1-0"


def test_an_emptied_queue_may_fill_again() -> None:
    """A queue without jobs is no longer asked, and is again once it has one."""
    orders = ByHolding(TREE)
    (job,) = some_jobs(x1=1)
    order = JobOrder(orders, [job])
    assert order.pop() is job
    assert not order
    order.push(job)
    assert order.pop() is job


def test_each_of_many_queues_has_its_turn_without_asking_about_all_others() -> None:
    """Whoever may name queues names thousands: one that has nothing more to give is taken out at the front."""

    class Counting(ByHolding):
        compared = 0

        def compare_queues(self, left: QueueTurn, right: QueueTurn) -> int:
            """Count and compare."""
            self.compared += 1
            return super().compare_queues(left, right)

    names = [f"q{number:03d}" for number in range(200)]
    orders = Counting(QueueTree(QueueInfo(name=name) for name in names))
    order = JobOrder(orders, some_jobs(**dict.fromkeys(names, 1)))
    assert drained(orders, order) == [f"{name}-0" for name in names]
    assert orders.compared < 20 * len(names)
