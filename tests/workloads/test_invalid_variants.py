"""Published workloads with one mistake, and changes of them that are not allowed: refused, at the field that is wrong.

Both clusters are asked: the embedded one, and a real API server that calls the operator over TLS. What the schema of
the CRD refuses never reaches the operator; the answer must name the field all the same.
"""

import asyncio
import copy
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from spinney.api.grove import POD_CLIQUE_SET
from spinney.api.struct import JSON
from spinney.api.topology_binding import CLUSTER_TOPOLOGY_BINDING
from spinney.backends.builtin import every_backend
from spinney.kube.client import Client
from spinney.kube.crds import install_crds
from spinney.kube.errors import ApiError
from spinney.kube.webhooks.certificates import new_certificate
from spinney.kube.webhooks.server import ServicePlace, WebhookServer
from spinney.operator.admission.rules import Admission
from spinney.operator.admission.webhooks import configurations
from spinney.operator.configuration import check
from spinney.operator.operator import Operator, Settings
from spinney.runtime import Runtime
from tests.conftest import Cluster
from tests.e2e.floor import a_binding
from tests.e2e.reviewing import Reviews
from tests.workloads.files import WORKLOADS, pod_clique_set

CONFIGURATION = """
topologyAwareScheduling: {enabled: true}
scheduler:
  profiles: [{name: kai-scheduler, default: true}, {name: default-scheduler}]
"""
T = "spec.template"
C = f"{T}.cliques"
G = f"{T}.podCliqueScalingGroups"

Edit = Callable[[JSON], object]


def clique(n: int, edit: Edit) -> Edit:
    return lambda pcs: edit(pcs["spec"]["template"]["cliques"][n])


def spec(n: int, **fields: Any) -> Edit:
    """Set fields in the spec of one clique."""
    return clique(n, lambda found: found["spec"].update(fields))


def pod(n: int, **fields: Any) -> Edit:
    """Set fields in the pod spec of one clique."""
    return clique(n, lambda found: found["spec"]["podSpec"].update(fields))


def group(**fields: Any) -> Edit:
    """Set fields of the first scaling group."""
    return lambda pcs: pcs["spec"]["template"]["podCliqueScalingGroups"][0].update(fields)


def template(**fields: Any) -> Edit:
    """Set fields of the template."""
    return lambda pcs: pcs["spec"]["template"].update(fields)


def sharing(**fields: Any) -> Edit:
    """Set fields of the first sharing entry of the set."""
    return lambda pcs: pcs["spec"]["template"]["resourceSharing"][0].update(fields)


def domain(name: str, **fields: Any) -> JSON:
    """Return a constraint to a domain of the topology."""
    return {"topologyName": "grove-topology", "pack": {"required": name}, **fields}


def explicit(*after: tuple[int, list[str]]) -> Edit:
    """Start cliques explicitly, some after others."""

    def edit(pcs: JSON) -> None:
        pcs["spec"]["template"]["cliqueStartupType"] = "CliqueStartupTypeExplicit"
        for n, parents in after:
            pcs["spec"]["template"]["cliques"][n]["spec"]["startsAfter"] = parents

    return edit


