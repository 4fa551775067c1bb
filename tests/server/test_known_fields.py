"""Objects of built-in kinds have the fields of their kind, and no others."""

import json

import pytest

from spinney.api.struct import JSON
from spinney.server import ServerOptions
from tests.server.api import CONFIG_MAPS, MERGE, NODES, PODS, Api, a_pod, an_api

_DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


def _mistaken() -> JSON:
    pod = a_pod("p")
    pod["spec"]["containers"][0]["imagee"] = "i"
    pod["spec"]["nodeSelektor"] = {}
    pod["extra"] = 1
    return pod


async def test_strict_validation_names_every_unknown_field() -> None:
    """A create under Strict with fields that the kind does not have is a 400 that names them with their paths."""
    refused = await an_api().send("POST", PODS, _mistaken(), query={"fieldValidation": "Strict"})
    assert refused.status == 400
    for path in ("spec.containers[0].imagee", "spec.nodeSelektor", "extra"):
        assert f'unknown field "{path}"' in refused.body["message"]


@pytest.mark.parametrize("validation", ["Warn", "Ignore"])
async def test_unknown_fields_are_dropped(validation: str) -> None:
    """Otherwise they are dropped, with a warning for each or without."""
    made = await an_api().send("POST", PODS, _mistaken(), query={"fieldValidation": validation})
    assert made.status == 201
    assert "imagee" not in json.dumps(made.body)
    assert "extra" not in made.body
    assert ("warning" in made.headers) is (validation == "Warn")


async def test_a_patch_cannot_add_unknown_fields(api: Api) -> None:
    """What a patch adds is held to the fields of the kind; what was there is not complained about."""
    await api.create(CONFIG_MAPS, {"metadata": {"name": "c"}, "data": {"a": "b"}})
    query = {"fieldValidation": "Strict"}
    headers = {"content-type": MERGE}
    refused = await api.send("PATCH", f"{CONFIG_MAPS}/c", {"date": {}}, query=query, headers=headers)
    assert (refused.status, refused.body["details"]["causes"][0]["field"]) == (422, "patch")
    fine = await api.send("PATCH", f"{CONFIG_MAPS}/c", {"data": {"any.key": "v"}}, query=query, headers=headers)
    assert fine.status == 200


@pytest.mark.parametrize(
    ("path", "content"),
    [
        (PODS, {"spec": {"containers": "c"}}),
        (PODS, {"spec": {"containers": [{"name": 5}]}}),
        (PODS, {"spec": {"containers": [], "priority": "high"}}),
        (PODS, {"spec": {"containers": [], "hostNetwork": "yes"}}),
        (CONFIG_MAPS, {"data": {"a": 1}}),
        (NODES, {"spec": {"taints": {"key": "a"}}}),
        (_DEPLOYMENTS, {"spec": {"replicas": "3"}}),
        (_DEPLOYMENTS, {"spec": {"template": []}}),
    ],
)
async def test_a_value_of_the_wrong_type_is_refused(path: str, content: JSON) -> None:
    """A value that the field cannot hold is a 400 before anything else is judged."""
    refused = await an_api().send("POST", path, {"metadata": {"name": "x"}, **content})
    assert (refused.status, refused.body["reason"]) == (400, "BadRequest")


async def test_null_is_nothing() -> None:
    """A null in a field is the same as leaving it out."""
    made = await an_api().create(PODS, a_pod("p", nodeSelector=None, affinity={"nodeAffinity": None}))
    assert "nodeSelector" not in made["spec"]
    assert made["spec"]["affinity"] == {}


async def test_a_null_amount_is_none_of_it() -> None:
    """A null among requests or limits is read as 0, as Kubernetes decodes it."""
    pod = a_pod("p")
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": None}, "limits": {"memory": None}}
    made = await an_api().create(PODS, pod)
    assert made["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "0"
    assert made["spec"]["containers"][0]["resources"]["limits"] == {"memory": "0"}


@pytest.mark.parametrize(("version", "group"), [("1.37", "schedulingGroup"), ("1.35", "workloadRef")])
async def test_each_release_has_its_fields(version: str, group: str) -> None:
    """A field that came or went with a release is known to those that have it."""
    api = an_api(ServerOptions(kubernetes_version=version))
    for name, value in (("schedulingGroup", {"podGroupName": "g"}), ("workloadRef", {"name": "w", "podGroup": "g"})):
        answer = await api.send("POST", PODS, a_pod(name.lower(), **{name: value}), query={"fieldValidation": "Strict"})
        assert answer.status == (201 if name == group else 400)


async def test_the_schemas_describe_the_fields() -> None:
    """OpenAPI has the fields of built-in kinds, their types, and how patches merge their lists."""
    document = await an_api().get("/openapi/v3/apis/apps/v1")
    schemas = document["components"]["schemas"]
    spec = schemas["io.k8s.api.core.v1.PodSpec"]["properties"]
    assert spec["containers"]["x-kubernetes-patch-merge-key"] == "name"
    assert (spec["priority"]["type"], spec["priority"]["format"]) == ("integer", "int32")
    for schema in schemas.values():
        for reference in json.dumps(schema).split("#/components/schemas/")[1:]:
            assert reference.partition('"')[0] in schemas


_TWICE = b'{"metadata":{"name":"q","labels":{"a":"b","a":"c"}},"data":{"k":"1","k":"2"}}'
_TWICE_YAML = b'metadata:\n  name: q\ndata:\n  k: "1"\n  k: "2"\n'


async def test_fields_that_stand_twice_are_told(api: Api) -> None:
    """The last of two fields counts; a strict client is refused, others are warned, in the words of Kubernetes."""
    strict = await api.send("POST", CONFIG_MAPS, _TWICE, query={"fieldValidation": "Strict"})
    assert (strict.status, strict.body["message"]) == (
        400,
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error:'
        ' duplicate field "metadata.labels.a", duplicate field "data.k"',
    )
    yaml = {"content-type": "application/yaml"}
    written = await api.send("POST", CONFIG_MAPS, _TWICE_YAML, query={"fieldValidation": "Strict"}, headers=yaml)
    assert written.body["message"].endswith('yaml: unmarshal errors:\n  line 5: key "k" already set in map')
    warned = await api.send("POST", CONFIG_MAPS, _TWICE)
    assert (warned.status, warned.body["data"]) == (201, {"k": "2"})
    assert r'299 - "duplicate field \"data.k\""' in warned.headers["warning"]
    ignored = await api.send("PUT", f"{CONFIG_MAPS}/q", _TWICE, query={"fieldValidation": "Ignore"})
    assert "warning" not in ignored.headers
    merge = {"content-type": "application/merge-patch+json"}
    patched = await api.send("PATCH", f"{CONFIG_MAPS}/q", _TWICE, query={"fieldValidation": "Strict"}, headers=merge)
    assert (patched.status, patched.body["details"]["causes"][0]["field"]) == (422, "patch")


async def test_an_update_is_held_to_types_where_python_sees_no_change(api: Api) -> None:
    """A number where a truth value was, and the other way round, is a 400, though 1 and true are equal in Python."""
    manifest = a_pod("p")
    manifest["spec"] |= {"hostNetwork": True, "priority": 0}
    made = await api.create(PODS, manifest)
    for field, wrong in (("hostNetwork", 1), ("priority", False)):
        changed = {**made, "spec": {**made["spec"], field: wrong}}
        refused = await api.send("PUT", f"{PODS}/p", changed)
        assert refused.status == 400, field
        assert f"spec.{field}" in refused.body["message"]
