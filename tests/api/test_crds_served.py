"""The custom resource definitions on an API server: what it refuses by rule, fills in, and keeps."""

import copy
from typing import Any

import pytest

from spinney.api.grove import POD_CLIQUE_SET
from spinney.api.kai import TOPOLOGY
from spinney.api.podgang import POD_GANG, PodGang, written
from spinney.api.schema.crd import KINDS, manifests
from spinney.api.struct import JSON, decode, encode
from spinney.kube.crds import install_crds
from spinney.kube.errors import Invalid
from tests.api.samples import DATA, a_clique, a_set
from tests.conftest import Cluster
from tests.workloads.files import documents

RACK = {"topologyName": "cluster", "pack": {"required": "rack"}}
T = "spec.template"
WHERE = {
    "set": f"{T}.topologyConstraint",
    "group": f"{T}.podCliqueScalingGroups[0].topologyConstraint",
    "clique": f"{T}.cliques[0].topologyConstraint",
}


def constrained(constraint: JSON, level: str = "set") -> JSON:
    """Build a set with a constraint on one level."""
    where = {"topologyConstraint": constraint}
    manifest = a_set(
        a_clique() | (where if level == "clique" else {}),
        groups=[{"name": "g", "cliqueNames": ["worker"]} | (where if level == "group" else {})],
        **(where if level == "set" else {}),
    )
    del manifest["metadata"]["namespace"]
    return manifest


async def refused_at(cluster: Cluster, manifest: JSON) -> list[str]:
    """Create a set and return the fields the API server refuses it for."""
    try:
        await cluster.client.create(POD_CLIQUE_SET, manifest, cluster.namespace, dry_run=True)
    except Invalid as refusal:
        details = refusal.details
        return [cause.field for cause in (details.causes or ())] if details is not None else []
    return []


async def test_constraints_are_refused_by_rule(cluster: Cluster) -> None:
    """Without any webhook the API server refuses a constraint that says nothing, or says it twice."""
    await install_crds(cluster.client, manifests())
    for level, path in WHERE.items():
        assert await refused_at(cluster, constrained(RACK, level)) == []
        assert await refused_at(cluster, constrained({"topologyName": "cluster"}, level)) == [path]
        assert await refused_at(cluster, constrained({"pack": {}}, level)) == [f"{path}.pack"]
        both = {"packDomain": "rack", "pack": {"required": "rack"}}
        assert set(await refused_at(cluster, constrained(both, level))) == {path}
        assert await refused_at(cluster, constrained({"pack": {"required": "Rack"}}, level)) == [
            f"{path}.pack.required"
        ]


async def test_the_old_spelling_is_refused_in_new_constraints(cluster: Cluster) -> None:
    """A constraint that is not there yet cannot be written with packDomain."""
    await install_crds(cluster.client, manifests())
    for level, path in WHERE.items():
        assert await refused_at(cluster, constrained({"packDomain": "rack"}, level)) == [path]


async def test_topologies_are_refused_by_rule(cluster: Cluster) -> None:
    """Levels cannot repeat or change, hosts come last, and an alias is nobody else's name."""
    await install_crds(cluster.client, manifests())
    host = {"nodeLabel": "kubernetes.io/hostname"}
    a, b = {"nodeLabel": "a", "alias": "x"}, {"nodeLabel": "b"}
    for levels in ([a, a], [host, b], [a, b | {"alias": "x"}], [b | {"alias": "a"}, a], []):
        with pytest.raises(Invalid):
            await cluster.client.create(TOPOLOGY, {"metadata": {"name": "t"}, "spec": {"levels": levels}}, dry_run=True)
    name = f"topology-of-{cluster.namespace}"
    kept = await cluster.client.create(TOPOLOGY, {"metadata": {"name": name}, "spec": {"levels": [a, b, host]}})
    kept["spec"]["levels"].pop()
    with pytest.raises(Invalid, match="immutable"):
        await cluster.client.replace(TOPOLOGY, kept)
    await cluster.client.delete(TOPOLOGY, name)


async def test_gangs_are_listed_with_what_people_look_for(cluster: Cluster) -> None:
    """A table of PodGangs shows phase, placed pods, backend and queue."""
    await install_crds(cluster.client, manifests())
    labels = {"grove.io/scheduler-name": "kai-scheduler", "kai.scheduler/queue": "team"}
    gang = {"metadata": {"name": "serve-0", "labels": labels}, "spec": {}}
    await cluster.client.create(POD_GANG, gang, cluster.namespace)
    status = {"status": {"phase": "Running", "scheduled": "3/4"}}
    await cluster.client.patch(POD_GANG, "serve-0", status, cluster.namespace, subresource="status")
    answer = await cluster.client.raw(
        "GET",
        POD_GANG.path(cluster.namespace, "serve-0"),
        headers={"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"},
    )
    table = decode(dict, answer.body)
    assert [column["name"] for column in table["columnDefinitions"]] == [
        "Name",
        "Phase",
        "Scheduled",
        "Backend",
        "Queue",
        "Age",
    ]
    assert table["rows"][0]["cells"][:5] == ["serve-0", "Running", "3/4", "kai-scheduler", "team"]


async def test_objects_come_back_as_they_went(cluster: Cluster) -> None:
    """An object with every field set passes strict validation, and nothing in its spec is dropped or changed."""
    await install_crds(cluster.client, manifests())
    kinds = {(kind.resource.api_version, kind.resource.kind): kind.resource for kind in KINDS}
    for document in (d for path in sorted(DATA.glob("*.yaml")) for d in documents(path)):
        resource = kinds.get((document["apiVersion"], document["kind"]))
        if resource is None:
            continue
        sent = {**copy.deepcopy(document), "metadata": {"name": document["metadata"]["name"]}}
        namespace = cluster.namespace if resource.namespaced else None
        answer = await cluster.client.raw(
            "POST", resource.path(namespace), query={"dryRun": "All", "fieldValidation": "Strict"}, body=encode(sent)
        )
        assert within(document["spec"], decode(dict, answer.body)["spec"]), resource


def within(sent: Any, stored: Any) -> bool:
    """Return whether everything that was sent is in what was stored, which may have defaults besides."""
    if isinstance(sent, dict):
        return isinstance(stored, dict) and all(key in stored and within(sent[key], stored[key]) for key in sent)
    if isinstance(sent, list):
        return len(sent) == len(stored) and all(map(within, sent, stored))
    return bool(sent == stored)


async def test_a_new_gang_waits_for_its_pods(cluster: Cluster) -> None:
    """Before anybody has written its status, a gang says that it is not Initialized."""
    await install_crds(cluster.client, manifests())
    gang = {"metadata": {"name": "new"}, "spec": {"podgroups": []}}
    created = await cluster.client.create(POD_GANG, gang, cluster.namespace, type=PodGang)
    read = await cluster.client.get(POD_GANG, "new", cluster.namespace, type=PodGang)
    for found in (created, read):
        [condition] = found.status.conditions
        assert (condition.type, condition.status, condition.reason) == ("Initialized", "False", "PodsPending")
        assert written(found.status.conditions) == ()
