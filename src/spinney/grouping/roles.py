"""The roles of a workload, with a name and with numbers for their terms: found once for all its pods.

A workload may have as many roles as pods, and each pod asks for all of them. What a workload says is therefore read
once, and used again for as long as it is the same: its object with the counts, its rule, and each annotation that was
read, wherever in the chain of a pod's owners it stands.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from spinney.api.core import Pod
from spinney.grouping.rules import PodRole, Rule, term, text_value
from spinney.grouping.shapes import MOST_PARTS, REMEMBERED, RoleInstance, SubGroupShape
from spinney.grouping.terms import MOST_PODS, Path, RuleRefused, TermInput, needed, parse_path


class Roles:
    """The roles of one workload. Immutable but for what it remembers."""

    def __init__(self, rule: Rule, scope: TermInput, *, keep_empty: bool) -> None:
        found = [
            instance
            for instance, _ in role_instances(rule, scope)
            if keep_empty or instance.role.alone or instance.replicas * instance.groups > 0
        ]
        names = Counter(each.name for each in found)
        for name in (each for each, times in names.items() if times > 1):
            raise RuleRefused(f"{names[name]} roles are called {name!r}; each needs a name of its own")
        self._needed = found
        self._waiting = [replace(each, counts=False) if each.starts_later else each for each in found]
        self._by_labels: dict[tuple[str, ...], dict[tuple[str | None, ...], int]] = {}
        for place, each in enumerate(found):
            if each.labels is not None:
                places = self._by_labels.setdefault(tuple(each.labels), {})
                places.setdefault(tuple(each.labels.values()), place)
        self._rest = next((place for place, each in enumerate(found) if each.labels is None), None)
        self._last: CurrentRoles | None = None
        self.starting_later = frozenset(each.name for each in found if each.starts_later)

    def place(self, pod: Pod) -> int | None:
        """Return which role a pod is in: the first that has its labels, else that of all the others."""
        labels = pod.metadata.labels
        found = (places.get(tuple(labels.get(key) for key in keys)) for keys, places in self._by_labels.items())
        return min((place for place in found if place is not None), default=self._rest)

    def started(self, pods: Iterable[Pod]) -> frozenset[str]:
        """Return the roles of the pods that are not on their way out."""
        places = {self.place(pod) for pod in pods if not pod.metadata.deleting}
        return frozenset(self._needed[place].name for place in places if place is not None)

    def without(self, waiting: frozenset[str]) -> "CurrentRoles":
        """Return the roles where those that are ``waiting`` are not needed yet; remembered for the next pod."""
        last = self._last
        if last is None or last.waiting != waiting:
            both = zip(self._needed, self._waiting, strict=True)
            chosen = (later if later.name in waiting else now for now, later in both)
            last = self._last = CurrentRoles(waiting, tuple(chosen))
        return last


@dataclass(frozen=True)
class CurrentRoles:
    """The roles of a workload, some of which are not needed yet."""

    waiting: frozenset[str]
    instances: tuple[RoleInstance, ...]

    @cached_property
    def counted(self) -> "GangRoles":
        """Return the roles that are needed now, but for those whose pods are gangs of their own."""
        return GangRoles(tuple(each for each in self.instances if each.counts and not each.role.alone))

    @cached_property
    def grouped(self) -> "GangRoles":
        """Return the roles whose pods are no gangs of their own."""
        return GangRoles(tuple(each for each in self.instances if not each.role.alone))

    def with_total(self, total: int) -> "CurrentRoles":
        """Give the last role that is needed what the others leave of a floor that was asked for."""
        instances = list(self.instances)
        places = [place for place, each in enumerate(instances) if each.counts]
        if not places:
            return self
        others = sum(instances[place].total for place in places[:-1])
        instances[places[-1]] = replace(instances[places[-1]], floor=max(0, total - others))
        return CurrentRoles(self.waiting, tuple(instances))


@dataclass(frozen=True)
class GangRoles:
    """The roles that make up a gang."""

    instances: tuple[RoleInstance, ...]

    @cached_property
    def needed(self) -> int:
        """Return how many of the roles are needed now."""
        return sum(each.counts for each in self.instances)

    @cached_property
    def pods(self) -> int:
        """Return how many pods are needed now."""
        return sum(each.total for each in self.instances if each.counts)

    @cached_property
    def problems(self) -> tuple[str, ...]:
        """Return which roles need more pods than they will have."""
        return tuple(
            f"role {each.name} needs {each.floor} pods, but will have {each.replicas}"
            for each in self.instances
            if each.counts and each.floor > each.replicas
        )

    @cached_property
    def with_segments(self) -> RoleInstance | None:
        """Return the role that may be cut into segments."""
        return next((each for each in self.instances if each.role.segments is not None), None)

    @cached_property
    def sub_groups(self) -> tuple[SubGroupShape, ...]:
        """Return the sub-groups that the roles are."""
        return tuple(group for each in self.instances for group in each.sub_groups)


class _Asked:
    """The annotations that were read of a workload and of a pod of it, with what they said. Mutable."""

    def __init__(self, scope: TermInput) -> None:
        self._scope = scope
        self._of_workload: dict[str, str | None] = {}
        self._of_pod: dict[str, str | None] = {}

    def annotation(self, key: str) -> str | None:
        return self._of_workload.setdefault(key, self._scope.annotation(key))

    def pod_annotation(self, key: str) -> str | None:
        return self._of_pod.setdefault(key, self._scope.pod_annotation(key))

    def holds_for(self, scope: TermInput) -> bool:
        """Tell whether the same is said where others are read."""
        return all(scope.annotation(key) == text for key, text in self._of_workload.items()) and all(
            scope.pod_annotation(key) == text for key, text in self._of_pod.items()
        )


class RememberedRoles:
    """The roles of the workloads that were asked for last. Mutable.

    Workloads are known by the objects themselves, which nobody changes, and which are kept here for that.
    """

    def __init__(self) -> None:
        self._found: OrderedDict[tuple[int, ...], tuple[tuple[Rule, Any, Any], _Asked, Roles | str]]
        self._found = OrderedDict()

    def of(self, rule: Rule, scope: TermInput, *, keep_empty: bool) -> Roles:
        """Return the roles of a workload; raises :class:`RuleRefused` if the rule cannot be applied.

        Roles without pods are left out unless they are to be kept.
        """
        workload = (rule, scope.content.get("spec"), scope.content.get("status"))
        key = (*map(id, workload), keep_empty)
        _, asked, found = self._found.get(key, (None, _Asked(scope), ""))
        if not found or not asked.holds_for(scope):
            asked = _Asked(scope)
            reading = replace(scope, annotation=asked.annotation, pod_annotation=asked.pod_annotation)
            try:
                found = Roles(rule, reading, keep_empty=keep_empty)
            except RuleRefused as error:
                found = str(error)
            self._found[key] = (workload, asked, found)
            while len(self._found) > REMEMBERED:
                self._found.popitem(last=False)
        if isinstance(found, str):
            raise RuleRefused(found)
        return found


def role_instances(rule: Rule, scope: TermInput) -> Iterator[tuple[RoleInstance, TermInput]]:
    """Yield the roles of a workload, each with what its terms are evaluated in."""
    for role in rule.roles:
        elements: list[Any] = [None] if not role.each else parse_path(role.each).found(scope)
        for index, each in enumerate(elements):
            own = replace(scope, each=each)
            instance = _instance(role, own, index)
            if instance is not None:
                yield instance, own


def _instance(role: PodRole, scope: TermInput, index: int) -> RoleInstance | None:
    if role.unless and any(each is True for each in parse_path(role.unless).found(scope)):
        return None
    name = text_value(role.name, scope, index=index)
    if name is None:
        raise RuleRefused(f"{role.name}: not there, expected the name of a role")
    labels = None
    if role.pods != "rest":
        labels = {key: text_value(text, scope, index=index) or "" for key, text in role.pods.items()}
    if role.alone:
        return RoleInstance(role, name, labels, counts=False)
    template = _template(role, scope)
    replicas = needed(term(role.replicas), scope)
    of_template = scope if template is None else replace(scope, annotation=template.get)
    floor = needed(term(role.floor), replace(of_template, replicas=replicas))
    groups = 1 if role.split is None else needed(term(role.split.count), scope)
    for what, number in ((role.replicas, replicas), (role.floor, floor), (role.split and role.split.count, groups)):
        if not 0 <= number <= MOST_PODS:
            raise RuleRefused(f"role {name}: {what}: comes to {number}, expected 0 to {MOST_PODS}")
    if groups > MOST_PARTS:
        raise RuleRefused(f"role {name}: {groups} groups, expected at most {MOST_PARTS}")
    return RoleInstance(
        role, name, labels, replicas, floor, groups, starts_later=_starts_later(role, scope, index), template=template
    )


def _template(role: PodRole, scope: TermInput) -> Mapping[str, str] | None:
    """Return the annotations of a role's pod template; ``None`` if the rule names no template."""
    if not role.template:
        return None
    steps = (*parse_path(role.template).steps, "metadata", "annotations")
    found = next(iter(Path(steps).found(scope)), None)
    return {key: str(text) for key, text in found.items()} if isinstance(found, Mapping) else {}


def _starts_later(role: PodRole, scope: TermInput, index: int) -> bool:
    for after in role.after:
        waits = bool(after.role) or (after.previous and index > 0)
        if after.names:
            waits = bool(parse_path(after.names).found(scope))
        if waits and holds(after.when, scope):
            return True
    return False


def holds(conditions: Mapping[str, str], scope: TermInput) -> bool:
    """Tell whether each path has its value."""
    return all(value in map(str, parse_path(text).found(scope)) for text, value in conditions.items())
