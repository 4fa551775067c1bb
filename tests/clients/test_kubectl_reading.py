"""kubectl shows what is there: get in every form, describe, explain, events, and what the server says of itself."""

import asyncio
import json

import pytest
import yaml

from spinney.api.struct import JSON
from spinney.server import ApiServer
from tests.clients.kubectl import Kubectl
from tests.clients.manifests import DEPLOYMENT, POD
from tests.server.api import PODS, Api, a_binding

pytestmark = pytest.mark.real


async def test_get_prints_the_columns_people_know(kubectl: Kubectl) -> None:
    """The table of pods, and its wide form with where they are."""
    await kubectl.apply(POD)
    heading, row = await kubectl.lines("get", "pods")
    assert heading == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert row[:4] == ["web", "0/1", "Pending", "0"]
    heading, row = await kubectl.lines("get", "pods", "-o", "wide")
    assert " ".join(heading[5:]) == "IP NODE NOMINATED NODE READINESS GATES"
    assert row[5:] == ["<none>"] * 4


async def test_get_prints_objects_as_asked(kubectl: Kubectl) -> None:
    """YAML, JSON, names, JSONPath, templates, custom and label columns, sorted and selected."""
    await kubectl.apply(POD)
    await kubectl.apply(POD.replace("name: web,", "name: api,").replace("app: web", "app: api"))
    whole = yaml.safe_load(await kubectl.run("get", "pod", "web", "-o", "yaml"))
    assert whole == json.loads(await kubectl.run("get", "pod", "web", "-o", "json"))
    assert "managedFields" not in whole["metadata"]
    shown = yaml.safe_load(await kubectl.run("get", "pod", "web", "-o", "yaml", "--show-managed-fields"))
    assert shown["metadata"]["managedFields"][0]["manager"] == "kubectl-client-side-apply"
    assert await kubectl.lines("get", "pods", "-o", "name") == [["pod/api"], ["pod/web"]]
    assert await kubectl.run("get", "pods", "-o", "jsonpath={.items[*].metadata.labels.app}") == "api web"
    assert await kubectl.run("get", "pod/web", "-o", "go-template={{.spec.schedulerName}}") == "default-scheduler"
    columns = "custom-columns=POD:.metadata.name,IMAGE:.spec.containers[0].image"
    assert (await kubectl.lines("get", "pods", "-o", columns))[1] == ["api", "registry.example/web:1"]
    assert (await kubectl.lines("get", "pods", "-L", "app", "--no-headers"))[1][-1] == "web"
    newest_last = ["get", "pods", "--sort-by={.metadata.labels.app}", "--no-headers"]
    assert [row[0] for row in await kubectl.lines(*newest_last)] == ["api", "web"]
    assert len(await kubectl.lines("get", "pods", "-A", "-l", "app in (web)", "--no-headers")) == 1
    assert len(await kubectl.lines("get", "pods", "--field-selector=status.phase=Pending", "--chunk-size=1")) == 3
    assert "No resources found" in await kubectl.run("get", "pods", "--field-selector=spec.nodeName=n")


async def test_get_follows_changes(server: ApiServer, kubectl: Kubectl) -> None:
    """``get -w`` prints the row again at each change, also for the deletion."""
    await kubectl.apply(POD)
    watching = await kubectl.start("get", "pods", "-w", "--output-watch-events", "--no-headers")
    assert watching.stdout is not None
    api = Api(server)
    seen = []
    async with asyncio.timeout(60):
        seen.append((await watching.stdout.readline()).split())
        await api.patch(f"{PODS}/web/status", {"status": {"phase": "Running"}})
        seen.append((await watching.stdout.readline()).split())
        await api.delete(f"{PODS}/web", {"gracePeriodSeconds": 0})
        seen.append((await watching.stdout.readline()).split())
    watching.kill()
    await watching.communicate()
    assert [row[0] for row in seen] == [b"ADDED", b"MODIFIED", b"DELETED"]
    assert seen[1][3] == b"Running"


async def test_pods_are_described_with_their_events(kubectl: Kubectl, server: ApiServer) -> None:
    """Describe shows the pod's parts and what happened to it; events lists the same for itself."""
    await kubectl.apply(POD)
    pod = await Api(server).get(f"{PODS}/web")
    event: JSON = {
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "apiVersion": "v1", "name": "web", "uid": pod["metadata"]["uid"]},
        "reason": "FailedScheduling",
        "message": "no node is large enough",
        "type": "Warning",
        "count": 3,
        "firstTimestamp": pod["metadata"]["creationTimestamp"],
        "lastTimestamp": pod["metadata"]["creationTimestamp"],
        "source": {"component": "somebody"},
    }
    event["involvedObject"] |= {"namespace": "default"}
    await Api(server).create("/api/v1/namespaces/default/events", event)
    described = await kubectl.run("describe", "pod", "web")
    assert ["QoS", "Class:", "Guaranteed"] in [line.split() for line in described.splitlines()]
    assert "registry.example/web:1" in described
    assert "FailedScheduling" in described
    assert "(x3 over" in described
    for command in (["events"], ["events", "--for", "pod/web", "--types=Warning"], ["get", "events"]):
        assert "no node is large enough" in await kubectl.run(*command)
    assert "No events found" in await kubectl.run("events", "--for", "pod/other")