CREATED: dict[str, tuple[str, Edit, str]] = {
    "negative replicas": ("workload1", lambda pcs: pcs["spec"].update(replicas=-1), "spec.replicas"),
    "text for replicas": ("workload1", lambda pcs: pcs["spec"].update(replicas="two"), "spec.replicas"),
    "no template": ("workload1", lambda pcs: pcs["spec"].pop("template"), T),
    "no cliques": ("workload1", template(cliques=[], podCliqueScalingGroups=[]), C),
    "unknown strategy": (
        "workload1",
        lambda pcs: pcs["spec"].update(updateStrategy={"type": "Sudden"}),
        "spec.updateStrategy.type",
    ),
    "unknown start-up": ("workload1", template(cliqueStartupType="InOrder"), f"{T}.cliqueStartupType"),
    "no delay": ("workload1", template(terminationDelay="0s"), f"{T}.terminationDelay"),
    "no duration": ("workload1", template(terminationDelay="soon"), f"{T}.terminationDelay"),
    "clique without pods": ("workload1", clique(0, lambda found: found["spec"].pop("podSpec")), f"{C}[0].spec.podSpec"),
    "clique named badly": ("workload1", clique(0, lambda found: found.update(name="PC-A")), f"{C}[0].name"),
    "clique with a dot": ("workload1", clique(0, lambda found: found.update(name="pc.a")), f"{C}[0].name"),
    "clique given twice": ("workload1", clique(2, lambda found: found.update(name="pc-a")), f"{C}[2]"),
    "role given twice": ("workload1", spec(2, roleName="role-a"), f"{C}[2].spec.roleName"),
    "minimum above replicas": ("workload1", spec(0, minAvailable=3), f"{C}[0].spec.minAvailable"),
    "minimum of nothing": ("workload1", spec(0, minAvailable=0), f"{C}[0].spec.minAvailable"),
    "negative minimum": ("workload1", spec(0, minAvailable=-1), f"{C}[0].spec.minAvailable"),
    "negative size": ("workload1", spec(0, replicas=-2), f"{C}[0].spec.replicas"),
    "label no label": ("workload1", clique(0, lambda found: found["labels"].update({"a b": "c"})), f"{C}[0].labels"),
    "member with autoscaler": (
        "workload1",
        spec(1, autoScalingConfig={"maxReplicas": 4}),
        f"{C}[1].spec.autoScalingConfig",
    ),
    "autoscaler below itself": (
        "workload1",
        spec(0, autoScalingConfig={"minReplicas": 4, "maxReplicas": 3}),
        f"{C}[0].spec.autoScalingConfig.maxReplicas",
    ),
    "autoscaler below minimum": (
        "workload1",
        spec(0, autoScalingConfig={"minReplicas": 1, "maxReplicas": 3}),
        f"{C}[0].spec.autoScalingConfig.minReplicas",
    ),
    "autoscaler without bound": (
        "workload1",
        spec(0, autoScalingConfig={"minReplicas": 2}),
        f"{C}[0].spec.autoScalingConfig.maxReplicas",
    ),
    "metric of no kind": (
        "simple1",
        spec(0, autoScalingConfig={"maxReplicas": 9, "metrics": [{"type": "Mood"}]}),
        f"{C}[0].spec.autoScalingConfig.metrics[0].type",
    ),
    "group of nobody": ("workload1", group(cliqueNames=[]), f"{G}[0].cliqueNames"),
    "group of strangers": ("workload1", group(cliqueNames=["pc-b", "pc-z"]), f"{G}[0].cliqueNames[1]"),
    "group without replicas": ("workload1", group(replicas=0), f"{G}[0].replicas"),
    "group minimum above replicas": ("workload1", group(minAvailable=3), f"{G}[0].minAvailable"),
    "group scaled below its minimum": (
        "workload1",
        group(scaleConfig={"minReplicas": 1, "maxReplicas": 5}),
        f"{G}[0].scaleConfig.minReplicas",
    ),
    "clique in two groups": (
        "workload1",
        lambda pcs: pcs["spec"]["template"]["podCliqueScalingGroups"].append({"name": "sg-y", "cliqueNames": ["pc-c"]}),
        f"{G}[1].cliqueNames[0]",
    ),
    "names too long together": (
        "workload1",
        lambda pcs: pcs["metadata"].update(name="w" * 42),
        "metadata.name",
    ),
    "start after a stranger": ("workload5", explicit((0, ["pc-z"])), f"{C}[0].spec.startsAfter[0]"),
    "start after oneself": ("workload5", explicit((0, ["pc-a"])), f"{C}[0].spec.startsAfter[0]"),
    "start in a circle": ("workload5", explicit((0, ["pc-b"])), C),
    "scheduler not enabled": ("workload1", pod(0, schedulerName="volcano"), f"{C}[0].spec.podSpec.schedulerName"),
    "two schedulers": ("workload1", pod(2, schedulerName="default-scheduler"), f"{C}[2].spec.podSpec.schedulerName"),
    "no queue": (
        "workload1",
        lambda pcs: [found.pop("labels") for found in pcs["spec"]["template"]["cliques"]],
        "metadata.labels",
    ),
    "pod on a node": ("workload1", pod(0, nodeName="here"), f"{C}[0].spec.podSpec.nodeName"),
    "pod without containers": ("workload1", pod(0, containers=[]), f"{C}[0].spec.podSpec.containers"),
    "pods spread": (
        "workload1",
        pod(0, topologySpreadConstraints=[{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}]),
        f"{C}[0].spec.podSpec.topologySpreadConstraints",
    ),
    "no such domain": (
        "tas-hierarchy",
        template(topologyConstraint=domain("aisle")),
        f"{T}.topologyConstraint.pack.required",
    ),
    "no such topology": (
        "tas-hierarchy",
        template(topologyConstraint=domain("block", topologyName="mars")),
        f"{T}.topologyConstraint.topologyName",
    ),
    "domains the wrong way round": (
        "tas-hierarchy",
        group(topologyConstraint=domain("zone")),
        f"{G}[0].topologyConstraint.pack.required",
    ),
    "domain no name": (
        "tas-hierarchy",
        group(topologyConstraint=domain("Rack")),
        f"{G}[0].topologyConstraint.pack.required",
    ),
    "empty pack": (
        "tas-hierarchy",
        group(topologyConstraint={"topologyName": "grove-topology", "pack": {}}),
        f"{G}[0].topologyConstraint.pack",
    ),
    "no pack": (
        "tas-hierarchy",
        group(topologyConstraint={"topologyName": "grove-topology"}),
        f"{G}[0].topologyConstraint",
    ),
    "deprecated domain": (
        "tas-hierarchy",
        group(topologyConstraint={"topologyName": "grove-topology", "packDomain": "rack"}),
        f"{G}[0].topologyConstraint",
    ),
    "NVLink while it is off": (
        "workload1",
        lambda pcs: pcs["metadata"].update(annotations={"grove.io/mnnvl-group": "fast"}),
        "metadata.annotations[grove.io/mnnvl-group]",
    ),
    "shared in no scope": ("workload-resource-sharing", sharing(scope="Some"), f"{T}.resourceSharing[0].scope"),
    "shared with strangers": (
        "workload-resource-sharing",
        sharing(filter={"childCliqueNames": ["worker-z"]}),
        f"{T}.resourceSharing[0].filter.childCliqueNames[0]",
    ),
    "shared with nobody": ("workload-resource-sharing", sharing(filter={}), f"{T}.resourceSharing[0].filter"),
    "template without requests": (
        "workload-resource-sharing",
        lambda pcs: pcs["spec"]["template"]["resourceClaimTemplates"][0]["templateSpec"]["spec"]["devices"].clear(),
        f"{T}.resourceClaimTemplates[0].templateSpec.spec.devices.requests",
    ),
}

