"""What the fast suite says about refusals is what kube-apiserver does, and its owners of fields are the same."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from spinney.api.struct import JSON
from spinney.kube.transport import Request, Transport
from spinney.runtime import Runtime
from spinney.server import ApiServer, ServerOptions
from spinney.sim.embedded.transport import InProcessTransport
from spinney.testing.controlplane import ControlPlane
from tests.fidelity.exchanges import MAPS, PODS, Exchange, json_patching, merging, posting, putting
from tests.fidelity.pair import Pair, paired
from tests.fidelity.twins import Twins
from tests.server.autoscaling import AUTOSCALING
from tests.server.policies import BINDINGS, CASES, POLICIES, REFUSED, a_case
from tests.server.refusals import (
    ACCEPTED,
    ACTED_ON,
    ACTIONS,
    BUDGET_SPECS,
    BUDGETS,
    PATCHES,
    POD_SPECS,
    VERSIONED,
    a_refused_pod,
)

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

_MAP = {"metadata": {"name": "a"}, "data": {"k": "v", "j": "w"}}


@pytest.fixture
async def pair(controlplane: ControlPlane) -> AsyncIterator[Pair]:
    """Both servers, with a namespace for this test."""
    async with paired(controlplane) as pair:
        yield pair


async def test_both_refuse_the_same_pods(pair: Pair) -> None:
    """A pod that the embedded server refuses is refused by a real one, for the same fields."""
    for name, (spec, causes) in POD_SPECS.items():
        real, ours = await pair.ask(posting(PODS, a_refused_pod(spec)))
        assert real == ours, name
        assert (real["status"], real["causes"]) == (422, sorted(causes)), name


async def test_both_take_the_same_pods(pair: Pair) -> None:
    """A pod that only looks wrong is taken by both."""
    for name, spec in ACCEPTED.items():
        exchange = posting(PODS, a_refused_pod(spec))
        real, ours = await pair.ask(replace(exchange, query={"dryRun": "All"}))
        assert (real["status"], ours["status"]) == (201, 201), name


async def test_both_answer_odd_patches_alike(pair: Pair) -> None:
    """What a patch leaves must be an object of its kind; what else it may not change is told as elsewhere."""
    await pair.ask(posting(MAPS, _MAP))
    for patch, status, causes in PATCHES:
        real, ours = await pair.ask(merging(f"{MAPS}/a", patch))
        assert real == ours, patch
        assert (real["status"], real.get("causes", [])) == (status, list(causes)), patch


async def test_both_refuse_the_same_budgets(pair: Pair) -> None:
    """A disruption budget that the embedded server refuses is refused by a real one, for the same fields."""
    for spec, causes in BUDGET_SPECS:
        real, ours = await pair.ask(posting(BUDGETS, {"metadata": {"name": "b"}, "spec": spec}))
        assert (real["status"], ours["status"]) == (422, 422), spec
        assert real["causes"] == ours["causes"] == sorted(causes), spec


async def test_both_refuse_the_same_actions(pair: Pair) -> None:
    """What the embedded server refuses of deletions and actions with wrong types, a real one refuses alike."""
    for path, obj in ACTED_ON.items():
        await pair.ask(posting(path, obj))
    for method, path, body, query, status in ACTIONS:
        media = "application/merge-patch+json" if method == "PATCH" else "application/json"
        real, ours = await pair.ask(Exchange(method, path, body, media, query))
        assert (real["status"], real["reason"]) == (ours["status"], ours["reason"]), (method, path, body)
        assert real["status"] == status, (method, path, body)


async def test_both_want_a_version_for_the_same_kinds(pair: Pair) -> None:
    """Without a resourceVersion some kinds are neither replaced nor patched."""
    for path, fields in VERSIONED.items():
        name = "v-{ns}"
        obj = {"metadata": {"name": name}, **fields}
        await pair.ask(posting(path, obj))
        for asked in (
            putting(f"{path}/{name}", obj),
            merging(f"{path}/{name}", {"metadata": {"resourceVersion": None}}),
            merging(f"{path}/{name}", {"metadata": {"resourceVersion": "0"}}),
        ):
            real, ours = await pair.ask(asked)
            assert real == ours, asked
            assert real["causes"] == ["metadata.resourceVersion FieldValueInvalid"], asked
        await pair.ask(Exchange("DELETE", f"{path}/{name}"))


async def test_both_convert_autoscalers_alike(pair: Pair) -> None:
    """An autoscaler written in one version reads the same in the other, with what v1 has no fields for."""
    for exchange in AUTOSCALING:
        real, ours = await pair.ask(exchange)
        assert real == ours, exchange


async def test_both_refuse_the_same_policies(pair: Pair) -> None:
    """A policy or binding that the embedded server refuses is refused by a real one, for the same fields."""
    for path, specs in REFUSED.items():
        for spec, causes in specs:
            real, ours = await pair.ask(posting(path, {"metadata": {"name": "p-{ns}"}, "spec": spec}))
            assert real == ours, spec
            assert real["causes"] == sorted(causes), spec


async def test_both_hold_writes_to_policies(pair: Pair) -> None:
    """Bound policies deny and let pass the same writes, in the same words but for errors of expressions."""
    await pair.ask(posting(MAPS, {"metadata": {"name": "wanted"}, "data": {"a": "q"}}))
    cases = {name: a_case(name, case) for name, case in CASES.items()}
    for policy, binding, _ in cases.values():
        for path, obj in ((POLICIES, policy), (BINDINGS, binding)):
            real, ours = await pair.ask(posting(path, obj))
            assert real == ours
    try:
        for name, (_, _, config) in cases.items():
            case = CASES[name]
            told = case.told.replace("{ns}", pair.namespace)
            async with asyncio.timeout(60):
                while True:  # until its informers have the policy
                    real = await _verdict(pair.real, config, pair.namespace)
                    if real["code"] == case.code and real["told"].endswith(told):
                        break
                    await asyncio.sleep(0.1)
            ours = await _verdict(pair.embedded, config, pair.namespace)
            if name == "failing":  # what an expression failed of is told in the evaluator's words
                real, ours = ({**each, "told": "", "details": None} for each in (real, ours))
            assert real == ours, name
    finally:
        for policy, _, _ in cases.values():
            for path in (POLICIES, BINDINGS):
                await pair.ask(Exchange("DELETE", f"{path}/{policy['metadata']['name']}"))


async def _verdict(transport: Transport, config: JSON, namespace: str) -> JSON:
    body = json.dumps(config).encode()
    answer = await transport.request(
        Request("POST", MAPS.replace("{ns}", namespace), query={"dryRun": "All"}, body=body)
    )
    content = json.loads(answer.body)
    warning = answer.headers.get("warning", "").rstrip('"')
    parts = {name: content.get(name) for name in ("reason", "details")}
    return {"code": answer.status, "told": content.get("message", warning), **parts}


def _owner(manager: str, operation: str = "Update", fields: Any = None, **more: Any) -> JSON:
    return {
        "manager": manager,
        "operation": operation,
        "apiVersion": "v1",
        "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": {"f:k": {}}} if fields is None else fields,
        **more,
    }


def _owning(owners: Any, **data: str) -> Exchange:
    body = {"metadata": {"managedFields": owners}, **({"data": data} if data else {})}
    return merging(f"{MAPS}/a", body, fieldManager="other")


def _owning_status(owners: Any, message: str) -> Exchange:
    body = {"metadata": {"managedFields": owners}, "status": {"message": message}}
    return merging(f"{PODS}/p/status", body, fieldManager="other")


async def test_both_take_the_same_owners_from_a_client(controlplane: ControlPlane) -> None:
    """Valid owners that a client sends become the recorded ones; what is not valid, or for a subresource, is not."""
    runtime = Runtime.system()
    real = controlplane.connect(runtime)
    server = ApiServer(runtime, ServerOptions(track_all_managers=True))
    try:
        async with server.running():
            twins = Twins(real.transport, InProcessTransport(server), f"owners-{runtime.uid()[:8]}")
            await twins.ask(posting("/api/v1/namespaces", {"metadata": {"name": "{ns}"}}))
            await twins.real.until("/api/v1/namespaces/{ns}/serviceaccounts/default")
            for exchange in (
                posting(MAPS, _MAP, fieldManager="me"),
                putting(f"{MAPS}/a", {**_MAP, "metadata": {"name": "a", "managedFields": [_owner("x")]}}),
                _owning([_owner("y", "Apply")], k="v2"),
                _owning([_owner("z", fields={"f:data": {"f:nowhere": {}}})]),
                _owning([_owner("b"), _owner("b"), _owner("c", subresource="status")]),
                _owning([_owner("x", "Bad")], n="1"),
                _owning([_owner("x", fieldsType="V2")], n="2"),
                _owning([_owner("x", apiVersion="")], n="3"),
                _owning([_owner("x", fields={"data": {}})], n="4"),
                _owning([_owner("x", fields={"k:x": {}})], n="5"),
                _owning([_owner("x"), {}], n="6"),
                _owning([_owner("x", fields={})], n="7"),
                _owning(None, n="8"),
                _owning([], n="9"),
                _owning([_owner("w")]),
                _owning([{}], n="10"),
                json_patching(f"{MAPS}/a", {"op": "add", "path": "/metadata/managedFields", "value": [_owner("w")]}),
                posting(MAPS, {**_MAP, "metadata": {"name": "b", "managedFields": [_owner("x")]}}, fieldManager="me"),
                posting(PODS, a_refused_pod({}), fieldManager="me"),
                _owning_status([{}], "a"),
                _owning_status([_owner("x")], "b"),
            ):
                theirs, ours = await twins.ask(exchange)
                assert theirs == ours, exchange
            await twins.real.ask(Exchange("DELETE", "/api/v1/namespaces/{ns}"))
    finally:
        await real.transport.close()
        runtime.executor.close()
