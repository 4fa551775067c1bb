"""Quotas and limit ranges: what a namespace may use, and what containers get that do not say what they need."""

import asyncio
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from spinney.api.quantity import Quantity
from spinney.api.struct import JSON
from tests.server.api import CONFIG_MAPS, DEFINITIONS, PODS, WIDGETS, Api, a_config_map, a_definition, a_widget, an_api

QUOTAS = "/api/v1/namespaces/default/resourcequotas"
RANGES = "/api/v1/namespaces/default/limitranges"


def a_pod(name: str, requests: JSON | None = None, **spec: Any) -> JSON:
    resources = {"resources": {"requests": requests, "limits": requests}} if requests else {}
    containers = [{"name": "c", "image": "i:1", **resources}]
    return {"metadata": {"name": name}, "spec": {"containers": containers, **spec}}


async def a_quota(api: Api, name: str, hard: JSON, **spec: Any) -> None:
    await api.create(QUOTAS, {"metadata": {"name": name}, "spec": {"hard": hard, **spec}})


async def used(api: Api, name: str) -> Any:
    """Return what the status says is used, once whoever keeps it had a turn."""
    await asyncio.sleep(0)
    return (await api.get(f"{QUOTAS}/{name}"))["status"]["used"]


async def refusal(api: Api, path: str, obj: JSON) -> str:
    """Create, be refused, and return why."""
    answer = await api.send("POST", path, obj)
    assert (answer.status, answer.body["reason"]) == (403, "Forbidden")
    message: str = answer.body["message"]
    return message


async def test_a_quota_counts_and_refuses_in_kubernetes_words(api: Api) -> None:
    """What exceeds a quota is refused with what was asked for, used and allowed; a deletion makes room."""
    async with api.server.running():
        await a_quota(api, "q", {"requests.nvidia.com/gpu": "4", "pods": "9"})
        await api.create(PODS, a_pod("a", {"nvidia.com/gpu": 3}))
        assert await used(api, "q") == {"pods": "1", "requests.nvidia.com/gpu": "3"}
        assert await refusal(api, PODS, a_pod("b", {"nvidia.com/gpu": 2})) == (
            'pods "b" is forbidden: exceeded quota: q, requested: requests.nvidia.com/gpu=2,'
            " used: requests.nvidia.com/gpu=3, limited: requests.nvidia.com/gpu=4"
        )
        await api.delete(f"{PODS}/a")
        assert await used(api, "q") == {"pods": "0", "requests.nvidia.com/gpu": "0"}
        await api.create(PODS, a_pod("b", {"nvidia.com/gpu": 4}))


async def test_the_status_counts_at_once(api: Api) -> None:
    """Whoever created a pod and then reads the quota sees the pod counted, also before anything else runs."""
    await a_quota(api, "q", {"pods": "2"})
    await api.create(PODS, a_pod("a"))
    assert (await api.get(f"{QUOTAS}/q"))["status"] == {"hard": {"pods": "2"}, "used": {"pods": "1"}}


async def test_trying_uses_nothing(api: Api) -> None:
    """A dry run is refused where the real thing would be, and is not counted where it would not."""
    async with api.server.running():
        await a_quota(api, "q", {"pods": "1"})
        await api.create(PODS, a_pod("a"), dryRun="All")
        assert await used(api, "q") == {"pods": "0"}
        await api.create(PODS, a_pod("a"))
        answer = await api.send("POST", PODS, a_pod("b"), query={"dryRun": "All"})
        assert answer.status == 403


async def test_a_write_that_fails_is_not_counted(api: Api) -> None:
    """An object whose name is taken was admitted, but is not there, and so does not count."""
    async with api.server.running():
        await a_quota(api, "q", {"count/configmaps": "9"})
        await api.create(CONFIG_MAPS, a_config_map("a"))
        assert (await api.send("POST", CONFIG_MAPS, a_config_map("a"))).status == 409
        assert await used(api, "q") == {"count/configmaps": "2"}  # every namespace has one


