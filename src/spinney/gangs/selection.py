"""Which pods of a gang come next: those it is short of, one more of an elastic gang, or those to give up first.

The functions walk a gang's tree over a :class:`Population`, which knows the pods of each set; they say nothing about
where pods go.
"""

from collections.abc import Sequence
from typing import Protocol, TypeVar

from spinney.gangs.tree import GroupSet, Member, PodSet, is_satisfied

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Population(Protocol[T_co]):
    """The pods of a gang, by pod set, and the order of things."""

    def active(self, pod_set: PodSet) -> int:
        """Return how many pods of the set count as placed."""

    def waiting(self, pod_set: PodSet) -> Sequence[T_co]:
        """Return the pods of the set that could be placed, the most important first."""

    def placed(self, pod_set: PodSet) -> Sequence[T_co]:
        """Return the pods of the set that count as placed, the most important first."""

    def ordered(self, group: GroupSet) -> Sequence[Member]:
        """Return the members of a group set, the most important first."""


def tasks_to_allocate(member: Member, population: Population[T]) -> list[T]:
    """Return the pods to place next, together or not at all.

    A set below its minimum asks for exactly what is missing; a satisfied one grows by one pod. A group set below its
    minimum takes the best members that can become satisfied, each with what it misses.
    """
    if isinstance(member, PodSet):
        missing = member.min_member - population.active(member)
        return list(population.waiting(member)[: max(missing, 1)])
    members = population.ordered(member)
    short = [child for child in members if not is_satisfied(child, population.active)]
    needed = member.minimum - (len(members) - len(short))
    if needed <= 0:
        return next((tasks for child in members if (tasks := tasks_to_allocate(child, population))), [])
    if len(short) > 1:
        # Members that can be completed come first; where too few can, the rest is tried as far as it goes.
        short.sort(key=lambda child: not is_completable(child, population))
    return [task for child in short[:needed] for task in tasks_to_allocate(child, population)]


def is_completable(member: Member, population: Population[T]) -> bool:
    """Tell whether a member would be satisfied if every waiting pod were placed."""
    return is_satisfied(member, lambda pod_set: population.active(pod_set) + len(population.waiting(pod_set)))


def tasks_to_evict(root: Member, population: Population[T]) -> tuple[list[T], bool]:
    """Return the pods of a gang to give up first, and whether others would remain.

    First one surplus pod of the least important member that has one; then a whole member that is not needed; then
    everything.
    """
    total = sum(len(population.placed(pod_set)) for pod_set in root.pod_sets())
    chosen = _surplus_pod(root, population) or _surplus_member(root, population) or everything(root, population)
    return chosen, len(chosen) < total


def _surplus_pod(member: Member, population: Population[T]) -> list[T]:
    if isinstance(member, PodSet):
        placed = population.placed(member)
        return [placed[-1]] if len(placed) > member.min_member else []
    chosen = (_surplus_pod(child, population) for child in reversed(population.ordered(member)))
    return next(filter(None, chosen), [])


def _surplus_member(member: Member, population: Population[T]) -> list[T]:
    if isinstance(member, PodSet):
        return []
    inhabited = [child for child in population.ordered(member) if everything(child, population)]
    if len(inhabited) > member.minimum:
        return everything(inhabited[-1], population)
    return next(filter(None, (_surplus_member(child, population) for child in reversed(inhabited))), [])


def everything(member: Member, population: Population[T]) -> list[T]:
    """Return all pods of a member that count as placed."""
    return [task for pod_set in member.pod_sets() for task in population.placed(pod_set)]
