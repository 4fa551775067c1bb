"""Admission policies are enforced as they say; ``test_side_by_side`` compares the same with kube-apiserver."""

import json
from typing import Any

from tests.server.api import CONFIG_MAPS, Api, a_config_map
from tests.server.policies import BINDINGS, CASES, POLICIES, REFUSED, a_case


def _here(value: Any) -> Any:
    return json.loads(json.dumps(value).replace("{ns}", "default"))


async def _bound(api: Api, name: str) -> Any:
    policy, binding, config = _here(a_case(name, CASES[name]))
    await api.create(POLICIES, policy)
    await api.create(BINDINGS, binding)
    return config


async def test_a_write_is_held_to_the_policies_it_meets(api: Api) -> None:
    """A bound policy denies, warns or lets pass, with its own words, by its own matching, parameters and variables."""
    await api.create(CONFIG_MAPS, a_config_map("wanted", a="q"))
    for name, case in CASES.items():
        config = await _bound(api, name)
        answer = await api.send("POST", CONFIG_MAPS, config)
        assert answer.status == case.code, (name, answer.body)
        if case.code != 201:
            assert answer.body["reason"] == case.reason, name
            assert answer.body["message"].startswith(f'configmaps "{name}" is forbidden: ValidatingAdmissionPolicy')
            assert answer.body["message"].endswith(case.told), name
        else:
            told = [answer.headers["warning"]] if "warning" in answer.headers else []
            assert [_here(case.told) in each for each in told] == [True] * bool(case.told), name


async def test_deletions_and_changes_are_held_to_policies_too(api: Api) -> None:
    """A policy about deletions keeps an object; once it, or its binding, is gone, the object can go."""
    rule = {"expression": "request.operation != 'DELETE' || oldObject.data.a != 'x'", "message": "stays"}
    policy, binding, config = _here(a_case("plain", CASES["plain"]))
    policy["spec"]["validations"] = [rule]
    await api.create(POLICIES, policy)
    await api.create(CONFIG_MAPS, config)
    await api.create(BINDINGS, binding)
    refused = await api.send("DELETE", f"{CONFIG_MAPS}/plain")
    assert (refused.status, refused.body["message"].rpartition(": ")[2]) == (422, "stays")
    assert (await api.send("GET", f"{CONFIG_MAPS}/plain")).status == 200
    await api.delete(f"{BINDINGS}/{binding['metadata']['name']}")
    await api.delete(f"{CONFIG_MAPS}/plain")


async def test_what_cannot_be_enforced_is_not_stored(api: Api) -> None:
    """A policy that does not compile, or a binding that says nothing, is refused and the field named."""
    for path, specs in REFUSED.items():
        for spec, causes in specs:
            answer = await api.send("POST", path, {"metadata": {"name": "p"}, "spec": spec})
            named = [f"{each['field']} {each['reason']}" for each in answer.body["details"].get("causes", ())]
            assert (answer.status, sorted(named)) == (422, sorted(causes)), spec
    unknown = {"expression": "quantity(object.data.a).isInteger()"}
    policy = _here(a_case("plain", CASES["plain"]))[0]
    policy["spec"]["validations"] = [unknown]
    answer = await api.send("POST", POLICIES, policy)
    assert answer.status == 422
    assert "undeclared reference to 'quantity'" in answer.body["message"]
