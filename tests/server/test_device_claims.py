"""Device claims of pods on the embedded cluster: made from templates, reserved, freed when their pods are over."""

from collections.abc import Callable
from typing import Any

from tests.server.api import PODS, Api, Watch, a_pod

CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
TEMPLATES = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates"
PROTECTION = "resource.kubernetes.io/delete-protection"
DEVICES = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}}
TEMPLATE = {
    "metadata": {"name": "one-gpu"},
    "spec": {"metadata": {"labels": {"team": "a"}}, "spec": DEVICES},
}
BY_TEMPLATE = [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]


def a_claim(**metadata: Any) -> Any:
    """Return a claim named ``shared``."""
    return {"metadata": {"name": "shared", **metadata}, "spec": DEVICES}


def held_for(*pods: Any) -> Any:
    """Return the status of a claim with a device that these pods have reserved."""
    results = [{"request": "gpu", "driver": "gpu.example.com", "pool": "n1", "device": "gpu-0"}]
    consumers = [{"resource": "pods", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]} for pod in pods]
    return {"status": {"allocation": {"devices": {"results": results}}, "reservedFor": consumers}}


def reservations(claim: Any) -> list[Any]:
    """Return for whom a claim is reserved."""
    found: list[Any] = claim.get("status", {}).get("reservedFor", [])
    return found


async def the_next(watch: Watch, wanted: Callable[[Any], bool]) -> Any:
    """Return the object of the next event that shows it as wanted."""
    while not wanted(found := (await watch.next())["object"]):
        pass
    return found


async def test_a_template_that_asks_for_nothing_stops_nothing(api: Api) -> None:
    """A template may be empty; the claims of other pods are made all the same."""
    async with api.server.running(), api.watch(CLAIMS) as claims:
        await api.create(TEMPLATES, {"metadata": {"name": "empty"}})
        await api.create(PODS, a_pod("odd", resourceClaims=[{"name": "x", "resourceClaimTemplateName": "empty"}]))
        await api.create(TEMPLATES, TEMPLATE)
        await api.create(PODS, a_pod("p", resourceClaims=BY_TEMPLATE))
        made = [name for _, name in await claims.take(2)]
        assert [name.rpartition("-")[0] for name in made] == ["odd-x", "p-gpu"]


async def test_a_pod_gets_the_claims_of_its_templates(api: Api) -> None:
    """A pod that asks by template owns a claim with the template's content, and its status names that claim."""
    async with api.server.running(), api.watch(CLAIMS) as claims, api.watch(PODS) as pods:
        await api.create(TEMPLATES, TEMPLATE)
        pod = await api.create(PODS, a_pod("p", resourceClaims=BY_TEMPLATE))
        ((_, name),) = await claims.take(1)
        claim = await api.get(f"{CLAIMS}/{name}")
        assert name.startswith("p-gpu-")
        assert claim["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] == "gpu.example.com"
        assert claim["metadata"]["labels"] == {"team": "a"}
        assert claim["metadata"]["annotations"] == {"resource.kubernetes.io/pod-claim-name": "gpu"}
        (owner,) = claim["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"], owner["controller"]) == ("Pod", pod["metadata"]["uid"], True)
        told = await the_next(pods, lambda pod: "resourceClaimStatuses" in pod["status"])
        assert told["status"]["resourceClaimStatuses"] == [{"name": "gpu", "resourceClaimName": name}]


async def test_a_template_may_come_later(api: Api) -> None:
    """A pod whose template does not exist yet gets its claim as soon as it does."""
    async with api.server.running(), api.watch(CLAIMS) as claims:
        await api.create(PODS, a_pod("p", resourceClaims=BY_TEMPLATE))
        await api.create(TEMPLATES, TEMPLATE)
        ((kind, name),) = await claims.take(1)
        assert kind == "ADDED"
        assert name.startswith("p-gpu-")


async def test_devices_are_given_back_by_the_last_pod(api: Api) -> None:
    """A pod that is gone or has ended loses its reservation; without any the claim gives its devices back."""
    async with api.server.running(), api.watch(CLAIMS) as claims:
        await api.create(CLAIMS, a_claim(finalizers=[PROTECTION]))
        uses = [{"name": "gpu", "resourceClaimName": "shared"}]
        first, second = [await api.create(PODS, a_pod(name, resourceClaims=uses)) for name in ("a", "b")]
        await api.patch(f"{CLAIMS}/shared/status", held_for(first, second))
        await api.delete(f"{PODS}/a")
        left = await the_next(claims, lambda claim: [each["name"] for each in reservations(claim)] == ["b"])
        assert left["status"]["allocation"]
        await api.patch(f"{PODS}/b/status", {"status": {"phase": "Succeeded"}})
        freed = await the_next(claims, lambda claim: not reservations(claim))
        assert "allocation" not in freed["status"]
        assert "finalizers" not in freed["metadata"]


async def test_a_claim_in_use_goes_after_its_users(api: Api) -> None:
    """A claim that is deleted while a pod has reserved it stays until that pod is gone."""
    async with api.server.running(), api.watch(CLAIMS) as claims:
        await api.create(CLAIMS, a_claim(finalizers=[PROTECTION]))
        pod = await api.create(PODS, a_pod("a", resourceClaims=[{"name": "gpu", "resourceClaimName": "shared"}]))
        await api.patch(f"{CLAIMS}/shared/status", held_for(pod))
        await api.delete(f"{CLAIMS}/shared")
        marked = await the_next(claims, lambda claim: "deletionTimestamp" in claim["metadata"])
        assert reservations(marked)
        await api.delete(f"{PODS}/a")
        assert await claims.take(1) == [("DELETED", "shared")]


async def test_a_pod_that_ended_keeps_no_claim_of_its_own(api: Api) -> None:
    """The claim made for a pod is deleted when the pod has ended, although the pod is still there."""
    async with api.server.running(), api.watch(CLAIMS) as claims:
        await api.create(TEMPLATES, TEMPLATE)
        await api.create(PODS, a_pod("p", resourceClaims=BY_TEMPLATE))
        await claims.take(1)
        await api.patch(f"{PODS}/p/status", {"status": {"phase": "Failed"}})
        assert (await claims.take(1))[0][0] == "DELETED"
