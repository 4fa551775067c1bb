"""The book of gangs: members, snapshots, what queues hold."""

from collections import Counter
from collections.abc import Callable

from spinney.api import volcano
from spinney.api.core import PodWorkloadReference
from spinney.api.labels import KAI_POD_GROUP, VOLCANO_GROUP
from spinney.api.meta import ObjectMeta
from spinney.api.workload_v1alpha1 import GangPolicy, PodGroup, PodGroupPolicy, Workload, WorkloadSpec
from spinney.cluster.pods import PodKey
from spinney.cluster.state import ClusterState
from spinney.cluster.statuses import PodStatus
from spinney.gangs.book import GangBook, GangSnapshot, number_of_pods
from spinney.gangs.definitions import GangDefinitions
from spinney.gangs.membership import membership
from spinney.gangs.sources import volcano as volcano_source
from spinney.gangs.sources.context import SourceContext
from spinney.gangs.tree import Gang, GangKey, PodSet, single
from spinney.kube.keys import Key
from tests.cluster.building import a_node, a_pod
from tests.weighing import held_by

KEY = GangKey("kai", "team", "g")


def a_workload() -> Workload:
    """Return a Workload with a group of gangs."""
    group = PodGroup(name="workers", policy=PodGroupPolicy(gang=GangPolicy(min_count=1)))
    return Workload(metadata=ObjectMeta(name="work", namespace="team"), spec=WorkloadSpec(pod_groups=(group,)))


def a_gang(*, queue: str = "q", minimum: int = 2) -> Gang:
    """Return a gang of one pod set."""
    return Gang(key=KEY, root=single(PodSet("default", minimum)), queue=queue)


class World:
    """A state with one node and a book that follows it."""

    def __init__(self) -> None:
        self.state = ClusterState()
        self.book = GangBook(membership)
        self.state.subscribe(self.book.pod_changed)
        self.state.apply_node(a_node())

    def pod(self, name: str, *, node: str = "", gang: str = "g") -> None:
        """Apply a pod of a gang."""
        self.state.apply_pod(a_pod(name, node=node, annotations={KAI_POD_GROUP: gang} if gang else {}))

    def holdings(self, queue: str = "q") -> dict[bool, int]:
        """Return how many pods a queue pays for (True) and has pending (False)."""
        found: dict[bool, int] = {}
        for kind, count in self.book.snapshot().holdings.get(queue, {}).items():
            found[kind.charged] = found.get(kind.charged, 0) + count
        return found


def members(snapshot: GangSnapshot, key: GangKey = KEY) -> list[str]:
    """Return the names of the pods of a gang."""
    return [pod.name for pod in snapshot.gangs[key].pods]


def test_pods_find_their_gang_in_any_order() -> None:
    """A pod that comes before its gang is an orphan until the gang is there."""
    world = World()
    world.pod("a")
    assert "does not exist" in world.book.snapshot().orphans[PodKey("team", "a")]

    world.book.put(a_gang())
    snapshot = world.book.snapshot()
    assert members(snapshot) == ["a"]
    assert not snapshot.orphans


def test_a_snapshot_does_not_change_afterwards() -> None:
    """Members are shared with a snapshot only until the next event."""
    world = World()
    world.book.put(a_gang())
    world.pod("a")
    before = world.book.snapshot()
    world.pod("b")
    world.state.delete_pod(PodKey("team", "a"))

    assert members(before) == ["a"]
    assert members(world.book.snapshot()) == ["b"]


def test_gangs_with_pending_pods_are_listed() -> None:
    """A gang leaves the list when its last pending pod is placed."""
    world = World()
    world.book.put(a_gang())
    world.pod("a")
    assert world.book.snapshot().pending == (KEY,)

    world.pod("a", node="n1")
    assert world.book.snapshot().pending == ()


def test_holdings_follow_pods_and_gangs() -> None:
    """What a queue holds moves with its pods, and with the gang to another queue."""
    world = World()
    world.book.put(a_gang())
    world.pod("a", node="n1")
    world.pod("b")
    assert world.holdings() == {True: 1, False: 1}

    world.book.put(a_gang(queue="other"))
    assert world.holdings() == {}
    assert world.holdings("other") == {True: 1, False: 1}

    world.state.delete_pod(PodKey("team", "a"))
    world.state.delete_pod(PodKey("team", "b"))
    assert world.holdings("other") == {}


def test_a_bare_pod_is_a_gang_of_one_and_goes_with_it() -> None:
    """A pod that names no group makes a gang, which disappears with the pod."""
    world = World()
    world.pod("solo", gang="")
    key = GangKey("pod", "team", "solo")
    assert members(world.book.snapshot(), key) == ["solo"]

    world.state.delete_pod(PodKey("team", "solo"))
    assert key not in world.book.snapshot().gangs


def test_a_removed_gang_leaves_orphans() -> None:
    """Pods of a deleted group cannot be scheduled, and say why."""
    world = World()
    world.book.put(a_gang())
    world.pod("a")
    world.book.remove(KEY)
    snapshot = world.book.snapshot()

    assert KEY not in snapshot.gangs
    assert PodKey("team", "a") in snapshot.orphans


