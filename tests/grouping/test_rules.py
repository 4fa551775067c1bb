"""Rules are checked when they are loaded, and a user's kind is a few lines."""

import msgspec
import pytest
import yaml

from spinney.api.struct import JSON
from spinney.backends.documents import InvalidDocument
from spinney.grouping.configuration import check
from spinney.grouping.loading import built_in
from spinney.grouping.owners import projection
from tests.grouping.builders import a_pod, an_owner, grouped


def configured(*rules: JSON) -> str:
    return yaml.safe_dump({"kind": "GrouperConfiguration", "rules": list(rules)})


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"kind": "Job"}, "expected group/Kind"),
        ({"kind": "a/B", "flor": 2}, "did you mean 'floor'"),
        ({"kind": "a/B", "floor": "spec."}, "is not understood"),
        ({"kind": "a/B", "onePer": "planet"}, "expected owner, counts, pod or 'label KEY'"),
        ({"kind": "a/B", "onePer": "counts"}, "names no other object"),
        ({"kind": "a/B", "name": "pg-{who}"}, "the places in it may be {owner}, {uid}, {label}"),
        ({"kind": "a/B", "priorityFrom": ["spec..x"]}, "is not understood"),
        ({"kind": "a/B", "counts": {"kind": "a/C", "name": ["spec name"]}}, "is too much"),
        ({"kind": "a/B", "makes": [{"template": "spec.", "count": 1}]}, "is not understood"),
        ({"kind": "a/B", "roles": [{"name": "x", "pods": {}}]}, "names no label"),
        ({"kind": "a/B", "roles": [{"name": "x"}]}, "pods"),
        ({"kind": "a/B", "roles": [{"name": n, "pods": "rest"} for n in "xy"]}, "a second role that takes the rest"),
        ({"kind": "a/B", "roles": [{"name": "x", "pods": "rest", "after": [{"role": "z"}]}]}, "no role is named 'z'"),
    ],
)
def test_a_rule_with_a_mistake_is_refused_with_its_line(rule: JSON, message: str) -> None:
    """What is wrong with a rule is said at start: where, what was found and what was expected."""
    with pytest.raises(InvalidDocument) as caught:
        check(configured(rule), "grouper.yaml")
    assert message in str(caught.value)
    assert "grouper.yaml:" in str(caught.value)


def test_two_rules_for_a_kind_are_refused() -> None:
    """Which of two rules holds would depend on their order."""
    with pytest.raises(InvalidDocument, match="a second rule for a/B"):
        check(configured({"kind": "a/B"}, {"kind": "a/B"}), "grouper.yaml")


def test_a_kind_of_ones_own_is_a_few_lines() -> None:
    """Roles, their counts and their pods are said in data, and the gang follows."""
    rule = {
        "kind": "jobs.example.com/PyFlow",
        "priority": "build",
        "roles": [
            {"name": "master", "replicas": "spec.master.replicas", "pods": {"role": "master"}},
            {"name": "worker", "replicas": "spec.worker.replicas", "floor": "spec.worker.least", "pods": {"role": "w"}},
        ],
    }
    rules = check(configured(rule), "grouper.yaml").rules
    owner = an_owner(
        "jobs.example.com/v7/PyFlow", spec={"master": {"replicas": 1}, "worker": {"replicas": 9, "least": 4}}
    )

    found = grouped(a_pod(labels={"role": "w"}), owner, rules=rules)

    assert (found.sub_group, found.gang.shape.min_member) == ("worker", 5)
    assert found.gang.attributes.priority_class == "build"


def test_a_rule_of_the_configuration_replaces_ours() -> None:
    """An installation may decide that all pods of a Job start together."""
    rules = check(configured({"kind": "batch/Job", "floor": "spec.parallelism else 1"}), "grouper.yaml").rules
    found = grouped(a_pod(), an_owner("batch/v1/Job", spec={"parallelism": 4}), rules=rules)
    assert found.gang.shape.min_member == 4


def test_a_kind_may_be_left_out() -> None:
    """Without its rule a kind is treated like any that is unknown."""
    text = yaml.safe_dump({"kind": "GrouperConfiguration", "without": ["kubeflow.org/TFJob"]})
    rules = check(text, "grouper.yaml").rules
    owner = an_owner("kubeflow.org/v1/TFJob", spec={"tfReplicaSpecs": {"Worker": {"replicas": 8}}})
    assert grouped(a_pod(), owner, rules=rules).gang.shape.min_member == 1


def test_only_what_the_rules_read_is_kept_of_a_workload() -> None:
    """A cache of workloads holds no pod templates, and the rule finds what it needs in what is left."""
    template = {
        "metadata": {"annotations": {"kai.scheduler/batch-min-member": "2"}},
        "spec": {"containers": ["x" * 99]},
    }
    job = {"spec": {"parallelism": 3, "template": template}, "metadata": template["metadata"]}
    whole = an_owner("jobset.x-k8s.io/v1/JobSet", spec={"replicatedJobs": [{"name": "a", "template": job}]})
    kind = projection(whole.group_kind, built_in().watched()[whole.group_kind])

    kept = msgspec.convert(msgspec.to_builtins(whole), type=kind)

    assert "containers" not in str(kept.spec)
    labels = {"jobset.sigs.k8s.io/replicatedjob-name": "a", "jobset.sigs.k8s.io/job-index": "0"}
    assert grouped(a_pod(labels=labels), kept).gang.shape == grouped(a_pod(labels=labels), whole).gang.shape


@pytest.mark.parametrize("kind", [rule.kind for rule in built_in().rules.values()])
def test_every_kind_of_ours_reads_only_spec_and_status(kind: str) -> None:
    """What is watched of a kind is named by paths of its spec and status."""
    assert all(path[0] in ("spec", "status") for path in built_in().watched().get(kind, ()))
