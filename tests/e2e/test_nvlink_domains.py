"""ComputeDomains for pods that share NVLink (Grove's AutoMNNVL scenarios)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from spinney.api import labels as marks
from spinney.api.compute_domains import COMPUTE_DOMAIN, compute_domain_crd
from spinney.api.grove import POD_CLIQUE, POD_CLIQUE_SET, PodCliqueSet
from spinney.api.struct import JSON
from spinney.kube.crds import CRD, install_crds
from spinney.kube.errors import ApiError, NotFound
from tests.e2e.harness import Stage, Stages
from tests.e2e.workloads.nvlink import MIX_GROUPS, comprehensive_mix, gpu_workload


@asynccontextmanager
async def supported(a_stage: Stages, *, enabled: bool = True) -> AsyncIterator[Stage]:
    """Open a stage on a cluster that has the NVIDIA driver's ComputeDomains."""
    await install_crds(a_stage.cluster.client, [compute_domain_crd()])
    async with a_stage(4, mnnvl=enabled) as stage:
        yield stage


async def compute_domains(stage: Stage) -> dict[str, JSON]:
    """Return the ComputeDomains, by name."""
    listing = await stage.client.list(COMPUTE_DOMAIN, stage.namespace)
    return {found["metadata"]["name"]: found for found in listing.items}


async def claim_templates(stage: Stage) -> dict[str, str | None]:
    """Return the claim template that each PodClique's pods use for NVLink."""
    listing = await stage.client.list(POD_CLIQUE, stage.namespace)
    found: dict[str, str | None] = {}
    for clique in listing.items:
        spec = clique["spec"]["podSpec"]
        claims = spec.get("resourceClaims", [])
        for container in spec["containers"]:  # a claim that no container names gives nobody a channel
            resources = container.get("resources") or {}
            uses = {"name": "mnnvl-claim"} in resources.get("claims", [])
            assert uses is ("nvidia.com/gpu" in (resources.get("limits") or {}) and bool(claims)), clique["metadata"]
        names = [each["resourceClaimTemplateName"] for each in claims if each["name"] == "mnnvl-claim"]
        found[clique["metadata"]["name"]] = names[0] if names else None
    return found


async def deployed(stage: Stage, manifest: JSON, pods: int) -> None:
    """Create a workload and wait for its pods; nothing here has GPUs to run them."""
    await stage.deploy(manifest)
    await stage.until(lambda: len(stage.pods()) == pods)
    await stage.settle()


async def test_without_annotation_nothing_is_injected(a_stage: Stages) -> None:
    """A GPU workload that does not ask gets no ComputeDomain and no claim."""
    async with supported(a_stage) as stage:
        await deployed(stage, gpu_workload("bare"), 1)
        assert await compute_domains(stage) == {}
        assert await claim_templates(stage) == {"bare-0-gpu-worker": None}


async def test_a_domain_for_each_replica(a_stage: Stages) -> None:
    """Scaling the set 1, 3, 1 makes and deletes ComputeDomains; deleting it takes them all."""
    async with supported(a_stage) as stage:
        await deployed(stage, gpu_workload("gpu", "default"), 1)
        (domain,) = (await compute_domains(stage)).values()
        assert domain["metadata"]["name"] == "gpu-0-default"
        assert domain["metadata"]["labels"][marks.MNNVL_GROUP] == "default"
        assert domain["metadata"]["ownerReferences"][0]["kind"] == "PodCliqueSet"
        assert domain["spec"] == {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": "gpu-0-default"}}}
        assert await claim_templates(stage) == {"gpu-0-gpu-worker": "gpu-0-default"}
        for replicas in (3, 1):
            await stage.scale(PodCliqueSet, "gpu", replicas)
            await stage.until(lambda wanted=replicas: len(stage.pods()) == wanted)  # type: ignore[misc]
            await stage.settle()
            assert set(await compute_domains(stage)) == {f"gpu-{i}-default" for i in range(replicas)}
        await stage.remove("gpu")
        await stage.settle()
        assert await compute_domains(stage) == {}


async def test_opting_out(a_stage: Stages) -> None:
    """The group called none is no group."""
    async with supported(a_stage) as stage:
        await deployed(stage, gpu_workload("optout", "none"), 1)
        assert await compute_domains(stage) == {}
        assert await claim_templates(stage) == {"optout-0-gpu-worker": None}


async def test_an_invalid_group_is_refused(a_stage: Stages) -> None:
    """A group that is no DNS label is refused."""
    async with supported(a_stage) as stage:
        with pytest.raises(ApiError, match=marks.MNNVL_GROUP):
            await stage.deploy(gpu_workload("invalid", "not a name"))


async def test_the_group_cannot_be_changed(a_stage: Stages) -> None:
    """A set keeps the NVLink group it was made with."""
    async with supported(a_stage) as stage:
        await deployed(stage, gpu_workload("gpu", "default"), 1)
        patch = {"metadata": {"annotations": {marks.MNNVL_GROUP: "other"}}}
        with pytest.raises(ApiError, match=marks.MNNVL_GROUP):
            await stage.client.patch(POD_CLIQUE_SET, "gpu", patch, stage.namespace)


async def test_cliques_without_gpus_are_skipped(a_stage: Stages) -> None:
    """Only cliques that ask for GPUs use the ComputeDomain."""
    async with supported(a_stage) as stage:
        await deployed(stage, gpu_workload("cpu", "default", cpu_too=True), 2)
        assert await claim_templates(stage) == {"cpu-0-gpu-worker": "cpu-0-default", "cpu-0-cpu-worker": None}


async def test_inherit_override_and_opt_out_at_every_layer(a_stage: Stages) -> None:
    """The annotation nearest to a clique decides; each group has one ComputeDomain."""
    async with supported(a_stage) as stage:
        await deployed(stage, comprehensive_mix(), 12)
        assert set(await compute_domains(stage)) == {
            f"mix-0-{group}" for group in ("default", "train", "infer", "batch", "solo")
        }
        wanted = {name: group and f"mix-0-{group}" for name, group in MIX_GROUPS.items()}
        assert await claim_templates(stage) == wanted


async def test_supported_but_disabled(a_stage: Stages) -> None:
    """Where the feature is off the annotation is refused, and a workload without it leaves no trace."""
    async with supported(a_stage, enabled=False) as stage:
        with pytest.raises(ApiError, match=marks.MNNVL_GROUP):
            await stage.deploy(gpu_workload("gpu", "default"))
        await deployed(stage, gpu_workload("bare"), 1)
        assert await compute_domains(stage) == {}


async def test_unsupported_but_enabled(a_stage: Stages) -> None:
    """Without the driver's ComputeDomains an operator told to use them does not start."""
    with pytest.raises(Exception, match="computedomains"):
        async with a_stage(1, mnnvl=True):
            pytest.fail("the operator started")


async def test_unsupported_and_disabled(a_stage: Stages) -> None:
    """A cluster without ComputeDomains runs GPU workloads as any other."""
    async with a_stage(1) as stage:
        await deployed(stage, gpu_workload("bare"), 1)
        with pytest.raises(NotFound):
            await stage.client.get(CRD, "computedomains.resource.nvidia.com")
