"""Autoscalers in both of their versions; ``test_side_by_side`` compares the conversion with kube-apiserver."""

from tests.server.api import Api, an_api
from tests.server.autoscaling import METRICS, STATUS, an_autoscaler

_OLDER, _NEWER = (f"/apis/autoscaling/{each}/namespaces/default/horizontalpodautoscalers" for each in ("v1", "v2"))


async def test_what_v1_cannot_say_survives_a_client_of_v1(api: Api) -> None:
    """A client of v1 that writes back what it has read, changed in its own field, loses nothing of v2."""
    await api.create(_NEWER, an_autoscaler("a", metrics=METRICS, behavior={"scaleUp": {"selectPolicy": "Min"}}))
    await api.patch(f"{_NEWER}/a/status", {"status": STATUS})
    read = await api.get(f"{_OLDER}/a")
    assert read["spec"]["targetCPUUtilizationPercentage"] == 70
    assert read["status"]["currentCPUUtilizationPercentage"] == 50
    read["spec"]["targetCPUUtilizationPercentage"] = 30
    await api.replace(f"{_OLDER}/a", read)
    found = await api.get(f"{_NEWER}/a")
    assert found["spec"]["metrics"][:-1] == METRICS[:-1]
    assert found["spec"]["metrics"][-1]["resource"]["target"]["averageUtilization"] == 30
    assert found["spec"]["behavior"]["scaleUp"]["selectPolicy"] == "Min"
    assert found["status"] == STATUS
    assert "annotations" not in found["metadata"]


async def test_both_versions_are_discovered_and_the_newer_preferred() -> None:
    """Clients find autoscalers in v1 and v2, and use v2 unless they ask for v1."""
    group = await an_api().get("/apis/autoscaling")
    assert [each["version"] for each in group["versions"]] == ["v2", "v1"]
    assert group["preferredVersion"]["version"] == "v2"
