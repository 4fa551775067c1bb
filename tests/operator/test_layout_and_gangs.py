"""Names, places and gangs: who belongs where."""

import pytest

from spinney.api import labels as marks
from spinney.operator.desired import gangs, labels, names
from spinney.operator.desired.layout import Layout
from spinney.operator.desired.topologies import SetTopology
from spinney.testing.builders import a_clique, a_pod_clique_set, a_scaling_group

PCS = a_pod_clique_set(
    "model",
    [a_clique("frontend", 2, 1), a_clique("worker", 3, 2), a_clique("decode-worker", 1), a_clique("router", 1)],
    [a_scaling_group("sg", ["decode-worker", "worker"], 4, 2)],
    replicas=2,
    priority_class="high",
    uid="u",
)


def test_the_base_gang_holds_the_minimum_and_scaled_gangs_the_rest() -> None:
    """Standalone cliques and the group's minimum are in the base gang; further replicas have gangs of their own."""
    found = {plan.name: [place.name for place in plan.places] for plan in gangs.expected_gangs(Layout(PCS), {})}
    assert list(found) == ["model-0", "model-1", "model-0-sg-0", "model-0-sg-1", "model-1-sg-0", "model-1-sg-1"]
    assert found["model-0"] == [
        "model-0-frontend",
        "model-0-router",
        "model-0-sg-0-decode-worker",
        "model-0-sg-0-worker",
        "model-0-sg-1-decode-worker",
        "model-0-sg-1-worker",
    ]
    assert found["model-1-sg-1"] == ["model-1-sg-3-decode-worker", "model-1-sg-3-worker"]


def test_live_replicas_of_a_scaling_group_decide() -> None:
    """Once a scaling group exists its own replicas count; below the minimum the base gang is unchanged."""
    layout = Layout(PCS)
    found = [plan.name for plan in gangs.expected_gangs(layout, {"model-0-sg": 3, "model-1-sg": 1})]
    assert found == ["model-0", "model-1", "model-0-sg-0"]


def test_groups_carry_the_minimum_of_their_clique() -> None:
    """A gang's groups are its PodCliques with their minAvailable, and the priority of the set."""
    layout = Layout(PCS)
    content = gangs.content(gangs.expected_gangs(layout, {})[0], layout, SetTopology(), {})
    assert {group.name: group.min_replicas for group in content.spec.pod_groups} == {
        "model-0-frontend": 1,
        "model-0-router": 1,
        "model-0-sg-0-decode-worker": 1,
        "model-0-sg-0-worker": 2,
        "model-0-sg-1-decode-worker": 1,
        "model-0-sg-1-worker": 2,
    }
    assert content.spec.priority_class_name == "high"


def test_every_plan_can_be_found_again_by_name() -> None:
    """A gang's plan is found from its replica and name alone."""
    layout = Layout(PCS)
    for plan in gangs.expected_gangs(layout, {}):
        assert gangs.plan_of(layout, plan.replica, plan.name, {}) == plan
    assert gangs.plan_of(layout, 0, "model-0-sg-2", {}) is None


def test_overlapping_names_find_their_own_template() -> None:
    """``worker`` and ``decode-worker`` are told apart, whatever their PodCliques are called."""
    layout = Layout(PCS)
    for i in range(2):
        places = layout.base(i) + [place for j in (2, 3) for place in layout.members(i, "sg", j)]
        for place in places:
            found = labels.of_clique(place, "hash")
            assert names.template_name(place.name, found) == place.template.name
            assert layout.place(place.name, found) == place
            assert found[marks.POD_GANG] == place.gang
            assert found.get(marks.BASE_POD_GANG) == place.base_gang


def test_labels_that_contradict_a_name_are_an_error() -> None:
    """A PodClique whose labels do not fit its name is not guessed at."""
    with pytest.raises(names.UnknownPodClique, match="restore the labels"):
        names.template_name("model-0-worker", {marks.PART_OF: "other", marks.REPLICA_INDEX: "0"})


def test_gangs_mirror_what_schedulers_read() -> None:
    """Labels and annotations of the set reach its gangs, except Grove's own and kubectl's."""
    mirrored = labels.mirrored(
        {"kai.scheduler/queue": "q", "grove.io/x": "1", "kubectl.kubernetes.io/last-applied-configuration": "{}"}
    )
    assert mirrored == {"kai.scheduler/queue": "q"}
