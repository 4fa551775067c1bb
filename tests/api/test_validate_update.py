"""Updating a PodCliqueSet: what may change, and what may not."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from spinney.api.schema.validate_pod_clique_set import (
    AdmissionPolicy,
    pod_clique_set_warnings,
    validate_pod_clique_set,
)
from spinney.api.struct import JSON
from tests.api.samples import a_clique, a_set, binding, defaulted, found

T = "spec.template"
C = f"{T}.cliques"
G = f"{T}.podCliqueScalingGroups"
MNNVL = "grove.io/mnnvl-group"
POLICY = AdmissionPolicy(topology_aware=True, topologies={"cluster": binding()}, mnnvl=True)


def a_pair(**template: Any) -> JSON:
    """Build a set of two cliques, the second in a group."""
    return a_set(
        a_clique("a", minAvailable=1),
        a_clique("b"),
        groups=[{"name": "g", "cliqueNames": ["b"], "replicas": 2}],
        **template,
    )


def faults(old: JSON, change: Callable[[JSON], object], policy: AdmissionPolicy = POLICY) -> list[tuple[str, str]]:
    """Return path and kind of what is wrong with a change of a set."""
    new = copy.deepcopy(old)
    change(new)
    return found(validate_pod_clique_set(defaulted(new), policy, defaulted(old)))


def set_at(*path: str | int, to: Any) -> Callable[[JSON], None]:
    """Return a change of one field."""

    def change(manifest: Any) -> None:
        for key in path[:-1]:
            manifest = manifest[key]
        manifest[path[-1]] = to

    return change


def template(*path: str | int, to: Any) -> Callable[[JSON], None]:
    """Return a change of one field of the template."""
    return set_at("spec", "template", *path, to=to)


CLAIMS = [{"name": "t", "templateSpec": {"spec": {"devices": {"requests": [{"name": "r"}]}}}}]
SHARING = [{"name": "x", "scope": "AllReplicas"}]

FIXED: dict[str, tuple[Callable[[JSON], object], list[tuple[str, str]]]] = {
    "start-up type": (
        template("cliqueStartupType", to="CliqueStartupTypeInOrder"),
        [(f"{T}.cliqueStartupType", "Invalid")],
    ),
    "claim templates": (template("resourceClaimTemplates", to=CLAIMS), [(f"{T}.resourceClaimTemplates", "Invalid")]),
    "sharing": (template("resourceSharing", to=SHARING), [(f"{T}.resourceSharing", "Invalid")]),
    "clique sharing": (template("cliques", 0, "resourceSharing", to=SHARING), [(f"{C}[0].resourceSharing", "Invalid")]),
    "group sharing": (
        template("podCliqueScalingGroups", 0, "resourceSharing", to=SHARING),
        [(f"{G}[0].resourceSharing", "Invalid")],
    ),
    "role": (template("cliques", 0, "spec", "roleName", to="x"), [(f"{C}[0].spec.roleName", "Invalid")]),
    "minimum": (template("cliques", 0, "spec", "minAvailable", to=2), [(f"{C}[0].spec.minAvailable", "Invalid")]),
    "starts after": (
        template("cliques", 0, "spec", "startsAfter", to=["b"]),
        [(f"{C}[0].spec.startsAfter", "Invalid")],
    ),
    "scheduler": (
        template("cliques", 0, "spec", "podSpec", "schedulerName", to="default-scheduler"),
        [(f"{C}[0].spec.podSpec.schedulerName", "Invalid")],
    ),
    "clique added": (lambda m: m["spec"]["template"]["cliques"].append(a_clique("c")), [(C, "Forbidden")]),
    "clique removed": (
        lambda m: (
            m["spec"]["template"]["cliques"].pop(),
            m["spec"]["template"].pop("podCliqueScalingGroups"),
        ),
        [(C, "Forbidden"), (G, "Forbidden")],
    ),
    "group added": (
        lambda m: m["spec"]["template"]["podCliqueScalingGroups"].append({"name": "h", "cliqueNames": ["a"]}),
        [(G, "Forbidden")],
    ),
    "group renamed": (template("podCliqueScalingGroups", 0, "name", to="h"), [(G, "Forbidden")]),
    "clique renamed": (template("cliques", 0, "name", to="z"), [(C, "Forbidden")]),
    "group removed": (template("podCliqueScalingGroups", to=[]), [(G, "Forbidden")]),
    "group members": (
        template("podCliqueScalingGroups", 0, "cliqueNames", to=["b", "a"]),
        [(f"{G}[0].cliqueNames", "Invalid")],
    ),
    "group minimum": (
        template("podCliqueScalingGroups", 0, "minAvailable", to=2),
        [(f"{G}[0].minAvailable", "Invalid")],
    ),
    "MNNVL of a clique": (
        template("cliques", 0, "annotations", to={MNNVL: "x"}),
        [(f"{C}[0].annotations[{MNNVL}]", "Invalid")],
    ),
    "MNNVL of a group": (
        template("podCliqueScalingGroups", 0, "annotations", to={MNNVL: "x"}),
        [(f"{G}[0].annotations[{MNNVL}]", "Invalid")],
    ),
    "MNNVL of the set": (
        set_at("metadata", "annotations", to={MNNVL: "x"}),
        [(f"metadata.annotations[{MNNVL}]", "Invalid")],
    ),
    "constraint added": (
        template("topologyConstraint", to={"topologyName": "cluster", "pack": {"required": "rack"}}),
        [(f"{T}.topologyConstraint", "Forbidden")],
    ),
}


@pytest.mark.parametrize(("change", "expected"), FIXED.values(), ids=FIXED)
def test_what_is_fixed_cannot_change(change: Callable[[JSON], object], expected: list[tuple[str, str]]) -> None:
    """A change of a fixed field is refused at that field."""
    assert faults(a_pair(), change) == expected


FREE: dict[str, Callable[[JSON], object]] = {
    "replicas": set_at("spec", "replicas", to=5),
    "strategy": set_at("spec", "updateStrategy", to={"type": "OnDelete"}),
    "priority": template("priorityClassName", to="high"),
    "delay": template("terminationDelay", to="1h"),
    "service": template("headlessServiceConfig", to={"publishNotReadyAddresses": False}),
    "clique replicas": template("cliques", 0, "spec", "replicas", to=7),
    "group replicas": template("podCliqueScalingGroups", 0, "replicas", to=7),
    "image": template("cliques", 0, "spec", "podSpec", "containers", to=[{"name": "main", "image": "new"}]),
    "labels": template("cliques", 0, "labels", to={"a": "b"}),
    "order of cliques": lambda m: m["spec"]["template"]["cliques"].reverse(),
}


@pytest.mark.parametrize("change", FREE.values(), ids=FREE)
def test_what_is_free_can_change(change: Callable[[JSON], object]) -> None:
    """Images, sizes and policies of an existing set may change, and cliques that start in any order may move."""
    assert faults(a_pair(), change) == []


def test_the_rules_of_creation_hold_for_updates() -> None:
    """A changed field must be valid too, while placement fields from before are left alone."""
    old = a_pair()
    old["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["nodeName"] = "n"
    assert faults(old, template("terminationDelay", to="x")) == [(f"{T}.terminationDelay", "Invalid")]


@pytest.mark.parametrize("kind", ["CliqueStartupTypeInOrder", "CliqueStartupTypeExplicit"])
def test_the_order_of_ordered_cliques_is_fixed(kind: str) -> None:
    """Where order decides who starts first, it cannot change."""
    assert faults(a_pair(cliqueStartupType=kind), lambda m: m["spec"]["template"]["cliques"].reverse()) == [
        (C, "Invalid")
    ]


def test_metadata_can_change_whatever_became_of_the_schedulers() -> None:
    """A set that names a scheduler no longer enabled can still be labelled and lose its finalizers."""
    old = a_set(a_clique(podSpec={"schedulerName": "gone"}))
    assert faults(old, set_at("metadata", "finalizers", to=[])) == []
    assert faults(old, set_at("spec", "replicas", to=3)) == [(f"{C}[0].spec.podSpec.schedulerName", "Invalid")]


ANNOTATED: dict[str, tuple[tuple[str | int, ...], str]] = {
    "set": (("metadata", "annotations"), f"metadata.annotations[{MNNVL}]"),
    "clique": (("spec", "template", "cliques", 0, "annotations"), f"{C}[0].annotations[{MNNVL}]"),
    "group": (("spec", "template", "podCliqueScalingGroups", 0, "annotations"), f"{G}[0].annotations[{MNNVL}]"),
}


@pytest.mark.parametrize("level", ANNOTATED)
@pytest.mark.parametrize(
    ("before", "after"), [({}, {MNNVL: "a"}), ({MNNVL: "a"}, {MNNVL: "b"}), ({MNNVL: "a"}, {}), ({MNNVL: "none"}, {})]
)
def test_the_nvlink_group_is_fixed_at_every_level(level: str, before: JSON, after: JSON) -> None:
    """It can be neither added, nor changed, nor removed, on the set, a clique or a group."""
    place, path = ANNOTATED[level]
    old = a_pair()
    set_at(*place, to=before)(old)
    assert faults(old, set_at(*place, to=after)) == [(path, "Invalid")]
    assert faults(old, set_at("spec", "replicas", to=3)) == []


@pytest.mark.parametrize(
    ("place", "path"),
    [(("cliques", 0), f"{C}[0]"), (("podCliqueScalingGroups", 0), f"{G}[0]")],
    ids=["clique", "group"],
)
def test_constraints_of_parts_are_fixed(place: tuple[str | int, ...], path: str) -> None:
    """On a clique or a group, too, a constraint is neither added, nor changed, nor removed."""
    old, where = a_pair(), f"{path}.topologyConstraint"
    add = template(*place, "topologyConstraint", to={"topologyName": "cluster", "pack": {"required": "rack"}})
    assert faults(old, add) == [(where, "Forbidden")]
    add(old)
    narrow = template(*place, "topologyConstraint", to={"topologyName": "cluster", "pack": {"required": "host"}})
    assert faults(old, narrow) == [(where, "Forbidden")]
    assert faults(old, template(*place, "topologyConstraint", to=None)) == [(where, "Forbidden")]


PINNED = {"topologyName": "cluster", "pack": {"required": "rack"}}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (PINNED, {"topologyName": "cluster", "pack": {"required": "host"}}, [(f"{T}.topologyConstraint", "Forbidden")]),
        (PINNED, None, [(f"{T}.topologyConstraint", "Forbidden")]),
        (
            PINNED,
            {"topologyName": "other", "pack": {"required": "rack"}},
            [(f"{T}.topologyConstraint.topologyName", "Forbidden")],
        ),
        (PINNED, {"pack": {"required": "rack"}}, [(f"{T}.topologyConstraint.topologyName", "Forbidden")]),
        ({"topologyName": "cluster", "packDomain": "rack"}, PINNED, []),
        ({"packDomain": "rack"}, {"packDomain": "rack", "topologyName": "cluster"}, []),
        ({"packDomain": "rack"}, PINNED, []),
        (
            {"packDomain": "rack"},
            {"packDomain": "rack", "topologyName": "gone"},
            [(f"{T}.topologyConstraint.topologyName", "Invalid")],
        ),
        (
            {"packDomain": "pod"},
            {"packDomain": "pod", "topologyName": "cluster"},
            [(f"{T}.topologyConstraint.packDomain", "Invalid")],
        ),
        (
            {"topologyName": "cluster", "packDomain": "rack"},
            {"topologyName": "cluster", "packDomain": "rack", "pack": {"required": "rack"}},
            [(f"{T}.topologyConstraint.packDomain", "Invalid")],
        ),
        (
            {"topologyName": "cluster", "packDomain": "rack"},
            {"topologyName": "cluster", "pack": {"required": "host"}},
            [(f"{T}.topologyConstraint", "Forbidden")],
        ),
    ],
)
def test_constraints_stay_but_for_repairs(before: JSON, after: JSON | None, expected: list[tuple[str, str]]) -> None:
    """Only the old spelling may be replaced by the new one, and be given the topology name it lacked."""

    def change(manifest: JSON) -> None:
        manifest["spec"]["replicas"] = 9
        if after is None:
            del manifest["spec"]["template"]["topologyConstraint"]
        else:
            manifest["spec"]["template"]["topologyConstraint"] = after

    assert faults(a_pair(topologyConstraint=before), change) == expected


def test_the_old_spelling_is_warned_about() -> None:
    """A set that still uses packDomain is told what to use instead."""
    pcs = defaulted(a_pair(topologyConstraint={"topologyName": "cluster", "packDomain": "rack"}))
    assert pod_clique_set_warnings(pcs, POLICY) == [
        "spec.template.topologyConstraint.packDomain is deprecated: use pack.required"
    ]


def test_replicas_of_what_exists_are_said_to_stay() -> None:
    """A change of replicas in the template is accepted, as in Grove, and the user is told how to scale what exists."""
    old = {**a_pair(), "metadata": {"name": "model"}}
    old["spec"]["replicas"] = 1
    new = copy.deepcopy(old)
    template("cliques", 0, "spec", "replicas", to=4)(new)
    template("podCliqueScalingGroups", 0, "replicas", to=3)(new)

    assert faults(old, lambda manifest: manifest.update(new)) == []
    clique, group = pod_clique_set_warnings(defaulted(new), POLICY, defaulted(old))
    assert clique.startswith(f"{C}[0].spec.replicas: the change from 2 to 4 counts for what is made from now on")
    assert clique.endswith("kubectl scale podclique model-0-a --replicas=4")
    assert group.startswith(f"{G}[0].replicas: the change from 2 to 3 ")
    assert group.endswith("kubectl scale podcliquescalinggroup model-0-g --replicas=3")

    old["spec"]["replicas"] = new["spec"]["replicas"] = 0
    assert pod_clique_set_warnings(defaulted(new), POLICY, defaulted(old)) == []
