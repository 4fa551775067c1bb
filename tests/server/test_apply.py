"""Server-side apply: ownership, conflicts, and fields that are no longer applied."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from spinney.api.struct import JSON
from spinney.server import ServerOptions
from spinney.server.kinds.shapes import POD
from spinney.server.patches.fieldset import fields_of, from_fields_v1, to_fields_v1
from tests.server.api import (
    APPLY,
    CONFIG_MAPS,
    JSON_PATCH,
    NODES,
    PODS,
    Answer,
    Api,
    a_config_map,
    an_api,
    configuration,
)

_MAP = f"{CONFIG_MAPS}/c"


async def _owners(api: Api, path: str) -> dict[str, Any]:
    entries = (await api.get(path))["metadata"].get("managedFields", [])
    return {entry["manager"]: entry["fieldsV1"] for entry in entries}


async def _try(api: Api, obj: JSON, manager: str) -> Answer:
    query, headers = {"fieldManager": manager}, {"content-type": APPLY}
    return await api.send("PATCH", _MAP, configuration(_MAP, obj), query=query, headers=headers)


async def test_apply_creates_and_owns(api: Api) -> None:
    """Applying to nothing creates the object, and the manager owns exactly what it applied."""
    answer = await _try(api, {"data": {"a": "1"}}, "m")
    assert answer.status == 201
    assert await _owners(api, _MAP) == {"m": {"f:data": {"f:a": {}}}}


async def test_two_managers_conflict_over_one_field(api: Api) -> None:
    """Changing another manager's field is refused with its name; applying the same value is shared ownership."""
    await api.apply(_MAP, {"data": {"a": "1"}}, "first")
    answer = await _try(api, {"data": {"a": "2"}}, "second")
    assert answer.status == 409
    (cause,) = answer.body["details"]["causes"]
    assert (cause["reason"], cause["field"]) == ("FieldManagerConflict", ".data.a")
    assert '"first"' in cause["message"]
    await api.apply(_MAP, {"data": {"a": "1"}}, "second")
    assert set(await _owners(api, _MAP)) == {"first", "second"}


async def test_force_takes_ownership(api: Api) -> None:
    """A forced apply takes the field, and the loser no longer owns it."""
    await api.apply(_MAP, {"data": {"a": "1", "b": "1"}}, "first")
    taken = await api.apply(_MAP, {"data": {"a": "2"}}, "second", force="true")
    assert taken["data"] == {"a": "2", "b": "1"}
    assert await _owners(api, _MAP) == {"first": {"f:data": {"f:b": {}}}, "second": {"f:data": {"f:a": {}}}}


async def test_what_is_no_longer_applied_goes(api: Api) -> None:
    """A field its only owner stops applying is removed; one that somebody else owns too stays."""
    await api.apply(_MAP, {"data": {"mine": "1", "shared": "1"}, "metadata": {"labels": {"x": "1"}}}, "first")
    await api.apply(_MAP, {"data": {"shared": "1"}}, "second")
    left = await api.apply(_MAP, {}, "first")
    assert left["data"] == {"shared": "1"}
    assert "labels" not in left["metadata"]


async def test_applying_the_same_again_writes_nothing(api: Api) -> None:
    """Two managers that re-apply their configurations forever never make a new revision."""
    await api.apply(_MAP, {"data": {"a": "1"}}, "first")
    last = await api.apply(_MAP, {"data": {"b": "1"}}, "second")
    for _ in range(2):
        await api.apply(_MAP, {"data": {"a": "1"}}, "first")
        again = await api.apply(_MAP, {"data": {"b": "1"}}, "second")
    assert again["metadata"]["resourceVersion"] == last["metadata"]["resourceVersion"]


async def test_an_update_takes_what_it_changes(api: Api) -> None:
    """A plain patch of an applied field makes the patcher its owner, so the next apply conflicts."""
    await api.apply(_MAP, {"data": {"a": "1"}}, "applier")
    await api.patch(_MAP, {"data": {"a": "2"}}, fieldManager="editor")
    answer = await _try(api, {"data": {"a": "1"}}, "applier")
    assert answer.status == 409
    assert '"editor"' in answer.body["message"]


async def test_what_was_there_before_the_first_apply_is_owned(api: Api) -> None:
    """Fields of an object that was created otherwise conflict with the first apply that changes them."""
    await api.create(CONFIG_MAPS, a_config_map("c", a="1"))
    answer = await _try(api, {"data": {"a": "2"}}, "m")
    assert answer.status == 409
    assert '"before-first-apply"' in answer.body["message"]


async def test_creators_are_recorded_if_wanted() -> None:
    """With tracking from the start, the conflict names who created the object."""
    api = an_api(ServerOptions(track_all_managers=True))
    await api.create(CONFIG_MAPS, a_config_map("c", a="1"), fieldManager="creator")
    answer = await _try(api, {"data": {"a": "2"}}, "m")
    assert '"creator"' in answer.body["message"]


