"""The published workloads on a real API server, admitted over TLS: the same objects, and the same ends."""

from contextlib import suppress

import pytest

from spinney.api.core import NAMESPACE
from spinney.api.grove import PodCliqueSet
from spinney.api.resource_claims import RESOURCE_CLAIM_TEMPLATE
from spinney.kube.errors import AlreadyExists
from tests.conftest import Cluster
from tests.e2e.harness import Stage
from tests.e2e.reviewing import Reviews
from tests.e2e.workloads.sharing import ELSEWHERE, a_claim_template
from tests.workloads.expectations import EXPECTED, NOT_WORKLOADS
from tests.workloads.files import documents, pod_clique_set
from tests.workloads.graph import expect_graph
from tests.workloads.test_invalid_variants import called, until_asked
from tests.workloads.test_published_workloads import FILES, a_mixed_stage, adapted, reach_end

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]


async def bring_up(stage: Stage, name: str) -> PodCliqueSet:
    """Apply a workload, let it come to its end and check everything that was made for it."""
    expected = EXPECTED[name]
    for document in documents(FILES[name]):
        if document["kind"] == "ResourceClaimTemplate":
            await stage.client.create(RESOURCE_CLAIM_TEMPLATE, document, stage.namespace)
    manifest, scheduler = adapted(pod_clique_set(FILES[name]), expected, stage.namespace)
    pcs = await stage.apply(manifest)
    assert pcs.spec.template.termination_delay is not None, "admission fills in the delay"
    await reach_end(stage, expected)
    await expect_graph(stage, pcs, expected, scheduler=scheduler)
    return pcs


@pytest.mark.parametrize("cluster_name", ["real"], indirect=True)
async def test_every_published_workload(cluster: Cluster, reviews: Reviews) -> None:
    """One after the other they become the expected objects, end as expected, and leave nothing behind."""
    async with a_mixed_stage(cluster, reviews) as stage, called(stage.client, stage.stack.operator.admission):
        await until_asked(stage.client, stage.namespace)
        with suppress(AlreadyExists):  # another test on this control plane may have needed it
            await stage.client.create(NAMESPACE, {"metadata": {"name": ELSEWHERE}})
        await stage.client.apply(RESOURCE_CLAIM_TEMPLATE, a_claim_template("ext-ns-tpl"), ELSEWHERE)
        for name in sorted(FILES.keys() - NOT_WORKLOADS):
            pcs = await bring_up(stage, name)
            await stage.remove(pcs.metadata.name)
