"""``spinney validate`` finds every fault that needs no cluster, each with file, line and field."""

import json
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from spinney.cli import main

GOOD = """\
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata:
  name: good
  labels: {kai.scheduler/queue: test}
spec:
  replicas: 1
  template:
    topologyConstraint: {topologyName: gpus, pack: {required: rack}}
    cliques:
    - name: worker
      spec:
        roleName: worker
        replicas: 2
        podSpec:
          schedulerName: kai-scheduler
          containers: [{name: main, image: pause}]
"""


def validate(tmp_path: Path, text: str, *options: str) -> Result:
    file = tmp_path / "set.yaml"
    file.write_text(text)
    return CliRunner().invoke(main, ["validate", "-f", str(file), *options])


def test_a_valid_set_passes_and_says_what_was_not_checked(tmp_path: Path) -> None:
    """All built-in backends and topologies count as enabled; what needs a cluster is listed."""
    answer = validate(tmp_path, GOOD)

    assert answer.exit_code == 0, answer.output
    assert "1 of 1 objects are valid" in answer.output
    assert "whether the ClusterTopologyBinding gpus exists" in answer.output


def test_every_fault_has_its_line_and_path(tmp_path: Path) -> None:
    """Two faults in one object are both reported, where they are in the file."""
    faulty = GOOD.replace("name: worker\n", "name: Worker\n", 1).replace(
        "roleName: worker", "roleName: worker\n        minAvailable: 5"
    )
    answer = validate(tmp_path, "# a comment above\n---\n" + faulty)

    assert answer.exit_code == 1
    assert "set.yaml:13: spec.template.cliques[0].name:" in answer.output
    assert "set.yaml:16: spec.template.cliques[0].spec.minAvailable:" in answer.output


JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  template:
    metadata: {annotations: {spinney.dev/expected-duration: 2 hours}}
    spec: {restartPolicy: Never, containers: [{name: main, image: busybox}]}
"""


@pytest.mark.parametrize("kind", ["Job", "Training"])
def test_a_run_time_in_a_pod_template_that_cannot_be_read_is_a_warning(tmp_path: Path, kind: str) -> None:
    """It states nothing, whatever kind the pods are made from: the annotation is named, and how to write it."""
    result = validate(tmp_path, JOB.replace("kind: Job", f"kind: {kind}"))
    where = "warning: spec.template.metadata.annotations[spinney.dev/expected-duration]: '2 hours' is not a duration"
    assert result.exit_code == 0
    assert where in result.output
    assert "such as 15s or 4h30m" in result.output


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("cliques:", "cliqes:", "set.yaml:10: spec.template.cliqes: unknown key; did you mean 'cliques'?"),
        (
            "replicas: 2",
            "replica: 2",
            "set.yaml:14: spec.template.cliques[0].spec.replica: unknown key; did you mean 'replicas'?",
        ),
        ("  labels:", "  label:", "set.yaml:5: metadata.label: unknown key; did you mean 'labels'?"),
        (
            "image: pause",
            "imagePulPolicy: Never, image: pause",
            "set.yaml:17: spec.template.cliques[0].spec.podSpec.containers[0].imagePulPolicy: unknown key; "
            "did you mean 'imagePullPolicy'?",
        ),
        (
            "image: pause",
            "gadgets: 5, image: pause",
            "set.yaml:17: spec.template.cliques[0].spec.podSpec.containers[0].gadgets: unknown key; "
            "Kubernetes 1.37 has no such field here",
        ),
        (
            "schedulerName:",
            "schedulername:",
            "set.yaml:16: spec.template.cliques[0].spec.podSpec.schedulername: unknown key; "
            "did you mean 'schedulerName'?",
        ),
        (
            "replicas: 2",
            "autoScalingConfig: {maxReplicas: 2, metrics: [{type: Resource, resorce: {}}]}",
            "set.yaml:14: spec.template.cliques[0].spec.autoScalingConfig.metrics[0].resorce: unknown key; "
            "did you mean 'resource'?",
        ),
        (
            "    cliques:",
            "    resourceClaimTemplates: [{name: t, templateSpec: {spec: {devices: {request: []}}}}]\n    cliques:",
            "set.yaml:10: spec.template.resourceClaimTemplates[0].templateSpec.spec.devices.request: unknown key; "
            "did you mean 'requests'?",
        ),
    ],
)
def test_an_unknown_field_is_suggested(tmp_path: Path, old: str, new: str, expected: str) -> None:
    """A misspelt field, at any depth, is an error with its line and the nearest field that exists."""
    answer = validate(tmp_path, GOOD.replace(old, new, 1))

    assert answer.exit_code == 1
    assert answer.output.startswith(f"{tmp_path}/{expected}")


def test_unknown_fields_and_broken_rules_are_reported_together(tmp_path: Path) -> None:
    """A typo does not hide what else is wrong, and every fault has one line."""
    text = GOOD.replace("replicas: 2", "replica: 2\n        minAvailable: 3").replace("image: pause", "ports: 5")
    verdict = json.loads(validate(tmp_path, text, "-o", "json").output)[0]

    clique = "spec.template.cliques[0].spec"
    assert [problem["path"] for problem in verdict["problems"]] == [
        f"{clique}.replica",
        f"{clique}.minAvailable",
        f"{clique}.podSpec.containers[0].image",
        f"{clique}.podSpec.containers[0].ports",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("kind: PodCliqueSet", "no kind 'PodCliqeSet'; did you mean 'PodCliqueSet'?"),
        ("apiVersion: grove.io/v1alpha1", "expected grove.io/v1alpha1"),
    ],
)
def test_a_typo_in_the_kind_or_version_is_named(tmp_path: Path, text: str, expected: str) -> None:
    """A kind our groups do not have, or a version of it that does not exist, is an error."""
    wrong = {"kind: PodCliqueSet": "kind: PodCliqeSet", "apiVersion: grove.io/v1alpha1": "apiVersion: grove.io/v1"}
    answer = validate(tmp_path, GOOD.replace(text, wrong[text]))

    assert answer.exit_code == 1
    assert expected in answer.output


def test_a_configuration_narrows_what_is_allowed(tmp_path: Path) -> None:
    """With the operator's configuration, a scheduler it does not enable and topologies it has off are faults."""
    config = tmp_path / "config.yaml"
    config.write_text("apiVersion: operator.config.grove.io/v1alpha1\nkind: OperatorConfiguration\n")
    answer = validate(tmp_path, GOOD, "--config", str(config))

    assert answer.exit_code == 1
    assert "schedulerName" in answer.output
    assert "topology-aware scheduling is not enabled" in answer.output


