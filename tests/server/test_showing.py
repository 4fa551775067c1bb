"""What clients ask a server about itself: discovery, OpenAPI, tables, reviews, determinism."""

import asyncio
from datetime import timedelta

import pytest

from spinney.runtime import run_virtual
from spinney.server.rest.tables.durations import short_duration
from spinney.server.rest.tables.jsonpath import find
from tests.server.api import DEFINITIONS, NODES, PODS, WIDGETS, Api, a_definition, a_pod, a_widget, an_api

_TABLE = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
_AGGREGATED = {"accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"}


async def test_both_forms_of_discovery_agree(api: Api) -> None:
    """The aggregated and the older discovery list the same resources."""
    await api.create(DEFINITIONS, a_definition())
    found = set()
    for root in ("/api", "/apis"):
        answer = await api.send("GET", root, headers=_AGGREGATED)
        assert answer.headers["content-type"].endswith("as=APIGroupDiscoveryList")
        again = await api.send("GET", root, headers={**_AGGREGATED, "if-none-match": answer.headers["etag"]})
        assert again.status == 304
        for group in answer.body["items"]:
            for version in group["versions"]:
                for resource in version["resources"]:
                    found.add((group["metadata"].get("name", ""), version["version"], resource["resource"]))
    older = {("", "v1", each["name"]) for each in (await api.get("/api/v1"))["resources"]}
    for group in (await api.get("/apis"))["groups"]:
        for version in group["versions"]:
            listed = await api.get(f"/apis/{group['name']}/{version['version']}")
            older |= {(group["name"], version["version"], each["name"]) for each in listed["resources"]}
    assert found == {each for each in older if "/" not in each[2]}
    assert ("example.com", "v1", "widgets") in found


async def test_version_and_health(api: Api) -> None:
    """The version parses as Kubernetes', and the health endpoints say ok."""
    assert (await api.get("/version"))["gitVersion"] == "v1.37.0+spinney"
    for path in ("/healthz", "/livez", "/readyz"):
        assert (await api.send("GET", path)).body == b"ok"


async def test_openapi_names_every_kind(api: Api) -> None:
    """Every kind has a schema under its group and version, and its PATCH takes fieldValidation."""
    await api.create(DEFINITIONS, a_definition())
    index = await api.get("/openapi/v3")
    assert "apis/example.com/v1" in index["paths"]
    document = await api.get("/openapi/v3/api/v1")
    kinds = {
        each["kind"]
        for schema in document["components"]["schemas"].values()
        for each in schema.get("x-kubernetes-group-version-kind", ())
    }
    assert {"Pod", "Node", "Namespace"} <= kinds
    patch = document["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"]
    assert "fieldValidation" in [parameter["name"] for parameter in patch["parameters"]]


async def test_tables_of_built_in_kinds(api: Api) -> None:
    """Pods and nodes are shown with the columns people know."""
    await api.create(PODS, a_pod("p", schedulingGates=[{"name": "g"}]))
    table = (await api.send("GET", PODS, headers=_TABLE)).body
    headings = [column["name"] for column in table["columnDefinitions"]]
    assert headings[:5] == ["Name", "Ready", "Status", "Restarts", "Age"]
    assert table["rows"][0]["cells"][:4] == ["p", "0/1", "SchedulingGated", "0"]
    assert table["rows"][0]["object"]["metadata"]["name"] == "p"
    conditions = [{"type": "Ready", "status": "True"}]
    await api.create(NODES, {"metadata": {"name": "n"}, "status": {"conditions": conditions}})
    await api.patch(f"{NODES}/n", {"spec": {"unschedulable": True}})
    nodes = (await api.send("GET", NODES, headers=_TABLE)).body
    assert nodes["rows"][0]["cells"][:3] == ["n", "Ready,SchedulingDisabled", "<none>"]


async def test_tables_of_custom_kinds() -> None:
    """Printer columns are read by their JSONPath, also in a watch, where only the first event defines columns."""
    columns = [
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]
    api = an_api()
    await api.create(DEFINITIONS, a_definition(additionalPrinterColumns=columns))
    await api.create(WIDGETS, a_widget(size=3))
    conditions = [{"type": "Ready", "status": "False"}]
    await api.patch(f"{WIDGETS}/w/status", {"status": {"conditions": conditions}})
    async with api.watch(WIDGETS, _TABLE) as watch:
        first = (await watch.next())["object"]
        await api.patch(f"{WIDGETS}/w", {"spec": {"size": 4}})
        second = (await watch.next())["object"]
    assert [column["name"] for column in first["columnDefinitions"]] == ["Name", "Size", "Ready", "Age"]
    assert first["rows"][0]["cells"][:3] == ["w", 3, "False"]
    assert second["columnDefinitions"] is None
    assert second["rows"][0]["cells"][1] == 4


async def test_metadata_only(api: Api) -> None:
    """A client that asks for metadata gets nothing else."""
    await api.create(PODS, a_pod("p"))
    accept = {"accept": "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"}
    answer = await api.send("GET", PODS, headers=accept)
    assert answer.body["kind"] == "PartialObjectMetadataList"
    assert set(answer.body["items"][0]) == {"kind", "apiVersion", "metadata"}


async def test_what_cannot_be_produced_is_not_acceptable() -> None:
    """A client that only takes protobuf is told so, instead of being sent JSON."""
    answer = await an_api().send("GET", PODS, headers={"accept": "application/vnd.kubernetes.protobuf"})
    assert answer.status == 406


async def test_reviews_allow_everything(api: Api) -> None:
    """Whoever got in may do everything, and can ask who they are."""
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    assert (await api.create(path, {"spec": {"resourceAttributes": {"verb": "get"}}}))["status"]["allowed"] is True
    identity = await api.create("/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
    assert identity["status"]["userInfo"]["username"] == "system:admin"


_AGES = {0: "0s", 119: "119s", 130: "2m10s", 600: "10m", 11000: "3h3m", 90000: "25h", 700000: "8d", -5: "<invalid>"}


@pytest.mark.parametrize(("seconds", "shown"), _AGES.items())
def test_ages(seconds: int, shown: str) -> None:
    """Ages are short, as kubectl shows them."""
    assert short_duration(timedelta(seconds=seconds)) == shown


def test_json_paths() -> None:
    """Fields, indexes, wildcards, filters and escaped dots are understood."""
    obj = {"a": [{"k": "x", "v": 1}, {"k": "y", "v": 2}], "l": {"b.c/d": "e"}}
    assert find(".a[1].v", obj) == [2]
    assert find(".a[*].v", obj) == [1, 2]
    assert find("{.a[?(@.k=='y')].v}", obj) == [2]
    assert find(r".l.b\.c/d", obj) == ["e"]
    assert find(".l['b.c/d']", obj) == ["e"]
    assert find(".nowhere.at.all", obj) == []


def test_the_same_seed_gives_the_same_cluster() -> None:
    """Two runs with one seed produce the same bytes: names, uids, times and revisions."""

    async def main() -> list[bytes]:
        api = an_api(seed=7)
        async with api.server.running():
            for _ in range(5):
                await api.create(PODS, {**a_pod(), "metadata": {"generateName": "p-"}})
                await asyncio.sleep(10)
        pods = api.server.context.store.collection("pods")
        assert pods is not None
        return [record.raw for record in pods.records()]

    assert run_virtual(main()) == run_virtual(main())
