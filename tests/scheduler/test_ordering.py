"""Orders of plugins: what they are asked, what failing ones count as, and what they cost."""

from spinney.scheduler import Plugin, PodInfo, Session
from tests.scheduler.building import a_gang, a_node, a_pod, a_scheduler, a_session, an_inventory, placements, put_gang

LEADER = "example.com/leader"


class LeadersFirst(Plugin):
    """Pods with a label go first; says which label it reads, and counts what it is asked."""

    name = "leaders-first"
    asked = 0

    def on_session_open(self, session: Session) -> None:
        """Register the order."""
        LeadersFirst.asked = 0
        session.add_task_order_key(self._rank, labels=(LEADER,))

    def _rank(self, task: PodInfo) -> bool:
        LeadersFirst.asked += 1
        return LEADER not in task.labels


class Lost(Plugin):
    """Its keys cannot be had."""

    name = "lost"

    def on_session_open(self, session: Session) -> None:
        """Register orders by keys that fail."""
        session.add_task_order_key(lambda task: task.labels["no-such-label"])
        session.add_job_order_key(lambda job: 1 // (len(job.name) - len("job0")))


def test_an_order_by_labels_is_asked_where_a_pod_has_them() -> None:
    """An order that says which labels it reads decides where a pod has one, and is not asked about other jobs."""
    inventory = an_inventory(a_node("n0", gpus=1))
    put_gang(
        inventory,
        a_gang("plain", minimum=2),
        (a_pod(f"plain-{number}", gang="plain", gpus=1) for number in range(2)),
    )
    session = a_session(inventory, LeadersFirst)
    for job in session.jobs:
        assert [task.name for task in job.tasks] == ["plain-0", "plain-1"]
    assert LeadersFirst.asked == 0
    put_gang(
        inventory,
        a_gang("led", minimum=1),
        (a_pod(f"led-{number}", gang="led", gpus=1, labels={LEADER: ""} if number else {}) for number in range(2)),
    )
    assert placements(a_scheduler(inventory, LeadersFirst)) == {"led-1": "n0"}
    assert LeadersFirst.asked == 2


def test_a_key_that_fails_counts_as_equal() -> None:
    """Where the key of a job or task cannot be had, the next order decides: age, then uid."""
    inventory = an_inventory(a_node("n0", gpus=3))
    for name in ("job1", "job0", "job"):
        pods = (a_pod(f"{name}-{number}", gang=name, gpus=1) for number in range(2))
        put_gang(inventory, a_gang(name, minimum=1), pods)
    assert sorted(placements(a_scheduler(inventory, Lost))) == ["job-0", "job0-0", "job1-0"]


def test_orders_are_measured_per_plugin() -> None:
    """What a plugin spends on ordering jobs and tasks is in the result, like any other hook."""
    inventory = an_inventory(a_node("n0"))
    pods = (a_pod(f"led-{number}", gang="led", gpus=1, labels={LEADER: ""}) for number in range(2))
    put_gang(inventory, a_gang("led", minimum=2), pods)
    seconds = a_scheduler(inventory, LeadersFirst).run_cycle().seconds
    assert ("leaders-first", "task_order") in seconds
    assert ("priority", "job_order") in seconds


def test_the_choice_of_devices_is_measured_per_plugin() -> None:
    """What a plugin spends on scoring GPUs to be shared is in the result too."""
    inventory = an_inventory(a_node("n0"))
    pods = [a_pod("half", gang="half", annotations={"gpu-fraction": "0.5"})]
    put_gang(inventory, a_gang("half"), pods)
    assert any(hook == "gpu_order" for _, hook in a_scheduler(inventory).run_cycle().seconds)