def test_gangs_that_hold_something_are_listed_by_queue() -> None:
    """A gang is listed in its queue while it has pods that are not pending, and moves with its queue."""
    world = World()
    world.book.put(a_gang())
    world.pod("a")
    assert KEY not in world.book.snapshot().started.get("q", {})
    world.pod("a", node="n1")
    assert KEY in world.book.snapshot().started["q"]
    world.book.put(a_gang(queue="other"))
    started = world.book.snapshot().started
    assert (KEY in started.get("q", {}), KEY in started["other"]) == (False, True)
    world.book.remove(KEY)
    assert not any(world.book.snapshot().started.values())


def test_a_snapshot_names_the_queues_of_its_gangs() -> None:
    """A queue is named as long as a gang is in it: gangs of single pods come and go, others change their queue."""
    world = World()
    steps: list[Callable[[], object]] = [
        lambda: world.book.put(a_gang()),
        lambda: world.pod("solo", gang=""),
        lambda: world.pod("second", gang=""),
        lambda: world.book.put(a_gang(queue="other")),
        lambda: world.state.delete_pod(PodKey("team", "solo")),
        lambda: world.state.delete_pod(PodKey("team", "second")),
        lambda: world.book.remove(KEY),
    ]
    for step in steps:
        step()
        snapshot = world.book.snapshot()
        assert snapshot.queues == {found.gang.queue for found in snapshot.gangs.values()}
    assert not snapshot.queues


def test_gangs_below_their_minimum_are_listed_as_broken() -> None:
    """A gang that holds something, but too little, is broken; one that holds nothing or enough is not."""
    world = World()
    world.book.put(a_gang(minimum=2))
    world.pod("a")
    world.pod("b")
    assert not world.book.snapshot().broken
    world.pod("a", node="n1")
    assert list(world.book.snapshot().broken) == [KEY]
    world.pod("b", node="n1")
    assert not world.book.snapshot().broken
    world.state.delete_pod(PodKey("team", "a"))
    assert list(world.book.snapshot().broken) == [KEY]
    world.book.remove(KEY)
    assert not world.book.snapshot().broken


def test_a_book_forgets_gangs_that_only_pods_spoke_of() -> None:
    """Single pods, gangs derived from what pods name and queues without pods leave nothing behind."""
    state = ClusterState()
    state.apply_node(a_node())
    definitions = GangDefinitions()
    definitions.put(Workload, Key("team", "work"), a_workload())
    book = GangBook(membership, definitions)
    state.subscribe(book.pod_changed)
    book.snapshot()
    before = held_by(book)
    for number in range(50):
        named = PodWorkloadReference(name="work", pod_group="workers", pod_group_replica_key=str(number))
        for name, reference in (("single", None), ("member", named)):
            pod = f"{name}-{number}"
            state.apply_pod(a_pod(pod, workload_ref=reference))
            state.apply_pod(a_pod(pod, node="n1", workload_ref=reference))
            assert len(book.snapshot().gangs) == 1
            state.delete_pod(PodKey("team", pod))
    assert not book.snapshot().gangs
    assert held_by(book) == before


def a_volcano_gang(minimum: int, **tasks: int) -> Gang:
    """Return the gang of a Volcano PodGroup with a minimum, and with minimums per task."""
    spec = volcano.PodGroupSpec(min_member=minimum, min_task_member=tasks)
    group = volcano.PodGroup(metadata=ObjectMeta(name="g", namespace="team"), spec=spec)
    return volcano_source.gang(group, SourceContext())


def test_pods_of_a_volcano_group_count_by_the_tasks_it_lists_at_the_moment() -> None:
    """Pods that name tasks count together unless the group lists tasks, whatever comes first and however it changes."""
    world = World()
    key = a_volcano_gang(1).key

    def add(pod: str, task: str, *, node: str = "") -> None:
        annotations = {VOLCANO_GROUP: "g", volcano_source.TASK_ANNOTATION: task}
        world.state.apply_pod(a_pod(pod, node=node, annotations=annotations))

    def counted() -> dict[str, int]:
        found = world.book.snapshot().gangs[key]
        by_set = Counter(pod_set for pod_set, _ in found.pods.values())
        assert number_of_pods(found.counts, frozenset(PodStatus)) == by_set
        return by_set

    add("a", "worker")
    world.book.put(a_volcano_gang(3))
    add("b", "worker")
    add("c", "ps")
    assert counted() == {"default": 3}
    world.book.put(a_volcano_gang(2, worker=2))
    assert counted() == {"worker": 2, "other tasks": 1}
    add("a", "worker", node="n1")
    add("d", "chief")
    assert counted() == {"worker": 2, "other tasks": 2}
    before = world.book.snapshot()
    world.book.put(a_volcano_gang(1))
    assert counted() == {"default": 4}
    assert Counter(pod_set for pod_set, _ in before.gangs[key].pods.values()) == {"worker": 2, "other tasks": 2}
    world.book.remove(key)
    add("b", "worker", node="n1")
    world.book.put(a_volcano_gang(3))
    assert counted() == {"default": 4}
    for pod in "abcd":
        world.state.delete_pod(PodKey("team", pod))
    assert counted() == {}
