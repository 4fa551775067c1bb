"""Creating a PodCliqueSet: each rule, at its exact path."""

from collections.abc import Callable
from typing import Any

import pytest

from spinney.api.field_error import invalid
from spinney.api.grove import PodCliqueSet
from spinney.api.schema.validate_pod_clique_set import (
    AdmissionPolicy,
    pod_clique_set_warnings,
    validate_pod_clique_set,
)
from spinney.api.struct import JSON, convert, to_json
from tests.api.samples import DATA, a_clique, a_set, binding, defaulted, found
from tests.workloads.files import documents

POLICY = AdmissionPolicy(
    schedulers=("default-scheduler", "kai-scheduler"),
    topology_aware=True,
    topologies={"cluster": binding(), "other": binding("other")},
    mnnvl=True,
)
T = "spec.template"
C = f"{T}.cliques"
G = f"{T}.podCliqueScalingGroups"


def faults(manifest: JSON, policy: AdmissionPolicy = POLICY) -> list[tuple[str, str]]:
    """Return path and kind of what is wrong with a new set."""
    return found(validate_pod_clique_set(defaulted(manifest), policy))


def a_group(**fields: Any) -> JSON:
    """Build a scaling group around the clique ``worker``."""
    return {"name": "g", "cliqueNames": ["worker"], **fields}


def with_metadata(**fields: Any) -> JSON:
    """Build a set with other metadata."""
    manifest = a_set()
    manifest["metadata"] = fields
    return manifest


def with_spec(**fields: Any) -> JSON:
    """Build a set with other fields of its spec."""
    manifest = a_set()
    manifest["spec"] |= fields
    return manifest


def a_pod(**fields: Any) -> JSON:
    """Build a pod spec with more, or other, fields than a container."""
    return {"containers": [{"name": "main", "image": "busybox"}], **fields}


def with_pod(**fields: Any) -> JSON:
    """Build a set whose clique has other fields in its pod spec."""
    return a_set(a_clique(podSpec=a_pod(**fields)))


def sharing(name: str = "t", scope: str = "AllReplicas", **fields: Any) -> JSON:
    """Build an entry of resourceSharing."""
    return {"name": name, "scope": scope, **fields}


def a_template(name: str = "t") -> JSON:
    """Build a claim template that asks for a device."""
    return {"name": name, "templateSpec": {"spec": {"devices": {"requests": [{"name": "r"}]}}}}


def explicit(**after: list[str]) -> JSON:
    """Build a set whose cliques start after each other as given."""
    cliques = [a_clique(name, startsAfter=parents) for name, parents in after.items()]
    return a_set(*cliques, cliqueStartupType="CliqueStartupTypeExplicit")


