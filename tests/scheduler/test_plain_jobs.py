"""Jobs whose pods all wait and ask for the same end up exactly where they would, had each been tried as any other."""

from collections.abc import Iterable
from typing import Any, ClassVar, NamedTuple
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from spinney.api.affinity import Affinity, PodAffinity, PodAffinityTerm
from spinney.api.core import Pod
from spinney.api.selectors import LabelSelector
from spinney.cluster.statuses import PodStatus
from spinney.gangs.tree import TopologyConstraintInfo
from spinney.scheduler.config import SchedulerConfig
from spinney.scheduler.evaluation.node_rules import Candidates, NodeRules
from spinney.scheduler.fairshare import GPU, Amounts, QueueInfo
from spinney.scheduler.framework.events import BatchEvent, EventHandler
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.nodes import NodeInfo
from spinney.scheduler.framework.plugin import Plugin
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import PodInfo
from spinney.scheduler.intake.inventory import Inventory
from spinney.scheduler.placement.placing import place_job
from spinney.scheduler.placement.plain_jobs import PlainJobs
from spinney.scheduler.topology.levels import TopologyLevels
from tests.examples import examples
from tests.scheduler.building import RACK, ZONE, a_gang, a_node, a_pod, a_scheduler, an_inventory, put_gang, put_job

CONSTRAINTS = (
    None,
    None,
    TopologyConstraintInfo("t", preferred=RACK),
    TopologyConstraintInfo("t", required=ZONE, preferred=RACK),
    TopologyConstraintInfo("t", required=RACK),
)


class Streak(NamedTuple):
    """Jobs that are alike, one after the other."""

    jobs: int
    pods: int
    gpus: int
    constraint: int
    queue: int
    releasing: bool
    shares: bool
    avoided: bool
    """Whether its pods have the label that pods on some nodes refuse."""


streaks = st.lists(
    st.builds(
        Streak,
        st.integers(1, 6),
        st.sampled_from([1, 1, 2, 3]),
        st.integers(0, 2),
        st.integers(0, len(CONSTRAINTS) - 1),
        st.integers(0, 2),
        st.booleans(),
        st.booleans(),
        st.booleans(),
    ),
    min_size=1,
    max_size=6,
)
hermits = st.sets(st.integers(0, 8), max_size=3)
"""Nodes with a pod that refuses others by a label."""
clusters = st.lists(st.integers(1, 5), min_size=2, max_size=9)


def a_hermit(name: str, node: str) -> Pod:
    """Return a running pod that refuses pods with a label in its rack."""
    term = PodAffinityTerm(topology_key=RACK, label_selector=LabelSelector(match_labels={"kind": "loud"}))
    apart = PodAffinity(required_during_scheduling_ignored_during_execution=(term,))
    return a_pod(name, node=node, affinity=Affinity(pod_anti_affinity=apart))


def a_world(nodes: list[int], work: list[Streak], hermits_on: Iterable[int] = ()) -> Inventory:
    """Return nodes in racks and zones, three queues of which one is limited, and jobs in streaks."""
    inventory = an_inventory(
        *(a_node(f"n{i}", gpus=gpus, labels={RACK: f"r{i // 2}", ZONE: f"z{i // 4}"}) for i, gpus in enumerate(nodes))
    )
    inventory.put_topology(TopologyLevels("t", (ZONE, RACK)))
    inventory.put_queue(QueueInfo(name="default-queue"))
    inventory.put_queue(QueueInfo(name="q0", quota=Amounts(gpu=4 * GPU)))
    inventory.put_queue(QueueInfo(name="q1", limit=Amounts(gpu=5 * GPU)))
    inventory.put_queue(QueueInfo(name="q2", parent="q0"))
    inventory.put_queue(QueueInfo(name="q3", parent="q0"))
    for place in sorted(hermits_on):
        inventory.apply(a_hermit(f"hermit-{place}", f"n{place % len(nodes)}"))
    for number, streak in enumerate(work):
        labels = {"kind": "loud" if streak.avoided else "quiet"}
        if streak.releasing:
            inventory.apply(a_pod(f"old-{number}", gpus=1, node=f"n{number % len(nodes)}", terminating=True))
        for job in range(streak.jobs):
            name = f"job-{number}-{job}"
            queue = ("default-queue", "q1", "q2")[streak.queue]
            gang = a_gang(name, minimum=streak.pods, queue=queue, topology=CONSTRAINTS[streak.constraint])
            asked: dict[str, Any] = {"gpus": streak.gpus}
            if streak.shares:
                asked = {"annotations": {"gpu-fraction": f"0.{streak.gpus + 3}"}}
            pods = (a_pod(f"{name}-{each}", gang=name, labels=labels, **asked) for each in range(streak.pods))
            put_gang(inventory, gang, pods)
    return inventory


