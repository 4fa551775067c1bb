"""What the server says about itself: its health, its version, its paths and its metrics."""

import asyncio

from prometheus_client.parser import text_string_to_metric_families

from tests.server.api import CONFIG_MAPS, PODS, Api, a_config_map, a_pod, an_api

PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"


async def text(api: Api, path: str, **query: str) -> str:
    answer = await api.send("GET", path, query=query)
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/plain")
    return str(answer.body.decode())


async def metric(api: Api, name: str, **labels: str) -> float:
    """Return the value of a metric, or 0 if there is none with these labels."""
    families = text_string_to_metric_families(await text(api, "/metrics"))
    samples = [sample for family in families for sample in family.samples if sample.name == name]
    return sum(sample.value for sample in samples if labels.items() <= sample.labels.items())


async def test_health_is_told_whole_in_detail_and_by_check(api: Api) -> None:
    """Every endpoint answers ok, lists its checks when asked for details, and has a path for each of them."""
    for endpoint in ("healthz", "livez", "readyz"):
        assert await text(api, f"/{endpoint}") == "ok"
        assert await text(api, f"/{endpoint}/ping") == "ok"
        lines = (await text(api, f"/{endpoint}", verbose="", exclude="etcd")).splitlines()
        assert lines[:2] == ["[+]ping ok", "[+]etcd excluded: ok"]
        assert "[+]background/GarbageCollector ok" in lines
        assert lines[-1] == f"{endpoint} check passed"
    assert (await api.send("GET", "/livez/nothing")).status == 404


async def test_the_version_has_the_shape_of_kubernetes() -> None:
    """Clients find the numbers that they parse."""
    version = await an_api().get("/version")
    assert (version["major"], version["minor"]) == ("1", "37")
    assert (version["emulationMinor"], version["minCompatibilityMinor"]) == ("37", "36")
    assert version["gitVersion"].startswith("v1.37.")


async def test_the_root_lists_what_there_is(api: Api) -> None:
    """Every path that is listed answers."""
    paths = (await api.get("/"))["paths"]
    assert {"/api/v1", "/apis/apps/v1", "/livez/ping", "/metrics", "/openapi/v3/apis/apps/v1", "/version"} <= set(paths)
    assert [path for path in paths if (await api.send("GET", path)).status != 200] == []


async def test_requests_are_counted_by_what_they_were_about(api: Api) -> None:
    """Requests are counted by verb, resource and code, under the names that dashboards know."""
    await api.create(PODS, a_pod("a"))
    await api.send("POST", PODS, a_pod("a"))
    await api.get(PODS)
    pods = {"group": "", "version": "v1", "resource": "pods", "scope": "namespace"}
    assert await metric(api, "apiserver_request_total", verb="POST", code="201", **pods) == 1
    assert await metric(api, "apiserver_request_total", verb="POST", code="409", **pods) == 1
    assert await metric(api, "apiserver_request_total", verb="LIST", code="200", **pods) == 1
    assert await metric(api, "apiserver_request_duration_seconds_count", verb="POST", resource="pods") == 2
    assert await metric(api, "apiserver_resource_objects", group="", resource="pods") == 1
    assert await metric(api, "apiserver_resource_size_estimate_bytes", group="", resource="pods") > 100


async def test_watches_are_counted_while_they_are_followed(api: Api) -> None:
    """A watch counts as one that runs until its reader goes."""
    async with api.watch(CONFIG_MAPS) as watch:
        await api.create(CONFIG_MAPS, a_config_map("a"))
        await watch.next()
        assert await metric(api, "apiserver_longrunning_requests", verb="WATCH", resource="configmaps") == 1
    await asyncio.sleep(0)
    assert await metric(api, "apiserver_longrunning_requests", verb="WATCH", resource="configmaps") == 0


async def test_what_is_not_served_is_not_remembered(api: Api) -> None:
    """Clients that ask for nonsense do not make the metrics grow."""
    series = []
    for number in range(50):
        await api.send("GET", f"/apis/group{number}.example.com/v1/things{number}/x")
        await api.send("GET", f"{PODS}/p/nothing{number}")
        await api.send(f"VERB{number}", f"/nothing{number}")
        series.append((await text(api, "/metrics")).count("apiserver_request_total{"))
    assert series[-1] == series[1]


async def test_openapi_v2_is_served_in_both_forms(api: Api) -> None:
    """The document names every kind, as JSON and as the protobuf that kubectl asks for; nothing else is offered."""
    document = await api.get("/openapi/v2")
    pod = document["definitions"]["io.k8s.api.core.v1.Pod"]
    assert pod["x-kubernetes-group-version-kind"] == [{"group": "", "version": "v1", "kind": "Pod"}]
    assert pod["properties"]["spec"] == {"$ref": "#/definitions/io.k8s.api.core.v1.PodSpec"}
    assert "fieldValidation" in str(document["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"])
    encoded = await api.send("GET", "/openapi/v2", headers={"accept": PROTOBUF})
    assert encoded.headers["content-type"] == "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    assert b"io.k8s.api.core.v1.PodSpec" in encoded.body
    assert (await api.send("GET", "/openapi/v2", headers={"accept": "text/html"})).status == 406