CHANGED: dict[str, tuple[str, Edit, str]] = {
    "a clique more": (
        "workload1",
        lambda pcs: pcs["spec"]["template"]["cliques"].append(
            copy.deepcopy(pcs["spec"]["template"]["cliques"][0]) | {"name": "pc-d"}
        ),
        C,
    ),
    "a clique less": ("workload1", lambda pcs: pcs["spec"]["template"]["cliques"].pop(0), C),
    "another role": ("workload1", spec(0, roleName="other"), f"{C}[0].spec.roleName"),
    "another minimum": ("workload1", spec(0, minAvailable=1), f"{C}[0].spec.minAvailable"),
    "another scheduler": ("workload1", pod(0, schedulerName="default-scheduler"), f"{C}[0].spec.podSpec.schedulerName"),
    "another start-up": ("workload1", template(cliqueStartupType="CliqueStartupTypeInOrder"), f"{T}.cliqueStartupType"),
    "another order": ("workload5", lambda pcs: pcs["spec"]["template"]["cliques"].reverse(), C),
    "other parents": ("workload5", spec(1, startsAfter=["pc-a"]), f"{C}[1].spec.startsAfter"),
    "another group minimum": ("workload1", group(minAvailable=1), f"{G}[0].minAvailable"),
    "other members": ("workload1", group(cliqueNames=["pc-b"]), f"{G}[0].cliqueNames"),
    "another group": ("workload1", group(name="sg-y"), G),
    "another domain": ("tas-hierarchy", template(topologyConstraint=domain("zone")), f"{T}.topologyConstraint"),
    "no constraint": (
        "tas-hierarchy",
        lambda pcs: pcs["spec"]["template"].pop("topologyConstraint"),
        f"{T}.topologyConstraint",
    ),
    "a constraint": ("workload1", template(topologyConstraint=domain("rack")), f"{T}.topologyConstraint"),
    "shared otherwise": (
        "workload-resource-sharing",
        lambda pcs: pcs["spec"]["template"]["resourceSharing"].pop(),
        f"{T}.resourceSharing",
    ),
    "other claim templates": (
        "workload-resource-sharing",
        lambda pcs: pcs["spec"]["template"]["resourceClaimTemplates"][0].update(name="renamed"),
        f"{T}.resourceClaimTemplates",
    ),
    "an NVLink group": (
        "workload1",
        lambda pcs: pcs["metadata"].update(annotations={"grove.io/mnnvl-group": "none"}),
        "metadata.annotations[grove.io/mnnvl-group]",
    ),
}