def decided(inventory: Inventory) -> dict[str, object]:
    """Return everything that a cycle leaves behind."""
    scheduler = a_scheduler(inventory, config=SchedulerConfig(explain=False))
    session = scheduler.open_session()
    scheduler.run_actions(session)
    groups: dict[str, int] = {}
    """Shared devices by their made-up ids, in the order in which they are used."""
    return {
        "binds": [
            (each.pod, each.node, each.gang, [groups.setdefault(group, len(groups)) for group in each.gpu_groups])
            for each in session.binds
        ],
        "promises": session.pipelines,
        "evictions": session.evictions,
        "started": session.started,
        "refused": {key: [error.message for error in errors] for key, errors in session.fit_errors.items()},
        "held": {queue.name: session.ask.queue_allocated(queue.name) for queue in session.queues.queues},
        "idle": session.nodes.table.idle.tolist(),
        "pods": [sorted(str(pod.key) for pod in node.pods) for node in session.nodes.all],
        "tasks": [
            (job.name, job.pending, job.gang_satisfied, task.name, task.status, task.node_name, len(task.gpu_groups))
            for job in session.jobs
            for task in job.tasks
        ],
    }


@settings(max_examples=examples(40), deadline=None)
@given(clusters, streaks, hermits)
def test_making_no_tasks_changes_nothing(nodes: list[int], work: list[Streak], hermits_on: set[int]) -> None:
    """Binds, their order, refusals, books and tasks are those of trying every job as any other."""
    quick = decided(a_world(nodes, work, hermits_on))
    with patch.object(PlainJobs, "place", lambda self, job: ()):
        assert quick == decided(a_world(nodes, work, hermits_on))


def ranked(inventory: Inventory) -> list[str]:
    """Run a cycle; return the jobs for which nodes were ranked."""
    names = []
    candidates = NodeRules.candidates

    def noted(rules: NodeRules, task: PodInfo, *args: Any) -> Candidates:
        names.append(task.job.name)
        return candidates(rules, task, *args)

    with patch.object(NodeRules, "candidates", noted):
        a_scheduler(inventory, config=SchedulerConfig(explain=False, actions=("allocate",))).run_cycle()
    return names


def tried(inventory: Inventory, *plugins: type[Plugin]) -> list[str]:
    """Run a cycle; return the jobs that were tried as any other."""
    with patch("spinney.scheduler.actions.allocate.place_job", wraps=place_job) as trying:
        a_scheduler(inventory, *plugins).run_cycle()
        return [call.args[2].name for call in trying.call_args_list]


def test_nodes_are_ranked_for_the_first_of_alike_jobs_only() -> None:
    """Those that follow go on where it left off."""
    inventory = an_inventory(*(a_node(f"n{i}", gpus=8) for i in range(3)))
    for number in range(3):
        put_job(inventory, f"job{number}", 2)

    assert ranked(inventory) == ["job0"]


def test_only_jobs_that_rules_of_placed_pods_mean_are_tried_as_any_other() -> None:
    """A pod that refuses a label has pods with that label looked at one by one, and nobody else."""
    inventory = an_inventory(*(a_node(f"n{i}", gpus=8) for i in range(3)))
    inventory.apply(a_hermit("hermit", "n0"))
    for name, kind in (("job0", "quiet"), ("job1", "loud"), ("job2", "quiet")):
        pods = (a_pod(f"{name}-{each}", gang=name, gpus=1, labels={"kind": kind}) for each in range(2))
        put_gang(inventory, a_gang(name, minimum=2), pods)

    assert tried(inventory) == ["job1"]


def test_a_job_that_placed_pods_refuse_stands_for_no_other() -> None:
    """Where one is refused for its label, another that requests the same without the label finds its place."""
    inventory = an_inventory(a_node("n0", gpus=8, labels={RACK: "r0"}))
    inventory.apply(a_hermit("hermit", "n0"))
    for name, kind in (("job0", "loud"), ("job1", "quiet")):
        put_gang(inventory, a_gang(name), [a_pod(name, gang=name, gpus=1, labels={"kind": kind})])

    result = a_scheduler(inventory).run_cycle()

    assert [bind.pod.name for bind in result.binds] == ["job1"]


def test_alike_jobs_fill_one_domain_after_the_other() -> None:
    """Nodes are ranked anew for jobs that need a rack when the rack of those before them is full."""
    inventory = an_inventory(*(a_node(f"n{i}", gpus=2, labels={RACK: f"r{i // 2}"}) for i in range(4)))
    inventory.put_topology(TopologyLevels("t", (RACK,)))
    for number in range(5):
        name = f"job{number}"
        gang = a_gang(name, minimum=2, topology=TopologyConstraintInfo("t", required=RACK))
        put_gang(inventory, gang, (a_pod(f"{name}-{each}", gang=name, gpus=1) for each in range(2)))

    assert ranked(inventory) == ["job0", "job2"]


