"""``spinney validate`` and admission say the same of invalid variants of one workload, field by field."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from spinney.api.struct import JSON
from spinney.api.topology_binding import CLUSTER_TOPOLOGY_BINDING
from spinney.backends import Profile, Profiles, every_backend
from spinney.cli import main
from spinney.kube.errors import ApiError
from spinney.operator.configuration import check
from spinney.operator.operator import Settings
from spinney.runtime import run_virtual
from tests.e2e.floor import a_binding
from tests.operator.test_admission import a_guarded_cluster
from tests.workloads.test_invalid_variants import CREATED, workload

SETS = "/apis/grove.io/v1alpha1/namespaces/test/podcliquesets"
CONFIG = """\
apiVersion: operator.config.grove.io/v1alpha1
kind: OperatorConfiguration
scheduler:
  profiles:
  - {name: default-scheduler}
  - {name: kai-scheduler, default: true}
topologyAwareScheduling: {enabled: true}
"""
WORKLOAD = """\
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata:
  name: pipeline
  namespace: test
  labels: {kai.scheduler/queue: test}
spec:
  replicas: 1
  template:
    cliqueStartupType: CliqueStartupTypeExplicit
    terminationDelay: 1m
    topologyConstraint: {topologyName: cluster, pack: {required: block}}
    cliques:
    - name: router
      spec:
        roleName: router
        replicas: 2
        minAvailable: 1
        autoScalingConfig: {maxReplicas: 5}
        podSpec:
          containers:
          - {name: main, image: busybox, resources: {requests: {cpu: 10m}, limits: {cpu: 20m}}}
    - name: worker
      spec:
        roleName: worker
        replicas: 4
        startsAfter: [router]
        podSpec:
          restartPolicy: Always
          containers:
          - name: main
            image: busybox
            ports: [{name: http, containerPort: 80}]
    podCliqueScalingGroups:
    - name: workers
      cliqueNames: [worker]
      replicas: 2
      topologyConstraint: {pack: {required: rack}}
