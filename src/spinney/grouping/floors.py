"""How many pods a workload needs, and in which sub-groups: a rule applied to its counts.

A rule without roles has one floor. With roles each counts pods of its own; a role that starts later than others
(``after``) is not needed until one of its pods exists, which keeps a workload whose parts are made one after the other
from waiting for itself.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from spinney.api.core import Pod
from spinney.explain.amounts import first_few
from spinney.grouping.attributes import MIN_MEMBER
from spinney.grouping.owners import Owner
from spinney.grouping.roles import CurrentRoles, GangRoles, RememberedRoles, Roles, holds
from spinney.grouping.rules import POD_KIND, Rule, TextTerm, term
from spinney.grouping.segments import segmented
from spinney.grouping.shapes import RoleInstance, Shape, pod_number
from spinney.grouping.terms import MOST_PODS, RuleRefused, TermInput, needed, parse_path

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
    started: dict[object, frozenset[str]] = field(default_factory=dict)
    """Which roles have pods among the peers, as found for another pod of the workload."""
    roles: RememberedRoles = field(default_factory=RememberedRoles)

    def annotation(self, key: str) -> str | None:
        """Return an annotation of the workload: of the object with the counts, else of the owners, nearest first."""
        objects = (self.counts, self.owner, *self.chain)
        return next((found for each in objects if (found := each.metadata.annotations.get(key))), None)

    @property
    def scope(self) -> TermInput:
        """Return what terms of the rule are evaluated in."""
        pod = self.pod.metadata.annotations
        return TermInput(self.counts.content, annotation=self.annotation, pod_annotation=pod.get)


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
    roles = subject.roles.of(rule, scope, keep_empty=override is not None)
    return _with_roles(subject, _current(subject, roles, override), roles.place(subject.pod))


def _flat(subject: RuledPod, override: int | None) -> Shape:
    rule, scope = subject.rule, subject.scope
    floor = needed(term(rule.floor), scope) if override is None else override
    problems: list[str] = []
    least = 0 if rule.zero else 1
    if not least <= floor <= MOST_PODS:
        raise RuleRefused(f"{rule.floor}: comes to {floor}, expected {least} to {MOST_PODS}")
    if rule.one_by_one and floor > 1 and holds(rule.one_by_one, scope):
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


def _current(subject: RuledPod, roles: Roles, override: int | None) -> CurrentRoles:
    """Return the roles as they are needed now; a floor that was asked for is shared out among them."""
    found = roles.without(_not_started(subject, roles))
    return found if override is None else found.with_total(override)


def _not_started(subject: RuledPod, roles: Roles) -> frozenset[str]:
    """Return the roles that start later and have not: none of their pods exists and is not on its way out."""
    if not roles.starting_later:
        return frozenset()
    if roles not in subject.started:
        subject.started[roles] = roles.started(subject.peers())
    return roles.starting_later - subject.started[roles] - roles.started((subject.pod,))


def _with_roles(subject: RuledPod, current: CurrentRoles, place: int | None) -> Shape:
    rule = subject.rule
    listed = current.grouped if rule.root else current.counted
    own = current.instances[place] if place is not None else None
    if not rule.root and listed.pods == 0 and not rule.zero:
        raise RuleRefused(f"{subject.counts}: all roles together need 0 pods, expected at least 1")
    shape = Shape(
        min_member=None if rule.root else listed.pods,
        min_sub_group=_root(subject, listed),
        alone=own is not None and own.role.alone,
        starts_later=own is not None and own.starts_later,
        problems=listed.problems,
    )
    if own is not None and (own.role.alone or not (rule.root or own.counts)):
        own = None
    if listed.with_segments is not None:
        cut = segmented(subject.pod, subject.scope, listed.instances, listed.with_segments, own)
        if cut is not None:
            return replace(shape, sub_groups=cut[0], role=cut[1])
    return replace(shape, sub_groups=listed.sub_groups, role=_leaf(subject, current.instances, own))


def _root(subject: RuledPod, listed: GangRoles) -> int | None:
    for text in subject.rule.root:
        if text == "all":
            return listed.needed
        found = term(text).value(subject.scope)
        if found is not None:
            return min(found, len(listed.instances))
    return None


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
    return own.part(index)


# -- reading -----------------------------------------------------------------------------------------------------------


def _first(texts: Iterable[TextTerm], scope: TermInput) -> int | None:
    return next((found for text in texts if (found := term(text).value(scope)) is not None), None)
