"""Objects of schedulers: topology bindings, pod groups, queues and topologies, each rule at its exact path."""

from typing import Any

import pytest

from spinney.api import coscheduling, kai
from spinney.api.schema.validate_kai import validate_kai_topology, validate_queue
from spinney.api.schema.validate_pod_groups import (
    validate_coscheduling_pod_group,
    validate_kai_pod_group,
)
from spinney.api.schema.validate_topology_binding import validate_topology_binding
from spinney.api.struct import JSON, convert
from spinney.api.topology_binding import ClusterTopologyBinding
from tests.api.samples import a_binding, found

S = "spec.schedulerTopologyBindings"


def level(domain: str = "rack", key: str = "example.com/r") -> JSON:
    """Build a level of a topology binding."""
    return {"domain": domain, "key": key}


def bound(*names: str) -> list[JSON]:
    """Build bindings of schedulers to topologies of their own."""
    return [{"schedulerName": name, "topologyReference": "theirs"} for name in names]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, []),
        ({"levels": []}, [("spec.levels", "Required")]),
        ({"levels": [level(), level(key="a/b")]}, [("spec.levels[1].domain", "Duplicate")]),
        ({"levels": [level(), level("host")]}, [("spec.levels[1].key", "Duplicate")]),
        ({"levels": [level("Rack")]}, [("spec.levels[0].domain", "Invalid")]),
        ({"levels": [level(key="a b")]}, [("spec.levels[0].key", "Invalid")]),
        ({"schedulerTopologyBindings": bound("kai-scheduler")}, []),
        (
            {"schedulerTopologyBindings": bound("kai-scheduler", "kai-scheduler")},
            [(f"{S}[1].schedulerName", "Duplicate")],
        ),
        ({"schedulerTopologyBindings": bound("gone")}, [(f"{S}[0].schedulerName", "Invalid")]),
        ({"schedulerTopologyBindings": bound("default-scheduler")}, [(f"{S}[0].schedulerName", "Invalid")]),
    ],
)
def test_topology_bindings(spec: JSON, expected: list[tuple[str, str]]) -> None:
    """Levels are unique and well named; a scheduler is bound once, enabled, and knows topologies.

    A fault of a binding also has the path by which Grove names it.
    """
    manifest = a_binding()
    manifest["spec"] |= spec
    errors = validate_topology_binding(
        convert(ClusterTopologyBinding, manifest),
        schedulers=("default-scheduler", "kai-scheduler"),
        topology_aware=("kai-scheduler",),
    )
    assert found(errors) == expected
    for error in errors:
        if error.path.startswith(S):
            assert error.path.replace(S, "spec.schedulerTopologyReferences") in error.text


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"minMember": 1, "scheduleTimeoutSeconds": 1, "minResources": {"cpu": "1", "memory": 5}}, []),
        ({"minMember": 0}, [("spec.minMember", "Invalid")]),
        ({"minMember": 1, "scheduleTimeoutSeconds": 0}, [("spec.scheduleTimeoutSeconds", "Invalid")]),
        ({"minMember": 1, "minResources": {"cpu": "lots"}}, [("spec.minResources[cpu]", "Invalid")]),
        ({"minMember": 1, "minResources": {"cpu": "-1"}}, [("spec.minResources[cpu]", "Invalid")]),
    ],
)
def test_coscheduling_pod_groups(spec: JSON, expected: list[tuple[str, str]]) -> None:
    """A group has at least one member, a timeout that lets it wait, and amounts that are amounts."""
    group = convert(coscheduling.PodGroup, {"metadata": {"name": "g"}, "spec": spec})
    assert found(validate_coscheduling_pod_group(group)) == expected


def sub(name: str, **fields: Any) -> JSON:
    """Build a sub-group."""
    return {"name": name, **fields}


def a_kai_group(**spec: Any) -> kai.PodGroup:
    return convert(kai.PodGroup, {"metadata": {"name": "g"}, "spec": {"queue": "q", **spec}})