KAI_BY_DEFAULT = """\
apiVersion: operator.config.grove.io/v1alpha1
kind: OperatorConfiguration
scheduler: {profiles: [{name: kai-scheduler, default: true}]}
topologyAwareScheduling: {enabled: true}
"""


@pytest.mark.parametrize("named", [True, False], ids=["by name", "by default"])
def test_kai_needs_a_queue(tmp_path: Path, named: bool) -> None:
    """A set for KAI, which it names or which is the default, is refused without a queue, as admission refuses it."""
    config = tmp_path / "config.yaml"
    config.write_text(KAI_BY_DEFAULT)
    text = GOOD if named else GOOD.replace("          schedulerName: kai-scheduler\n", "")
    options = () if named else ("--config", str(config))

    assert validate(tmp_path, text, *options).exit_code == 0
    answer = validate(tmp_path, text.replace("  labels: {kai.scheduler/queue: test}\n", ""), *options)
    assert answer.exit_code == 1
    assert "metadata.labels: Invalid value" in answer.output
    assert "no queue is named; put the label kai.scheduler/queue on the PodCliqueSet" in answer.output


UNNAMED = GOOD.replace("          schedulerName: kai-scheduler\n", "")


def test_what_a_backend_will_not_honour_is_a_warning(tmp_path: Path) -> None:
    """Where the configuration settles what kube-scheduler does, its word is given; else it is listed as open."""
    config = tmp_path / "config.yaml"
    config.write_text(KAI_BY_DEFAULT.replace("kai-scheduler", "default-scheduler"))
    plain = UNNAMED.replace("    topologyConstraint: {topologyName: gpus, pack: {required: rack}}\n", "")

    answer = validate(tmp_path, plain, "--config", str(config))
    assert answer.exit_code == 0
    assert "warning: gang_scheduling: the workload is scheduled without gang guarantees" in answer.output
    assert "'rack' is required" in validate(tmp_path, UNNAMED, "--config", str(config)).output
    answer = validate(tmp_path, UNNAMED)
    assert answer.exit_code == 0
    assert "whether default-scheduler can honour what is asked for" in answer.output


def test_a_topology_in_the_same_files_is_checked_against(tmp_path: Path) -> None:
    """A binding given beside the set answers whether its domains exist."""
    binding = (
        "apiVersion: grove.io/v1alpha1\nkind: ClusterTopologyBinding\nmetadata: {name: gpus}\n"
        "spec: {levels: [{domain: block, key: example.com/block}]}\n"
    )
    answer = validate(tmp_path, f"{binding}---\n{GOOD}")

    assert answer.exit_code == 1
    assert "rack" in answer.output
    assert "whether the ClusterTopologyBinding" not in answer.output


