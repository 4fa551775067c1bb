"""Objects decode, and encode back to what they were."""

import pytest

from spinney.api import (
    coordination,
    coscheduling,
    grove,
    kai,
    podgang,
    policy,
    scheduling,
    topology_binding,
    volcano,
    workload_v1alpha1,
    workload_v1alpha2,
    workload_v1beta1,
)
from spinney.api.schema.validate_kai import validate_queue
from spinney.api.schema.validate_pod_clique_set import AdmissionPolicy, validate_pod_clique_set
from spinney.api.struct import JSON, Struct, convert, decode, encode, to_json
from tests.api.samples import DATA, binding, defaulted
from tests.workloads.files import WORKLOADS, documents

TYPES: dict[tuple[str, str], type[Struct]] = {
    ("grove.io/v1alpha1", "PodCliqueSet"): grove.PodCliqueSet,
    ("grove.io/v1alpha1", "PodClique"): grove.PodClique,
    ("grove.io/v1alpha1", "PodCliqueScalingGroup"): grove.PodCliqueScalingGroup,
    ("grove.io/v1alpha1", "ClusterTopologyBinding"): topology_binding.ClusterTopologyBinding,
    ("scheduler.grove.io/v1alpha1", "PodGang"): podgang.PodGang,
    ("scheduling.run.ai/v2", "Queue"): kai.Queue,
    ("scheduling.run.ai/v2alpha2", "PodGroup"): kai.PodGroup,
    ("scheduling.run.ai/v1alpha2", "BindRequest"): kai.BindRequest,
    ("kai.scheduler/v1alpha1", "Topology"): kai.Topology,
    ("scheduling.volcano.sh/v1beta1", "PodGroup"): volcano.PodGroup,
    ("scheduling.volcano.sh/v1beta1", "Queue"): volcano.Queue,
    ("scheduling.x-k8s.io/v1alpha1", "PodGroup"): coscheduling.PodGroup,
    ("scheduling.k8s.io/v1alpha1", "Workload"): workload_v1alpha1.Workload,
    ("scheduling.k8s.io/v1alpha2", "Workload"): workload_v1alpha2.Workload,
    ("scheduling.k8s.io/v1alpha2", "PodGroup"): workload_v1alpha2.PodGroup,
    ("scheduling.k8s.io/v1beta1", "Workload"): workload_v1beta1.Workload,
    ("scheduling.k8s.io/v1beta1", "PodGroup"): workload_v1beta1.PodGroup,
    ("scheduling.k8s.io/v1alpha3", "CompositePodGroup"): workload_v1beta1.CompositePodGroup,
    ("coordination.k8s.io/v1", "Lease"): coordination.Lease,
    ("policy/v1", "PodDisruptionBudget"): policy.PodDisruptionBudget,
    ("scheduling.k8s.io/v1", "PriorityClass"): scheduling.PriorityClass,
}

OWN = [document for path in sorted(DATA.glob("*.yaml")) for document in documents(path)]
PUBLISHED = [
    (path.name, document)
    for path in sorted(WORKLOADS.glob("*.yaml"))
    for document in documents(path)
    if (document["apiVersion"], document["kind"]) in TYPES
]


def name_of(document: object) -> str:
    """Name a parameter for the test report."""
    return f"{document['apiVersion']}/{document['kind']}" if isinstance(document, dict) else str(document)


def survives(document: JSON) -> None:
    """Assert that decoding and encoding an object loses nothing, from values and from text."""
    kind = TYPES[document["apiVersion"], document["kind"]]
    assert to_json(convert(kind, document)) == document
    assert decode(dict, encode(decode(kind, encode(document)))) == document


@pytest.mark.parametrize("document", OWN, ids=name_of)
def test_every_field_of_every_kind_survives(document: JSON) -> None:
    """An object with all its fields set is written back exactly as it was read."""
    survives(document)


def test_every_kind_has_a_sample() -> None:
    """No kind is left out of the round trip."""
    assert set(TYPES) <= {(document["apiVersion"], document["kind"]) for document in OWN}


def test_unknown_pod_spec_fields_survive() -> None:
    """A field of a pod spec that no version has heard of is carried, at any depth."""
    document = documents(DATA / "pod-clique-set-full.yaml")[0]
    pcs = convert(grove.PodCliqueSet, document)
    assert pcs.spec.template.cliques[0].spec.pod_spec["fieldOfTheFuture"] == {"deep": [1, "two", None]}


def test_an_object_from_a_list_gets_its_type_back() -> None:
    """Items of a list come without apiVersion and kind; they are written with them."""
    lease = convert(coordination.Lease, {"metadata": {"name": "a"}})
    assert to_json(lease) == {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "a"}}


def test_a_count_of_zero_is_written() -> None:
    """A merge patch made of a status resets a count to zero; a status nobody touched is not written at all."""
    group = coscheduling.PodGroup(spec=coscheduling.PodGroupSpec(min_member=1))
    assert "status" not in to_json(group)
    assert to_json(coscheduling.PodGroupStatus()) == {"scheduled": 0, "running": 0, "succeeded": 0, "failed": 0}


def test_plain_values_are_shared_with_nobody() -> None:
    """Changing what an object was converted into leaves the object alone."""
    pcs = convert(grove.PodCliqueSet, documents(DATA / "pod-clique-set-full.yaml")[0])
    plain = to_json(pcs)
    plain["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["containers"].clear()
    assert pcs.spec.template.cliques[0].spec.pod_spec["containers"]


@pytest.mark.parametrize(("name", "document"), PUBLISHED, ids=name_of)
def test_published_workloads_survive_and_are_valid(name: str, document: JSON) -> None:
    """Every published workload is written back as it was read, and accepted where its features are on."""
    survives(document)
    policy_of_test = AdmissionPolicy(
        schedulers=("default-scheduler", "kai-scheduler"),
        topology_aware=True,
        topologies={topology: binding(topology) for topology in ("grove-topology", "tas20-topology")},
        mnnvl=True,
    )
    if document["kind"] == "PodCliqueSet":
        assert validate_pod_clique_set(defaulted(document), policy_of_test) == [], name
    if document["kind"] == "Queue":
        assert validate_queue(convert(kai.Queue, document)) == [], name
