"""What is refused, and the fields that a refusal names; ``test_side_by_side`` compares the same with kube-apiserver."""

from typing import Any

from spinney.api.struct import JSON
from spinney.server import ServerOptions
from tests.server.api import CONFIG_MAPS, MERGE, PODS, Answer, Api, a_config_map, an_api
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


def _causes(answer: Answer) -> list[str]:
    causes = (answer.body.get("details") or {}).get("causes") or ()
    return sorted(f"{cause['field']} {cause['reason']}" for cause in causes)


async def test_a_pod_is_refused_for_its_fields(api: Api) -> None:
    """A pod that no cluster takes is refused, and the refusal names every field that is wrong."""
    for name, (spec, causes) in POD_SPECS.items():
        answer = await api.send("POST", PODS, a_refused_pod(spec))
        assert (answer.status, _causes(answer)) == (422, sorted(causes)), name


async def test_a_pod_that_only_looks_wrong_is_taken(api: Api) -> None:
    """What a cluster takes is taken."""
    for name, spec in ACCEPTED.items():
        answer = await api.send("POST", PODS, a_refused_pod(spec), query={"dryRun": "All"})
        assert answer.status == 201, (name, answer.body)


async def test_a_template_may_have_blanks_around_images() -> None:
    """The image of a pod may not have blanks around it, that of a template may, as in Kubernetes."""
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": " i:1"}]}}
    deployment = {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}
    answer = await an_api().send("POST", "/apis/apps/v1/namespaces/default/deployments", deployment)
    assert answer.status == 201


async def test_a_template_is_refused_for_its_fields() -> None:
    """What a pod may not have, a template of pods may not have either."""
    template = {"metadata": {"labels": {"a": "b"}}, "spec": a_refused_pod({"hostname": "a.b"})["spec"]}
    deployment = {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}
    answer = await an_api().send("POST", "/apis/apps/v1/namespaces/default/deployments", deployment)
    assert (answer.status, _causes(answer)) == (422, ["spec.template.spec.hostname FieldValueInvalid"])


async def test_a_patch_leaves_an_object_of_the_kind(api: Api) -> None:
    """What a patch makes of an object must still be one; only its own name, uid and version are accepted in it."""
    await api.create(CONFIG_MAPS, a_config_map("a", k="v"))
    for patch, status, causes in PATCHES:
        answer = await api.send("PATCH", f"{CONFIG_MAPS}/a", patch, headers={"content-type": MERGE})
        assert (answer.status, _causes(answer)) == (status, list(causes)), patch


async def test_a_budget_is_refused_for_its_fields(api: Api) -> None:
    """A budget that says no number or share of pods would have every eviction fail."""
    for spec, causes in BUDGET_SPECS:
        answer = await api.send("POST", BUDGETS.replace("{ns}", "default"), {"metadata": {"name": "b"}, "spec": spec})
        assert (answer.status, _causes(answer)) == (422, sorted(causes)), spec


async def test_what_is_asked_for_in_wrong_types_is_refused(api: Api) -> None:
    """What comes with a deletion or an action is held to its fields, as objects are, and nothing is done."""
    made = {path: await api.create(path.replace("{ns}", "default"), obj) for path, obj in ACTED_ON.items()}
    for method, path, body, query, status in ACTIONS:
        headers = {"content-type": MERGE} if method == "PATCH" else {}
        answer = await api.send(method, path.replace("{ns}", "default"), body, query=query, headers=headers)
        assert answer.status == status, (method, path, body, answer.body)
    for path, obj in made.items():
        assert await api.get(f"{path.replace('{ns}', 'default')}/a") == obj


async def test_some_kinds_are_replaced_in_a_known_state_only(api: Api) -> None:
    """Without the version that was read, such an object is neither replaced nor patched; with it, it is."""
    for path, fields in VERSIONED.items():
        at, obj = path.replace("{ns}", "default"), {"metadata": {"name": "v"}, **fields}
        made = await api.create(at, obj)
        forgetting = {"metadata": {"resourceVersion": None}}
        for answer in (
            await api.send("PUT", f"{at}/v", obj),
            await api.send("PATCH", f"{at}/v", forgetting, headers={"content-type": MERGE}),
        ):
            assert _causes(answer) == ["metadata.resourceVersion FieldValueInvalid"], path
        await api.replace(f"{at}/v", made)


async def test_owners_that_a_client_sends_are_taken() -> None:
    """A client may say who owns what; owners that cannot be read leave the recorded ones as they were."""
    api = an_api(ServerOptions(track_all_managers=True))
    await api.create(CONFIG_MAPS, a_config_map("a", k="v"), fieldManager="me")
    fields = {"fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:k": {}}}}
    mine: JSON = {"manager": "x", "operation": "Update", "apiVersion": "v1", **fields}

    async def owners(managed: Any) -> list[str]:
        patched = await api.patch(f"{CONFIG_MAPS}/a", {"metadata": {"managedFields": managed}}, fieldManager="other")
        return [entry["manager"] for entry in patched["metadata"].get("managedFields", ())]

    assert await owners([{**mine, "operation": "Bad"}]) == ["me"]
    assert await owners([{**mine, "fieldsV1": {"data": {}}}]) == ["me"]
    assert await owners([mine]) == ["x"]
    assert await owners(None) == ["x"]
    assert await owners([{}]) == []
    assert await owners([mine]) == ["x"]
    assert await owners([]) == []