def test_a_topology_that_none_of_the_files_has_is_warned_of(tmp_path: Path) -> None:
    """Beside other topologies a name that none of them has looks like a typo; the cluster has the last word."""
    binding = (
        "apiVersion: grove.io/v1alpha1\nkind: ClusterTopologyBinding\nmetadata: {name: cpus}\n"
        "spec: {levels: [{domain: rack, key: example.com/rack}]}\n"
    )
    answer = validate(tmp_path, f"{binding}---\n{GOOD}")

    assert answer.exit_code == 0
    assert 'topologyName: Invalid value: "gpus": no such ClusterTopologyBinding in these files, which have cpus' in (
        answer.output
    )
    assert "whether the ClusterTopologyBinding gpus exists" in answer.output
    assert "warning" not in validate(tmp_path, GOOD).output


def test_other_kinds_are_left_to_the_cluster(tmp_path: Path) -> None:
    """A Deployment is not ours to judge: it is listed as not checked."""
    answer = validate(tmp_path, "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n")

    assert answer.exit_code == 0
    assert "apps/v1 Deployment web: its values" in answer.output


def test_fields_of_kubernetes_own_kinds_are_looked_at(tmp_path: Path) -> None:
    """What a workload brings along is not judged by rules, and still a misspelt field of it is found."""
    answer = validate(tmp_path, "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replica: 1}\n")

    assert answer.exit_code == 1
    assert "set.yaml:4: spec.replica: unknown key; did you mean 'replicas'?" in answer.output


@pytest.mark.parametrize("text", ["a: [1, 2", "just text", "a: 1\na: 2\n"])
def test_a_file_that_holds_no_object_is_refused(tmp_path: Path, text: str) -> None:
    """Broken YAML, or YAML that is no object, is one sentence with its place."""
    answer = validate(tmp_path, text)

    assert answer.exit_code == 1
    assert "set.yaml:" in answer.output
    assert "Traceback" not in answer.output


def test_a_file_that_cannot_be_read_hides_no_other(tmp_path: Path) -> None:
    """Every fault is told, also where one file is no YAML, one no text and one no object."""
    files = {
        "a.yaml": b"a: [",
        "b.yaml": b"\xff\xfe",
        "c.yaml": b"- 1",
        "d.yaml": GOOD.replace("cliques", "cliqes").encode(),
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    answer = CliRunner().invoke(main, ["validate", "-f", str(tmp_path)])
    listed = CliRunner().invoke(main, ["validate", "-f", str(tmp_path), "-o", "json"])

    assert answer.exit_code == listed.exit_code == 1
    for place in ("a.yaml:1", "b.yaml:1", "c.yaml:1", "d.yaml:10: spec.template.cliqes"):
        assert place in answer.output
    assert "0 of 1 objects are valid" in answer.output
    assert [(Path(each["source"]).name, each["valid"]) for each in json.loads(listed.output)] == [
        (name, False) for name in files
    ]


def test_json_lists_every_object(tmp_path: Path) -> None:
    """Programs get a verdict per object, with lines."""
    verdicts = json.loads(
        validate(tmp_path, f"{GOOD}---\n{GOOD.replace('replicas: 2', 'replicas: -2')}", "-o", "json").output
    )

    assert [verdict["valid"] for verdict in verdicts] == [True, False]
    assert verdicts[1]["problems"][0]["line"] > 18


@pytest.mark.parametrize("named", ["kai-scheduler", "broken"])
def test_a_backend_that_cannot_be_loaded_leaves_its_own_questions_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    """Who does not name it does not hear of it; validating ended with an error of ours for any installed one."""
    broken = EntryPoint("broken", "no_such_module:Backend", "spinney.backends")
    monkeypatch.setattr("spinney.backends.catalogue._installed", lambda: (broken,))
    binding = (
        "apiVersion: grove.io/v1alpha1\nkind: ClusterTopologyBinding\nmetadata: {name: gpus}\n"
        "spec: {levels: [{domain: rack, key: example.com/rack}], schedulerTopologyBindings: "
        f"[{{schedulerName: {named}, topologyReference: racks}}]}}\n"
    )
    answer = validate(tmp_path, f"{binding}---\n{GOOD.replace('kai-scheduler', named)}")

    assert answer.exit_code == 0, answer.output
    said = "backend 'broken': importing no_such_module:Backend failed: ModuleNotFoundError"
    assert (f"whether broken manages a topology: {said}" in answer.output) is (named == "broken")
    assert (f"whether broken can honour what is asked for: {said}" in answer.output) is (named == "broken")