class Refuses(Plugin):
    """Refuses pods before nodes are looked at, without promising anything about the next."""

    name = "refuses"

    def on_session_open(self, session: Session) -> None:
        """Refuse every second pod."""
        self._asked = 0
        session.add_pre_predicate_fn(self._refuses, stateful=True)

    def _refuses(self, task: object, job: object) -> bool:
        del task, job
        self._asked += 1
        return self._asked % 2 == 1


def test_a_plugin_that_promises_nothing_is_asked_about_every_job() -> None:
    """What it says about one job is not taken for what it would say about the next."""
    inventory = an_inventory(a_node("n", gpus=8))
    for number in range(4):
        put_job(inventory, f"job{number}", 1)

    assert tried(inventory, Refuses) == [f"job{number}" for number in range(4)]


class Listens(Plugin):
    """Looks at tasks when it hears of them."""

    name = "listens"
    treats_alike = True
    heard: ClassVar[list[tuple[str, PodStatus, str, bool]]] = []

    def on_session_open(self, session: Session) -> None:
        """Hear of many at once."""
        self.heard.clear()
        session.add_event_handler(EventHandler(allocate_many=self._hear))

    def _hear(self, event: BatchEvent) -> None:
        self.heard.extend((task.name, task.status, task.node_name, task.virtual) for task in event.tasks)


class Counts(Plugin):
    """Hears of placements after five pods at the latest."""

    name = "counts"
    treats_alike = True
    heard: ClassVar[list[tuple[str, list[str]]]] = []

    def on_session_open(self, session: Session) -> None:
        """Say how far ahead it need not hear."""
        self.heard.clear()
        self._left = 5
        session.add_event_handler(EventHandler(allocate_many=self._hear, ahead=lambda request: self._left))

    def _hear(self, event: BatchEvent) -> None:
        self._left = self._left - event.count if self._left > event.count else 5
        self.heard.append((event.job.name, [task.name for task in event.tasks]))


def test_jobs_that_are_alike_are_announced_together_as_far_ahead_as_handlers_say() -> None:
    """The job that brings the last of so many pods is the last of them; the first, which others follow, is alone."""
    inventory = an_inventory(a_node("n", gpus=16))
    for number in range(4):
        put_job(inventory, f"job{number}", 2)
    a_scheduler(inventory, Counts).run_cycle()

    def pods(*jobs: int) -> list[str]:
        return [f"job{number}-{pod}" for number in jobs for pod in range(2)]

    assert Counts.heard == [("job0", pods(0)), ("job1", pods(1, 2)), ("job3", pods(3))]


class Watches(Plugin):
    """Has to be asked about every placement; looks at what the queue holds if told to."""

    name = "watches"
    looks: ClassVar[bool] = False
    seen: ClassVar[list[Amounts | None]] = []

    def on_session_open(self, session: Session) -> None:
        """Register a predicate."""
        self.seen.clear()
        self._session = session
        session.add_predicate_fn(self._may_go, stateful=True)

    def _may_go(self, task: PodInfo, job: PodGroupInfo, node: NodeInfo) -> bool:
        if self.looks:
            self.seen.append(self._session.ask.queue_allocated(job.queue))
        return True


def test_pods_that_are_placed_one_by_one_are_announced_together_as_far_ahead_as_handlers_say() -> None:
    """A predicate that is asked about every placement does not have handlers called more often than they need."""
    inventory = an_inventory(a_node("n", gpus=16))
    put_job(inventory, "job", 7)
    a_scheduler(inventory, Watches, Counts).run_cycle()

    pods = [f"job-{number}" for number in range(7)]
    assert Counts.heard == [("job", pods[:5]), ("job", pods[5:])]


def test_a_predicate_that_is_asked_about_every_placement_sees_what_was_placed_before() -> None:
    """What a queue holds is up to date at each question, though it is counted in larger steps."""
    inventory = an_inventory(a_node("n", gpus=16))
    put_job(inventory, "job", 4)
    with patch.object(Watches, "looks", True):
        a_scheduler(inventory, Watches).run_cycle()

    assert [held.gpu // GPU for held in Watches.seen if held is not None] == [0, 1, 2, 3]


def test_handlers_see_the_tasks_as_they_are_placed() -> None:
    """Tasks that nobody had looked at are there for a handler, given a node but not bound yet."""
    inventory = an_inventory(a_node("n", gpus=8))
    for number in range(2):
        put_job(inventory, f"job{number}", 2)
    scheduler = a_scheduler(inventory, Listens)
    session = scheduler.open_session()
    scheduler.run_actions(session)

    names = [f"job{number}-{pod}" for number in range(2) for pod in range(2)]
    assert Listens.heard == [(name, PodStatus.ALLOCATED, "n", True) for name in names]
    assert [task.status for job in session.jobs for task in job.tasks] == [PodStatus.BINDING] * 4
