"""Random plugins over every extension point, written as somebody would who has only read the first page.

Each behaviour registers a few functions. Some read labels or names, some what is on a node or has become of a job, some
keep count in event handlers, some change their own state when they are asked, some draw lots, some fail. No flag is set
unless the behaviour is about the flag. Scores are multiples of a quarter, so that sums are exact.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from random import Random

import numpy as np

from spinney.cluster.statuses import ACTIVE_ALLOCATED
from spinney.scheduler import (
    CapacityVerdict,
    DoesNotFit,
    Event,
    EventHandler,
    NodeInfo,
    NodeSet,
    Plugin,
    PodGroupInfo,
    PodInfo,
    Scenario,
    Scores,
    Session,
)
from spinney.scheduler.framework.extension_points import QueueTurn
from tests.scheduler.building import RACK, ZONE

Behaviour = Callable[[Session, Random], None]
MOODS: dict[str, int] = {}
"""A global that some of the plugins write to."""


def number_of(name: str) -> int:
    return sum(ord(letter) for letter in name)


class Counting:
    """What was placed so far, kept by event handlers."""

    def __init__(self, session: Session, key: Callable[[PodInfo], str]) -> None:
        self.pods: Counter[str] = Counter()
        self._key = key
        session.add_event_handler(EventHandler(allocate=self._placed, deallocate=self._taken))

    def _placed(self, event: Event) -> None:
        self.pods[self._key(event.task)] += 1

    def _taken(self, event: Event) -> None:
        self.pods[self._key(event.task)] -= 1


# -- predicates --------------------------------------------------------------------------------------------------------


def leaders_on_new_nodes(session: Session, chance: Random) -> None:
    """A rule about the label of a pod and the label of a node."""
    pool = chance.choice(("old", "new"))

    def predicate(task: PodInfo, job: PodGroupInfo, node: NodeInfo) -> str | None:
        if task.labels.get("role") == "leader" and node.labels.get("pool") == pool:
            return f"leader {task.name} may not be on {node.name}"
        return None

    session.add_predicate_fn(predicate)


def names_by_rack(session: Session, chance: Random) -> None:
    """A rule about names."""
    odd = chance.randrange(2)
    session.add_predicate_fn(lambda task, job, node: number_of(task.name) % 2 == odd or node.node.labels[RACK] != "r")


def names_of_both(session: Session, chance: Random) -> None:
    """A rule about the name of the pod and the name of the node."""
    modulus = chance.randint(3, 5)
    session.add_predicate_fn(lambda task, job, node: number_of(task.name + node.name) % modulus != 0)


def at_most_in_namespace(session: Session, chance: Random) -> None:
    """The limit of the documentation, as a predicate."""
    counting, most = Counting(session, lambda task: task.namespace), chance.randint(1, 4)

    def predicate(task: PodInfo, job: PodGroupInfo, node: NodeInfo) -> bool:
        return counting.pods[task.namespace] < most

    session.add_predicate_fn(predicate)


def at_most_in_namespace_before(session: Session, chance: Random) -> None:
    """The same as a pre-predicate, counting in a closure."""
    most = chance.randint(1, 4)
    counts: defaultdict[str, int] = defaultdict(int)

    def placed(event: Event) -> None:
        counts[event.task.namespace] += 1

    def taken(event: Event) -> None:
        counts[event.task.namespace] -= 1

    session.add_event_handler(EventHandler(allocate=placed, deallocate=taken))
    session.add_pre_predicate_fn(lambda task, job: counts[task.namespace] < most)


def at_most_in_rack(session: Session, chance: Random) -> None:
    """A limit per rack, counted in a variable of the closure; it may say that it must be asked every time."""
    most, placed = chance.randint(1, 3), 0
    rack = chance.choice("rst")

    def count(event: Event, step: int) -> None:
        nonlocal placed
        if session.node(event.task.node_name).labels[RACK] == rack:
            placed += step

    session.add_event_handler(
        EventHandler(allocate=lambda event: count(event, 1), deallocate=lambda event: count(event, -1))
    )
    session.add_predicate_fn(
        lambda task, job, node: node.labels[RACK] != rack or placed < most, stateful=chance.random() < 0.5
    )


def by_use(session: Session, chance: Random) -> None:
    """A rule about what is on the node, which may begin to hold as the node fills."""
    wanted = chance.randrange(3)

    def predicate(task: PodInfo, job: PodGroupInfo, node: NodeInfo) -> None:
        if node.idle_gpus == wanted and task.requires_gpu:
            raise DoesNotFit(f"{node.name} has {wanted} idle")

    session.add_predicate_fn(predicate)
    session.add_predicate_fn(lambda task, job, node: node.used.get("cpu", 0) < 3000 or task.labels["team"] == "u")


def by_pods(session: Session, chance: Random) -> None:
    """A rule about the pods on the node."""
    most = chance.randint(1, 3)
    session.add_predicate_fn(lambda task, job, node: len(list(node.pods)) < most, stateful=chance.random() < 0.5)


def by_own_job(session: Session, chance: Random) -> None:
    """A rule about where the other pods of the job are."""
    most = chance.randint(1, 2)

    def predicate(task: PodInfo, job: PodGroupInfo, node: NodeInfo) -> bool:
        return sum(each.node_name == node.name for each in job.tasks if each is not task) < most

    session.add_predicate_fn(predicate)


def every_third_question(session: Session, chance: Random) -> None:
    """A rule that counts how often it is asked."""
    asked, period = 0, chance.randint(2, 4)

    def predicate(task: PodInfo, job: PodGroupInfo, node: NodeInfo) -> bool:
        nonlocal asked
        asked += 1
        return asked % period != 0

    session.add_predicate_fn(predicate)


def by_lot(session: Session, chance: Random) -> None:
    """A rule that draws lots."""
    lots = Random(chance.random())
    session.add_predicate_fn(lambda task, job, node: lots.random() < 0.7)
    session.add_node_order_fn(lambda task, node: float(lots.randrange(4)))
    session.add_pre_predicate_fn(lambda task, job: lots.random() < 0.9)


def by_mood(session: Session, chance: Random) -> None:
    """A rule that reads what another hook writes, for each job."""
    mood = 0

    def begin(job: PodGroupInfo) -> None:
        nonlocal mood
        mood += 1

    session.add_pre_job_allocation_fn(begin)
    session.add_predicate_fn(lambda task, job, node: (mood + number_of(node.name)) % 3 != 0)


def by_global_mood(session: Session, chance: Random) -> None:
    """A rule that reads a global which a pre-predicate writes."""
    MOODS.clear()

    def remember(task: PodInfo, job: PodGroupInfo) -> None:
        MOODS[job.name] = MOODS.get(job.name, 0) + 1

    session.add_pre_predicate_fn(remember)
    session.add_predicate_fn(lambda task, job, node: MOODS.get(job.name, 0) % 3 != 2 or node.labels[ZONE] == "x")


def fails_for_some(session: Session, chance: Random) -> None:
    """A rule that fails for some pods and nodes."""
    session.add_predicate_fn(lambda task, job, node: bool(1 // (number_of(task.name + node.name) % 4)) or True)


def in_columns(session: Session, chance: Random) -> None:
    """Rules in columns, without promises and with those that are true."""
    pool = chance.choice(("old", "new"))

    def mask(task: PodInfo, job: PodGroupInfo, nodes: NodeSet) -> np.ndarray:
        if task.labels.get("role") != "leader":
            return np.ones(len(nodes), dtype=np.bool_)
        return ~nodes.labelled("pool", pool)

    def score(task: PodInfo, job: PodGroupInfo, nodes: NodeSet) -> Scores:
        return (nodes.used("nvidia.com/gpu") % 3 * (1 + number_of(task.name) % 2)).astype(np.float64)

    session.add_predicate_columns(mask)
    session.add_node_order_columns(score)
    session.add_node_order_columns(
        lambda task, job, nodes: np.where(nodes.labelled(RACK, "s"), 2.0, 0.0), per_job=False, reads_usage=False
    )


def for_some(session: Session, chance: Random) -> None:
    """Rules that apply to some pods of a gang."""
    session.add_predicate_fn(
        lambda task, job, node: node.labels["pool"] == "new", applies_to=lambda task: task.labels.get("team") == "u"
    )
    session.add_node_order_columns(
        lambda task, job, nodes: np.where(nodes.labelled(ZONE, "y"), 8.0, 0.0),
        per_job=False,
        applies_to=lambda task: task.labels.get("role") == "leader",
    )


def by_job(session: Session, chance: Random) -> None:
    """A rule about the job, as the documentation writes it."""
    session.add_predicate_fn(
        lambda task, job, node: (
            job.is_preemptible_job(session.is_inference_preemptible())
            or node.labels.get("pool") != "old"
            or job.priority > 50
        )
    )


# -- scores ------------------------------------------------------------------------------------------------------------


def score_by_label(session: Session, chance: Random) -> None:
    """Scores by labels of pods and nodes."""
    session.add_node_order_fn(lambda task, node: 1000.0 if node.labels["pool"] == task.labels.get("pool", "old") else 0)
    session.add_node_order_fn(lambda task, node: 12.0 * (task.labels.get("role") == "leader") * len(node.labels[RACK]))


def score_by_use(session: Session, chance: Random) -> None:
    """A score that rises and falls as a node fills."""
    factor = chance.randint(3, 7)
    session.add_node_order_fn(lambda task, node: node.idle_gpus * factor % 5 * 20.0)


def score_by_name(session: Session, chance: Random) -> None:
    """A score by names."""
    session.add_node_order_fn(lambda task, node: 0.25 * (number_of(task.name) * number_of(node.name) % 7))


def score_by_count(session: Session, chance: Random) -> None:
    """A score by what was placed so far, on the node and anywhere."""
    counting = Counting(session, lambda task: task.node_name)
    session.add_node_order_fn(lambda task, node: -20.0 * counting.pods[node.name])
    session.add_node_order_fn(lambda task, node: 4.0 * counting.pods.total() + len(list(node.pods)))


def score_fails_for_some(session: Session, chance: Random) -> None:
    """A score that is none for some nodes."""

    def score(task: PodInfo, node: NodeInfo) -> float:
        kind = number_of(task.name + node.name) % 6
        return float("nan") if kind == 0 else float("-inf") if kind == 1 else 1.0 / (kind - 2)

    session.add_node_order_fn(score)


def prepared_score(session: Session, chance: Random) -> None:
    """A score that is prepared for each pod."""
    seen: list[int] = []
    session.add_node_pre_order_fn(lambda task, nodes: seen.append(len(nodes) + number_of(task.name)))
    session.add_node_order_fn(lambda task, node: float((len(seen) + number_of(node.name)) % 3))


def score_of_devices(session: Session, chance: Random) -> None:
    """An order of the GPUs of a node."""
    counting = Counting(session, lambda task: task.node_name)
    session.add_gpu_order_fn(lambda task, node, gpu: float((counting.pods[node.name] + len(gpu)) % 2))


# -- pre-predicates and node sets --------------------------------------------------------------------------------------


def leaders_wait(session: Session, chance: Random) -> None:
    """A pre-predicate about labels."""
    team = chance.choice("uv")
    session.add_pre_predicate_fn(lambda task, job: None if task.labels.get("team") != team else "not today")


def half_of_job(session: Session, chance: Random) -> None:
    """A pre-predicate about how far the job has come."""
    most = chance.randint(1, 4)
    session.add_pre_predicate_fn(lambda task, job: sum(each.node_name != "" for each in job.tasks) < most)


def sets_by_pool(session: Session, chance: Random) -> None:
    """Node sets by label, for some jobs."""
    odd = chance.randrange(2)

    def subset(job: PodGroupInfo, group: object, tasks: Sequence[PodInfo], nodes: NodeSet) -> Sequence[NodeSet] | None:
        if group is not job.root or number_of(job.name) % 2 == odd:
            return None
        return [nodes.where(nodes.labelled("pool", pool)) for pool in ("old", "new")]

    session.add_subset_nodes_fn(subset)


# -- orders ------------------------------------------------------------------------------------------------------------


def jobs_by_name(session: Session, chance: Random) -> None:
    """Jobs by a comparison of names."""
    modulus = chance.randint(2, 5)
    session.add_job_order_fn(lambda left, right: number_of(left.name) % modulus - number_of(right.name) % modulus)


def jobs_by_count(session: Session, chance: Random) -> None:
    """Jobs by what their namespaces were given so far, as a comparison or as a key."""
    counting = Counting(session, lambda task: task.namespace)
    if chance.random() < 0.5:
        session.add_job_order_fn(lambda left, right: counting.pods[left.namespace] - counting.pods[right.namespace])
    else:
        session.add_job_order_key(lambda job: counting.pods[job.namespace])


def jobs_by_progress(session: Session, chance: Random) -> None:
    """Jobs by how many of their pods are placed."""

    def placed(job: PodGroupInfo) -> int:
        return sum(task.status in ACTIVE_ALLOCATED for task in job.tasks)

    if chance.random() < 0.5:
        session.add_job_order_fn(lambda left, right: placed(right) - placed(left))
    else:
        session.add_job_order_key(placed)


def nobody_first(session: Session, chance: Random) -> None:
    """Comparisons that tell nothing apart."""
    session.add_job_order_fn(lambda left, right: 0)
    session.add_task_order_fn(lambda left, right: 0)
    session.add_queue_order_fn(lambda left, right: 0)


def tasks_by_role(session: Session, chance: Random) -> None:
    """Tasks by label."""
    if chance.random() < 0.5:
        session.add_task_order_key(lambda task: task.labels.get("role") != "leader")
    else:
        session.add_task_order_fn(lambda left, right: number_of(right.name) % 3 - number_of(left.name) % 3)


def tasks_by_count(session: Session, chance: Random) -> None:
    """Tasks by something that changes as they are placed."""
    counting = Counting(session, lambda task: task.namespace)
    session.add_task_order_key(lambda task: (counting.pods.total() + number_of(task.name)) % 3)


def members_by_name(session: Session, chance: Random) -> None:
    """Members of a group, by name and by what was placed."""
    counting = Counting(session, lambda task: task.namespace)

    def compare(job: PodGroupInfo, left: object, right: object) -> int:
        return (counting.pods.total() % 2 * 2 - 1) * (number_of(left.name) - number_of(right.name))  # type: ignore[attr-defined]

    session.add_sub_group_order_fn(compare)


def queues_by_count(session: Session, chance: Random) -> None:
    """Queues by what they were given so far, or by their next job or their victims."""
    counting = Counting(session, lambda task: task.job.queue)
    kind = chance.randrange(3)

    def compare(left: QueueTurn, right: QueueTurn) -> int:
        if kind == 0:
            return counting.pods[left.queue.name] - counting.pods[right.queue.name]
        if kind == 1:
            return len(left.victims) - len(right.victims)
        names = [turn.next_job.name if turn.next_job is not None else "" for turn in (left, right)]
        return number_of(names[0]) % 3 - number_of(names[1]) % 3

    session.add_queue_order_fn(compare)


# -- capacity and victims ----------------------------------------------------------------------------------------------


def capacity_by_count(session: Session, chance: Random) -> None:
    """Capacity of a queue in pods, asked of jobs and of nodes. Counts where it is registered before others."""
    counting, most = Counting(session, lambda task: task.job.queue), chance.randint(2, 5)

    def of_job(job: PodGroupInfo, tasks: Sequence[PodInfo]) -> CapacityVerdict:
        return CapacityVerdict(ok=counting.pods[job.queue] + len(tasks) <= most + 1, reason="Pods", message="too many")

    def on_node(task: PodInfo, job: PodGroupInfo, node: NodeInfo) -> CapacityVerdict:
        return CapacityVerdict(ok=counting.pods[job.queue] < most or node.labels[RACK] == "r")

    session.add_is_job_over_capacity_fn(of_job)
    session.add_is_task_allocation_on_node_over_capacity_fn(on_node)
    session.add_is_non_preemptible_job_over_queue_quota_fn(of_job)


def spares_some(session: Session, chance: Random) -> None:
    """Victim filters by name and by count, and an invariant."""
    counting = Counting(session, lambda task: task.namespace)
    modulus = chance.randint(2, 3)
    session.add_reclaim_victim_filter_fn(lambda job, victim: number_of(job.name + victim.name) % modulus != 0)
    session.add_preempt_victim_filter_fn(lambda job, victim: counting.pods[victim.namespace] < 3)
    session.add_victim_invariant_pre_predicate_fn(
        lambda task: "no" if task.labels.get("role") == "leader" and task.labels.get("team") == "u" else None
    )


def judges_scenarios(session: Session, chance: Random) -> None:
    """Validators of scenarios, with state that is begun for each search."""
    searches, most = 0, chance.randint(1, 3)

    def begin() -> None:
        nonlocal searches
        searches += 1

    def validate(scenario: Scenario) -> bool | str:
        return len(scenario.victims) <= most + searches % 2 or "too many"

    session.add_on_job_solution_start_fn(begin)
    session.add_reclaimable_fn(validate)
    session.add_preempt_scenario_validator_fn(validate)


def anybody_may_reclaim(session: Session, chance: Random) -> None:
    """Reclaiming for some jobs. Counts where it is registered before others."""
    session.add_can_reclaim_resources_fn(lambda job: number_of(job.name) % 2 == 0)


def proposes_scenarios(session: Session, chance: Random) -> None:
    """Scenarios of one victim each, by name."""

    def scenarios(within: Session, job: PodGroupInfo) -> Iterable[Sequence[PodInfo]]:
        for victim in sorted(within.jobs, key=lambda each: each.name):
            tasks, _ = victim.tasks_to_evict()
            if tasks and victim is not job:
                yield tasks

    session.add_scenario_generator("one-by-one", scenarios)


def marks_binds(session: Session, chance: Random) -> None:
    """Annotations on binds, numbered."""
    marks: list[str] = []

    def mutate(task: PodInfo, node: str) -> dict[str, str]:
        marks.append(task.name)
        return {"number": str(len(marks)), "node": node}

    session.add_bind_request_mutate_fn(mutate)


BEHAVIOURS: tuple[Behaviour, ...] = tuple(
    each
    for name, each in list(globals().items())
    if callable(each) and getattr(each, "__annotations__", {}).get("chance") is Random
)


def a_plugin(name: str, seed: int) -> type[Plugin]:
    """Return a plugin of one to three behaviours."""
    chosen = Random(seed).choices(BEHAVIOURS, k=Random(seed + 1).randint(1, 3))

    class Drawn(Plugin):
        def on_session_open(self, session: Session) -> None:
            for number, behaviour in enumerate(chosen):
                behaviour(session, Random(seed + 2 + number))

    Drawn.name = name
    Drawn.__doc__ = ", ".join(behaviour.__name__ for behaviour in chosen)
    return Drawn
