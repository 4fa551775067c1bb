"""Claims for shared devices exist at the right level, follow scaling, and go with their owner (Grove's RS1)."""

import pytest

from spinney.api.core import NAMESPACE, POD
from spinney.api.grove import POD_CLIQUE_SET, PodClique, PodCliqueScalingGroup, PodCliqueSet
from spinney.api.resource_claims import RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE
from spinney.api.struct import JSON
from spinney.kube.errors import ApiError
from tests.e2e.harness import Stage, Stages
from tests.e2e.workloads.sharing import ELSEWHERE, a_claim_template, resource_sharing

OF_THE_SET = {"rs-test-all-int-tpl5", "rs-test-all-int-tpl7"}


def of_a_replica(i: int, *, groups: int = 2, standalone: int = 1) -> set[str]:
    """Return the claims of one replica of the set, with so many replicas of its group and pods of worker-a."""
    name = f"rs-test-{i}"
    names = {f"{name}-ext-tpl", f"{name}-int-tpl"}
    names |= {f"{name}-sga-all-int-tpl2", f"{name}-sga-all-int-tpl8", f"{name}-worker-a-all-ext-ns-tpl"}
    for j in range(groups):
        names |= {f"{name}-sga-{j}-int-tpl3", f"{name}-sga-{j}-worker-b-all-int-tpl6"}
    return names | {f"{name}-worker-a-{k}-int-tpl4" for k in range(standalone)}


async def claims(stage: Stage) -> dict[str, JSON]:
    """Return the claims in the namespace of the scenario, by name."""
    listing = await stage.client.list(RESOURCE_CLAIM, stage.namespace)
    return {found["metadata"]["name"]: found for found in listing.items}


async def expect_claims(stage: Stage, wanted: set[str], *, pods: int) -> None:
    """Wait until there are so many pods and nothing moves; then exactly these claims must exist."""
    await stage.until(lambda: len(stage.pods()) == pods)
    await stage.settle()
    assert set(await claims(stage)) == wanted


async def deployed(stage: Stage) -> None:
    """Create the templates outside the set, then the set."""
    await stage.client.create(NAMESPACE, {"metadata": {"name": ELSEWHERE}})
    await stage.client.create(RESOURCE_CLAIM_TEMPLATE, a_claim_template("ext-tpl"), stage.namespace)
    await stage.client.create(RESOURCE_CLAIM_TEMPLATE, a_claim_template("ext-ns-tpl"), ELSEWHERE)
    await stage.deploy(resource_sharing())


async def test_rs1_claims_follow_scaling(a_stage: Stages) -> None:
    """Scaling the group, the clique and the set makes and removes exactly the claims of what came and went."""
    async with a_stage(7) as stage:
        await deployed(stage)
        await expect_claims(stage, OF_THE_SET | of_a_replica(0), pods=3)
        await stage.scale(PodCliqueScalingGroup, "rs-test-0-sga", 1)
        await expect_claims(stage, OF_THE_SET | of_a_replica(0, groups=1), pods=2)
        await stage.scale(PodCliqueScalingGroup, "rs-test-0-sga", 3)
        await expect_claims(stage, OF_THE_SET | of_a_replica(0, groups=3), pods=4)
        await stage.scale(PodClique, "rs-test-0-worker-a", 2)
        await expect_claims(stage, OF_THE_SET | of_a_replica(0, groups=3, standalone=2), pods=5)
        await stage.scale(PodClique, "rs-test-0-worker-a", 1)
        await expect_claims(stage, OF_THE_SET | of_a_replica(0, groups=3), pods=4)
        await stage.scale(PodCliqueSet, "rs-test", 2)
        await expect_claims(stage, OF_THE_SET | of_a_replica(0, groups=3) | of_a_replica(1), pods=7)
        assert len(await claims(stage)) == 24
        await stage.scale(PodCliqueSet, "rs-test", 1)
        await expect_claims(stage, OF_THE_SET | of_a_replica(0, groups=3), pods=4)


async def test_rs1_pods_refer_to_the_claims_they_share(a_stage: Stages) -> None:
    """A pod uses the claims of its set, group and clique, widest first, in every container."""
    async with a_stage(7) as stage:
        await deployed(stage)
        await stage.until(lambda: len(stage.pods()) == 3)
        wanted = {
            "rs-test-0-worker-a": [
                "rs-test-all-int-tpl5",
                "rs-test-0-ext-tpl",
                "rs-test-0-int-tpl",
                "rs-test-0-worker-a-all-ext-ns-tpl",
                "rs-test-0-worker-a-0-int-tpl4",
            ],
            "rs-test-0-sga-1-worker-b": [
                "rs-test-all-int-tpl5",
                "rs-test-all-int-tpl7",
                "rs-test-0-ext-tpl",
                "rs-test-0-sga-all-int-tpl2",
                "rs-test-0-sga-all-int-tpl8",
                "rs-test-0-sga-1-int-tpl3",
                "rs-test-0-sga-1-worker-b-all-int-tpl6",
            ],
        }
        for clique, names in wanted.items():
            (pod,) = stage.pods(clique)
            found = await stage.client.get(POD, pod.metadata.name, stage.namespace)
            assert [each["resourceClaimName"] for each in found["spec"]["resourceClaims"]] == names
            (container,) = found["spec"]["containers"]
            assert [each["name"] for each in container["resources"]["claims"]] == names


async def test_rs1_claims_belong_to_their_level(a_stage: Stages) -> None:
    """A claim is owned by the set, the group or the clique that shares it, and cannot be changed there."""
    async with a_stage(7) as stage:
        await deployed(stage)
        await expect_claims(stage, OF_THE_SET | of_a_replica(0), pods=3)
        owners = {
            "rs-test-0-ext-tpl": ("PodCliqueSet", "rs-test"),
            "rs-test-0-sga-1-int-tpl3": ("PodCliqueScalingGroup", "rs-test-0-sga"),
            "rs-test-0-worker-a-all-ext-ns-tpl": ("PodClique", "rs-test-0-worker-a"),
            "rs-test-0-sga-0-worker-b-all-int-tpl6": ("PodClique", "rs-test-0-sga-0-worker-b"),
        }
        found = await claims(stage)
        for name, owner in owners.items():
            (reference,) = found[name]["metadata"]["ownerReferences"]
            assert (reference["kind"], reference["name"]) == owner
        pcs = await stage.client.get(POD_CLIQUE_SET, "rs-test", stage.namespace)
        pcs["spec"]["template"]["resourceSharing"].pop()
        with pytest.raises(ApiError, match="resourceSharing"):
            await stage.client.replace(POD_CLIQUE_SET, pcs)
        await stage.remove("rs-test")
        assert await claims(stage) == {}
