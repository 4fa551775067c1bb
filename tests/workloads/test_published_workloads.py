"""Every published workload becomes the objects and reaches the end the specification says."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from spinney.api.compute_domains import compute_domain_crd
from spinney.api.core import NAMESPACE
from spinney.api.kai import QUEUE
from spinney.api.resource_claims import RESOURCE_CLAIM_TEMPLATE
from spinney.api.struct import JSON
from spinney.backends.builtin import every_backend
from spinney.kube.crds import install_crds
from spinney.nodes import ClusterSpec, NodeGroup
from spinney.operator.configuration import check
from spinney.operator.operator import Settings
from spinney.sim.embedded.stack import StackOptions
from tests.conftest import Cluster
from tests.e2e.backends import Backend
from tests.e2e.floor import a_binding, a_floor
from tests.e2e.harness import Stage, Stages
from tests.e2e.reviewing import Reviews
from tests.e2e.workloads.sharing import ELSEWHERE, a_claim_template
from tests.workloads.expectations import EXPECTED, NOT_WORKLOADS, Expected
from tests.workloads.files import documents, files, pod_clique_set
from tests.workloads.graph import environment_of, expect_graph

FILES = files()
SERVED = ("kai-scheduler", "spinney-scheduler")
DEFAULT = Backend("spinney-scheduler")

CONFIGURATION = """
apiVersion: operator.config.grove.io/v1alpha1
kind: OperatorConfiguration
topologyAwareScheduling: {enabled: true}
network: {autoMNNVLEnabled: true}
scheduler:
  profiles: [{name: kai-scheduler}, {name: spinney-scheduler, default: true}]
"""


@asynccontextmanager
async def a_mixed_stage(cluster: Cluster, reviews: Reviews) -> AsyncIterator[Stage]:
    """Open a stage with Grove's nodes and larger ones, and whatever else a published workload may ask for."""
    await install_crds(cluster.client, [compute_domain_crd()])
    large = NodeGroup(
        name="large-{index}",
        count=4,
        capacity={"cpu": 64, "memory": "512Gi", "nvidia.com/gpu": 8},
        labels={"type": "kwok"},
    )
    floor = a_floor(28)
    nodes = ClusterSpec(nodes=(*floor.nodes, large), pods=floor.pods, heartbeats=floor.heartbeats)
    options = StackOptions(nodes=nodes, operator=Settings.of(check(CONFIGURATION, every_backend())))
    async with Stages(cluster, DEFAULT, reviews).open(options) as stage:
        await stage.bind_topology()
        await stage.bind_topology(a_binding("tas20-topology"))
        yield stage


def adapted(manifest: JSON, expected: Expected, namespace: str) -> tuple[JSON, str]:
    """Return a workload for the namespace of the test, and the scheduler it is for.

    One that names a scheduler this cluster does not have runs on the default; one with hundreds of replicas gets fewer.
    """
    manifest["metadata"]["namespace"] = namespace
    scheduler = DEFAULT.name
    for clique in manifest["spec"]["template"]["cliques"]:
        named = clique["spec"]["podSpec"].get("schedulerName")
        if named in SERVED:
            scheduler = named
        else:
            clique["spec"]["podSpec"].pop("schedulerName", None)
    if expected.replicas is not None:
        manifest["spec"]["replicas"] = expected.replicas
    return manifest, scheduler


async def bring_claim_templates(stage: Stage, name: str) -> None:
    """Create the templates that the claims of a workload are made from: those in its file, and one elsewhere."""
    await stage.client.create(NAMESPACE, {"metadata": {"name": ELSEWHERE}})
    await stage.client.create(RESOURCE_CLAIM_TEMPLATE, a_claim_template("ext-ns-tpl"), ELSEWHERE)
    for document in documents(FILES[name]):
        if document["kind"] == "ResourceClaimTemplate":
            await stage.client.create(RESOURCE_CLAIM_TEMPLATE, document, stage.namespace)


async def reach_end(stage: Stage, expected: Expected) -> None:
    """Wait until a workload has come as far as it is expected to, and nothing moves any more."""
    if expected.end == "ready":
        await stage.until_ready(expected.pods)
    elif expected.end == "unschedulable":
        await stage.until(lambda: len(stage.pods()) == expected.pods)
        await stage.until_unschedulable(expected.pods)
    await stage.settle()


def test_every_file_has_an_expectation() -> None:
    """No published workload is left out, and none is expected that is not there."""
    assert FILES.keys() - NOT_WORKLOADS == EXPECTED.keys()


@pytest.mark.parametrize("name", sorted(FILES.keys() - NOT_WORKLOADS))
async def test_a_published_workload(name: str, cluster: Cluster, reviews: Reviews) -> None:
    """The workload becomes the expected objects and ends ready, pending with its reason, or empty."""
    expected = EXPECTED[name]
    async with a_mixed_stage(cluster, reviews) as stage:
        await bring_claim_templates(stage, name)
        manifest, scheduler = adapted(pod_clique_set(FILES[name]), expected, stage.namespace)
        pcs = await stage.apply(manifest)
        await reach_end(stage, expected)
        await expect_graph(stage, pcs, expected, scheduler=scheduler)
        status = stage.pod_clique_set(pcs.metadata.name).status
        replicas = pcs.spec.replicas or 0
        assert status.available_replicas == (replicas if expected.end == "ready" else 0)


async def test_a_container_learns_its_place(cluster: Cluster, reviews: Reviews) -> None:
    """Pods of the environment demo know their set, replica, clique, index and service, before their own variables."""
    async with a_mixed_stage(cluster, reviews) as stage:
        manifest, _ = adapted(pod_clique_set(FILES["standalone-env-vars"]), Expected({}), stage.namespace)
        await stage.apply(manifest)
        await stage.until_ready(2)
        for pod in stage.pods():
            found = await environment_of(stage, pod)
            values: dict[str, Any] = {name: each.get("value") for name, each in found.items()}
            assert values["GROVE_PCS_NAME"] == "env-demo-standalone"
            assert values["GROVE_PCS_INDEX"] == "0"
            assert values["GROVE_PCLQ_NAME"] == "env-demo-standalone-0-frontend"
            assert values["GROVE_HEADLESS_SERVICE"] == f"env-demo-standalone-0.{stage.namespace}.svc.cluster.local"
            field = found["GROVE_PCLQ_POD_INDEX"]["valueFrom"]["fieldRef"]["fieldPath"]
            assert field == "metadata.labels['grove.io/podclique-pod-index']"
            assert list(found)[-1] == "POD_NAME"


async def test_the_queues_of_the_workloads(cluster: Cluster, reviews: Reviews) -> None:
    """With the queues they name installed, KAI's workloads run as without."""
    async with a_mixed_stage(cluster, reviews) as stage:
        for document in documents(FILES["queues"]):
            await stage.client.create(QUEUE, document)
        manifest, _ = adapted(pod_clique_set(FILES["workload1"]), Expected({}), stage.namespace)
        await stage.apply(manifest)
        await stage.until_ready(10)