CREATE: dict[str, tuple[JSON, list[tuple[str, str]]]] = {
    "no name": (with_metadata(), [("metadata.name", "Required")]),
    "name is no subdomain": (with_metadata(name="Serve"), [("metadata.name", "Invalid")]),
    "generated name": (with_metadata(generateName="serve-"), []),
    "bad generated name": (with_metadata(generateName="Serve-"), [("metadata.generateName", "Invalid")]),
    "bad label key": (with_metadata(name="a", labels={"/x": "y"}), [("metadata.labels", "Invalid")]),
    "bad label value": (with_metadata(name="a", labels={"x": "-"}), [("metadata.labels[x]", "Invalid")]),
    "bad annotation": (with_metadata(name="a", annotations={"a b": ""}), [("metadata.annotations", "Invalid")]),
    "huge annotations": (
        with_metadata(name="a", annotations={"a": "x" * 300_000}),
        [("metadata.annotations", "TooLong")],
    ),
    "negative replicas": (with_spec(replicas=-1), [("spec.replicas", "Invalid")]),
    "replicas beyond 32 bits": (with_spec(replicas=2**31), [("spec.replicas", "Invalid")]),
    "clique replicas beyond 32 bits": (
        a_set(a_clique(replicas=2**31, minAvailable=1)),
        [(f"{C}[0].spec.replicas", "Invalid")],
    ),
    "unknown strategy": (with_spec(updateStrategy={"type": "X"}), [("spec.updateStrategy.type", "NotSupported")]),
    "unknown start-up": (a_set(cliqueStartupType="X"), [(f"{T}.cliqueStartupType", "Invalid")]),
    "no delay": (a_set(terminationDelay="0s"), [(f"{T}.terminationDelay", "Invalid")]),
    "negative delay": (a_set(terminationDelay="-1s"), [(f"{T}.terminationDelay", "Invalid")]),
    "delay is no duration": (a_set(terminationDelay="soon"), [(f"{T}.terminationDelay", "Invalid")]),
    "no cliques": (a_set(cliques=[]), [(C, "Required")]),
    "unnamed clique": (a_set(a_clique("")), [(f"{C}[0].name", "Required")]),
    "bad clique name": (a_set(a_clique("A")), [(f"{C}[0].name", "Invalid")]),
    "bad clique label": (
        a_set({**a_clique(), "labels": {"a": "!"}}),
        [(f"{C}[0].labels[a]", "Invalid")],
    ),
    "bad clique annotation": (
        a_set({**a_clique(), "annotations": {"/": ""}}),
        [(f"{C}[0].annotations", "Invalid"), (f"{C}[0].annotations", "Invalid")],
    ),
    "two of a name": (
        a_set(a_clique("a"), a_clique("a", roleName="b")),
        [(f"{C}[1].name", "Duplicate")],
    ),
    "two of a role": (
        a_set(a_clique("a", roleName="r"), a_clique("b", roleName="r")),
        [(f"{C}[1].spec.roleName", "Duplicate")],
    ),
    "roles left out": (a_set(a_clique("a", roleName=""), a_clique("b", roleName="")), []),
    "negative clique replicas": (
        a_set(a_clique(replicas=-1, minAvailable=1)),
        [(f"{C}[0].spec.replicas", "Invalid"), (f"{C}[0].spec.minAvailable", "Invalid")],
    ),
    "minimum of zero": (a_set(a_clique(minAvailable=0)), [(f"{C}[0].spec.minAvailable", "Invalid")]),
    "minimum above replicas": (a_set(a_clique(minAvailable=3)), [(f"{C}[0].spec.minAvailable", "Invalid")]),
    "autoscaling below the minimum": (
        a_set(a_clique(autoScalingConfig={"minReplicas": 1, "maxReplicas": 5})),
        [(f"{C}[0].spec.autoScalingConfig.minReplicas", "Invalid")],
    ),
    "autoscaling bounds crossed": (
        a_set(a_clique(autoScalingConfig={"minReplicas": 5, "maxReplicas": 4})),
        [(f"{C}[0].spec.autoScalingConfig.maxReplicas", "Invalid")],
    ),
    "autoscaling below replicas": (
        a_set(a_clique(minAvailable=1, autoScalingConfig={"minReplicas": 1, "maxReplicas": 1})),
        [(f"{C}[0].spec.autoScalingConfig.maxReplicas", "Invalid")],
    ),
    "autoscaled member": (
        a_set(a_clique(autoScalingConfig={"maxReplicas": 2}), groups=[a_group()]),
        [(f"{C}[0].spec.autoScalingConfig", "Invalid")],
    ),
    "starts after nothing": (explicit(a=[""], b=[]), [(f"{C}[0].spec.startsAfter[0]", "Required")]),
    "starts after itself": (explicit(a=["a"], b=[]), [(f"{C}[0].spec.startsAfter[0]", "Invalid")]),
    "starts after one twice": (explicit(a=["b", "b"], b=[]), [(f"{C}[0].spec.startsAfter[1]", "Duplicate")]),
    "starts after a stranger": (explicit(a=["x"], b=[]), [(f"{C}[0].spec.startsAfter[0]", "NotFound")]),
    "starts in a circle": (explicit(a=["b"], b=["c"], c=["a"], d=["a"]), [(C, "Invalid")]),
    "starts in two circles": (explicit(a=["b"], b=["a"], c=["d"], d=["c", "a"]), [(C, "Invalid"), (C, "Invalid")]),
    "order without Explicit is not looked at": (a_set(a_clique(startsAfter=["x"])), []),
    "node named": (with_pod(nodeName="n"), [(f"{C}[0].spec.podSpec.nodeName", "Invalid")]),
    "spread constraints": (
        with_pod(topologySpreadConstraints=[{}]),
        [(f"{C}[0].spec.podSpec.topologySpreadConstraints", "Invalid")],
    ),
    "variable without a name": (
        with_pod(initContainers=[{"name": "first", "image": "busybox", "env": [{}]}]),
        [(f"{C}[0].spec.podSpec.initContainers[0].env[0].name", "Required")],
    ),
    "bad variable": (
        with_pod(containers=[{"name": "main", "image": "busybox", "env": [{"name": "a=b"}]}]),
        [(f"{C}[0].spec.podSpec.containers[0].env[0].name", "Invalid")],
    ),
    "variable twice": (
        with_pod(containers=[{"name": "main", "image": "busybox", "env": [{"name": "A"}, {"name": "A"}]}]),
        [(f"{C}[0].spec.podSpec.containers[0].env[1].name", "Duplicate")],
    ),
    "unknown scheduler": (
        with_pod(schedulerName="x"),
        [(f"{C}[0].spec.podSpec.schedulerName", "Invalid")],
    ),
    "two schedulers": (
        a_set(a_clique("a"), a_clique("b", podSpec=a_pod(schedulerName="kai-scheduler"))),
        [(f"{C}[1].spec.podSpec.schedulerName", "Invalid")],
    ),
    "empty means the default": (
        a_set(a_clique("a"), a_clique("b", podSpec=a_pod(schedulerName="default-scheduler"))),
        [],
    ),
    "unnamed group": (a_set(groups=[a_group(name="")]), [(f"{G}[0].name", "Required")]),
    "bad group name": (a_set(groups=[a_group(name="G")]), [(f"{G}[0].name", "Invalid")]),
    "two groups of a name": (
        a_set(a_clique("a"), a_clique("b"), groups=[a_group(cliqueNames=["a"]), a_group(cliqueNames=["b"])]),
        [(f"{G}[1].name", "Duplicate")],
    ),
    "empty group": (a_set(groups=[a_group(cliqueNames=[])]), [(f"{G}[0].cliqueNames", "Required")]),
    "group of strangers": (
        a_set(groups=[a_group(cliqueNames=["worker", "x"])]),
        [(f"{G}[0].cliqueNames[1]", "NotFound")],
    ),
    "clique in two groups": (
        a_set(groups=[a_group(), a_group(name="h")]),
        [(f"{G}[1].cliqueNames[0]", "Duplicate")],
    ),
    "group without replicas": (
        a_set(groups=[a_group(replicas=0)]),
        [(f"{G}[0].replicas", "Invalid"), (f"{G}[0].minAvailable", "Invalid")],
    ),
    "group minimum of zero": (a_set(groups=[a_group(minAvailable=0)]), [(f"{G}[0].minAvailable", "Invalid")]),
    "group minimum above replicas": (a_set(groups=[a_group(minAvailable=2)]), [(f"{G}[0].minAvailable", "Invalid")]),
    "group scaled below its minimum": (
        a_set(groups=[a_group(replicas=2, minAvailable=2, scaleConfig={"minReplicas": 1, "maxReplicas": 3})]),
        [(f"{G}[0].scaleConfig.minReplicas", "Invalid")],
    ),
    "group scaling bounds crossed": (
        a_set(groups=[a_group(scaleConfig={"minReplicas": 3, "maxReplicas": 2})]),
        [(f"{G}[0].scaleConfig.maxReplicas", "Invalid")],
    ),
    "group scaled below its replicas": (
        a_set(groups=[a_group(replicas=3, scaleConfig={"minReplicas": 1, "maxReplicas": 2})]),
        [(f"{G}[0].scaleConfig.maxReplicas", "Invalid")],
    ),
    "group minimum below zero": (a_set(groups=[a_group(minAvailable=-1)]), [(f"{G}[0].minAvailable", "Invalid")]),
    "generated names too long": (
        with_metadata(generateName="s" * 36 + "-"),
        [("metadata.generateName", "TooLong"), (f"{C}[0].name", "TooLong")],
    ),
    "bad group annotation": (a_set(groups=[a_group(annotations={"": ""})]), [(f"{G}[0].annotations", "Invalid")]),
    "names too long": (
        a_set(a_clique("a" * 41)),
        [("metadata.name", "TooLong"), (f"{C}[0].name", "TooLong")],
    ),
    "member names too long": (
        a_set(a_clique("a" * 30), groups=[a_group(name="g" * 11, cliqueNames=["a" * 30])]),
        [("metadata.name", "TooLong"), (f"{G}[0].name", "TooLong"), (f"{C}[0].name", "TooLong")],
    ),
    "names just fit": (a_set(a_clique("a" * 40)), []),
    "unnamed claim template": (
        a_set(resourceClaimTemplates=[a_template("")]),
        [(f"{T}.resourceClaimTemplates[0].name", "Required")],
    ),
    "claim template twice": (
        a_set(resourceClaimTemplates=[a_template(), a_template()]),
        [(f"{T}.resourceClaimTemplates[1].name", "Duplicate")],
    ),
    "claim template without requests": (
        a_set(resourceClaimTemplates=[{"name": "t", "templateSpec": {"spec": {}}}]),
        [(f"{T}.resourceClaimTemplates[0].templateSpec.spec.devices.requests", "Required")],
    ),
    "filter names a strange clique": (
        a_set(resourceSharing=[sharing(filter={"childCliqueNames": ["x"]})]),
        [(f"{T}.resourceSharing[0].filter.childCliqueNames[0]", "NotFound")],
    ),
    "filter names a strange group": (
        a_set(resourceSharing=[sharing(filter={"childScalingGroupNames": ["x"]})]),
        [(f"{T}.resourceSharing[0].filter.childScalingGroupNames[0]", "NotFound")],
    ),
    "group filter names a clique outside": (
        a_set(
            a_clique(),
            a_clique("out"),
            groups=[a_group(resourceSharing=[sharing(filter={"childCliqueNames": ["out"]})])],
        ),
        [(f"{G}[0].resourceSharing[0].filter.childCliqueNames[0]", "NotFound")],
    ),
    "group filter names groups": (
        a_set(groups=[a_group(resourceSharing=[sharing(filter={"childScalingGroupNames": ["g"]})])]),
        [(f"{G}[0].resourceSharing[0].filter.childScalingGroupNames", "Forbidden")],
    ),
    "clique filter": (
        a_set({**a_clique(), "resourceSharing": [sharing(filter={"childCliqueNames": ["worker"]})]}),
        [(f"{C}[0].resourceSharing[0].filter", "Forbidden")],
    ),
}


