"""Lists: selectors, pages and revisions."""

import pytest

from spinney.server import ServerOptions
from tests.server.api import (
    CONFIG_MAPS,
    DEFINITIONS,
    NODES,
    PODS,
    WIDGETS,
    Api,
    a_config_map,
    a_definition,
    a_pod,
    a_widget,
    an_api,
)


async def test_labels_and_fields_select(api: Api) -> None:
    """Label and field selectors choose objects, and an unknown field is an error rather than everything."""
    await api.create(PODS, a_pod("a", labels={"app": "x", "tier": "1"}))
    await api.create(PODS, a_pod("b", labels={"app": "y"}, nodeName="n1"))
    await api.create(PODS, a_pod("c"))
    assert await api.names(PODS, labelSelector="app in (x,y),tier!=1") == ["b"]
    assert await api.names(PODS, labelSelector="!app") == ["c"]
    assert await api.names("/api/v1/pods", fieldSelector="spec.nodeName=n1") == ["b"]
    assert await api.names(PODS, fieldSelector="metadata.name!=a,spec.nodeName=") == ["c"]
    refused = await api.send("GET", PODS, query={"fieldSelector": "spec.priority=1"})
    assert (refused.status, refused.body["reason"]) == (400, "BadRequest")
    assert (await api.send("GET", PODS, query={"labelSelector": "a=b=c"})).status == 400


async def test_the_list_says_what_its_items_are(api: Api) -> None:
    """Items of built-in kinds do not say it again, in whatever order they were written; those of custom kinds do."""
    await api.create(CONFIG_MAPS, {"metadata": {"name": "a"}, "kind": "ConfigMap", "apiVersion": "v1"})
    await api.create(CONFIG_MAPS, {"apiVersion": "v1", "data": {"kind": "x"}, "metadata": {"name": "b"}})
    await api.create(DEFINITIONS, a_definition())
    await api.create(WIDGETS, a_widget("w"))
    found = await api.get(CONFIG_MAPS, fieldSelector="metadata.name!=kube-root-ca.crt")
    assert found["kind"] == "ConfigMapList"
    assert [sorted(item) for item in found["items"]] == [["metadata"], ["data", "metadata"]]
    assert found["items"][1]["data"] == {"kind": "x"}
    assert [item["kind"] for item in (await api.get(WIDGETS))["items"]] == ["Widget"]


async def test_pages_are_consistent(api: Api) -> None:
    """The pages of one list show one revision, whatever is written between them."""
    for index in range(7):
        await api.create(CONFIG_MAPS, a_config_map(f"c{index}"))
    first = await api.get(CONFIG_MAPS, limit="3")
    assert first["metadata"]["remainingItemCount"] == 5
    await api.delete(f"{CONFIG_MAPS}/c4")
    await api.create(CONFIG_MAPS, a_config_map("c35"))
    names = [item["metadata"]["name"] for item in first["items"]]
    page = first
    while token := page["metadata"].get("continue"):
        page = await api.get(CONFIG_MAPS, **{"limit": "3", "continue": token})
        assert page["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
        names += [item["metadata"]["name"] for item in page["items"]]
    assert names == [*(f"c{index}" for index in range(7)), "kube-root-ca.crt"]


async def test_an_exact_revision_is_reconstructed(api: Api) -> None:
    """A list at an exact revision shows the objects as they were then."""
    first = await api.create(CONFIG_MAPS, a_config_map("a", v="1"))
    await api.patch(f"{CONFIG_MAPS}/a", {"data": {"v": "2"}})
    await api.create(CONFIG_MAPS, a_config_map("b"))
    revision = first["metadata"]["resourceVersion"]
    then = await api.get(CONFIG_MAPS, resourceVersion=revision, resourceVersionMatch="Exact")
    assert then["items"][0]["data"] == {"v": "1"}
    assert await api.names(CONFIG_MAPS, resourceVersion=revision, resourceVersionMatch="Exact") == ["a"]
    assert await api.names(CONFIG_MAPS, resourceVersion=revision, resourceVersionMatch="NotOlderThan") == ["a", "b"]


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"resourceVersionMatch": "Exact"}, 422),
        ({"resourceVersionMatch": "Exact", "resourceVersion": "0"}, 422),
        ({"resourceVersionMatch": "Nearly", "resourceVersion": "1"}, 422),
        ({"resourceVersion": "soon"}, 400),
        ({"resourceVersion": "999999"}, 504),
        ({"limit": "many"}, 400),
        ({"continue": "nonsense"}, 400),
    ],
)
async def test_wrong_parameters_are_refused(query: dict[str, str], status: int) -> None:
    """Parameters that make no sense are errors, never ignored."""
    assert (await an_api().send("GET", NODES, query=query)).status == status


async def test_a_forgotten_revision_is_gone() -> None:
    """A page token whose revision is compacted answers 410, so that the client starts over."""
    api = an_api(ServerOptions(history=4))
    for index in range(3):
        await api.create(CONFIG_MAPS, a_config_map(f"c{index}"))
    page = await api.get(CONFIG_MAPS, limit="1")
    for index in range(6):
        await api.patch(f"{CONFIG_MAPS}/c0", {"data": {"v": str(index)}})
    answer = await api.send("GET", CONFIG_MAPS, query={"limit": "1", "continue": page["metadata"]["continue"]})
    assert (answer.status, answer.body["reason"]) == (410, "Expired")
