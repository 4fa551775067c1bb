"""JSON patch, merge patch and strategic merge patch."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.api.merge_patch import merge
from spinney.server.kinds.shapes import POD
from spinney.server.patches.json import PatchFailed, apply_json_patch
from spinney.server.patches.strategic import strategic_merge
from tests.server.api import CONFIG_MAPS, JSON_PATCH, MERGE, PODS, STRATEGIC, Api, a_config_map, a_pod

_SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=2)
_JSON = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=1), inner, max_size=3)
)


@pytest.mark.parametrize(
    ("document", "patch", "expected"),
    [
        ({"a": 1}, [{"op": "add", "path": "/b", "value": 2}], {"a": 1, "b": 2}),
        ({"a": [1, 3]}, [{"op": "add", "path": "/a/1", "value": 2}], {"a": [1, 2, 3]}),
        ({"a": [1]}, [{"op": "add", "path": "/a/-", "value": 2}], {"a": [1, 2]}),
        ({"a": 1, "b": 2}, [{"op": "remove", "path": "/a"}], {"b": 2}),
        ({"a/b": 1}, [{"op": "replace", "path": "/a~1b", "value": 2}], {"a/b": 2}),
        ({"a": {"x": 1}}, [{"op": "move", "from": "/a/x", "path": "/y"}], {"a": {}, "y": 1}),
        ({"a": {"x": 1}}, [{"op": "copy", "from": "/a", "path": "/b"}], {"a": {"x": 1}, "b": {"x": 1}}),
        ({"a": 1}, [{"op": "test", "path": "/a", "value": 1}, {"op": "remove", "path": "/a"}], {}),
    ],
)
def test_json_patch(document: Any, patch: Any, expected: Any) -> None:
    """Each operation of RFC 6902 does what it says."""
    assert apply_json_patch(document, patch) == expected


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/a", "value": 2},
        {"op": "remove", "path": "/nowhere"},
        {"op": "replace", "path": "/nowhere/at", "value": 1},
        {"op": "add", "path": "/a/b", "value": 1},
        {"op": "add", "path": "/list/7", "value": 1},
        {"op": "add", "path": "/b"},
        {"op": "frobnicate", "path": "/a"},
        {"op": "add", "path": "a", "value": 1},
    ],
)
def test_json_patch_fails_as_a_whole(operation: Any) -> None:
    """An operation that cannot be applied fails the patch."""
    with pytest.raises(PatchFailed):
        apply_json_patch({"a": 1, "list": []}, [operation])


async def test_a_failed_json_patch_changes_nothing(api: Api) -> None:
    """A patch whose test fails answers 422 and leaves the object alone."""
    await api.create(CONFIG_MAPS, a_config_map("a", v="1"))
    patch = [{"op": "remove", "path": "/data/v"}, {"op": "test", "path": "/kind", "value": "Other"}]
    answer = await api.send("PATCH", f"{CONFIG_MAPS}/a", patch, headers={"content-type": JSON_PATCH})
    assert answer.status == 422
    assert (await api.get(f"{CONFIG_MAPS}/a"))["data"] == {"v": "1"}


@given(target=_JSON, patch=_JSON)
def test_merge_patch_is_idempotent_and_pure(target: Any, patch: Any) -> None:
    """Applying a merge patch twice is applying it once, and the inputs stay as they were."""
    before = repr((target, patch))
    once = merge(target, patch)
    assert merge(once, patch) == once
    assert repr((target, patch)) == before


def test_strategic_lists_merge_by_key() -> None:
    """Containers merge by name and their variables by name; tolerations are replaced whole."""
    pod = {
        "spec": {
            "containers": [
                {"name": "a", "image": "1", "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}]},
                {"name": "b", "image": "1"},
            ],
            "tolerations": [{"key": "k"}],
        }
    }
    patch = {
        "spec": {
            "containers": [
                {"name": "a", "env": [{"name": "X", "$patch": "delete"}, {"name": "Z", "value": "3"}]},
                {"name": "c", "image": "2"},
            ],
            "tolerations": [{"key": "l"}],
        }
    }
    assert strategic_merge(pod, patch, POD)["spec"] == {
        "containers": [
            {"name": "a", "image": "1", "env": [{"name": "Z", "value": "3"}, {"name": "Y", "value": "2"}]},
            {"name": "c", "image": "2"},
            {"name": "b", "image": "1"},
        ],
        "tolerations": [{"key": "l"}],
    }


def test_strategic_directives() -> None:
    """Replace, delete from a set, retained keys and element order are honoured."""
    obj = {
        "metadata": {"finalizers": ["a", "b", "c"], "labels": {"x": "1"}},
        "spec": {"containers": [{"name": "a"}, {"name": "b"}], "strategy": {"type": "x", "rolling": 1}},
    }
    patch = {
        "metadata": {"$deleteFromPrimitiveList/finalizers": ["b"], "labels": {"$patch": "replace", "y": "2"}},
        "spec": {
            "$setElementOrder/containers": [{"name": "b"}, {"name": "a"}],
            "containers": [{"name": "b", "image": "2"}],
            "strategy": {"$retainKeys": ["type"], "type": "y"},
        },
    }
    assert strategic_merge(obj, patch, POD) == {
        "metadata": {"finalizers": ["a", "c"], "labels": {"y": "2"}},
        "spec": {"containers": [{"name": "b", "image": "2"}, {"name": "a"}], "strategy": {"type": "y"}},
    }


async def test_a_condition_is_patched_in_place(api: Api) -> None:
    """A strategic patch of one condition leaves the others: what schedulers do with PodScheduled."""
    await api.create(PODS, a_pod("p"))
    for kind in ("Ready", "PodScheduled", "Ready"):
        condition = {"type": kind, "status": "False"}
        await api.patch(f"{PODS}/p/status", {"status": {"conditions": [condition]}}, STRATEGIC)
    conditions = (await api.get(f"{PODS}/p"))["status"]["conditions"]
    assert [each["type"] for each in conditions] == ["PodScheduled", "Ready"]


@pytest.mark.parametrize("kind", [MERGE, STRATEGIC])
async def test_a_patch_of_the_status_leaves_the_rest_as_it_is(api: Api, kind: str) -> None:
    """What it says of the spec, known or not, has no effect; its labels are taken, and nothing of it stays behind."""
    await api.create(PODS, a_pod("p", labels={"a": "1"}, tolerations=[{"key": "x", "operator": "Exists"}]))
    before = await api.get(f"{PODS}/p")
    said = {
        "metadata": {"labels": {"b": "2"}},
        "spec": {"hostname": "h", "bogus": 1, "tolerations": [{"key": "y", "operator": "Exists"}]},
        "status": {"phase": "Running", "bogus": 1},
    }
    await api.patch(f"{PODS}/p/status", said, kind)
    after = await api.get(f"{PODS}/p")
    assert after["spec"] == before["spec"]
    assert after["metadata"]["labels"] == {"a": "1", "b": "2"}
    assert after["status"] == {**before["status"], "phase": "Running"}


@pytest.mark.parametrize("kind", [MERGE, STRATEGIC])
async def test_a_refused_patch_of_the_status_changes_nothing(api: Api, kind: str) -> None:
    """What a patch has of the wrong type is told, and the object is the same to whoever reads it next."""
    await api.create(PODS, a_pod("p", labels={"a": "1"}))
    before = await api.get(f"{PODS}/p")
    said = {"metadata": {"labels": {"a": "2"}}, "spec": {"hostname": "h"}, "status": {"phase": 3}}
    answer = await api.send("PATCH", f"{PODS}/p/status", said, headers={"content-type": kind})
    assert answer.status in {400, 422}
    assert await api.get(f"{PODS}/p") == before
