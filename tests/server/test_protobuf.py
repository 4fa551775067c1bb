"""Protobuf bodies, as kubectl create and stock Go components send them: the same objects as in JSON."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spinney.api.builtin_fields import field_table
from spinney.api.builtin_fields.table import FieldType
from spinney.api.struct import JSON
from spinney.server.exchange.protobuf import decode_object
from spinney.server.exchange.wire import MalformedMessage
from tests.server.api import CONFIG_MAPS, PODS, Api, an_api
from tests.server.encoding import encoded

_TABLE = field_table("1.37")
_PROTOBUF = {"content-type": "application/vnd.kubernetes.protobuf"}
_WORD = st.text("abcäöü-", min_size=1, max_size=4)
_SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "string": _WORD,
    "bytes": st.sampled_from(["AAEC", "cGFzcw=="]),
    "bool": st.just(value=True),
    "int32": st.integers(-(2**31), 2**31 - 1).filter(bool),
    "int64": st.integers(-(2**63), 2**63 - 1).filter(bool),
    "float64": st.sampled_from([0.5, 3, -1e9]),
    "quantity": st.sampled_from(["1", "100m", "1Gi"]),
    "intOrString": st.sampled_from([0, 7, -1, "25%", "http"]),
    "time": st.sampled_from(["2026-01-02T03:04:05Z", "1969-12-31T23:59:59Z"]),
    "microTime": st.sampled_from(["2026-01-02T03:04:05.600007Z"]),
    "raw": st.sampled_from([{"a": [1, None, {"b": "c"}]}, [1], "x"]),
}


def _values(kind: FieldType, depth: int) -> st.SearchStrategy[Any]:
    match kind.form:
        case "message":
            return _objects(kind.name, depth - 1)
        case "list" | "items":
            return st.lists(_values(kind.element, depth), min_size=1, max_size=2)
        case "map":
            return st.dictionaries(_WORD, _values(kind.element, depth), min_size=1, max_size=2)
        case _:
            return _SCALARS[kind.name]


def _objects(name: str, depth: int) -> st.SearchStrategy[JSON]:
    fields = [field for field in _TABLE.message(name).by_name.values() if depth > 0 or field.type.form == "scalar"]

    @st.composite
    def build(draw: st.DrawFn) -> JSON:
        chosen = draw(st.lists(st.sampled_from(fields), max_size=4, unique=True)) if fields else []
        return {field.name: draw(_values(field.type, depth)) for field in chosen}

    return build()


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        ("v1", "Pod"),
        ("v1", "Node"),
        ("v1", "Secret"),
        ("apps/v1", "Deployment"),
        ("batch/v1", "Job"),
        ("authentication.k8s.io/v1", "TokenReview"),
        ("coordination.k8s.io/v1", "Lease"),
        ("resource.k8s.io/v1", "ResourceClaim"),
        ("scheduling.k8s.io/v1beta1", "PodGroup"),
    ],
)
@settings(max_examples=15)
@given(data=st.data())
def test_objects_come_out_as_they_went_in(api_version: str, kind: str, data: st.DataObject) -> None:
    """Any object of a built-in kind is the same after its way through protobuf."""
    message = _TABLE.kind(api_version, kind)
    assert message is not None
    obj = {"apiVersion": api_version, "kind": kind, **data.draw(_objects(message.name, 5))}
    assert decode_object(_TABLE, encoded(_TABLE, obj)) == obj


@given(st.binary(max_size=60))
def test_garbage_is_malformed_and_nothing_worse(garbage: bytes) -> None:
    """Bytes that are no message are reported as such."""
    envelope = encoded(_TABLE, {"apiVersion": "v1", "kind": "Pod"})
    for body in (garbage, b"k8s\x00" + garbage, envelope + garbage, envelope[:-2] + garbage):
        try:
            decode_object(_TABLE, body)
        except (MalformedMessage, ValueError):
            continue


async def test_an_object_is_created_from_protobuf(api: Api) -> None:
    """What a Go client creates in protobuf is stored and answered in JSON, without the empty fields Go writes."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "generateName": "", "uid": "", "labels": {"a": ""}},
        "spec": {
            "containers": [{"name": "c", "image": "i", "resources": {"limits": {"cpu": "1"}}}],
            "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}],
            "terminationGracePeriodSeconds": 0,
        },
    }
    made = await api.send("POST", PODS, encoded(_TABLE, pod), headers=_PROTOBUF)
    assert made.status == 201, made.body
    assert made.headers["content-type"] == "application/json"
    assert "generateName" not in made.body["metadata"]
    assert made.body["metadata"]["labels"] == {"a": ""}
    assert made.body["spec"]["terminationGracePeriodSeconds"] == 0
    assert made.body["spec"]["volumes"][0]["emptyDir"] == {"sizeLimit": "1Gi"}


async def test_options_of_a_deletion_are_read_from_protobuf(api: Api) -> None:
    """Delete options have the same type whatever version they say they are of."""
    await api.create(CONFIG_MAPS, {"metadata": {"name": "c"}})
    options = {"apiVersion": "policy/v1", "kind": "DeleteOptions", "preconditions": {"uid": "another"}}
    refused = await api.send("DELETE", f"{CONFIG_MAPS}/c", encoded(_TABLE, options), headers=_PROTOBUF)
    assert refused.status == 409


@pytest.mark.parametrize("body", [b"", b"{}", b"k8s\x00\xff", b"k8s\x00\x0a\x7f"])
async def test_a_body_that_is_no_protobuf_is_refused(body: bytes) -> None:
    """A body that says it is protobuf and is not gets a 400."""
    assert (await an_api().send("POST", CONFIG_MAPS, body, headers=_PROTOBUF)).status == 400


async def test_a_custom_kind_does_not_travel_in_protobuf() -> None:
    """Kinds that are not built in have no field numbers: the client is told which types can carry them."""
    body = encoded(_TABLE, {"apiVersion": "v1", "kind": "Pod"}).replace(b"\x12\x03Pod", b"\x12\x03Pot")
    refused = await an_api().send("POST", CONFIG_MAPS, body, headers=_PROTOBUF)
    assert refused.status == 415
    assert "application/json" in refused.body["message"]