TREES: dict[str, tuple[JSON, list[tuple[str, str]]]] = {
    "flat": ({"minMember": 2}, []),
    "tree": (
        {
            "minSubGroup": 1,
            "subGroups": [sub("o", minSubGroup=1), sub("i", parent="o", minMember=1), sub("j", minMember=0)],
        },
        [],
    ),
    "both minimums": ({"minMember": 1, "minSubGroup": 1}, [("spec.minSubGroup", "Invalid")]),
    "negative": ({"minMember": -1}, [("spec.minMember", "Invalid")]),
    "preemptibility": ({"preemptibility": "maybe"}, [("spec.preemptibility", "NotSupported")]),
    "delay": ({"preemptionDelay": "x"}, [("spec.preemptionDelay", "Invalid")]),
    "grace": ({"stalenessGracePeriod": "x"}, [("spec.stalenessGracePeriod", "Invalid")]),
    "negative grace": ({"stalenessGracePeriod": "-1s"}, []),
    "bad name": ({"subGroups": [sub("A", minMember=1)]}, [("spec.subGroups[0].name", "Invalid")]),
    "duplicate": (
        {"subGroups": [sub("a", minMember=1), sub("a", minMember=1)]},
        [("spec.subGroups[1].name", "Duplicate")],
    ),
    "unknown parent": (
        {"subGroups": [sub("a", parent="x", minMember=1)]},
        [("spec.subGroups[0].parent", "NotFound")],
    ),
    "own parent": ({"subGroups": [sub("a", parent="a")]}, [("spec.subGroups[0].parent", "Invalid")]),
    "circle": ({"subGroups": [sub("a", parent="b"), sub("b", parent="a")]}, [("spec.subGroups", "Invalid")]),
    "both minimums below": (
        {"subGroups": [sub("o", minMember=1, minSubGroup=1), sub("i", parent="o", minMember=1)]},
        [("spec.subGroups[0].minSubGroup", "Invalid"), ("spec.subGroups[0].minMember", "Forbidden")],
    ),
    "leaf without pods": ({"subGroups": [sub("a")]}, [("spec.subGroups[0].minMember", "Required")]),
    "leaf with sub-groups": (
        {"subGroups": [sub("a", minSubGroup=1)]},
        [("spec.subGroups[0].minMember", "Required"), ("spec.subGroups[0].minSubGroup", "Forbidden")],
    ),
    "inner with pods": (
        {"subGroups": [sub("o", minMember=1), sub("i", parent="o", minMember=1)]},
        [("spec.subGroups[0].minMember", "Forbidden")],
    ),
}


@pytest.mark.parametrize(("spec", "expected"), TREES.values(), ids=TREES)
def test_kai_pod_groups(spec: JSON, expected: list[tuple[str, str]]) -> None:
    """Sub-groups form a tree whose leaves count pods and whose inner nodes count sub-groups."""
    assert found(validate_kai_pod_group(a_kai_group(**spec))) == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"resources": {}}, []),
        ({"resources": {"gpu": {"quota": -1, "limit": -1, "overQuotaWeight": 1}}}, []),
        ({}, [("spec.resources", "Required")]),
        ({"resources": {"gpu": {"quota": -2}}}, [("spec.resources.gpu.quota", "Invalid")]),
        ({"resources": {"memory": {"limit": -0.5}}}, [("spec.resources.memory.limit", "Invalid")]),
        ({"resources": {}, "parentQueue": "q"}, [("spec.parentQueue", "Invalid")]),
        ({"resources": {}, "preemptMinRuntime": "x"}, [("spec.preemptMinRuntime", "Invalid")]),
        ({"resources": {}, "reclaimMinRuntime": "x"}, [("spec.reclaimMinRuntime", "Invalid")]),
    ],
)
def test_queues(spec: JSON, expected: list[tuple[str, str]]) -> None:
    """A queue says what it may use, and is not its own parent."""
    assert found(validate_queue(convert(kai.Queue, {"metadata": {"name": "q"}, "spec": spec}))) == expected


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        ([{"nodeLabel": "zone", "alias": "z"}, {"nodeLabel": "kubernetes.io/hostname"}], []),
        ([], [("spec.levels", "Required")]),
        ([{"nodeLabel": f"l{i}"} for i in range(17)], [("spec.levels", "Invalid")]),
        ([{"nodeLabel": "a"}, {"nodeLabel": "a"}], [("spec.levels[1].nodeLabel", "Duplicate")]),
        ([{"nodeLabel": "a b"}], [("spec.levels[0].nodeLabel", "Invalid")]),
        (
            [{"nodeLabel": "kubernetes.io/hostname"}, {"nodeLabel": "a"}],
            [("spec.levels[0].nodeLabel", "Invalid")],
        ),
        ([{"nodeLabel": "a", "alias": "x"}, {"nodeLabel": "b", "alias": "x"}], [("spec.levels[1].alias", "Duplicate")]),
        ([{"nodeLabel": "a", "alias": "b"}, {"nodeLabel": "b"}], [("spec.levels[0].alias", "Invalid")]),
    ],
)
def test_topologies(levels: list[JSON], expected: list[tuple[str, str]]) -> None:
    """Levels and aliases are unique, and hosts are the finest level."""
    manifest = {"metadata": {"name": "t"}, "spec": {"levels": levels}}
    topology = convert(kai.Topology, manifest)
    assert found(validate_kai_topology(topology)) == expected
