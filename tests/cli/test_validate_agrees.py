"""``spinney validate`` and admission say the same of invalid variants of one workload, field by field."""

import asyncio
import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from spinney.api.core import NAMESPACE
from spinney.api.struct import JSON
from spinney.api.topology_binding import CLUSTER_TOPOLOGY_BINDING
from spinney.backends import Profile, Profiles
from spinney.cli import main
from spinney.kube.client import Client
from spinney.kube.crds import install_crds
from spinney.kube.errors import ApiError
from spinney.kube.webhooks.server import ServicePlace
from spinney.operator.admission.rules import Admission
from spinney.operator.admission.webhooks import register
from spinney.operator.operator import Operator, Settings
from spinney.runtime import Runtime, run_virtual
from spinney.server import ApiServer
from spinney.sim.embedded.transport import InProcessTransport

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
CLIQUES = WORKLOAD[WORKLOAD.index("    - name: router") : WORKLOAD.index("    podCliqueScalingGroups")]
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
    "text for a number": ("replicas: 4", "replicas: four", {f"{WORKER}.spec.replicas"}),
    "object for a list": ("startsAfter: [router]", "startsAfter: {router: 1}", {f"{WORKER}.spec.startsAfter"}),
    "no pod spec": (
        "        podSpec:\n          restartPolicy: Always\n",
        "        podspec:\n",
        {f"{WORKER}.spec.podspec"},
    ),
    "label is a number": ("queue: test}", "queue: test, a: 5}", {"metadata.labels.a"}),
    # what admission refuses
    "bad name": ("name: pipeline", "name: Pipeline", {"metadata.name"}),
    "names too long": ("name: pipeline", f"name: {'p' * 40}", {"metadata.name"}),
    "fewer than no replicas": ("  replicas: 1\n", "  replicas: -1\n", {"spec.replicas"}),
    "no delay": ("terminationDelay: 1m", "terminationDelay: 0s", {f"{T}.terminationDelay"}),
    "delay is no duration": ("terminationDelay: 1m", "terminationDelay: soon", {f"{T}.terminationDelay"}),
    "no cliques": (f"cliques:\n{CLIQUES}", "cliques: []\n", {f"{T}.cliques"}),
    "two cliques of a role": ("roleName: worker", "roleName: router", {f"{WORKER}.spec.roleName"}),
    "minimum above replicas": ("minAvailable: 1", "minAvailable: 3", {f"{ROUTER}.spec.minAvailable"}),
    "autoscaler below replicas": (
        "maxReplicas: 5",
        "maxReplicas: 1, minReplicas: 1",
        {f"{ROUTER}.spec.autoScalingConfig.maxReplicas"},
    ),
    "starts after a stranger": ("[router]", "[rooter]", {f"{WORKER}.spec.startsAfter[0]"}),
    "starts after itself": ("[router]", "[worker]", {f"{WORKER}.spec.startsAfter[0]"}),
    "waits in a circle": (
        "        roleName: router",
        "        roleName: router\n        startsAfter: [worker]",
        {f"{T}.cliques"},
    ),
    "group of strangers": ("cliqueNames: [worker]", "cliqueNames: [wroker]", {f"{GROUP}.cliqueNames[0]"}),
    "group without replicas": ("      replicas: 2\n      topo", "      replicas: 0\n      topo", {f"{GROUP}.replicas"}),
    "looser inside": ("required: rack", "required: zone", {f"{GROUP}.topologyConstraint.pack.required"}),
    "no such domain": ("required: rack", "required: shelf", {f"{GROUP}.topologyConstraint.pack.required"}),
    "two topologies": (
        "{pack: {required: rack}}",
        "{topologyName: b, pack: {required: rack}}",
        {f"{GROUP}.topologyConstraint.topologyName"},
    ),
    "old spelling": ("pack: {required: block}", "packDomain: block", {f"{T}.topologyConstraint.packDomain"}),
    "no containers": (
        WORKLOAD[WORKLOAD.index("          - name: main") : WORKLOAD.index("    podCliqueScaling")],
        "",
        {f"{WORKER}.spec.podSpec.containers"},
    ),
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
    "a node named": ("restartPolicy: Always", "nodeName: n", {f"{WORKER}.spec.podSpec.nodeName"}),
    "a scheduler that is not enabled": (
        "restartPolicy: Always",
        "schedulerName: volcano",
        {f"{WORKER}.spec.podSpec.schedulerName"},
    ),
    "two schedulers": (
        "restartPolicy: Always",
        "schedulerName: default-scheduler",
        {f"{WORKER}.spec.podSpec.schedulerName"},
    ),
    "no queue": ("  labels: {kai.scheduler/queue: test}\n", "", {"metadata.labels"}),
}