@pytest.mark.parametrize(("manifest", "expected"), CREATE.values(), ids=CREATE)
def test_each_rule_names_its_field(manifest: JSON, expected: list[tuple[str, str]]) -> None:
    """A set that breaks one rule is refused at exactly the field that breaks it."""
    assert faults(manifest) == expected


def test_the_full_sample_is_valid() -> None:
    """A set that uses every field is accepted."""
    assert faults(documents(DATA / "pod-clique-set-full.yaml")[0]) == []


def test_every_fault_is_reported() -> None:
    """Faults in different places are all named in one answer."""
    manifest = a_set(a_clique("A", minAvailable=9), terminationDelay="x", cliqueStartupType="y")
    assert {path for path, _ in faults(manifest)} == {
        f"{T}.cliqueStartupType",
        f"{T}.terminationDelay",
        f"{C}[0].name",
        f"{C}[0].spec.minAvailable",
    }


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (lambda t: t.pop("cliqueStartupType"), [(f"{T}.cliqueStartupType", "Required")]),
        (lambda t: t.pop("terminationDelay"), [(f"{T}.terminationDelay", "Required")]),
        (lambda t: t["cliques"][0]["spec"].pop("minAvailable"), [(f"{C}[0].spec.minAvailable", "Required")]),
    ],
)
def test_what_defaulting_fills_in_is_required(spec: Callable[[JSON], object], expected: list[tuple[str, str]]) -> None:
    """An object that escaped defaulting is refused, not guessed at."""
    manifest = to_json(defaulted(a_set()))
    spec(manifest["spec"]["template"])
    assert found(validate_pod_clique_set(convert(PodCliqueSet, manifest), POLICY)) == expected


