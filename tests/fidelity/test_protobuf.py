"""Kubernetes' own protobuf, read with the table of fields: what kube-apiserver sends twice says the same twice."""

import json

import pytest

from spinney.api.builtin_fields import field_table
from spinney.kube.transport import Request, Transport
from spinney.server.builtin.table import builtin_kinds
from spinney.server.exchange.protobuf import decode_object
from spinney.testing.controlplane import ControlPlane
from tests.fidelity.exchanges import Exchange
from tests.fidelity.pair import paired
from tests.fidelity.rich import RICH

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

_PROTOBUF = {"accept": "application/vnd.kubernetes.protobuf"}


async def test_every_object_of_a_real_cluster_reads_the_same(controlplane: ControlPlane) -> None:
    """Each object of each kind that is served decodes to the JSON that kube-apiserver gives for it."""
    table = field_table("1.37")
    compared: dict[str, int] = {}
    async with paired(controlplane) as pair:
        for path, obj in RICH.items():
            real, _ = await pair.ask(Exchange("POST", path, obj))
            assert real["status"] == 201, f"{path}: {real}"
        for kind in builtin_kinds(("v1beta1", "v1alpha3")):
            if "list" not in kind.verbs:
                continue
            for path in await _objects(pair.real, kind.resource.path()):
                binary = await pair.real.request(Request("GET", path, headers=_PROTOBUF))
                plain = await pair.real.request(Request("GET", path))
                if binary.status != 200 or plain.status != 200:
                    continue  # gone meanwhile
                expected, found = json.loads(plain.body), decode_object(table, binary.body)
                if expected["metadata"]["resourceVersion"] != found["metadata"]["resourceVersion"]:
                    continue  # changed meanwhile
                assert _whole(found) == _whole(expected), path
                compared[kind.resource.kind] = compared.get(kind.resource.kind, 0) + 1
        for path in RICH:
            name = f"{path}/{RICH[path]['metadata']['name']}"
            await pair.ask(Exchange("PATCH", name, {"metadata": {"finalizers": None}}, "application/merge-patch+json"))
            await pair.ask(Exchange("DELETE", name))
    assert len(compared) >= len(RICH)


async def _objects(transport: Transport, path: str) -> list[str]:
    answer = await transport.request(Request("GET", path))
    if answer.status != 200:
        return []  # an API that this control plane does not serve
    prefix, _, plural = path.rpartition("/")
    found = []
    for item in json.loads(answer.body)["items"]:
        namespace = item["metadata"].get("namespace")
        within = f"{prefix}/namespaces/{namespace}/{plural}" if namespace else path
        found.append(f"{within}/{item['metadata']['name']}")
    return found


def _whole(value: object) -> object:
    """Return a value without the nulls and empty collections that Go writes for fields that have no pointer."""
    if isinstance(value, dict):
        kept = {name: _whole(child) for name, child in value.items()}
        return {name: child for name, child in kept.items() if child not in (None, {}, [])}
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return value