ELSEWHERE = {"old spelling": f"{T}.topologyConstraint", "label is a number": "metadata.labels"}
"""Where a cluster names the field around: there a rule of the CRD comes first, and metadata is decoded as one."""


class InProcessCaller:
    """Carries reviews to an operator in this process."""

    admission: Admission

    async def call(self, client: JSON, body: bytes, timeout: float) -> bytes:
        """Hand a review over."""
        return await self.admission.answer(client["service"]["path"], body)

    async def close(self) -> None:
        """Let go of nothing."""


def offline(tmp_path: Path, text: str) -> list[JSON]:
    """Return the problems that the command finds."""
    workload, topology, config = tmp_path / "set.yaml", tmp_path / "topology.yaml", tmp_path / "config.yaml"
    workload.write_text(text)
    topology.write_text(yaml.safe_dump(a_topology()))
    config.write_text(CONFIG)
    arguments = ["validate", "-f", str(workload), "-f", str(topology), "--config", str(config), "-o", "json"]
    answer = CliRunner().invoke(main, arguments)
    verdicts = json.loads(answer.output)
    assert answer.exit_code == (0 if verdicts[0]["valid"] else 1), answer.output
    problems: list[JSON] = verdicts[0]["problems"]
    return problems


def a_topology() -> JSON:
    """Return the topology that the workload names."""
    levels = [{"domain": domain, "key": f"example.com/{domain}"} for domain in ("zone", "block", "rack", "host")]
    return {
        "apiVersion": CLUSTER_TOPOLOGY_BINDING.api_version,
        "kind": CLUSTER_TOPOLOGY_BINDING.kind,
        "metadata": {"name": "cluster"},
        "spec": {"levels": levels},
    }


@pytest.fixture(scope="module")
def refusals() -> dict[str, str]:
    """Apply every variant, strictly, to a cluster whose operator has the same configuration; return the answers."""
    answers: dict[str, str] = {}

    async def story() -> None:
        runtime, caller = Runtime.virtual(seed=5), InProcessCaller()
        server = ApiServer(runtime, webhooks=caller)
        client = Client(InProcessTransport(server), runtime)
        async with server.running():
            await client.create(NAMESPACE, {"metadata": {"name": "test"}})
            await install_crds(client)
            profiles = Profiles((Profile("default-scheduler"), Profile("kai-scheduler")), "kai-scheduler")
            settings = Settings(profiles=profiles, topology_enabled=True)
            operator = Operator(Client(InProcessTransport(server), runtime), settings)
            caller.admission = operator.admission
            running = asyncio.create_task(operator.run())
            await operator.manager.wait_until_ready()
            await register(client, ServicePlace("grove-operator", "grove"), b"", authorizer=False)
            await client.create(CLUSTER_TOPOLOGY_BINDING, a_topology())
            await runtime.clock.sleep(1)
            for name, text in {"": WORKLOAD, **{name: variant(name) for name in VARIANTS}}.items():
                body = json.dumps(yaml.safe_load(text)).encode()
                query = {"fieldValidation": "Strict", "dryRun": "All"}
                try:
                    await client.raw("POST", SETS, query=query, body=body)
                except ApiError as error:
                    answers[name] = str(error)
            operator.stop()
            await running

    run_virtual(story())
    return answers


def variant(name: str) -> str:
    """Return the workload with one mistake."""
    old, new, _ = VARIANTS[name]
    assert WORKLOAD.count(old) >= 1, name
    return WORKLOAD.replace(old, new, 1)


def test_the_workload_itself_is_valid(tmp_path: Path, refusals: dict[str, str]) -> None:
    """Without a mistake both accept it."""
    assert offline(tmp_path, WORKLOAD) == []
    assert "" not in refusals


@pytest.mark.parametrize("name", VARIANTS)
def test_both_refuse_at_the_same_field(tmp_path: Path, refusals: dict[str, str], name: str) -> None:
    """A mistake is found without a cluster at the field that a cluster would name."""
    paths = VARIANTS[name][2]
    problems = offline(tmp_path, variant(name))
    assert paths <= {problem["path"] for problem in problems}, problems
    assert any(path in refusals[name] for path in {*paths, ELSEWHERE.get(name, "none")}), refusals[name]
