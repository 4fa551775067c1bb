"""Custom resources: definitions, schemas, defaults, rules, subresources."""

from typing import Any

import pytest

from spinney.server import ServerOptions
from spinney.server.crd import rules
from tests.server.api import APPLY, DEFINITIONS, MERGE, STRATEGIC, WIDGETS, Api, a_definition, a_widget, an_api

_SPEC = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 9},
        "color": {"type": "string", "enum": ["red", "blue"], "default": "red"},
        "port": {"x-kubernetes-int-or-string": True},
        "note": {"type": "string", "nullable": True},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "template": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "properties": {"spec": {"type": "object"}},
        },
        "parts": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "count": {"type": "integer", "default": 1}},
            },
        },
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
    },
}


async def _with_widgets(spec: Any = None, options: ServerOptions | None = None, **version: Any) -> Api:
    api = an_api(options)
    await api.create(DEFINITIONS, a_definition(spec or _SPEC, **version))
    return api


async def test_a_definition_is_served_at_once(api: Api) -> None:
    """A definition is established when it is written, and its kind appears in discovery."""
    made = await api.create(DEFINITIONS, a_definition())
    conditions = {each["type"]: each["status"] for each in made["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}
    listed = await api.get("/apis/example.com/v1")
    assert [each["name"] for each in listed["resources"]] == ["widgets", "widgets/status"]


async def test_defaults_are_filled_at_every_level() -> None:
    """Defaults of the schema are written, also inside list items; null stays where it may."""
    api = await _with_widgets()
    made = await api.create(WIDGETS, a_widget(size=1, parts=[{"name": "a"}], note=None))
    assert made["spec"] == {"size": 1, "color": "red", "parts": [{"name": "a", "count": 1}], "note": None}


@pytest.mark.parametrize("pattern", ["^(?i)[a-z]+$", "(?i)^[a-z]+$", "^x(?i)y|[a-z]+$"])
async def test_a_pattern_may_ignore_case_from_somewhere_on(pattern: str) -> None:
    """Go's regular expressions take flags in the middle, which many projects' definitions have."""
    text = {"type": "object", "properties": {"word": {"type": "string", "pattern": pattern}}}
    api = await _with_widgets(text)
    assert (await api.send("POST", WIDGETS, a_widget("good", word="WORD"))).status == 201
    assert (await api.send("POST", WIDGETS, a_widget("bad", word="1"))).status == 422


async def test_unknown_fields_are_pruned() -> None:
    """What the schema does not have is dropped with a warning, or refused if the client is strict."""
    api = await _with_widgets()
    widget = a_widget(size=1, junk=1, free={"any": {"thing": 1}}, template={"kind": "X", "metadata": {"a": "b"}})
    answer = await api.send("POST", WIDGETS, widget)
    assert answer.status == 201
    assert answer.body["spec"] == {
        "size": 1,
        "color": "red",
        "free": {"any": {"thing": 1}},
        "template": {"kind": "X", "metadata": {"a": "b"}},
    }
    assert 'unknown field \\"spec.junk\\"' in answer.headers["warning"]
    widget["metadata"]["name"] = "other"
    strict = await api.send("POST", WIDGETS, widget, query={"fieldValidation": "Strict"})
    assert strict.status == 400
    assert "spec.junk" in strict.body["message"]


@pytest.mark.parametrize(
    ("spec", "field", "reason"),
    [
        ({}, "spec.size", "FieldValueRequired"),
        ({"size": 0}, "spec.size", "FieldValueInvalid"),
        ({"size": "1"}, "spec.size", "FieldValueTypeInvalid"),
        ({"size": 1, "color": "green"}, "spec.color", "FieldValueNotSupported"),
        ({"size": 1, "port": 1.5}, "spec.port", "FieldValueTypeInvalid"),
        ({"size": 1, "color": None}, None, None),
        ({"size": 1, "parts": [{"name": "a"}, {"name": "a"}]}, "spec.parts[1]", "FieldValueDuplicate"),
        ({"size": 1, "tags": ["a", "b", "a"]}, "spec.tags[2]", "FieldValueDuplicate"),
    ],
)
async def test_the_schema_is_enforced(spec: dict[str, Any], field: str | None, reason: str | None) -> None:
    """An object that breaks its schema is refused with the field and the reason."""
    api = await _with_widgets()
    answer = await api.send("POST", WIDGETS, a_widget(**spec))
    if field is None:
        assert answer.status == 201
        return
    assert answer.status == 422
    assert [(cause["field"], cause["reason"]) for cause in answer.body["details"]["causes"]] == [(field, reason)]


async def test_old_mistakes_are_tolerated_until_touched() -> None:
    """When a schema becomes stricter, objects can still be updated elsewhere, but not get worse."""
    api = await _with_widgets({"type": "object", "properties": {"size": {"type": "integer"}, "x": {"type": "integer"}}})
    await api.create(WIDGETS, a_widget(size=99))
    stricter = {"type": "object", "properties": {"size": {"type": "integer", "maximum": 9}, "x": {"type": "integer"}}}
    await api.patch(f"{DEFINITIONS}/widgets.example.com", {"spec": a_definition(stricter)["spec"]})
    await api.patch(f"{WIDGETS}/w", {"spec": {"x": 1}})
    answer = await api.send("PATCH", f"{WIDGETS}/w", {"spec": {"size": 98}}, headers={"content-type": MERGE})
    assert answer.status == 422


_RULES = {
    "type": "object",
    "x-kubernetes-validations": [
        {"rule": "self.min <= self.max", "message": "min must not exceed max"},
        {"rule": "self.min >= oldSelf.min", "messageExpression": "'min went down from ' + string(oldSelf.min)"},
    ],
    "properties": {
        "min": {"type": "integer"},
        "max": {"type": "integer"},
        "fixed": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "is fixed"}]},
    },
}