"""
T = "spec.template"
ROUTER, WORKER, GROUP = f"{T}.cliques[0]", f"{T}.cliques[1]", f"{T}.podCliqueScalingGroups[0]"
VARIANTS: dict[str, tuple[str, str, set[str]]] = {
    # what the API server refuses, strictly
    "clique field misspelt": ("replicas: 4", "replica: 4", {f"{WORKER}.spec.replica"}),
    "template field misspelt": ("terminationDelay", "terminationdelay", {f"{T}.terminationdelay"}),
    "group field misspelt": (
        "cliqueNames: [worker]",
        "cliques: [worker]",
        {f"{GROUP}.cliques"},
    ),
    "nested field misspelt": (
        "{pack: {required: rack}}",
        "{pack: {require: rack}}",
        {f"{GROUP}.topologyConstraint.pack.require"},
    ),
    "object for a list": ("startsAfter: [router]", "startsAfter: {router: 1}", {f"{WORKER}.spec.startsAfter"}),
    "no pod spec": (
        "        podSpec:\n          restartPolicy: Always\n",
        "        podspec:\n",
        {f"{WORKER}.spec.podspec"},
    ),
    "label is a number": ("queue: test}", "queue: test, a: 5}", {"metadata.labels.a"}),
    # what admission refuses
    "bad name": ("name: pipeline", "name: Pipeline", {"metadata.name"}),
    "two topologies": (
        "{pack: {required: rack}}",
        "{topologyName: b, pack: {required: rack}}",
        {f"{GROUP}.topologyConstraint.topologyName"},
    ),
    "old spelling": ("pack: {required: block}", "packDomain: block", {f"{T}.topologyConstraint.packDomain"}),
    "no image": ("            image: busybox\n", "", {f"{WORKER}.spec.podSpec.containers[0].image"}),
    "no container name": ("- {name: main, image", "- {image", {f"{ROUTER}.spec.podSpec.containers[0].name"}),
    "no quantity": ("cpu: 10m", "cpu: ten", {f"{ROUTER}.spec.podSpec.containers[0].resources.requests[cpu]"}),
    "requests above limits": ("cpu: 10m", "cpu: 30m", {f"{ROUTER}.spec.podSpec.containers[0].resources.requests"}),
    "unknown restart policy": (
        "restartPolicy: Always",
        "restartPolicy: Ever",
        {f"{WORKER}.spec.podSpec.restartPolicy"},
    ),
    "two ports of a name": (
        "containerPort: 80}",
        "containerPort: 80}, {name: http, containerPort: 81}",
        {f"{WORKER}.spec.podSpec.containers[0].ports[1].name"},
    ),
}


PUBLISHED = {name: each for name, each in CREATED.items() if name != "no such topology"}  # a cluster may have it
ELSEWHERE = {"old spelling": f"{T}.topologyConstraint", "label is a number": "metadata.labels"}
"""Where a cluster names the field around: there a rule of the CRD comes first, and metadata is decoded as one."""


@pytest.fixture(scope="module")
def offline(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[JSON]]:
    """Have the command look at every workload at once; return the problems that it finds in each."""
    directory, config = tmp_path_factory.mktemp("manifests"), tmp_path_factory.mktemp("config") / "config.yaml"
    config.write_text(CONFIG)
    resource = CLUSTER_TOPOLOGY_BINDING
    for each in (a_topology(), a_binding()):
        manifest = {"apiVersion": resource.api_version, "kind": resource.kind, **each}
        (directory / f"{each['metadata']['name']}.yaml").write_text(yaml.safe_dump(manifest))
    texts = {"": WORKLOAD, **{name: variant(name) for name in VARIANTS}}
    texts |= {name: yaml.safe_dump(workload(file, edit)) for name, (file, edit, _) in PUBLISHED.items()}
    files = {str(directory / f"set-{number}.yaml"): name for number, name in enumerate(texts)}
    for file, name in files.items():
        Path(file).write_text(texts[name])
    arguments = ["validate", "-f", str(directory), "--config", str(config), "-o", "json"]
    verdicts = json.loads(CliRunner().invoke(main, arguments).output)
    return {files[each["source"]]: each["problems"] for each in verdicts if each["source"] in files}


def a_topology() -> JSON:
    """Return the topology that the workload names."""
    levels = [{"domain": domain, "key": f"example.com/{domain}"} for domain in ("zone", "block", "rack", "host")]
    return {"metadata": {"name": "cluster"}, "spec": {"levels": levels}}


@pytest.fixture(scope="module")
def refusals() -> dict[str, str]:
    """Apply every variant, strictly, to a cluster whose operator has the same configuration; return the answers."""
    profiles = Profiles((Profile("default-scheduler"), Profile("kai-scheduler")), "kai-scheduler")

    texts = {"": WORKLOAD, **{name: variant(name) for name in VARIANTS}}
    return refused_by(Settings(profiles=profiles, topology_enabled=True), texts)


def refused_by(settings: Settings, texts: Mapping[str, str]) -> dict[str, str]:
    """Apply workloads, strictly, to a cluster whose operator has these settings; return the refusals by name."""
    answers: dict[str, str] = {}

    async def story() -> None:
        async with a_guarded_cluster(settings) as client:
            await client.create(CLUSTER_TOPOLOGY_BINDING, a_topology())
            await client.runtime.clock.sleep(1)
            for name, text in texts.items():
                body = json.dumps(yaml.safe_load(text)).encode()
                query = {"fieldValidation": "Strict", "dryRun": "All"}
                try:
                    await client.raw("POST", SETS, query=query, body=body)
                except ApiError as error:
                    answers[name] = str(error)

    run_virtual(story())
    return answers


def variant(name: str) -> str:
    """Return the workload with one mistake."""
    old, new, _ = VARIANTS[name]
    assert WORKLOAD.count(old) >= 1, name
    return WORKLOAD.replace(old, new, 1)


def test_the_workload_itself_is_valid(offline: dict[str, list[JSON]], refusals: dict[str, str]) -> None:
    """Without a mistake both accept it."""
    assert offline[""] == []
    assert "" not in refusals


@pytest.mark.parametrize("name", VARIANTS)
def test_both_refuse_at_the_same_field(offline: dict[str, list[JSON]], refusals: dict[str, str], name: str) -> None:
    """A mistake is found without a cluster at the field that a cluster would name."""
    paths = VARIANTS[name][2]
    assert paths <= {problem["path"] for problem in offline[name]}, offline[name]
    assert any(path in refusals[name] for path in {*paths, ELSEWHERE.get(name, "none")}), refusals[name]


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_mistake_that_a_cluster_refuses_is_found_without_one(offline: dict[str, list[JSON]], name: str) -> None:
    """Of published workloads with a mistake, the command names the field that clusters were shown to name, or in it."""
    path = PUBLISHED[name][2]
    assert any(f"{problem['path']}.".startswith(f"{path}.") for problem in offline[name]), offline[name]


LARGE = WORKLOAD.replace("replicas: 4", "replicas: 20000")
IN_ORDER = WORKLOAD.replace("TypeExplicit", "TypeInOrder").replace("        startsAfter: [router]\n", "")
ANY_ORDER = IN_ORDER.replace("TypeInOrder", "TypeAnyOrder")


@pytest.mark.parametrize(
    ("line", "text", "fault"),
    [
        ("limits: {podsPerSet: 9}", WORKLOAD, "PerSet of the operator's configuration allows 9;"),
        ("limits: {podsPerSet: 10}", WORKLOAD, ""),
        ("limits: {gangsPerSet: 1}", WORKLOAD, "PerSet of the operator's configuration allows 1;"),
        ("", LARGE, "PerSet of the operator's configuration allows 20000;"),
        ("limits: {podsPerSet: 50000}", LARGE, ""),
        ("initContainer: {enabled: false}", WORKLOAD, "start-up order is switched off"),
        ("initContainer: {enabled: false}", IN_ORDER, "start-up order is switched off"),
        ("initContainer: {enabled: false}", ANY_ORDER, ""),
        ("", IN_ORDER, ""),
    ],
)
def test_both_hold_a_set_to_the_limits_and_features_of_the_configuration(
    tmp_path: Path, line: str, text: str, fault: str
) -> None:
    """With the operator's file, a set is valid exactly if the operator takes it."""
    file, config, topology = tmp_path / "set.yaml", tmp_path / "config.yaml", tmp_path / "topology.yaml"
    file.write_text(text)
    config.write_text(CONFIG + line)
    resource = CLUSTER_TOPOLOGY_BINDING
    topology.write_text(yaml.safe_dump({"apiVersion": resource.api_version, "kind": resource.kind, **a_topology()}))
    refusals = refused_by(Settings.of(check(CONFIG + line, every_backend())), {"": text})
    answer = CliRunner().invoke(main, ["validate", "-f", str(file), "-f", str(topology), "--config", str(config)])

    assert (answer.exit_code == 1, bool(refusals)) == (bool(fault), bool(fault)), answer.output
    assert fault in answer.output
    assert fault in refusals.get("", "")