async def test_conditions_are_owned_one_by_one(api: Api) -> None:
    """Two managers apply their own conditions to one status without touching each other's."""
    await api.create(NODES, {"metadata": {"name": "n"}})
    for manager, kind in (("kubelet", "Ready"), ("detector", "DiskFailing")):
        status = {"conditions": [{"type": kind, "status": "True"}]}
        await api.apply(f"{NODES}/n/status", {"status": status}, manager)
    node = await api.apply(f"{NODES}/n/status", {"status": {}}, "detector")
    assert [each["type"] for each in node["status"]["conditions"]] == ["Ready"]


async def test_apply_to_the_main_endpoint_never_owns_status(api: Api) -> None:
    """A status in an applied configuration is ignored on the main endpoint."""
    pod = {"spec": {"containers": [{"name": "c", "image": "i"}]}, "status": {"phase": "Running"}}
    made = await api.apply(f"{PODS}/p", pod, "m")
    assert made["status"]["phase"] == "Pending"
    assert "f:status" not in (await _owners(api, f"{PODS}/p"))["m"]


async def test_apply_needs_a_manager_and_no_managed_fields(api: Api) -> None:
    """An apply without fieldManager, or with managedFields, is refused."""
    assert (await api.send("PATCH", _MAP, configuration(_MAP, {}), headers={"content-type": APPLY})).status == 422
    body = configuration(_MAP, {"metadata": {"managedFields": [{"manager": "x"}]}})
    answer = await api.send("PATCH", _MAP, body, query={"fieldManager": "m"}, headers={"content-type": APPLY})
    assert answer.status == 400


_PODS = st.fixed_dictionaries(
    {},
    optional={
        "metadata": st.fixed_dictionaries({"labels": st.dictionaries(st.sampled_from("xyz"), st.just("v"))}),
        "spec": st.fixed_dictionaries(
            {
                "containers": st.lists(
                    st.fixed_dictionaries({"name": st.sampled_from("abc")}, optional={"image": st.sampled_from("12")}),
                    unique_by=lambda container: container["name"],
                )
            },
            optional={"tolerations": st.lists(st.just({"key": "k"})), "priority": st.integers(0, 2)},
        ),
    },
)


@given(pod=_PODS)
def test_fields_survive_their_encoding(pod: Any) -> None:
    """A set of fields is the same after a round trip through FieldsV1."""
    fields = fields_of(pod, POD)
    assert from_fields_v1(to_fields_v1(fields)) == fields


_DATA = st.dictionaries(st.sampled_from("abcd"), st.sampled_from("12"), max_size=4)


@settings(max_examples=40, deadline=None)
@given(steps=st.lists(st.tuples(st.sampled_from(["m1", "m2", "m3"]), _DATA), min_size=1, max_size=8))
async def test_forced_applies_against_a_model(steps: list[tuple[str, dict[str, str]]]) -> None:
    """After any run of forced applies, the object is what the owners last applied, and nothing else."""
    api = an_api()
    values: dict[str, str] = {}
    owners: dict[str, set[str]] = {}
    for manager, data in steps:
        for key, value in data.items():
            if values.get(key) != value:
                owners[key] = set()
            values[key] = value
            owners[key].add(manager)
        for key in [key for key, who in owners.items() if manager in who and key not in data]:
            owners[key].discard(manager)
            if not owners[key]:
                del owners[key], values[key]
        applied = await api.apply(_MAP, {"data": data} if data else {}, manager, force="true")
        assert applied.get("data", {}) == values


async def test_a_map_that_was_applied_empty_is_owned(api: Api) -> None:
    """To apply into a map that somebody applied empty is a conflict; forced, the map is the other's no longer."""
    path = f"{CONFIG_MAPS}/c"
    await api.apply(path, {"data": {}, "metadata": {"labels": {}}}, "first")
    for content, field in (({"data": {"k": "v"}}, ".data"), ({"metadata": {"labels": {"a": "b"}}}, ".metadata.labels")):
        body = configuration(path, content)
        answer = await api.send("PATCH", path, body, query={"fieldManager": "second"}, headers={"content-type": APPLY})
        assert (answer.status, [cause["field"] for cause in answer.body["details"]["causes"]]) == (409, [field])
    forced = await api.apply(path, {"data": {"k": "v"}}, "second", force="true")
    owned = {entry["manager"]: entry["fieldsV1"] for entry in forced["metadata"]["managedFields"]}
    assert owned == {"first": {"f:metadata": {"f:labels": {}}}, "second": {"f:data": {"f:k": {}}}}


async def test_a_map_that_holds_somebody_elses_field_stays(api: Api) -> None:
    """Who owned a map as such and gives it up takes his own fields along, and nobody else's."""
    await api.apply(_MAP, {"data": {"shared": "1"}}, "first")
    await api.apply(_MAP, {"data": {"shared": "1"}}, "second")
    whole = {"op": "add", "path": "/metadata/managedFields/0/fieldsV1/f:data/.", "value": {}}
    await api.patch(_MAP, [whole], JSON_PATCH)
    assert (await _owners(api, _MAP))["first"] == {"f:data": {"f:shared": {}, ".": {}}}
    left = await api.apply(_MAP, {"metadata": {"labels": {"x": "1"}}}, "first")
    assert left["data"] == {"shared": "1"}