def test_without_profiles_only_the_default_scheduler_is_valid() -> None:
    """With nothing configured, empty and default-scheduler pass, everything else is refused with what is enabled."""
    policy = AdmissionPolicy()
    assert faults(a_set(), policy) == []
    errors = validate_pod_clique_set(defaulted(with_pod(schedulerName="volcano")), policy)
    assert [str(e) for e in errors] == [
        f'{C}[0].spec.podSpec.schedulerName: Invalid value: "volcano": '
        "is not an enabled scheduler; enabled are: default-scheduler"
    ]


MNNVL = "grove.io/mnnvl-group"


def in_nvlink_group(level: str, group: str) -> tuple[JSON, str]:
    """Build a set with an NVLink group at one level; return it and the path of the annotation."""
    annotated = {"annotations": {MNNVL: group}}
    manifests = {
        "metadata": (with_metadata(name="a", **annotated), f"metadata.annotations[{MNNVL}]"),
        "group": (a_set(groups=[a_group(**annotated)]), f"{G}[0].annotations[{MNNVL}]"),
        "clique": (a_set(a_clique() | annotated), f"{C}[0].annotations[{MNNVL}]"),
    }
    return manifests[level]


@pytest.mark.parametrize("level", ["metadata", "group", "clique"])
def test_a_group_of_nvlink_is_named_well_and_enabled(level: str) -> None:
    """At each level a group is a DNS label; while the feature is off only the opt-out is accepted."""
    for group in ("A", "a b", "a.b", ""):
        manifest, path = in_nvlink_group(level, group)
        assert faults(manifest) == [(path, "Invalid")], group
    manifest, path = in_nvlink_group(level, "fast")
    assert faults(manifest) == []
    assert faults(manifest, AdmissionPolicy()) == [(path, "Invalid")]
    assert faults(in_nvlink_group(level, "none")[0], AdmissionPolicy()) == []