async def test_logs_are_those_of_a_simulated_container(kubectl: Kubectl, server: ApiServer) -> None:
    """Logs say that nothing runs; before the container starts they say what it waits for; exec is refused."""
    await kubectl.apply(POD)
    await Api(server).create(f"{PODS}/web/binding", a_binding("web"))
    assert "is waiting to start" in await kubectl.run("logs", "web", code=1)
    status = {"name": "c", "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}, "restartCount": 0}
    complete = {"image": "i", "imageID": "", "ready": True, **status}
    await Api(server).patch(f"{PODS}/web/status", {"status": {"phase": "Running", "containerStatuses": [complete]}})
    for command in (["logs", "web"], ["logs", "-l", "app=web"], ["logs", "web", "-c", "c", "--tail=1"]):
        assert "container c started (simulated" in await kubectl.run(*command)
    assert "is not valid for pod web" in await kubectl.run("logs", "web", "-c", "x", code=1)
    following = asyncio.create_task(kubectl.run("logs", "web", "-f"))
    await Api(server).delete(f"{PODS}/web", {"gracePeriodSeconds": 0})
    assert "not found" in await kubectl.run("exec", "web", "--", "ls", code=1)
    await asyncio.wait((following,))


async def test_exec_says_why_it_cannot(server: ApiServer, kubectl: Kubectl) -> None:
    """Exec names the reason instead of a path that is not served."""
    await kubectl.apply(POD)
    assert "does not have a host assigned" in await kubectl.run("exec", "web", "--", "ls", code=1)
    await Api(server).create(f"{PODS}/web/binding", a_binding("web"))
    assert "there is no program in it" in await kubectl.run("exec", "web", "--", "ls", code=1)


async def test_fields_of_built_in_kinds_are_explained(kubectl: Kubectl) -> None:
    """Explain knows the fields and their types, down to the last, in a tree if asked."""
    assert "<ResourceRequirements>" in await kubectl.run("explain", "pod.spec.containers")
    assert "maxSurge" in await kubectl.run("explain", "deployment.spec.strategy.rollingUpdate")
    assert "podGroupName" in await kubectl.run("explain", "pod.spec.schedulingGroup")
    tree = await kubectl.run("explain", "pod", "--recursive")
    assert "          matchExpressions\t<[]NodeSelectorRequirement>" in tree
    assert "does not exist" in await kubectl.run("explain", "pod.spec.nothing", code=1)


async def test_the_server_introduces_itself(kubectl: Kubectl) -> None:
    """api-resources, api-versions, version and cluster-info need no special server."""
    resources = await kubectl.run("api-resources", "-o", "name")
    assert {"pods", "nodes", "podgroups.scheduling.k8s.io", "leases.coordination.k8s.io"} <= set(resources.split())
    rows = {row[0]: row for row in await kubectl.lines("api-resources", "--no-headers", "--namespaced=true")}
    assert rows["pods"] == ["pods", "po", "v1", "true", "Pod"]
    assert "nodes" not in rows
    assert {"v1", "apps/v1", "scheduling.k8s.io/v1"} <= set((await kubectl.run("api-versions")).split())
    version, _ = json.JSONDecoder().raw_decode(await kubectl.run("version", "-o", "json"))
    assert version["serverVersion"]["gitVersion"].endswith("+spinney")
    assert "is running at" in await kubectl.run("cluster-info")
    assert "ok" in await kubectl.run("get", "--raw", "/readyz")


async def test_auth_answers_who_may_do_what(kubectl: Kubectl) -> None:
    """Whoever has the kubeconfig is an administrator."""
    assert (await kubectl.run("auth", "can-i", "create", "pods")).strip() == "yes"
    assert "*.*" in await kubectl.run("auth", "can-i", "--list")
    assert "system:masters" in await kubectl.run("auth", "whoami")


async def test_metrics_are_missed_as_without_a_metrics_server(kubectl: Kubectl) -> None:
    """Top says that there are no metrics, as on a cluster without metrics-server."""
    assert "Metrics API not available" in await kubectl.run("top", "nodes", code=1)


async def test_rollouts_are_followed_by_their_status(kubectl: Kubectl) -> None:
    """Rollout status waits for what a controller reports, and history shows the revisions there are."""
    await kubectl.apply(DEPLOYMENT)
    waiting = asyncio.create_task(kubectl.run("rollout", "status", "deployment/web", "--timeout=40s"))
    status = {"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2, "readyReplicas": 2}
    patch = json.dumps({"status": status})
    await kubectl.run("patch", "deployment", "web", "--subresource=status", "--type=merge", "-p", patch)
    assert "successfully rolled out" in await waiting
    await kubectl.run("rollout", "restart", "deployment/web")
    again = await kubectl.run("get", "deployment", "web", "-o", "jsonpath={.metadata.generation}")
    assert again == "2"
