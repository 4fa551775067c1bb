"""kubectl changes what is there: apply on both sides, diff, create, edit, scale and every kind of patch."""

import json
from pathlib import Path

import pytest

from tests.clients.kubectl import Kubectl
from tests.clients.manifests import CONFIG, DEPLOYMENT, POD

pytestmark = pytest.mark.real


async def test_apply_creates_leaves_and_changes(kubectl: Kubectl) -> None:
    """A first apply creates, the same again changes nothing, another one changes the object."""
    assert "pod/web created" in await kubectl.apply(POD)
    assert "pod/web unchanged" in await kubectl.apply(POD)
    assert "pod/web configured" in await kubectl.apply(POD.replace("web:1", "web:2"))
    assert await kubectl.run("get", "pod", "web", "-o", "jsonpath={.spec.containers[0].image}") == (
        "registry.example/web:2"
    )


async def test_apply_removes_what_the_manifest_no_longer_has(kubectl: Kubectl) -> None:
    """Client-side apply takes a field away that it had set, and leaves others' fields alone."""
    await kubectl.apply(CONFIG.replace("v: '1'", "v: '1', w: '2'"))
    await kubectl.run("patch", "cm", "c", "--type=merge", "-p", '{"data":{"x":"3"}}')
    await kubectl.apply(CONFIG)
    assert json.loads(await kubectl.run("get", "cm", "c", "-o", "jsonpath={.data}")) == {"v": "1", "x": "3"}


async def test_server_side_apply_reports_conflicts(kubectl: Kubectl) -> None:
    """Two managers of one field conflict, until one is told to force it; then the other no longer owns it."""
    await kubectl.apply(CONFIG, "--server-side", "--field-manager=one")
    other = CONFIG.replace("'1'", "'2'")
    refused = await kubectl.apply(other, "--server-side", "--field-manager=two", code=1)
    assert 'conflict with "one": .data.v' in refused
    forced = await kubectl.apply(other, "--server-side", "--field-manager=two", "--force-conflicts")
    assert "configmap/c serverside-applied" in forced
    owners = json.loads(await kubectl.run("get", "cm", "c", "-o", "json", "--show-managed-fields"))
    owned = {each["manager"]: each["fieldsV1"] for each in owners["metadata"]["managedFields"]}
    assert "f:v" in owned["two"]["f:data"]
    assert "one" not in owned


async def test_apply_moves_to_the_server(kubectl: Kubectl) -> None:
    """What was applied by the client is taken over by a server-side apply without a conflict."""
    await kubectl.apply(CONFIG)
    moved = await kubectl.apply(CONFIG.replace("'1'", "'2'"), "--server-side")
    assert "configmap/c serverside-applied" in moved
    assert "conflict" not in moved


async def test_dry_runs_change_nothing(kubectl: Kubectl) -> None:
    """A dry run on the server validates and answers, and stores nothing."""
    assert "created (server dry run)" in await kubectl.apply(CONFIG, "--dry-run=server")
    assert "NotFound" in await kubectl.run("get", "cm", "c", code=1)


async def test_diff_shows_what_an_apply_would_change(kubectl: Kubectl) -> None:
    """Diff tries the apply on the server, on either side, and leaves the object alone."""
    await kubectl.apply(POD)
    for side in ((), ("--server-side", "--force-conflicts")):
        changed = await kubectl.run("diff", *side, "-f", "-", stdin=POD.replace("web:1", "web:2"), code=1)
        assert "+  - image: registry.example/web:2" in changed
    assert await kubectl.run("diff", "-f", "-", stdin=POD) == ""


async def test_mistakes_are_explained(kubectl: Kubectl) -> None:
    """Kubectl prints the path of a wrong or unknown field; without strict validation an unknown one is a warning."""
    empty = "apiVersion: v1\nkind: Pod\nmetadata: {name: bad}\nspec: {containers: []}\n"
    assert "spec.containers: Required value" in await kubectl.apply(empty, code=1)
    misspelt = POD.replace("image:", "imagee:")
    assert 'unknown field "spec.containers[0].imagee"' in await kubectl.apply(misspelt, code=1)
    warned = await kubectl.apply(POD.replace("name: c", "name: c\n    imagee: x"), "--validate=warn")
    assert 'Warning: unknown field "spec.containers[0].imagee"' in warned
    assert "no matches for kind" in await kubectl.apply(POD.replace("kind: Pod", "kind: Podd"), code=1)


