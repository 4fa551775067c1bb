"""How many pods a workload needs, and in which sub-groups: a rule applied to its counts.

A rule without roles has one floor. With roles each counts pods of its own; a role that starts later than others
(``after``) is not needed until one of its pods exists, which keeps a workload whose parts are made one after the other
from waiting for itself.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from spinney.api.core import Pod
from spinney.explain.amounts import first_few
from spinney.gangs.tree import TopologyConstraintInfo
from spinney.grouping.attributes import MIN_MEMBER
from spinney.grouping.owners import Owner
from spinney.grouping.rules import POD_KIND, PodRole, Rule, TextTerm, term, text_value
from spinney.grouping.segments import segmented
from spinney.grouping.shapes import (
    MOST_PARTS,
    REMEMBERED,
    RoleInstance,
    Shape,
    SubGroupShape,
    pod_number,
    role_topology,
)
from spinney.grouping.terms import MOST_PODS, Path, RuleRefused, TermInput, needed, parse_path

_ALWAYS_FIRST: Final[TextTerm] = f"annotation {MIN_MEMBER}"


@dataclass(frozen=True)
class RuledPod:
    """A workload and one of its pods, with what a rule may read of them."""

    rule: Rule
    counts: Owner
    owner: Owner
    chain: tuple[Owner, ...]
    pod: Pod
    peers: Callable[[], Iterable[Pod]]

    def annotation(self, key: str) -> str | None:
        """Return an annotation of the workload: of the object with the counts, else of the owners, nearest first."""
        objects = (self.counts, self.owner, *self.chain)
        return next((found for each in objects if (found := each.metadata.annotations.get(key))), None)

    @property
    def scope(self) -> TermInput:
        """Return what terms of the rule are evaluated in."""
        return TermInput(self.counts.content, annotation=self.annotation)


def shape(subject: RuledPod) -> Shape:
    """Return what a workload needs; raises :class:`RuleRefused` if the rule cannot be applied."""
    rule, scope = subject.rule, subject.scope
    for text, values in rule.allowed.items():
        found = next(iter(parse_path(text).found(scope)), None)
        if found is not None and found not in values:
            raise RuleRefused(f"{text}: found {found!r}, expected {' or '.join(values)}")
    counts_pods = not rule.root and (rule.one_per != "pod" or bool(rule.together))
    override = _first((_ALWAYS_FIRST, *rule.override), scope) if counts_pods else None
    if override is None:
        _check_required(rule, scope)
    if not rule.roles:
        return _flat(subject, override)
    instances = _instances(subject, keep_empty=override is not None)
    if override is not None:
        instances = _with_override(instances, override)
    return _with_roles(subject, instances)


def _flat(subject: RuledPod, override: int | None) -> Shape:
    rule, scope = subject.rule, subject.scope
    floor = needed(term(rule.floor), scope) if override is None else override
    problems: list[str] = []
    least = 0 if rule.zero else 1
    if not least <= floor <= MOST_PODS:
        raise RuleRefused(f"{rule.floor}: comes to {floor}, expected {least} to {MOST_PODS}")
    if rule.one_by_one and floor > 1 and _holds(rule.one_by_one, scope):
        problems.append(f"needs {floor} pods, but its pods are made one after the other; 1 is needed at a time")
        floor = 1
    replicas = None if rule.replicas is None else term(rule.replicas).value(scope)
    if replicas is not None and floor > replicas:
        problems.append(f"needs {floor} pods, but will have {replicas}")
    problems += _disagreements(subject, floor)
    limit = None if rule.at_most is None else term(rule.at_most).value(scope)
    return Shape(
        min_member=floor if limit is None else min(floor, limit),
        problems=tuple(problems),
        finished_counted=limit is not None,
    )


def _disagreements(subject: RuledPod, floor: int) -> Iterator[str]:
    """Say which pods without an owner ask for another minimum than the one whose word counts."""
    rule = subject.rule
    if rule.kind != POD_KIND or not rule.label:
        return
    others: dict[int, list[str]] = {}
    for pod in subject.peers():
        scope = TermInput(subject.counts.content, annotation=pod.metadata.annotations.get)
        try:
            asked = _first((_ALWAYS_FIRST, *rule.override, rule.floor), scope)
        except RuleRefused:
            continue  # the pod itself says so
        if asked is not None and asked != floor and not pod.metadata.deleting:
            others.setdefault(asked, []).append(pod.metadata.name)
    for asked, names in sorted(others.items()):
        few = first_few(sorted(names))
        who = f"pod {few} says" if len(names) == 1 else f"pods {few} say"
        yield f"needs {floor} pods, as pod {subject.pod.metadata.name} says; {who} {asked}"


def _check_required(rule: Rule, scope: TermInput) -> None:
    for text in rule.required:
        found = parse_path(text).found(scope)
        if not found:
            raise RuleRefused(f"{text}: not there, expected it to be there")
        for each in found:
            replicas = each.get("replicas") if isinstance(each, Mapping) else each
            if replicas in (0, "", []):
                raise RuleRefused(f"{text}: found {replicas!r}, expected at least 1")


# -- roles -------------------------------------------------------------------------------------------------------------


def role_instances(rule: Rule, scope: TermInput) -> Iterator[tuple[RoleInstance, TermInput]]:
    """Yield the roles of a workload, each with what its terms are evaluated in."""
    for role in rule.roles:
        elements: list[Any] = [None] if not role.each else parse_path(role.each).found(scope)
        for index, each in enumerate(elements):
            own = replace(scope, each=each)
            instance = _instance(role, own, index)
            if instance is not None:
                yield instance, own


def _instances(subject: RuledPod, *, keep_empty: bool) -> list[RoleInstance]:
    found = [
        instance
        for instance, _ in role_instances(subject.rule, subject.scope)
        if keep_empty or instance.role.alone or instance.replicas * instance.groups > 0
    ]
    names = Counter(each.name for each in found)
    for name in (each for each, times in names.items() if times > 1):
        raise RuleRefused(f"{names[name]} roles are called {name!r}; each needs a name of its own")
    waiting = _not_started(found, subject)
    return [replace(each, counts=each.name not in waiting) if each.starts_later else each for each in found]


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
        if waits and _holds(after.when, scope):
            return True
    return False


def _not_started(instances: Sequence[RoleInstance], subject: RuledPod) -> set[str]:
    """Return the roles that start later and have not: none of their pods exists and is not on its way out."""
    waiting = {each.name for each in instances if each.starts_later}
    for pods in ((subject.pod,), subject.peers()) if waiting else ():
        for pod in pods:
            role = None if pod.metadata.deleting else _role_of(pod, instances)
            if role is not None:
                waiting.discard(role.name)
                if not waiting:
                    return waiting
    return waiting


def _role_of(pod: Pod, instances: Sequence[RoleInstance]) -> RoleInstance | None:
    return next((each for each in instances if each.has(pod)), None) or next(
        (each for each in instances if each.labels is None), None
    )


def _with_override(instances: list[RoleInstance], total: int) -> list[RoleInstance]:
    """Give the last role that is needed what the others leave of a floor that was asked for."""
    places = [place for place, each in enumerate(instances) if each.counts]
    if places:
        last = instances[places[-1]]
        others = sum(instances[place].total for place in places[:-1])
        instances[places[-1]] = replace(last, floor=max(0, total - others))
    return instances


def _with_roles(subject: RuledPod, instances: Sequence[RoleInstance]) -> Shape:
    rule = subject.rule
    roles = [each for each in instances if not each.role.alone]
    listed = roles if rule.root else [each for each in roles if each.counts]
    own = _role_of(subject.pod, instances)
    minimum = sum(each.total for each in listed if each.counts)
    if not rule.root and minimum == 0 and not rule.zero:
        raise RuleRefused(f"{subject.counts}: all roles together need 0 pods, expected at least 1")
    shape = Shape(
        min_member=None if rule.root else minimum,
        min_sub_group=_root(subject, listed),
        alone=own is not None and own.role.alone,
        starts_later=own is not None and own.starts_later,
        problems=tuple(_too_many(listed)),
    )
    if own is not None and own not in listed:
        own = None
    with_segments = next((each for each in listed if each.role.segments is not None), None)
    if with_segments is not None:
        cut = segmented(subject.pod, subject.scope, listed, with_segments, own)
        if cut is not None:
            return replace(shape, sub_groups=cut[0], role=cut[1])
    sub_groups = tuple(group for each in listed for group in _sub_groups(each))
    return replace(shape, sub_groups=sub_groups, role=_leaf(subject, instances, own))


def _root(subject: RuledPod, listed: Sequence[RoleInstance]) -> int | None:
    for text in subject.rule.root:
        if text == "all":
            return sum(each.counts for each in listed)
        found = term(text).value(subject.scope)
        if found is not None:
            return min(found, len(listed))
    return None


def _too_many(instances: Iterable[RoleInstance]) -> Iterator[str]:
    for each in instances:
        if each.counts and each.floor > each.replicas:
            yield f"role {each.name} needs {each.floor} pods, but will have {each.replicas}"


def _sub_groups(instance: RoleInstance) -> tuple[SubGroupShape, ...]:
    topology = _topology(instance)
    if instance.role.split is None:
        return (SubGroupShape(instance.name, min_member=instance.floor, topology=topology, counts=instance.counts),)
    return _split(instance.name, instance.groups, instance.floor, topology, counts=instance.counts)


@lru_cache(maxsize=REMEMBERED)
def _split(
    name: str, groups: int, floor: int, topology: TopologyConstraintInfo | None, *, counts: bool
) -> tuple[SubGroupShape, ...]:
    """Return a parent and its equal groups; remembered, as each pod of a workload asks for all of them."""
    parent = SubGroupShape(name, min_sub_group=groups, counts=counts)
    leaves = (
        SubGroupShape(_replica(name, index), min_member=floor, parent=name, topology=topology, counts=counts)
        for index in range(groups)
    )
    return (parent, *leaves)


def _topology(instance: RoleInstance) -> TopologyConstraintInfo | None:
    try:
        return role_topology(instance.template or {}, named=instance.role.named_topology)
    except RuleRefused as error:
        raise RuleRefused(f"role {instance.name}: {error}") from error


def _leaf(subject: RuledPod, instances: Sequence[RoleInstance], own: RoleInstance | None) -> str | None:
    if own is None:
        split = next((each.role for each in instances if each.role.split is not None), None)
        if split is not None and isinstance(split.pods, Mapping):
            labels = ", ".join(f"{key}={subject.pod.metadata.labels.get(key)}" for key in split.pods)
            raise RuleRefused(f"the pod's labels ({labels}) name no role of {subject.counts}")
        return None
    if own.role.split is None:
        return own.name
    index = pod_number(subject.pod, own.role.split.by)
    if index is None or index >= own.groups:
        found = "no such label" if index is None else str(index)
        raise RuleRefused(f"label {own.role.split.by} of the pod: found {found}, expected 0 to {own.groups - 1}")
    return _replica(own.name, index)


def _replica(role: str, index: int) -> str:
    return f"{role}-replica-{index}"


# -- reading -----------------------------------------------------------------------------------------------------------


def _holds(conditions: Mapping[str, str], scope: TermInput) -> bool:
    return all(value in map(str, parse_path(text).found(scope)) for text, value in conditions.items())


def _first(texts: Iterable[TextTerm], scope: TermInput) -> int | None:
    return next((found for text in texts if (found := term(text).value(scope)) is not None), None)
