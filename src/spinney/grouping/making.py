"""The pods that a workload makes, as its rule says: for simulations, which have no controllers of workloads."""

import copy
from collections.abc import Iterator, Mapping
from typing import Final

from spinney.api.struct import JSON
from spinney.grouping.floors import role_instances
from spinney.grouping.rules import Rule, term
from spinney.grouping.shapes import RoleInstance
from spinney.grouping.terms import RuleRefused, TermInput, needed, parse_path

MOST_MADE: Final = 10_000
"""How many pods are made up for one workload: a user who may write a Job may write any number into it."""


def pods_made(manifest: JSON, rule: Rule) -> list[JSON]:
    """Return the manifests of a workload's pods; raises :class:`RuleRefused` if the rule does not say what they are."""
    scope = TermInput({"spec": manifest.get("spec") or {}, "status": {}}, annotation=_annotations(manifest).get)
    copies = 1 if rule.copies is None else needed(term(rule.copies.count), scope)
    found: list[JSON] = []
    for number in range(copies):
        suffix = f"-{number}" if rule.copies is not None else ""
        labels = {rule.copies.label: str(number)} if rule.copies is not None else {}
        for name, template, own in _made(rule, scope):
            if len(found) >= MOST_MADE:
                raise RuleRefused(f"it would make more than {MOST_MADE} pods, and no more are made up for one workload")
            found.append(_pod(manifest, f"{name}{suffix}-{len(found)}", template, {**labels, **own}))
    if not found:
        raise RuleRefused("the grouper's rule of its kind does not say which pods it makes, so it cannot be simulated")
    return found


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


def _annotations(manifest: JSON) -> Mapping[str, str]:
    return manifest["metadata"].get("annotations") or {}