async def test_rules_are_evaluated() -> None:
    """CEL rules hold on create and, where they look at the old object, on update."""
    pytest.importorskip("cel_expr_python")
    api = await _with_widgets(_RULES)
    wrong = await api.send("POST", WIDGETS, a_widget(min=2, max=1))
    assert wrong.status == 422
    assert "min must not exceed max" in wrong.body["message"]
    await api.create(WIDGETS, a_widget(min=2, max=3, fixed="a"))
    lower = await api.send("PATCH", f"{WIDGETS}/w", {"spec": {"min": 1}}, headers={"content-type": MERGE})
    assert "min went down from 2" in lower.body["message"]
    renamed = await api.send("PATCH", f"{WIDGETS}/w", {"spec": {"fixed": "b"}}, headers={"content-type": MERGE})
    assert renamed.body["details"]["causes"][0]["field"] == "spec.fixed"


async def test_rules_that_cannot_be_evaluated_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the CEL library a write is accepted, and a warning says that rules were not evaluated."""
    monkeypatch.setattr(rules, "find_spec", lambda _: None)
    api = await _with_widgets(_RULES)
    answer = await api.send("POST", WIDGETS, a_widget(min=2, max=1))
    assert answer.status == 201
    assert "3 CEL validation rules were not evaluated" in answer.headers["warning"]


async def test_status_is_its_own_endpoint() -> None:
    """The status of a custom resource is only written through its subresource, and moves no generation."""
    api = await _with_widgets()
    made = await api.create(WIDGETS, {**a_widget(size=1), "status": {"ready": True}})
    assert "status" not in made
    written = await api.patch(f"{WIDGETS}/w/status", {"status": {"ready": True}, "spec": {"size": 2}})
    assert (written["status"], written["spec"]["size"], written["metadata"]["generation"]) == ({"ready": True}, 1, 1)
    changed = await api.patch(f"{WIDGETS}/w", {"spec": {"size": 2}, "status": {"ready": False}})
    assert (changed["status"], changed["metadata"]["generation"]) == ({"ready": True}, 2)


async def test_unknown_fields_are_told_at_the_status_too() -> None:
    """A write of the status drops and names what the schema does not have, wherever it stands, and keeps the rest."""
    status = {"type": "object", "properties": {"ready": {"type": "boolean", "default": False}}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": _SPEC, "status": status}}}
    api = await _with_widgets(schema=schema)
    made = await api.create(WIDGETS, a_widget(size=1, tags=["a"]))
    patch = {"status": {"junk": 1}, "spec": {"other": 1}, "top": 1}
    answer = await api.send("PATCH", f"{WIDGETS}/w/status", patch, headers={"content-type": MERGE})
    assert (answer.status, answer.body["status"], answer.body["spec"]) == (200, {"ready": False}, made["spec"])
    assert "top" not in answer.body
    for field in ("status.junk", "spec.other", "top"):
        assert f'unknown field \\"{field}\\"' in answer.headers["warning"]


async def test_scale_reads_and_writes_replicas() -> None:
    """A definition with scale paths offers an autoscaling/v1 Scale."""
    scale = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.n", "labelSelectorPath": ".status.sel"}
    api = await _with_widgets(subresources={"status": {}, "scale": scale})
    await api.create(WIDGETS, a_widget(size=2))
    await api.patch(f"{WIDGETS}/w/status", {"status": {"n": 1, "sel": "a=b"}})
    shown = await api.get(f"{WIDGETS}/w/scale")
    assert (shown["apiVersion"], shown["spec"], shown["status"]) == (
        "autoscaling/v1",
        {"replicas": 2},
        {"replicas": 1, "selector": "a=b"},
    )
    await api.replace(f"{WIDGETS}/w/scale", {**shown, "spec": {"replicas": 5}})
    await api.patch(f"{WIDGETS}/w/scale", {"spec": {"replicas": 6}})
    assert (await api.get(f"{WIDGETS}/w"))["spec"]["size"] == 6
    stale = await api.send("PUT", f"{WIDGETS}/w/scale", {**shown, "spec": {"replicas": 7}})
    assert stale.status == 409
    too_many = await api.send(
        "PATCH", f"{WIDGETS}/w/scale", {"spec": {"replicas": 10}}, headers={"content-type": MERGE}
    )
    assert too_many.status == 422


async def test_apply_merges_lists_by_the_schema() -> None:
    """Lists that the schema declares as maps are merged by key; strategic merge patches are not for custom kinds."""
    api = await _with_widgets()
    await api.apply(f"{WIDGETS}/w", {"spec": {"size": 1, "parts": [{"name": "a", "count": 2}]}}, "one")
    both = await api.apply(f"{WIDGETS}/w", {"spec": {"parts": [{"name": "b"}]}}, "two")
    assert [part["name"] for part in both["spec"]["parts"]] == ["a", "b"]
    left = await api.apply(f"{WIDGETS}/w", {"spec": {"size": 1}}, "one")
    assert [part["name"] for part in left["spec"]["parts"]] == ["b"]
    answer = await api.send("PATCH", f"{WIDGETS}/w", {}, headers={"content-type": STRATEGIC})
    assert answer.status == 415
    assert APPLY in answer.body["message"]


async def test_versions_share_their_objects() -> None:
    """Two served versions show the same objects, each under its own apiVersion."""
    definition = a_definition()
    second = {**definition["spec"]["versions"][0], "name": "v2", "storage": False}
    definition["spec"]["versions"].append(second)
    api = an_api()
    await api.create(DEFINITIONS, definition)
    await api.create(WIDGETS, a_widget(size=1))
    shown = await api.get("/apis/example.com/v2/namespaces/default/widgets/w")
    assert (shown["apiVersion"], shown["spec"]) == ("example.com/v2", {"size": 1})
    listed = await api.get("/apis/example.com/v2/widgets")
    assert listed["items"][0]["apiVersion"] == "example.com/v2"
    async with api.watch("/apis/example.com/v2/widgets") as watch:
        assert (await watch.next())["object"]["apiVersion"] == "example.com/v2"


async def test_a_field_that_becomes_selectable_selects_what_is_there() -> None:
    """Objects that were stored before are found by it; whoever watches from before is told to list again."""
    definition = a_definition({"type": "object", "properties": {"size": {"type": "integer"}}})
    api = an_api()
    await api.create(DEFINITIONS, definition)
    for name, size in (("one", 1), ("two", 2)):
        made = await api.create(WIDGETS, a_widget(name, size=size))
    version = definition["spec"]["versions"][0]
    selectable = {"spec": {"versions": [{**version, "selectableFields": [{"jsonPath": ".spec.size"}]}]}}
    await api.patch(f"{DEFINITIONS}/{definition['metadata']['name']}", selectable)
    found = await api.get(WIDGETS, fieldSelector="spec.size=2")
    assert [each["metadata"]["name"] for each in found["items"]] == ["two"]
    before = str(int(made["metadata"]["resourceVersion"]) - 1)
    async with api.watch(WIDGETS, resourceVersion=before, fieldSelector="spec.size=2") as watch:
        assert (await watch.next())["object"]["code"] == 410


async def test_each_version_selects_by_its_own_fields() -> None:
    """A field that one version declares selectable is not another's, whichever is stored."""
    definition = a_definition({"type": "object", "properties": {each: {"type": "integer"} for each in "ab"}})
    version = definition["spec"]["versions"][0]
    definition["spec"]["versions"] = [
        {**version, "selectableFields": [{"jsonPath": ".spec.a"}]},
        {**version, "name": "v2", "storage": False, "selectableFields": [{"jsonPath": ".spec.b"}]},
    ]
    api = an_api()
    await api.create(DEFINITIONS, definition)
    await api.create(WIDGETS, a_widget(a=1, b=2))
    for served, own, other in (("v1", "a=1", "b=2"), ("v2", "b=2", "a=1")):
        path = f"/apis/example.com/{served}/widgets"
        assert len((await api.get(path, fieldSelector=f"spec.{own}"))["items"]) == 1
        assert (await api.send("GET", path, query={"fieldSelector": f"spec.{other}"})).status == 400


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"metadata": {"name": "other.example.com"}}, "metadata.name"),
        ({"spec": {"scope": "Galaxy"}}, "spec.scope"),
        ({"spec": {"conversion": {"strategy": "Webhook"}}}, "spec.conversion.strategy"),
        (
            {"spec": {"versions": [{**a_definition()["spec"]["versions"][0], "selectableFields": [{}]}]}},
            "spec.versions[0].selectableFields[0].jsonPath",
        ),
    ],
)
async def test_a_wrong_definition_is_named(change: Any, field: str) -> None:
    """A definition the server cannot honour is refused, never half served."""
    definition = a_definition()
    for part, values in change.items():
        definition[part] = {**definition[part], **values}
    answer = await an_api().send("POST", DEFINITIONS, definition)
    assert answer.status == 422
    assert field in [cause["field"] for cause in answer.body["details"]["causes"]]


