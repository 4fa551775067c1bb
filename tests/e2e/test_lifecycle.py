"""What comes with a workload goes with it, and operators come and go (Grove's cascade, CRD and upgrade scenarios)."""

from spinney.api import labels as marks
from spinney.api.core import POD, SERVICE
from spinney.api.grove import PodCliqueSet
from spinney.api.struct import JSON
from spinney.kube.crds import CRD, condition_of, install_crds
from tests.e2e.harness import Stages
from tests.e2e.leftovers import OWNED, leftovers
from tests.e2e.workloads.functional import EXPLICIT, workload1, workload3
from tests.e2e.workloads.parts import a_clique, a_set

GROVE = (
    "clustertopologybindings.grove.io",
    "podcliques.grove.io",
    "podcliquescalinggroups.grove.io",
    "podcliquesets.grove.io",
    "podgangs.scheduler.grove.io",
)


async def test_cascade_delete(a_stage: Stages) -> None:
    """After the set is deleted nothing that carries its name is left, of any kind."""
    async with a_stage(10) as stage:
        await stage.deploy(workload3())
        await stage.until_ready(10)
        made = set()
        for resource in OWNED:
            selector = f"{marks.PART_OF}=workload3"
            if (await stage.client.list(resource, stage.namespace, label_selector=selector)).items:
                made.add(resource.kind)
        assert {"PodCliqueScalingGroup", "PodClique", "PodGang", "Pod", "Service", "ServiceAccount"} <= made
        assert {"Role", "RoleBinding", "Secret"} <= made
        await stage.remove("workload3")
        assert await leftovers(stage.client, stage.namespace, ["workload3"]) == []


async def test_cascade_delete_while_pending(a_stage: Stages) -> None:
    """A workload that never ran is deleted as completely as one that did."""
    async with a_stage(10, cordoned=1) as stage:
        await stage.deploy(workload1())
        await stage.until_pending(10)
        await stage.remove("workload1")


async def test_crd_installer_all_crds_exist(a_stage: Stages) -> None:
    """Grove's five kinds are established."""
    async with a_stage(1) as stage:
        for name in GROVE:
            established = condition_of(await stage.client.get(CRD, name), "Established")
            assert established is not None
            assert established["status"] == "True"


async def test_crd_installer_completes(a_stage: Stages) -> None:
    """The installer ends once everything it installed is served, which is what its exit code stands for."""
    async with a_stage(1) as stage:
        installed = {
            crd["metadata"]["name"]: condition_of(crd, "Established") for crd in await install_crds(stage.client)
        }
        assert set(GROVE) <= installed.keys()
        assert all(each is not None and each["status"] == "True" for each in installed.values())


async def test_crd_installer_is_idempotent(a_stage: Stages) -> None:
    """Installing again, and starting the operator again, leaves the CRDs and what they describe as they were."""
    async with a_stage(10, keep=True) as stage:
        await stage.deploy(workload1())
        await stage.until_ready(10)
        before = {name: await stage.client.get(CRD, name) for name in GROVE}
        await install_crds(stage.client)
        pods = stage.uids()
    async with a_stage(10) as stage:
        for name, was in before.items():
            now = await stage.client.get(CRD, name)
            assert (now["metadata"]["uid"], now["spec"]) == (was["metadata"]["uid"], was["spec"])
        await stage.settle()
        assert stage.uids() == pods
        assert len(stage.ready()) == 10


async def test_upgrade_leaves_running_pods_alone(a_stage: Stages) -> None:
    """A new operator with another start-up image keeps every pod; only pods it makes itself use that image."""
    cliques = [a_clique("bootstrap", 1), a_clique("worker", 1, after=["bootstrap"])]
    async with a_stage(4, init_image="startup:1", keep=True) as stage:
        await stage.deploy(a_set("upgrade", cliques, cliqueStartupType=EXPLICIT))
        await stage.until_ready(2)
        await stage.settle()
        old = stage.uids()
    async with a_stage(4, init_image="startup:2") as stage:
        await stage.settle()
        assert stage.uids() == old
        await stage.scale(PodCliqueSet, "upgrade", 2)
        await stage.until_ready(4)
        assert old <= stage.uids()
        images: dict[bool, set[str]] = {True: set(), False: set()}
        for pod in stage.pods():
            found: JSON = await stage.client.get(POD, pod.metadata.name, stage.namespace)
            images[pod.metadata.uid in old] |= {each["image"] for each in found["spec"].get("initContainers", [])}
        assert images == {True: {"startup:1"}, False: {"startup:2"}}


async def test_a_service_for_each_replica(a_stage: Stages) -> None:
    """Each replica of the set has a headless service that selects its pods, and loses it when scaled in."""
    async with a_stage(20) as stage:
        await stage.deploy(workload1())
        await stage.until_ready(10)
        await stage.scale(PodCliqueSet, "workload1", 2)
        await stage.until_ready(20)
        selector = f"{marks.PART_OF}=workload1"
        services = (await stage.client.list(SERVICE, stage.namespace, label_selector=selector)).items
        assert sorted(each["metadata"]["name"] for each in services) == ["workload1-0", "workload1-1"]
        assert all(each["spec"]["clusterIP"] == "None" for each in services)
        await stage.scale(PodCliqueSet, "workload1", 1)
        await stage.until_ready(10)
        await stage.settle()
        services = (await stage.client.list(SERVICE, stage.namespace, label_selector=selector)).items
        assert [each["metadata"]["name"] for each in services] == ["workload1-0"]