def shared(level: str, *entries: JSON) -> tuple[JSON, str]:
    """Build a set with sharing entries at one level, and its own template ``t``; return it and their path."""
    manifests = {
        "set": (a_set(resourceClaimTemplates=[a_template()], resourceSharing=list(entries)), f"{T}.resourceSharing"),
        "group": (
            a_set(resourceClaimTemplates=[a_template()], groups=[a_group(resourceSharing=list(entries))]),
            f"{G}[0].resourceSharing",
        ),
        "clique": (
            a_set(a_clique() | {"resourceSharing": list(entries)}, resourceClaimTemplates=[a_template()]),
            f"{C}[0].resourceSharing",
        ),
    }
    return manifests[level]


@pytest.mark.parametrize("level", ["set", "group", "clique"])
@pytest.mark.parametrize(
    ("entries", "field", "kind"),
    [
        ([sharing("")], "[0].name", "Required"),
        ([sharing(), sharing()], "[1].name", "Duplicate"),
        ([sharing(namespace="ns")], "[0].namespace", "Invalid"),
        ([sharing(scope="Some")], "[0].scope", "NotSupported"),
    ],
)
def test_sharing_is_checked_at_every_level(level: str, entries: list[JSON], field: str, kind: str) -> None:
    """An entry that shares a claim is held to the same rules on the set, a group and a clique."""
    manifest, path = shared(level, *entries)
    assert faults(manifest) == [(f"{path}{field}", kind)]


@pytest.mark.parametrize("level", ["set", "group"])
def test_a_filter_names_somebody(level: str) -> None:
    """A filter that is there and empty is refused: leaving it out is how to share with all."""
    manifest, path = shared(level, sharing(filter={}))
    assert faults(manifest) == [(f"{path}[0].filter", "Required")]