async def test_each_type_of_patch(kubectl: Kubectl) -> None:
    """Strategic, merge and JSON patches, label and annotate change the object; overwriting has to be meant."""
    await kubectl.apply(POD)
    await kubectl.run("patch", "pod", "web", "-p", '{"metadata":{"labels":{"a":"1"}}}')
    image = '{"spec":{"containers":[{"name":"c","image":"registry.example/web:3"}]}}'
    await kubectl.run("patch", "pod", "web", "--type=strategic", "-p", image)
    await kubectl.run("patch", "pod", "web", "--type=merge", "-p", '{"metadata":{"labels":{"b":"2"}}}')
    patch = '[{"op":"add","path":"/metadata/labels/c","value":"3"}]'
    await kubectl.run("patch", "pod", "web", "--type=json", "-p", patch)
    await kubectl.run("label", "pod", "web", "d=4", "app-")
    assert "--overwrite is false" in await kubectl.run("label", "pod", "web", "d=5", code=1)
    await kubectl.run("annotate", "pods", "--all", "note=x")
    metadata = json.loads(await kubectl.run("get", "pod", "web", "-o", "jsonpath={.metadata}"))
    assert metadata["labels"] == {"a": "1", "b": "2", "c": "3", "d": "4"}
    assert metadata["annotations"]["note"] == "x"
    assert "no change" in await kubectl.run("patch", "pod", "web", "-p", '{"metadata":{"labels":{"a":"1"}}}')
    test = '[{"op":"test","path":"/metadata/labels/c","value":"4"}]'
    assert "is invalid" in await kubectl.run("patch", "pod", "web", "--type=json", "-p", test, code=1)


async def test_edit_sends_what_the_editor_saved(kubectl: Kubectl, tmp_path: Path) -> None:
    """Edit patches the object with the changes made in the editor."""
    await kubectl.apply(CONFIG)
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i "s/v: \\"1\\"/v: edited/" "$1"\n')
    editor.chmod(0o700)
    assert "configmap/c edited" in await kubectl.run("edit", "configmap", "c", KUBE_EDITOR=str(editor))
    assert await kubectl.run("get", "cm", "c", "-o", "jsonpath={.data.v}") == "edited"


async def test_replace_and_create_from_a_file(kubectl: Kubectl) -> None:
    """Create refuses what is there, replace puts another object in its place."""
    assert "created" in await kubectl.run("create", "-f", "-", stdin=CONFIG)
    assert "AlreadyExists" in await kubectl.run("create", "-f", "-", stdin=CONFIG, code=1)
    assert "replaced" in await kubectl.run("replace", "-f", "-", stdin=CONFIG.replace("v: '1'", "w: '2'"))
    assert json.loads(await kubectl.run("get", "cm", "c", "-o", "jsonpath={.data}")) == {"w": "2"}


@pytest.mark.parametrize(
    "command",
    [
        "create namespace team",
        "create configmap c --from-literal=a=b",
        "create secret generic s --from-literal=a=b",
        "create deployment web --image=registry.example/web:1 --replicas=2",
        "create job once --image=registry.example/web:1",
        "create serviceaccount robot",
        "create role reader --verb=get --resource=pods",
        "create clusterrolebinding reads --clusterrole=view --user=somebody",
        "create poddisruptionbudget b --selector=app=web --min-available=1",
        "create quota q --hard=pods=5",
        "create service clusterip web --tcp=80:80",
        "create priorityclass high --value=5",
        "run p --image=registry.example/web:1",
    ],
)
async def test_objects_are_created_from_flags(kubectl: Kubectl, command: str) -> None:
    """What kubectl creates from flags alone, it sends in protobuf: it is created like the rest."""
    assert "created" in await kubectl.run(*command.split())


async def test_deployments_are_scaled_and_set(kubectl: Kubectl) -> None:
    """Scale works through the scale subresource, with a precondition if asked; set changes the template."""
    await kubectl.apply(DEPLOYMENT)
    await kubectl.run("scale", "deployment", "web", "--replicas=3")
    refused = await kubectl.run("scale", "deployment", "web", "--current-replicas=2", "--replicas=5", code=1)
    assert "Expected replicas to be 2, was 3" in refused
    await kubectl.run("set", "image", "deployment/web", "c=registry.example/web:2")
    await kubectl.run("set", "env", "deployment/web", "A=b")
    shown = await kubectl.run("get", "deployment", "web", "-o", "jsonpath={.spec.replicas} {.spec.template.spec}")
    assert shown.startswith("3 ")
    assert "registry.example/web:2" in shown
    assert '{"name":"A","value":"b"}' in shown
