"""Validation of pod groups: coscheduling's flat one, and KAI's with its tree of sub-groups."""

from collections.abc import Iterator, Mapping

from spinney.api import coscheduling, kai
from spinney.api.durations import InvalidDuration, parse_duration
from spinney.api.field_error import (
    FieldError,
    FieldPath,
    duplicate,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
)
from spinney.api.names import dns_label_faults
from spinney.api.quantity import InvalidQuantity, Quantity, RawQuantity
from spinney.api.schema.validate_cliques import cycles
from spinney.api.schema.validate_metadata import validate_metadata

_SPEC = FieldPath("spec")
_SUB_GROUPS = FieldPath("spec.subGroups")


def validate_coscheduling_pod_group(group: coscheduling.PodGroup) -> list[FieldError]:
    """Return every fault of a ``scheduling.x-k8s.io`` pod group."""
    errors = [*validate_metadata(group.metadata)]
    spec = group.spec
    if spec.min_member < 1:
        errors.append(invalid(_SPEC.child("minMember"), spec.min_member, "must be at least 1"))
    timeout = spec.schedule_timeout_seconds
    if timeout is not None and timeout < 1:
        where = _SPEC.child("scheduleTimeoutSeconds")
        errors.append(invalid(where, timeout, "must be at least 1; leave it out for the scheduler's default"))
    return [*errors, *validate_resources(spec.min_resources, _SPEC.child("minResources"))]


def validate_resources(resources: Mapping[str, RawQuantity], path: FieldPath) -> Iterator[FieldError]:
    """Check that every amount is a quantity and none is negative."""
    for name, text in resources.items():
        try:
            quantity = Quantity.parse(text)
        except InvalidQuantity as fault:
            yield invalid(path.key(name), text, str(fault))
            continue
        if quantity.nano < 0:
            yield invalid(path.key(name), text, "must not be negative")


def validate_duration(text: str | None, path: FieldPath) -> list[FieldError]:
    """Check that a text, if given, is a duration."""
    if text is None:
        return []
    try:
        parse_duration(text)
    except InvalidDuration as fault:
        return [invalid(path, text, str(fault))]
    return []


def validate_kai_pod_group(group: kai.PodGroup) -> list[FieldError]:
    """Return every fault of a KAI pod group."""
    spec = group.spec
    errors = [*validate_metadata(group.metadata)]
    errors += _minimums(spec.min_member, spec.min_sub_group, _SPEC)
    if spec.preemptibility not in {None, "", kai.PREEMPTIBLE, kai.NON_PREEMPTIBLE}:
        supported = (kai.PREEMPTIBLE, kai.NON_PREEMPTIBLE)
        errors.append(not_supported(_SPEC.child("preemptibility"), spec.preemptibility, supported))
    errors += validate_duration(spec.preemption_delay, _SPEC.child("preemptionDelay"))
    errors += validate_duration(spec.staleness_grace_period, _SPEC.child("stalenessGracePeriod"))
    return [*errors, *_tree(spec.sub_groups), *_roles(spec.sub_groups)]


def _minimums(members: int | None, sub_groups: int | None, path: FieldPath) -> Iterator[FieldError]:
    yield from (
        invalid(path.child(name), found, "must not be negative")
        for name, found in (("minMember", members), ("minSubGroup", sub_groups))
        if found is not None and found < 0
    )
    if members is not None and sub_groups is not None:
        yield invalid(path.child("minSubGroup"), sub_groups, "must not be set together with minMember")


def _tree(sub_groups: tuple[kai.SubGroup, ...]) -> Iterator[FieldError]:
    names: set[str] = set()
    known = {sub.name for sub in sub_groups}
    for i, sub in enumerate(sub_groups):
        here = _SUB_GROUPS.index(i)
        yield from (invalid(here.child("name"), sub.name, fault) for fault in dns_label_faults(sub.name))
        if sub.name in names:
            yield duplicate(here.child("name"), sub.name)
        names.add(sub.name)
        if sub.parent == sub.name:
            yield invalid(here.child("parent"), sub.parent, "a sub-group cannot be its own parent")
        elif sub.parent and sub.parent not in known:
            yield not_found(here.child("parent"), sub.parent, "no such sub-group")
        yield from _minimums(sub.min_member, sub.min_sub_group, here)
    upwards = {sub.name: (sub.parent,) if sub.parent else () for sub in sub_groups}
    yield from (
        invalid(_SUB_GROUPS, " -> ".join(cycle), "sub-groups are each other's parents in a circle")
        for cycle in cycles(upwards)
    )


def _roles(sub_groups: tuple[kai.SubGroup, ...]) -> Iterator[FieldError]:
    """Check that leaves count pods and inner sub-groups count sub-groups."""
    children = _children(sub_groups)
    for i, sub in enumerate(sub_groups):
        here = _SUB_GROUPS.index(i)
        if sub.name in children:
            if sub.min_member is not None:
                yield forbidden(here.child("minMember"), "a sub-group with sub-groups holds no pods itself")
            continue
        if sub.min_member is None:
            yield required(here.child("minMember"), "a sub-group without sub-groups must say how many pods")
        if sub.min_sub_group is not None:
            yield forbidden(here.child("minSubGroup"), "there are no sub-groups below this one")


def _children(sub_groups: tuple[kai.SubGroup, ...]) -> dict[str, list[str]]:
    """Return sub-group names by parent; those directly below the pod group are under the empty name."""
    found: dict[str, list[str]] = {}
    for sub in sub_groups:
        found.setdefault(sub.parent or "", []).append(sub.name)
    return found