async def test_formats_are_checked_as_kubernetes_does(api: Api) -> None:
    """A number that its format cannot hold and a text that is not of its format are refused; unknown formats warn."""
    properties = {
        "count": {"type": "integer", "format": "int32", "maximum": 5_000_000_000},
        "when": {"type": "string", "format": "date-time"},
        "free": {"type": "string", "format": "poem"},
    }
    created = await api.send("POST", DEFINITIONS, a_definition({"type": "object", "properties": properties}))
    assert created.headers["warning"] == '299 - "unrecognized format \\"poem\\""'
    await api.create(WIDGETS, a_widget("a", count=2**31 - 1, when="2026-01-02T03:04:05Z", free="x"))
    answer = await api.send("POST", WIDGETS, a_widget("b", count=2**31, when="soon"))
    assert answer.status == 422
    assert sorted((cause["field"], cause["reason"]) for cause in answer.body["details"]["causes"]) == [
        ("<nil>", "FieldValueInvalid"),
        ("spec.when", "FieldValueTypeInvalid"),
    ]


async def test_unknown_metadata_of_custom_resources_is_refused_when_asked(api: Api) -> None:
    """Strict validation is about metadata, too, and what is dropped is warned about otherwise."""
    await api.create(DEFINITIONS, a_definition())
    widget = a_widget("a")
    widget["metadata"]["lables"] = {"a": "b"}
    strict = await api.send("POST", WIDGETS, widget, query={"fieldValidation": "Strict"})
    assert (strict.status, 'unknown field "metadata.lables"' in strict.body["message"]) == (400, True)
    lenient = await api.send("POST", WIDGETS, widget)
    assert lenient.headers["warning"] == '299 - "unknown field \\"metadata.lables\\""'
    assert "lables" not in lenient.body["metadata"]
