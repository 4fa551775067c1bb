"""Names that are made from those a user chooses: each can exist, and exists once."""

from typing import Any

import pytest

from spinney.api.schema.validate_pod_clique_set import AdmissionPolicy, validate_pod_clique_set
from spinney.api.struct import JSON
from tests.api.samples import a_clique, a_set, binding, defaulted, found

POLICY = AdmissionPolicy(topology_aware=True, topologies={"cluster": binding()})
C, G, T = "spec.template.cliques", "spec.template.podCliqueScalingGroups", "spec.template"
SCALED = {"maxReplicas": 9}


def faults(manifest: JSON, old: JSON | None = None) -> list[tuple[str, str]]:
    """Return path and kind of what is wrong with a set, new or changed."""
    return found(validate_pod_clique_set(defaulted(manifest), POLICY, None if old is None else defaulted(old)))


def a_group(name: str, *cliques: str, **fields: Any) -> JSON:
    """Build a scaling group."""
    return {"name": name, "cliqueNames": list(cliques), **fields}


def called(name: str) -> JSON:
    """Build a set with another name."""
    return a_set() | {"metadata": {"name": name, "namespace": "models"}}


def a_template(name: str) -> JSON:
    """Build a claim template inside a set."""
    requests = [{"name": "d", "exactly": {"deviceClassName": "gpu"}}]
    return {"name": name, "templateSpec": {"spec": {"devices": {"requests": requests}}}}


def shared(name: str, scope: str = "AllReplicas") -> JSON:
    """Build an entry that shares a claim."""
    return {"name": name, "scope": scope}


def waiting(**pod: Any) -> JSON:
    """Build a set whose second clique starts after its first and has more in its pods."""
    spec = {"containers": [{"name": "main", "image": "busybox"}], **pod}
    return a_set(a_clique("first"), a_clique("second", podSpec=spec), cliqueStartupType="CliqueStartupTypeInOrder")


NO_HOSTS = {
    "set": (called("a.b"), "metadata.name"),
    "clique": (a_set(a_clique("a.b")), f"{C}[0].name"),
    "group": (a_set(groups=[a_group("g.h", "worker")]), f"{G}[0].name"),
}


@pytest.mark.parametrize(("manifest", "path"), NO_HOSTS.values(), ids=NO_HOSTS)
def test_a_part_of_a_host_name_has_no_dot(manifest: JSON, path: str) -> None:
    """Set, clique and group names stand in host names, of which a dot would make two."""
    assert faults(manifest) == [(path, "Invalid")]


COLLIDING = {
    "a clique and a member": a_set(a_clique("g-0-b"), a_clique("b"), groups=[a_group("g", "b")]),
    "at a later index": a_set(a_clique("g-17-b"), a_clique("b"), groups=[a_group("g", "b")]),
    "members of two groups": a_set(
        a_clique("1-c"), a_clique("c"), groups=[a_group("g", "1-c"), a_group("g-0", "c", replicas=2)]
    ),
    "members with more between": a_set(
        a_clique("x-1-c"), a_clique("c"), groups=[a_group("g", "x-1-c"), a_group("g-0-x", "c")]
    ),
    "autoscalers": a_set(
        a_clique("g", autoScalingConfig=SCALED), a_clique("b"), groups=[a_group("g", "b", scaleConfig=SCALED)]
    ),
    "a clique and a packed replica": a_set(
        a_clique("g-0"),
        a_clique("b"),
        groups=[a_group("g", "b", topologyConstraint={"topologyName": "cluster", "pack": {"required": "rack"}})],
    ),
}


@pytest.mark.parametrize("manifest", COLLIDING.values(), ids=COLLIDING)
def test_two_parts_never_come_to_one_name(manifest: JSON) -> None:
    """A set in which two objects would be called the same is refused, at the clique whose name does it."""
    assert faults(manifest) == [(f"{C}[0].name", "Duplicate")]


def test_names_that_only_look_alike_are_fine() -> None:
    """Where the joined names differ, parts may resemble each other, and a group may be called as a clique is."""
    groups = [a_group("g", "b"), a_group("g-0", "c")]
    assert faults(a_set(a_clique("g-00-b"), a_clique("b"), a_clique("c"), groups=groups)) == []
    assert faults(a_set(a_clique("g", autoScalingConfig=SCALED), a_clique("b"), groups=[a_group("g", "b")])) == []
    assert faults(a_set(a_clique("g-0"), a_clique("b"), groups=[a_group("g", "b")])) == []


def test_a_claim_is_called_so_that_a_pod_can_name_it() -> None:
    """What a claim is called after its owner and template must be a DNS label, at each level."""
    fits, long = "t" * 53, "t" * 54  # serve-all-t
    assert faults(a_set(resourceSharing=[shared(fits)], resourceClaimTemplates=[a_template(fits)])) == []
    found_long = faults(a_set(resourceSharing=[shared(long)], resourceClaimTemplates=[a_template(long)]))
    assert found_long == [(f"{T}.resourceSharing[0].name", "TooLong")]
    clique = a_clique() | {"resourceSharing": [shared("t" * 45, "PerReplica")]}  # serve-0-worker-0-t
    assert faults(a_set(clique)) == []
    clique = a_clique() | {"resourceSharing": [shared("t" * 47, "PerReplica")]}
    assert faults(a_set(clique)) == [(f"{C}[0].resourceSharing[0].name", "TooLong")]
    group = a_group("g", "worker", resourceSharing=[shared("a.b")])
    assert faults(a_set(groups=[group])) == [(f"{G}[0].resourceSharing[0].name", "Invalid")]


RESERVED: dict[str, JSON] = {
    "initContainers[0]": {"initContainers": [{"name": "grove-initc", "image": "busybox"}]},
    "containers[0]": {"containers": [{"name": "grove-initc", "image": "busybox"}]},
    "volumes[0]": {"volumes": [{"name": "sa-token-secret-vol", "emptyDir": {}}]},
    "volumes[1]": {"volumes": [{"name": "own", "emptyDir": {}}, {"name": "pod-info-vol", "emptyDir": {}}]},
}


@pytest.mark.parametrize("place", RESERVED)
def test_what_a_pod_waits_with_has_its_names_to_itself(place: str) -> None:
    """A pod that starts after others leaves free the names of the init container and volumes it gets."""
    manifest = waiting(**RESERVED[place])
    assert faults(manifest) == [(f"{C}[1].spec.podSpec.{place}.name", "Invalid")]
    manifest["spec"]["template"]["cliqueStartupType"] = "CliqueStartupTypeAnyOrder"
    assert faults(manifest) == []


def test_a_set_from_before_can_change() -> None:
    """An update is not held to rules about names, which it cannot change, nor to those of pods it leaves alone."""
    for manifest in (called("a.b"), COLLIDING["autoscalers"], waiting(**RESERVED["volumes[0]"])):
        scaled = manifest | {"spec": manifest["spec"] | {"replicas": 3}}
        assert faults(scaled, manifest) == []
