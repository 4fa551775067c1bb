"""Workloads of any kind that have no pods yet: the pods they make by their rule, and the grouper's gangs of them.

For simulations and virtual gangs, where no controllers of workloads run.
"""

import copy
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from spinney.api.core import Pod
from spinney.api.podgang import PodGang
from spinney.api.struct import JSON
from spinney.backends.profiles import ALWAYS_ENABLED
from spinney.grouping import podgangs, selecting
from spinney.grouping.attributes import Conventions
from spinney.grouping.describing import Grouping, describe
from spinney.grouping.loading import built_in
from spinney.grouping.owners import Owner, group_kind
from spinney.grouping.roles import role_instances
from spinney.grouping.rules import POD_KIND, Rule, term
from spinney.grouping.shapes import RoleInstance
from spinney.grouping.terms import RuleRefused, TermInput, needed, parse_path
from spinney.grouping.world import World

MOST_MADE: Final = 10_000
"""How many pods are made up for one workload: a user who may write a Job may write any number into it."""


def rule_for(manifest: JSON) -> Rule | None:
    """Return the rule of a workload that can be simulated: one that says what pods it makes."""
    rule = built_in().get(group_kind(str(manifest.get("apiVersion")), str(manifest.get("kind"))), {})
    return rule if rule is not None and rule.kind != POD_KIND and (rule.makes or rule.roles) else None


def grouped(
    manifest: JSON, rule: Rule, decoded: Callable[[JSON], Pod], classes: set[str], born: datetime
) -> Iterator[Any]:
    """Yield what a cluster with the grouper holds after a workload was applied; raises :class:`Refused`."""
    metadata = {
        **manifest["metadata"],
        "uid": manifest["metadata"].get("uid") or f"simulated-{manifest['metadata']['name']}",
    }
    owner = msgspec.convert({**manifest, "metadata": metadata, "status": {}}, type=Owner)
    pods = [decoded(each) for each in pods_made({**manifest, "metadata": metadata}, rule)]
    conventions = Conventions()
    world = World(peers=lambda owner, pod: pods, priority_classes=classes)
    groupings: dict[str, list[tuple[Pod, Grouping]]] = {}
    for pod in pods:
        if pod.spec.scheduler_name in ("", ALWAYS_ENABLED):
            yield pod  # kube-scheduler learns the group of a pod only when it is made
            continue
        found = describe(pod, (owner,), built_in(), conventions, world)
        groupings.setdefault(podgangs.gang_name(found.gang), []).append((pod, found))
    for name, members in groupings.items():
        single = members[0][1].gang.owner.group_kind == POD_KIND
        groups: dict[str, list[Pod]] = {}
        for pod, found in members:
            alone = single or found.alone
            group = podgangs.group_name(found.sub_group)
            labels = podgangs.alone_labels(found.gang) if alone else selecting.gang_labels(name, group)
            own = msgspec.structs.replace(pod.metadata, labels={**labels, **pod.metadata.labels})
            labelled = msgspec.structs.replace(pod, metadata=own)
            if not alone:
                groups.setdefault(group, []).append(labelled)
            yield labelled
        if groups:
            yield _gang(members[0][1], members[0][0].spec.scheduler_name, groups, born)


def pods_made(manifest: JSON, rule: Rule) -> list[JSON]:
    """Return the manifests of a workload's pods; raises :class:`RuleRefused` if the rule does not say what they are."""
    annotations = manifest["metadata"].get("annotations") or {}
    scope = TermInput({"spec": manifest.get("spec") or {}, "status": {}}, annotation=annotations.get)
    copies = 1 if rule.copies is None else needed(term(rule.copies.count), scope)
    found: list[JSON] = []
    for number in range(copies):
        suffix = f"-{number}" if rule.copies is not None else ""
        labels = {rule.copies.label: str(number)} if rule.copies is not None else {}
        for name, template, own in _made(rule, scope):
            if len(found) >= MOST_MADE:
                raise RuleRefused(f"it would make more than {MOST_MADE} pods, and no more are made up for one workload")
            found.append(_pod(manifest, f"{name}{suffix}-{len(found)}", template, {**labels, **own}))
    if not found and (rule.makes or any(role.makes or role.template for role in rule.roles)):
        raise RuleRefused("it asks for 0 pods, expected at least 1")
    if not found:
        raise RuleRefused("the grouper's rule of its kind does not say which pods it makes, so it cannot be simulated")
    return found


def _gang(found: Grouping, scheduler: str, groups: dict[str, list[Pod]], born: datetime) -> PodGang:
    made = podgangs.pod_gang(found.gang, scheduler, groups)
    metadata = msgspec.structs.replace(made.metadata, uid=f"simulated/{made.metadata.name}", creation_timestamp=born)
    return msgspec.structs.replace(made, metadata=metadata)


def _made(rule: Rule, scope: TermInput) -> Iterator[tuple[str, JSON, dict[str, str]]]:
    """Yield name, template and labels of each pod."""
    for made in rule.makes:
        elements = parse_path(made.each).found(scope) if made.each else [None]
        for each in elements:
            own = TermInput(scope.content, each, annotation=scope.annotation)
            template: JSON | None = next(iter(parse_path(made.template).found(own)), None)
            if template is None:
                raise RuleRefused(f"{made.template}: not there, expected a pod template")
            for _ in range(needed(term(made.count), own)):
                yield "", template, {}
    for instance, own in role_instances(rule, scope):
        paths = instance.role.makes or ((instance.role.template,) if instance.role.template else ())
        templates = [found for path in paths for found in parse_path(path).found(own)]
        if templates and not instance.role.alone:
            for labels in _labels(instance):
                yield f"-{instance.name}", templates[0], labels


def _labels(instance: RoleInstance) -> Iterator[dict[str, str]]:
    """Yield the labels of each pod of a role, by which its rule recognises it."""
    role, labels = instance.role, dict(instance.labels or {})
    first = 1 if role.segments is not None and role.segments.leader else 0
    for group in range(instance.groups):
        for index in range(instance.replicas):
            found = dict(labels)
            if role.split is not None:
                found[role.split.by] = str(group)
            if role.segments is not None:
                found[role.segments.index] = str(index + first)
            yield found


def _pod(manifest: JSON, suffix: str, template: Mapping[str, JSON], labels: Mapping[str, str]) -> JSON:
    metadata, own = manifest["metadata"], copy.deepcopy(dict(template.get("metadata") or {}))
    owner = {
        "apiVersion": manifest["apiVersion"],
        "kind": manifest["kind"],
        "name": metadata["name"],
        "uid": metadata.get("uid") or f"simulated-{metadata['name']}",
        "controller": True,
    }
    own |= {
        "name": f"{metadata['name']}{suffix}",
        "namespace": metadata.get("namespace"),
        "labels": {**(own.get("labels") or {}), **labels},
        "ownerReferences": [owner],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": own, "spec": copy.deepcopy(template.get("spec") or {})}
