"""The real kubectl against the embedded server: what people type first."""

import asyncio
import json
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml

from spinney.runtime import Runtime
from spinney.server import ApiServer
from spinney.server.http import HttpServer
from tests.server.api import Api, a_definition

_KUBECTL = os.environ.get("SPINNEY_KUBECTL") or shutil.which("kubectl")

pytestmark = pytest.mark.skipif(_KUBECTL is None, reason="no kubectl: put it on the PATH or set SPINNEY_KUBECTL")

_POD = """
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  containers:
  - name: c
    image: registry.example/web:1
    resources: {limits: {cpu: 100m, memory: 1Gi}}
"""
_NODE = """
apiVersion: v1
kind: Node
metadata: {name: n1}
status:
  capacity: {cpu: "4", memory: 8Gi, pods: "110"}
  allocatable: {cpu: "4", memory: 8Gi, pods: "110"}
  conditions: [{type: Ready, status: "True", reason: KubeletReady, message: up}]
"""
_WIDGET = """
apiVersion: example.com/v1
kind: Widget
metadata: {name: w}
spec: {size: 3}
"""


class Kubectl:
    """Runs kubectl with a kubeconfig and a cache of its own."""

    def __init__(self, http: HttpServer, home: Path) -> None:
        config = home / "config"
        http.write_kubeconfig(config)
        self._environment = {"PATH": os.environ["PATH"], "HOME": str(home), "KUBECONFIG": str(config)}

    async def run(self, *arguments: str, stdin: str = "", code: int = 0) -> str:
        assert _KUBECTL is not None
        process = await asyncio.create_subprocess_exec(
            _KUBECTL,
            *arguments,
            env=self._environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        async with asyncio.timeout(60):
            output, _ = await process.communicate(stdin.encode())
        text = output.decode()
        assert process.returncode == code, text
        return text


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    server = ApiServer(Runtime.system())
    async with server.running():
        yield server


@pytest.fixture
async def kubectl(server: ApiServer, tmp_path: Path) -> AsyncIterator[Kubectl]:
    async with HttpServer(server) as http:
        yield Kubectl(http, tmp_path)


async def test_pods_are_applied_shown_and_deleted(kubectl: Kubectl) -> None:
    """Apply creates and then changes nothing, get and describe show the pod, delete waits until it is gone."""
    assert "pod/web created" in await kubectl.run("apply", "-f", "-", stdin=_POD)
    assert "pod/web unchanged" in await kubectl.run("apply", "-f", "-", stdin=_POD)
    assert "pod/web configured" in await kubectl.run("apply", "-f", "-", stdin=_POD.replace("web:1", "web:2"))
    shown = (await kubectl.run("get", "pods", "-o", "wide")).split()
    assert shown[:5] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert "Pending" in shown
    described = await kubectl.run("describe", "pod", "web")
    assert "registry.example/web:2" in described
    assert ["QoS", "Class:", "Guaranteed"] in [line.split() for line in described.splitlines()]
    assert 'pod "web" deleted' in await kubectl.run("delete", "pod", "web", "--timeout=20s")
    assert "not found" in await kubectl.run("get", "pod", "web", code=1)


async def test_nodes_are_waited_for_and_cordoned(kubectl: Kubectl) -> None:
    """Wait sees the Ready condition, cordon and label change the node, describe shows it."""
    await kubectl.run("apply", "-f", "-", stdin=_NODE)
    assert "condition met" in await kubectl.run("wait", "--for=condition=Ready", "node/n1", "--timeout=20s")
    await kubectl.run("cordon", "n1")
    await kubectl.run("label", "node", "n1", "zone=a")
    assert "Ready,SchedulingDisabled" in await kubectl.run("get", "nodes", "--show-labels")
    assert "zone=a" in await kubectl.run("describe", "node", "n1")


async def test_a_custom_kind_from_definition_to_deletion(kubectl: Kubectl) -> None:
    """A definition is applied, its kind is served under its short name, strict fields are enforced, all goes again."""
    schema = {"type": "object", "properties": {"size": {"type": "integer"}}}
    columns = [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]
    definition = a_definition(schema, additionalPrinterColumns=columns)
    definition |= {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    await kubectl.run("apply", "-f", "-", stdin=yaml.safe_dump(definition))
    await kubectl.run("wait", "--for=condition=Established", "crd/widgets.example.com", "--timeout=20s")
    assert "widget.example.com/w created" in await kubectl.run("apply", "-f", "-", stdin=_WIDGET)
    assert (await kubectl.run("get", "wd")).split() == ["NAME", "SIZE", "w", "3"]
    assert ["Size:", "3"] in [line.split() for line in (await kubectl.run("describe", "widget", "w")).splitlines()]
    wrong = await kubectl.run("apply", "-f", "-", stdin=_WIDGET.replace("size: 3", "size: 3, sise: 4"), code=1)
    assert 'unknown field "spec.sise"' in wrong
    await kubectl.run("patch", "widget", "w", "--type=merge", "-p", '{"spec":{"size":5}}')
    assert await kubectl.run("get", "widget", "w", "-o", "jsonpath={.spec.size}") == "5"
    await kubectl.run("delete", "crd", "widgets.example.com", "--timeout=20s")
    assert "could not find" in await kubectl.run("get", "widgets", code=1)


async def test_server_side_apply_reports_conflicts(kubectl: Kubectl) -> None:
    """Two managers of one field conflict, until one is told to force it."""
    config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {v: '1'}\n"
    await kubectl.run("apply", "--server-side", "--field-manager=one", "-f", "-", stdin=config)
    other = config.replace("'1'", "'2'")
    refused = await kubectl.run("apply", "--server-side", "--field-manager=two", "-f", "-", stdin=other, code=1)
    assert 'conflict with "one"' in refused
    await kubectl.run("apply", "--server-side", "--field-manager=two", "--force-conflicts", "-f", "-", stdin=other)
    assert await kubectl.run("get", "cm", "c", "-o", "jsonpath={.data.v}") == "2"


async def test_an_invalid_object_is_explained(kubectl: Kubectl) -> None:
    """Kubectl prints which field is wrong."""
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: bad}\nspec: {containers: []}\n"
    assert "spec.containers: Required value" in await kubectl.run("apply", "-f", "-", stdin=pod, code=1)


async def test_a_namespace_with_contents_is_deleted(kubectl: Kubectl) -> None:
    """Delete of a namespace waits until its contents are gone."""
    namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n"
    await kubectl.run("apply", "-f", "-", stdin=namespace)
    await kubectl.run("apply", "-n", "team", "-f", "-", stdin=_POD)
    assert "deleted" in await kubectl.run("delete", "namespace", "team", "--timeout=20s")


async def test_wait_is_woken_by_a_change(server: ApiServer, kubectl: Kubectl) -> None:
    """Wait for a condition returns when somebody else writes it."""
    await kubectl.run("apply", "-f", "-", stdin=_POD)
    waiting = asyncio.create_task(kubectl.run("wait", "--for=condition=Ready", "pod/web", "--timeout=30s"))
    status = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    await Api(server).patch("/api/v1/namespaces/default/pods/web/status", status)
    assert "condition met" in await waiting


async def test_discovery_lists_what_is_served(kubectl: Kubectl) -> None:
    """api-resources and version work without warnings about the server."""
    resources = await kubectl.run("api-resources", "-o", "name")
    assert {"pods", "nodes", "podgroups.scheduling.k8s.io", "leases.coordination.k8s.io"} <= set(resources.split())
    version, _ = json.JSONDecoder().raw_decode(await kubectl.run("version", "-o", "json"))
    assert version["serverVersion"]["gitVersion"].endswith("+spinney")


async def test_imperative_commands_send_protobuf(kubectl: Kubectl) -> None:
    """What kubectl creates from flags alone, it sends in protobuf: it is created, scaled and changed like the rest."""
    for command in (
        "create namespace team",
        "create configmap c --from-literal=a=b",
        "create secret generic s --from-literal=a=b",
        "create deployment web --image=registry.example/web:1 --replicas=2",
        "create job once --image=registry.example/web:1",
        "create serviceaccount robot",
        "create quota q --hard=pods=5",
        "create service clusterip web --tcp=80:80",
        "create priorityclass high --value=5",
        "run p --image=registry.example/web:1",
    ):
        assert "created" in await kubectl.run(*command.split())
    await kubectl.run("scale", "deployment", "web", "--replicas=3")
    await kubectl.run("set", "image", "deployment/web", "web=registry.example/web:2")
    shown = await kubectl.run("get", "deployment", "web", "-o", "jsonpath={.spec.replicas} {.spec.template.spec}")
    assert shown.startswith("3 ")
    assert "registry.example/web:2" in shown
    assert (await kubectl.run("auth", "can-i", "create", "pods")).strip() == "yes"


async def test_fields_of_built_in_kinds_are_explained(kubectl: Kubectl) -> None:
    """Explain knows the fields and their types, down to the last."""
    assert "<ResourceRequirements>" in await kubectl.run("explain", "pod.spec.containers")
    explained = await kubectl.run("explain", "deployment.spec.strategy.rollingUpdate")
    assert "maxSurge" in explained
    assert "does not exist" in await kubectl.run("explain", "pod.spec.nothing", code=1)


async def test_a_misspelt_field_is_refused(kubectl: Kubectl) -> None:
    """Kubectl asks for strict validation, and prints the path of the field nobody knows."""
    pod = _POD.replace("image:", "imagee:")
    assert 'unknown field "spec.containers[0].imagee"' in await kubectl.run("apply", "-f", "-", stdin=pod, code=1)


async def test_diff_shows_what_an_apply_would_change(kubectl: Kubectl) -> None:
    """Diff tries the apply on the server, and leaves the object alone."""
    await kubectl.run("apply", "-f", "-", stdin=_POD)
    changed = await kubectl.run("diff", "-f", "-", stdin=_POD.replace("web:1", "web:2"), code=1)
    assert "+  - image: registry.example/web:2" in changed
    assert "web:1" in await kubectl.run("get", "pod", "web", "-o", "jsonpath={.spec.containers[0].image}")


async def test_patches_labels_and_annotations(kubectl: Kubectl) -> None:
    """Each type of patch, label and annotate change the object."""
    await kubectl.run("apply", "-f", "-", stdin=_POD)
    await kubectl.run("patch", "pod", "web", "-p", '{"metadata":{"labels":{"a":"1"}}}')
    await kubectl.run("patch", "pod", "web", "--type=merge", "-p", '{"metadata":{"labels":{"b":"2"}}}')
    patch = '[{"op":"add","path":"/metadata/labels/c","value":"3"}]'
    await kubectl.run("patch", "pod", "web", "--type=json", "-p", patch)
    await kubectl.run("label", "pod", "web", "d=4", "app-")
    await kubectl.run("annotate", "pod", "web", "note=x")
    labels = json.loads(await kubectl.run("get", "pod", "web", "-o", "jsonpath={.metadata.labels}"))
    assert labels == {"a": "1", "b": "2", "c": "3", "d": "4"}


async def test_draining_a_node_evicts_its_pods(server: ApiServer, kubectl: Kubectl) -> None:
    """Drain cordons the node and evicts what runs there."""
    await kubectl.run("apply", "-f", "-", stdin=_NODE)
    await kubectl.run("apply", "-f", "-", stdin=_POD)
    binding = {"metadata": {"name": "web"}, "target": {"kind": "Node", "name": "n1"}}
    await Api(server).create("/api/v1/namespaces/default/pods/web/binding", binding)
    done = {"status": {"phase": "Succeeded"}}
    await Api(server).patch("/api/v1/namespaces/default/pods/web/status", done)
    assert "drained" in await kubectl.run("drain", "n1", "--force", "--timeout=20s")
    assert "SchedulingDisabled" in await kubectl.run("get", "node", "n1")
    assert "not found" in await kubectl.run("get", "pod", "web", code=1)