def constrained(level: str, **constraint: Any) -> JSON:
    """Build a set with a constraint on one level."""
    where: dict[str, JSON] = {level: {"topologyConstraint": constraint}}
    return a_set(
        a_clique() | where.get("clique", {}),
        groups=[a_group() | where.get("group", {})],
        **where.get("set", {}),
    )


PATHS = {"set": T, "group": f"{G}[0]", "clique": f"{C}[0]"}


@pytest.mark.parametrize("level", PATHS)
@pytest.mark.parametrize(
    ("constraint", "field", "kind"),
    [
        ({"topologyName": "cluster", "pack": {"required": "pod"}}, "pack.required", "Invalid"),
        ({"topologyName": "cluster", "pack": {"preferred": "pod"}}, "pack.preferred", "Invalid"),
        ({"topologyName": "gone", "pack": {"required": "rack"}}, "topologyName", "Invalid"),
        ({"pack": {"required": "rack"}}, "topologyName", "Required"),
        ({"topologyName": "cluster", "pack": {}}, "pack", "Required"),
        ({"topologyName": "cluster"}, "pack", "Required"),
        ({"topologyName": "cluster", "packDomain": "rack"}, "packDomain", "Forbidden"),
    ],
)
def test_constraints_are_checked_at_every_level(level: str, constraint: JSON, field: str, kind: str) -> None:
    """A faulty constraint is refused at its own path, on the set, a group or a clique."""
    assert faults(constrained(level, **constraint)) == [(f"{PATHS[level]}.topologyConstraint.{field}", kind)]


@pytest.mark.parametrize("level", PATHS)
def test_constraints_need_the_feature(level: str) -> None:
    """Without topology-aware scheduling any constraint is refused."""
    manifest = constrained(level, topologyName="cluster", pack={"required": "rack"})
    assert faults(manifest, AdmissionPolicy()) == [(f"{PATHS[level]}.topologyConstraint", "Invalid")]


def test_a_domain_has_the_form_of_a_domain() -> None:
    """A name that no binding could define is refused as such."""
    manifest = constrained("set", topologyName="cluster", pack={"required": "Rack!"})
    assert ("spec.template.topologyConstraint.pack.required", "Invalid") in faults(manifest)


def nested(outer: JSON, group: JSON, clique: JSON) -> JSON:
    """Build a set with a constraint on each level, the outer one naming the topology."""
    return a_set(
        a_clique() | {"topologyConstraint": clique},
        groups=[a_group(topologyConstraint=group)],
        topologyConstraint={"topologyName": "cluster", **outer},
    )


def test_a_topology_name_is_inherited() -> None:
    """A group and a clique take the topology of the set around them."""
    assert (
        faults(nested({"pack": {"required": "zone"}}, {"pack": {"required": "rack"}}, {"pack": {"preferred": "host"}}))
        == []
    )


def test_one_set_uses_one_topology() -> None:
    """A second topology name is refused where it stands."""
    manifest = nested(
        {"pack": {"required": "zone"}},
        {"pack": {"required": "rack"}, "topologyName": "other"},
        {"pack": {"required": "host"}},
    )
    expected = [
        (f"{G}[0].topologyConstraint.topologyName", "Invalid"),
        (f"{C}[0].topologyConstraint.topologyName", "Invalid"),
    ]
    assert faults(manifest) == expected


@pytest.mark.parametrize("kind", ["required", "preferred"])
def test_the_inside_is_not_packed_looser_than_the_outside(kind: str) -> None:
    """A clique's domain may not be broader than its group's or its set's."""
    errors = faults(nested({"pack": {kind: "rack"}}, {"pack": {kind: "host"}}, {"pack": {kind: "zone"}}))
    assert errors == [(f"{C}[0].topologyConstraint.pack.{kind}", "Invalid")] * 2
    errors = faults(nested({"pack": {kind: "rack"}}, {"pack": {kind: "zone"}}, {"pack": {kind: "rack"}}))
    assert errors == [(f"{G}[0].topologyConstraint.pack.{kind}", "Invalid")]


