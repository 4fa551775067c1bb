"""``spinney why`` on a real control plane: pods pending under the stock kube-scheduler, and callers with few rights."""

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from spinney.api.core import NAMESPACE, NODE, POD, SERVICE_ACCOUNT, Pod
from spinney.api.resource import Resource
from spinney.api.struct import JSON
from spinney.cli import main
from spinney.kube.client import Client
from spinney.runtime import Runtime
from spinney.testing.controlplane import ControlPlane
from tests.rights import until_granted

pytestmark = pytest.mark.real

SPACE = "why"
SAID = r"said by default-scheduler \w+ ago: 0/1 nodes are available: 1 Insufficient cpu\."
ROLE = Resource("rbac.authorization.k8s.io", "v1", "Role", "roles")
ROLE_BINDING = Resource("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings")
CLUSTER_ROLE = Resource("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", namespaced=False)
CLUSTER_ROLE_BINDING = Resource(
    "rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False
)
NODE_MANIFEST = "{apiVersion: v1, kind: Node, metadata: {name: small}}"


def on(plane: ControlPlane, work: Callable[[Client], Awaitable[object]]) -> None:
    """Do something in the cluster, as an administrator."""

    async def run() -> None:
        runtime = Runtime.system()
        client = plane.connect(runtime)
        try:
            await work(client)
        finally:
            await client.transport.close()
            runtime.executor.close()

    asyncio.run(run())


def a_pod(name: str, *, cpu: str) -> JSON:
    """Return a pod for the default scheduler."""
    container = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": cpu}}}
    return {"metadata": {"name": name, "namespace": SPACE}, "spec": {"containers": [container]}}


@pytest.fixture(scope="module")
def pending(controlplane: ControlPlane) -> Iterator[ControlPlane]:
    """A cluster with one small node, where kube-scheduler has refused a large pod."""

    async def build(client: Client) -> None:
        await client.apply(NAMESPACE, {"metadata": {"name": SPACE}})
        async for event in client.watch(SERVICE_ACCOUNT, SPACE, field_selector="metadata.name=default"):
            if event.type == "ADDED":
                break
        capacity = {"cpu": "4", "memory": "8Gi", "pods": "110"}
        status = {
            "capacity": capacity,
            "allocatable": capacity,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}],
        }
        await client.create(NODE, {"metadata": {"name": "small"}, "status": status})
        await client.create(POD, a_pod("large", cpu="8"))
        async for refused in client.watch(POD, SPACE, type=Pod):
            condition = refused.object.condition("PodScheduled")
            if condition is not None and "Insufficient cpu" in condition.message:  # once it knows of the node
                break

    async def clear(client: Client) -> None:
        await client.delete_collection(POD, SPACE, grace_period_seconds=0)
        await client.delete_collection(NODE)
        await client.delete(NAMESPACE, SPACE)

    with controlplane.scheduler():
        on(controlplane, build)
        yield controlplane
        on(controlplane, clear)


def why(kubeconfig: Path, *arguments: str) -> str:
    """Ask, as whoever the kubeconfig says."""
    answer = CliRunner().invoke(main, ["why", *arguments, "--kubeconfig", str(kubeconfig)])
    assert answer.exit_code == 0, answer.output
    return answer.output


def test_a_pod_pending_under_kube_scheduler_is_explained(pending: ControlPlane) -> None:
    """Our counts are kube-scheduler's own; beside them stand what it said and what would help."""
    output = why(pending.kubeconfig, "pod/large", "-n", SPACE)

    assert re.search(SAID, output)
    assert "refused it, and this simulation" not in output
    assert "NodeResourcesFit: 1 Insufficient cpu (small)" in output
    assert "simulated from a snapshot" in output