ALLOWED: dict[str, tuple[str, Edit]] = {
    "another image": (
        "workload1",
        lambda pcs: pcs["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["containers"][0].update(image="other:2"),
    ),
    "more replicas everywhere": (
        "workload1",
        lambda pcs: (pcs["spec"].update(replicas=3), spec(0, replicas=4)(pcs), group(replicas=5)(pcs)),
    ),
    "another strategy": ("workload1", lambda pcs: pcs["spec"].update(updateStrategy={"type": "OnDelete"})),
    "another delay and priority": ("workload1", template(terminationDelay="2h", priorityClassName="high")),
    "another order where there is none": ("workload1", lambda pcs: pcs["spec"]["template"]["cliques"].reverse()),
    "an autoscaler": ("workload1", spec(0, autoScalingConfig={"maxReplicas": 8})),
    "a node": ("workload1", pod(0, nodeName="here")),
    "another service": ("workload1", template(headlessServiceConfig={"publishNotReadyAddresses": False})),
}


@asynccontextmanager
async def guarded(cluster: Cluster, reviews: Reviews) -> AsyncIterator[Client]:
    """Run an operator whose admission the cluster asks; a real one does so over TLS."""
    client = cluster.client
    await install_crds(client)
    operator = Operator(cluster.connect("spinney-operator"), Settings.of(check(CONFIGURATION, every_backend())))
    running = asyncio.create_task(operator.run())
    serving = cluster.server.running() if cluster.server is not None else called(client, operator.admission)
    async with serving:
        await operator.manager.wait_until_ready()
        if cluster.embedded:
            await reviews.connect(operator.admission, client)
        await client.create(CLUSTER_TOPOLOGY_BINDING, a_binding())
        try:
            yield client
        finally:
            await client.delete(CLUSTER_TOPOLOGY_BINDING, a_binding()["metadata"]["name"])
            operator.stop()
            await running


@asynccontextmanager
async def called(client: Client, admission: Admission) -> AsyncIterator[None]:
    """Serve webhooks on loopback, and have a real API server call them there."""
    certificate = new_certificate(("localhost",), Runtime.system().clock.now())
    place = ServicePlace("unused", "unused")
    async with WebhookServer(admission, certificate, host="127.0.0.1").serving() as port:
        applied = configurations(place, certificate.authority, authorizer=False)
        for resource, manifest in applied:
            (hook,) = manifest["webhooks"]
            path = hook["clientConfig"].pop("service")["path"]
            hook["clientConfig"]["url"] = f"https://localhost:{port}{path}"
            await client.apply(resource, manifest)
        try:
            yield
        finally:
            for resource, manifest in applied:
                await client.delete(resource, manifest["metadata"]["name"])
            await _until_asking(client, "default", asking=False)  # while there is somebody to answer


async def refusal(request: Any) -> tuple[int, list[str]] | None:
    """Return the status and the fields a refused request is about; ``None`` when it is accepted."""
    try:
        await request
    except ApiError as error:
        return error.status, [cause.field for cause in error.causes]
    return None


async def until_asked(client: Client, namespace: str) -> None:
    """Wait until the API server calls the webhooks: it learns of them a little later."""
    await _until_asking(client, namespace, asking=True)


async def _until_asking(client: Client, namespace: str, *, asking: bool) -> None:
    """Wait until new sets are completed and wrong ones refused, or neither: the API server learns of each by itself."""
    async with asyncio.timeout(60):
        while True:
            with suppress(ApiError):
                taken = await client.create(POD_CLIQUE_SET, workload("workload1"), namespace, dry_run=True)
                wrong = workload("workload1", pod(0, nodeName="n"))
                found = await refusal(client.create(POD_CLIQUE_SET, wrong, namespace, dry_run=True))
                if {"terminationDelay" in taken["spec"]["template"], found is not None} == {asking}:
                    return
            await asyncio.sleep(0.1)


def workload(name: str, edit: Edit = lambda pcs: None) -> JSON:
    """Return a published workload, edited."""
    pcs = copy.deepcopy(pod_clique_set(WORKLOADS / f"{name}.yaml"))
    if name == "simple1":
        pcs["metadata"]["labels"] = {"kai.scheduler/queue": "test"}
    edit(pcs)
    return pcs


def shows(found: tuple[int, list[str]] | None, path: str) -> bool:
    """Say whether a refusal is about a field, or about the list item it is in."""
    return found is not None and found[0] == 422 and path in found[1]


@pytest.mark.parametrize("cluster_name", ["embedded", pytest.param("real", marks=pytest.mark.real)], indirect=True)
async def test_a_new_workload_with_a_mistake(cluster: Cluster, reviews: Reviews) -> None:
    """Each mistake is refused with the path of the field it is in, whoever finds it."""
    async with guarded(cluster, reviews) as client:
        await until_asked(client, cluster.namespace)
        wrong = {}
        for name, (file, edit, path) in CREATED.items():
            plain = client.create(POD_CLIQUE_SET, workload(file), cluster.namespace, dry_run=True)
            assert await refusal(plain) is None, file
            found = await refusal(client.create(POD_CLIQUE_SET, workload(file, edit), cluster.namespace, dry_run=True))
            if not shows(found, path):
                wrong[name] = (path, found)
        assert wrong == {}


@pytest.mark.parametrize("cluster_name", ["embedded", pytest.param("real", marks=pytest.mark.real)], indirect=True)
async def test_a_change_that_is_not_allowed(cluster: Cluster, reviews: Reviews) -> None:
    """What is fixed once a workload exists is refused at its path; all else may change."""
    async with guarded(cluster, reviews) as client:
        await until_asked(client, cluster.namespace)
        wrong: dict[str, object] = {}
        files = {file for file, _, _ in CHANGED.values()}
        stored: dict[str, JSON] = {}
        for file in sorted(files):
            empty = workload(file, lambda pcs: pcs["spec"].update(replicas=0))
            stored[file] = await client.create(POD_CLIQUE_SET, empty, cluster.namespace)
        edits = [(name, file, edit, path) for name, (file, edit, path) in CHANGED.items()]
        edits += [(name, file, edit, "") for name, (file, edit) in ALLOWED.items()]
        for name, file, edit, path in edits:
            changed = copy.deepcopy(stored[file])
            edit(changed)
            patched = client.patch(
                POD_CLIQUE_SET,
                changed["metadata"]["name"],
                _whole(stored[file], changed),
                cluster.namespace,
                dry_run=True,
            )
            found = await refusal(patched)
            if (found is not None) if not path else not shows(found, path):
                wrong[name] = (path, found)
        for file in files:
            await client.delete(POD_CLIQUE_SET, stored[file]["metadata"]["name"], cluster.namespace)
        assert wrong == {}


def _whole(old: JSON, new: JSON) -> JSON:
    """Return the merge patch that makes one object of another."""
    patch: JSON = dict.fromkeys(old.keys() - new.keys())
    for key, value in new.items():
        if isinstance(value, dict) and isinstance(old.get(key), dict):
            inner = _whole(old[key], value)
            if inner:
                patch[key] = inner
        elif old.get(key) != value:
            patch[key] = value
    return patch