@pytest.mark.parametrize("kind", ["required", "preferred"])
def test_each_pair_of_levels_is_compared(kind: str) -> None:
    """Also a clique outside all groups with its set, and a clique with its group where the set says nothing."""
    alone = a_set(
        a_clique() | {"topologyConstraint": {"pack": {kind: "zone"}}},
        topologyConstraint={"topologyName": "cluster", "pack": {kind: "rack"}},
    )
    assert faults(alone) == [(f"{C}[0].topologyConstraint.pack.{kind}", "Invalid")]
    member = a_set(
        a_clique() | {"topologyConstraint": {"pack": {kind: "zone"}}},
        groups=[a_group(topologyConstraint={"topologyName": "cluster", "pack": {kind: "rack"}})],
    )
    assert faults(member) == [(f"{C}[0].topologyConstraint.pack.{kind}", "Invalid")]


def test_a_preference_without_effect_is_warned_about() -> None:
    """Preferring what is broader than required is accepted with a warning."""
    pcs = defaulted(constrained("set", topologyName="cluster", pack={"required": "rack", "preferred": "zone"}))
    assert validate_pod_clique_set(pcs, POLICY) == []
    assert pod_clique_set_warnings(pcs, POLICY) == [
        "spec.template.topologyConstraint.pack.preferred: 'zone' is broader than the required 'rack' and has no effect"
    ]


def test_a_declaration_that_cannot_be_read_is_warned_about() -> None:
    """A set that wants to checkpoint and does not say for how long is accepted, and declares nothing."""
    manifest = a_set(a_clique())
    manifest["metadata"]["annotations"] = {"spinney.dev/checkpoint-grace": "5", "spinney.dev/min-runtime": "20m"}
    (warning,) = pod_clique_set_warnings(defaulted(manifest), POLICY)
    assert warning.startswith("metadata.annotations[spinney.dev/checkpoint-grace]: '5' is not a duration")


def test_a_run_time_that_cannot_be_read_is_warned_about() -> None:
    """Pods of a clique that say "2 hours" state nothing: the warning names the annotation and how to write it."""
    manifest = a_set(a_clique())
    manifest["spec"]["template"]["cliques"][0]["annotations"] = {"spinney.dev/expected-duration": "2 hours"}
    (warning,) = pod_clique_set_warnings(defaulted(manifest), POLICY)
    assert warning.startswith("spec.template.cliques[0].annotations[spinney.dev/expected-duration]: '2 hours' is not a")
    assert "such as 15s or 4h30m" in warning


@pytest.mark.parametrize(("of_set", "said"), [(None, "the default priority"), ("low", "'low'"), ("high", "")])
def test_a_priority_that_only_the_pods_have_is_warned_about(of_set: str | None, said: str) -> None:
    """A gang is scheduled by the class of the set, so one that stands in a pod template alone does nothing for it."""
    manifest = a_set(a_clique())
    manifest["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["priorityClassName"] = "high"
    manifest["spec"]["template"]["priorityClassName"] = of_set
    found = pod_clique_set_warnings(defaulted(manifest), POLICY)
    where = "spec.template.cliques[0].spec.podSpec.priorityClassName: 'high'"
    assert [each.startswith(where) and said in each for each in found] == ([True] if said else [])


@pytest.mark.parametrize(("signal", "warnings"), [("SIGTERM", 0), ("SIGUSR1", 1)])
def test_a_set_may_checkpoint_when_it_is_told_to_end(signal: str, warnings: int) -> None:
    """Another signal than the one that Kubernetes sends is warned about."""
    manifest = a_set(a_clique())
    manifest["metadata"]["annotations"] = {"spinney.dev/checkpoint-grace": signal}
    found = pod_clique_set_warnings(defaulted(manifest), POLICY)
    assert len(found) == warnings
    assert all("SIGTERM is the only signal that is sent" in warning for warning in found)


def test_a_fault_reads_as_in_kubernetes() -> None:
    """Text and status cause look like the API server's own."""
    error = invalid("spec.replicas", -1, "must not be negative")
    assert str(error) == "spec.replicas: Invalid value: -1: must not be negative"
    assert error.cause() == {
        "reason": "FieldValueInvalid",
        "message": "Invalid value: -1: must not be negative",
        "field": "spec.replicas",
    }