async def test_custom_resources_are_counted(api: Api) -> None:
    """A quota can be about the number of objects of any kind, also of one that was defined after it."""
    async with api.server.running():
        await a_quota(api, "q", {"count/widgets.example.com": "1"})
        await api.create(DEFINITIONS, a_definition())
        await api.create(WIDGETS, a_widget("a"))
        assert "limited: count/widgets.example.com=1" in await refusal(api, WIDGETS, a_widget("b"))
        assert await used(api, "q") == {"count/widgets.example.com": "1"}


async def test_a_quota_is_about_what_is_there_already(api: Api) -> None:
    """A new quota, and a changed one, counts the objects from before it."""
    async with api.server.running():
        await api.create(PODS, a_pod("a", {"cpu": "1500m"}))
        await a_quota(api, "q", {"pods": "1"})
        assert await used(api, "q") == {"pods": "1"}
        await api.patch(f"{QUOTAS}/q", {"spec": {"hard": {"pods": None, "requests.cpu": "2"}}})
        assert await used(api, "q") == {"requests.cpu": "1500m"}


async def test_device_claims_use_devices_of_their_class(api: Api) -> None:
    """A claim counts with as many devices of a class as it may get at most."""
    claims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
    name = "gpu.deviceclass.resource.k8s.io/devices"
    async with api.server.running():
        await a_quota(api, "q", {name: "3"})
        exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2}
        claim = {"spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}}
        await api.create(claims, {"metadata": {"name": "a"}, **claim})
        assert f"requested: {name}=2, used: {name}=2, limited: {name}=3" in await refusal(
            api, claims, {"metadata": {"name": "b"}, **claim}
        )


async def test_containers_get_the_defaults_of_the_namespace(api: Api) -> None:
    """A container that does not say what it needs gets what the limit range says, and an annotation tells."""
    limit = {"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "250m"}}
    await api.create(RANGES, {"metadata": {"name": "r"}, "spec": {"limits": [limit]}})
    pod = await api.create(PODS, a_pod("a"))
    assert pod["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "250m"}, "limits": {"cpu": "1"}}
    told = "LimitRanger plugin set: cpu request for container c; cpu limit for container c"
    assert pod["metadata"]["annotations"] == {"kubernetes.io/limit-ranger": told}
    assert pod["status"]["qosClass"] == "Burstable"


async def test_defaults_make_pods_fit_a_quota_that_needs_requests(api: Api) -> None:
    """A quota on cpu refuses pods that do not say what they need, unless a limit range says it for them."""
    await a_quota(api, "q", {"requests.cpu": "1"})
    assert await refusal(api, PODS, a_pod("a")) == (
        'pods "a" is forbidden: failed quota: q: must specify requests.cpu for: c'
    )
    limit = {"type": "Container", "defaultRequest": {"cpu": "250m"}}
    await api.create(RANGES, {"metadata": {"name": "r"}, "spec": {"limits": [limit]}})
    await api.create(PODS, a_pod("a"))


_STEPS = st.lists(
    st.tuples(st.sampled_from(("create", "delete", "end", "quota")), st.integers(0, 4), st.integers(0, 3)), max_size=30
)


@settings(max_examples=30)
@given(_STEPS)
async def test_the_book_is_what_a_recount_finds(steps: list[tuple[str, int, int]]) -> None:
    """After any history what is said to be used is the sum over the objects that are there, and within the quota."""
    api = an_api()
    async with api.server.running():
        await a_quota(api, "q", {"requests.cpu": "5", "pods": "4"})
        for what, which, amount in steps:
            path = f"{PODS}/p{which}"
            if what == "create":
                await api.send("POST", PODS, a_pod(f"p{which}", {"cpu": f"{amount * 500}m"}))
            elif what == "delete":
                await api.send("DELETE", path)
            elif what == "end":
                merging = {"content-type": "application/merge-patch+json"}
                await api.send("PATCH", f"{path}/status", {"status": {"phase": "Failed"}}, headers=merging)
            else:
                await api.patch(f"{QUOTAS}/q", {"spec": {"hard": {"requests.cpu": str(5 + amount)}}})
        said = await used(api, "q")
        living = [pod for pod in (await api.get(PODS))["items"] if pod["status"]["phase"] != "Failed"]
        asked = [Quantity.parse(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]) for pod in living]
        assert Quantity.parse(said["requests.cpu"]) == sum(asked, Quantity(0))
        assert said["pods"] == str(len(living))
        assert len(living) <= 4
