"""Which pods of a gang come next, and which go first."""

from collections.abc import Sequence

from spinney.gangs.selection import tasks_to_allocate, tasks_to_evict
from spinney.gangs.tree import GroupSet, Member, PodSet, single
from spinney.scheduler.plugins.subgrouporder import member_rank


class Pods:
    """A population of names: placed and waiting pods by pod set."""

    def __init__(self, placed: dict[str, int], waiting: dict[str, int]) -> None:
        self._placed = {name: [f"{name}{number}" for number in range(count)] for name, count in placed.items()}
        self._waiting = {
            name: [f"{name}{placed.get(name, 0) + number}" for number in range(count)]
            for name, count in waiting.items()
        }

    def active(self, pod_set: PodSet) -> int:
        """Return how many are placed."""
        return len(self.placed(pod_set))

    def waiting(self, pod_set: PodSet) -> Sequence[str]:
        return self._waiting.get(pod_set.name, [])

    def placed(self, pod_set: PodSet) -> Sequence[str]:
        return self._placed.get(pod_set.name, [])

    def ordered(self, group: GroupSet) -> Sequence[Member]:
        """Return members in sub-group order."""
        return sorted(group.members, key=lambda member: member_rank(member, self.active))


def test_a_gang_takes_exactly_what_it_misses() -> None:
    """Below its minimum a pod set asks for the missing number, not more."""
    root = single(PodSet("w", 3))

    assert tasks_to_allocate(root, Pods({"w": 1}, {"w": 5})) == ["w1", "w2"]


def test_a_satisfied_gang_grows_by_one() -> None:
    """An elastic gang takes one pod at a time."""
    root = single(PodSet("w", 1))

    assert tasks_to_allocate(root, Pods({"w": 2}, {"w": 5})) == ["w2"]


def test_every_member_gets_its_minimum() -> None:
    """A group set below its requirement takes the deficit of each member that needs one."""
    root = GroupSet("", (PodSet("a", 2), PodSet("b", 1)))

    assert tasks_to_allocate(root, Pods({"b": 1}, {"a": 3, "b": 3})) == ["a0", "a1"]


def test_optional_groups_wait_until_the_required_number_is_there() -> None:
    """With a minimum of groups only as many members as needed are taken, those that can be completed first."""
    root = GroupSet("", (PodSet("a", 2), PodSet("b", 2), PodSet("c", 2)), min_groups=2)

    assert tasks_to_allocate(root, Pods({}, {"a": 1, "b": 2, "c": 2})) == ["b0", "b1", "c0", "c1"]
    assert tasks_to_allocate(root, Pods({"b": 2}, {"a": 2, "c": 2})) == ["a0", "a1"]


def test_growth_goes_to_the_member_that_has_least() -> None:
    """A satisfied gang grows where the ratio of placed to minimum is lowest."""
    root = GroupSet("", (PodSet("a", 1), PodSet("b", 2)))

    assert tasks_to_allocate(root, Pods({"a": 2, "b": 2}, {"a": 1, "b": 1})) == ["b2"]


def test_surplus_pods_go_first() -> None:
    """Eviction peels one surplus pod of the least important member, and says that others remain."""
    root = GroupSet("", (PodSet("a", 1), PodSet("b", 1)))

    assert tasks_to_evict(root, Pods({"a": 2, "b": 3}, {})) == (["b2"], True)


def test_then_a_whole_member_that_is_not_needed() -> None:
    """A group above its required number of members loses one of them whole."""
    root = GroupSet("", (PodSet("a", 2), PodSet("b", 2)), min_groups=1)

    assert tasks_to_evict(root, Pods({"a": 2, "b": 2}, {})) == (["b0", "b1"], True)


def test_then_everything() -> None:
    """A gang at its minimum goes as a whole."""
    root = GroupSet("", (PodSet("a", 1), PodSet("b", 1)))

    assert tasks_to_evict(root, Pods({"a": 1, "b": 1}, {})) == (["a0", "b0"], False)