def test_a_caller_with_few_rights_gets_what_can_be_seen(pending: ControlPlane) -> None:
    """Who may only read pods of one namespace hears what the scheduler said, and what could not be listed."""

    async def allow(client: Client) -> None:
        rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}]
        await client.create(ROLE, {"metadata": {"name": "reader", "namespace": SPACE}, "rules": rules})
        binding = {
            "metadata": {"name": "reader", "namespace": SPACE},
            "roleRef": {"apiGroup": ROLE.group, "kind": "Role", "name": "reader"},
            "subjects": [{"kind": "User", "name": "ann", "apiGroup": ROLE.group}],
        }
        await client.create(ROLE_BINDING, binding)
        await until_granted(client, "ann", rules, SPACE)

    on(pending, allow)
    output = why(pending.kubeconfig_for("ann"), "large", "-n", SPACE)

    assert "nodes may not be listed, so nothing could be simulated" in output
    assert re.search(SAID, output)
    assert "may not be listed outside namespace why: pods\n" in output
    assert "may not be listed: nodes, " in output


def test_kubectl_runs_the_plugin(pending: ControlPlane) -> None:
    """Where the package is on the path, ``kubectl spinney`` is ``spinney``."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    command = [str(pending.kubectl), "spinney", "why", "large", "-n", SPACE, "--kubeconfig", str(pending.kubeconfig)]
    done = subprocess.run(command, env=os.environ | {"PATH": path}, capture_output=True, text=True, check=True)

    assert "pod why/large: pending" in done.stdout


def _bind(role: str, user: str) -> JSON:
    return {
        "metadata": {"name": f"{user}-{role}"},
        "roleRef": {"apiGroup": ROLE.group, "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "User", "name": user, "apiGroup": ROLE.group}],
    }


def test_the_view_role_is_enough_to_be_told_what_was_recorded(pending: ControlPlane) -> None:
    """Who has Kubernetes' own view role hears what the scheduler said, and that nodes could not be seen."""

    async def allow(client: Client) -> None:
        await client.apply(CLUSTER_ROLE_BINDING, _bind("view", "bob"))
        async for event in client.watch(CLUSTER_ROLE, field_selector="metadata.name=view"):
            if event.object.get("rules"):  # a controller puts them together
                await until_granted(client, "bob", event.object["rules"])
                return

    on(pending, allow)
    output = why(pending.kubeconfig_for("bob"), "large", "-n", SPACE)

    assert re.search(SAID, output)
    assert "may not be listed: nodes, " in output


def test_the_role_of_the_handbook_is_enough_for_everything(pending: ControlPlane, tmp_path: Path) -> None:
    """Who has the role that the handbook recommends sees everything: nothing is missing from the answer."""
    handbook = (Path(__file__).parents[2] / "docs" / "operate.md").read_text()
    role = yaml.safe_load(handbook.partition("$ cat > advisor.yaml <<'EOT'\n")[2].partition("\nEOT")[0])

    async def allow(client: Client) -> None:
        await client.apply(CLUSTER_ROLE, role)
        await client.apply(CLUSTER_ROLE_BINDING, _bind(role["metadata"]["name"], "eve"))
        await until_granted(client, "eve", role["rules"])

    on(pending, allow)
    kubeconfig = pending.kubeconfig_for("eve")
    output = why(kubeconfig, "large", "-n", SPACE)

    assert "NodeResourcesFit: 1 Insufficient cpu (small)" in output
    assert "not seen" not in output
    file = tmp_path / "snapshot.json.gz"
    for command in (["queues"], ["get", "nodes"], ["simulate"], ["top", "--once"], ["snapshot", "-o", str(file)]):
        answer = CliRunner().invoke(main, [*command, "--kubeconfig", str(kubeconfig)])
        assert answer.exit_code == 0, answer.output
        assert "not seen" not in answer.output, command
    refused = CliRunner().invoke(main, ["delete", "-f", "-", "--kubeconfig", str(kubeconfig)], input=NODE_MANIFEST)
    assert refused.exit_code == 1
    assert "ask for that right, or choose another --context" in refused.output
