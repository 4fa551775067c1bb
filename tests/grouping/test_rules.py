"""Rules are checked when they are loaded, and a user's kind is a few lines."""

from typing import Any

import msgspec
import pytest
import yaml

from spinney.api.documents import InvalidDocument
from spinney.api.struct import JSON
from spinney.grouping.configuration import check
from spinney.grouping.loading import built_in
from spinney.grouping.owners import projection
from tests.grouping.builders import a_pod, an_owner, grouped


def a_role(**fields: Any) -> JSON:
    return {"kind": "a/B", "roles": [{"name": "x", "pods": {"r": "x"}, **fields}]}


def counts_from(kind: str, *name: str) -> JSON:
    """Return a rule whose counts are in another object."""
    return {"kind": "a/B", "counts": {"kind": kind, "name": list(name)}}


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
        ({"kind": "batch/v1/Job"}, "kind: found 'batch/v1/Job', expected group/Kind without a version"),
        (counts_from("C", "spec.c"), "counts.kind: found 'C', expected group/Kind"),
        (counts_from("a/C", "spec.c + 1"), "counts.name[0]: 'spec.c + 1' is not a path"),
        (counts_from("a/C"), "counts.name: names no place"),
        ({"kind": "a/B", "priorityFrom": ["annotation x"]}, "priorityFrom[0]: 'annotation x' is not a path"),
        ({"kind": "a/B", "required": ["3"]}, "required[0]: '3' is not a path"),
        ({"kind": "a/B", "makes": [{"template": "1"}]}, "makes[0].template: '1' is not a path"),
        ({"kind": "a/B", "floor": "metadata.count"}, "floor: metadata.count: expected a path that begins with spec."),
        ({"kind": "a/B", "floor": "replicas"}, "floor: replicas: expected a path that begins with spec."),
        ({"kind": "a/B", "floor": "spec.r[*].n"}, "spec.r[*].n: finds several numbers; sum(spec.r[*].n) adds them up"),
        ({"kind": "a/B", "floor": 0}, "floor: found 0, expected at least 1"),
        ({"kind": "a/B", "floor": "(" * 2000}, "2000 characters, expected at most"),
        ({"kind": "a/B", "through": True, "floor": 3}, "through: is true, so the rule of the owner below holds"),
        ({"kind": "a/B", "together": ["annotation x"]}, "together: holds where onePer is pod"),
        ({"kind": "a/B", "root": ["all"]}, "root: counts roles, and the rule has none"),
        ({"kind": "a/B", "onePer": "label a b"}, "onePer: 'a b' is no key of a label"),
        ({"kind": "a/B", "onePer": "label a"}, "name: found 'pg-{owner}-{uid}'; with 'label a' it needs {label}"),
        ({"kind": "a/B", "name": "gang"}, "name: found 'gang'; it needs {owner} or {uid}"),
        ({"kind": "a/B", "name": "pg-{owner.x}"}, "the places in it may be {owner}"),
        (
            a_role(replicas="each.n"),
            "roles[0].replicas: each.n: there is no each here; name the list in the field each",
        ),
        (a_role(replicas="replicas"), "roles[0].replicas: replicas: expected a path that begins with spec."),
        (a_role(replicas=-1), "roles[0].replicas: found -1, expected at least 0"),
        (a_role(each="1 + 2"), "roles[0].each: '1 + 2' is not a path"),
        (a_role(unless="annotation x"), "roles[0].unless: 'annotation x' is not a path"),
        (a_role(template="5"), "roles[0].template: '5' is not a path"),
        (a_role(name="metadata.name"), "roles[0].name: metadata.name: expected a path that begins with spec."),
        (a_role(pods={"r": "each.name"}), "roles[0].pods.r: each.name: there is no each here"),
        (a_role(pods={"a b": "x"}), "roles[0].pods.a b: 'a b' is no key of a label"),
        (a_role(after=[{}]), "roles[0].after[0]: does not say after what"),
        ({"kind": "a/B", "roles": [{"name": "x", "pods": {"r": r}} for r in "xy"]}, "roles[1].name: a second role"),
    ],
)
def test_a_rule_with_a_mistake_is_refused_with_its_line(rule: JSON, message: str) -> None:
    """What is wrong with a rule is said at start: where, what was found and what was expected."""
    with pytest.raises(InvalidDocument) as caught:
        check(configured(rule), "grouper.yaml")
    assert message in str(caught.value)
    assert "grouper.yaml:" in str(caught.value)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        (
            "schedulerNames: [spiney]",
            "schedulerNames[0]: no profile is for 'spiney', but for default-scheduler, spinney-",
        ),
        ("queueLabel: a b", "queueLabel: 'a b' is no key of a label"),
        ("defaultQueue: ''", "defaultQueue: '' is no queue: it must not be empty"),
        ("podLabels: {a: b c}", "podLabels.a: 'b c' is no label value"),
        ("namespaceLabels: {a b: c}", "namespaceLabels.a b: 'a b' is no key of a label"),
        ("kindDefaults: [{typeName: ''}]", "kindDefaults[0].typeName: is empty"),
        ("kindDefaultsConfigMap: {namespace: '', name: x}", "kindDefaultsConfigMap: expected a namespace and a name"),
    ],
)
def test_a_setting_with_a_mistake_is_refused_with_its_line(setting: str, message: str) -> None:
    """A grouper that would serve nobody, or write labels that are none, does not start."""
    with pytest.raises(InvalidDocument) as caught:
        check(f"kind: GrouperConfiguration\n{setting}", "grouper.yaml")
    assert f"grouper.yaml:2: {message}" in str(caught.value)


def test_rules_alone_are_a_configuration() -> None:
    """Who writes rules and no profiles has the pods of spinney-scheduler grouped, as without a file."""
    assert "spinney-scheduler" in check("rules: [{kind: a/B}]").profiles.names()


def test_a_rule_of_ones_own_stays_where_ours_is_left_out() -> None:
    """To leave a kind of ours out and to write its rule anew is the same as to replace it."""
    rules = check("{without: [batch/Job], rules: [{kind: batch/Job, floor: 3}]}").rules
    assert grouped(a_pod(), an_owner("batch/v1/Job"), rules=rules).gang.shape.min_member == 3


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
