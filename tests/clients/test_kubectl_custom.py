"""kubectl on kinds that a definition adds."""

import pytest
import yaml

from tests.clients.kubectl import Kubectl
from tests.clients.manifests import WIDGET
from tests.server.api import a_definition

pytestmark = pytest.mark.real


async def _a_defined_kind(kubectl: Kubectl) -> None:
    sizes = {"type": "integer", "description": "How large the widget is.", "default": 1}
    schema = {"type": "object", "description": "What is wanted.", "properties": {"size": sizes}}
    columns = [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]
    definition = a_definition(schema, additionalPrinterColumns=columns)
    definition |= {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    subresources = definition["spec"]["versions"][0]["subresources"]
    subresources["scale"] = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}
    await kubectl.apply(yaml.safe_dump(definition))
    await kubectl.run("wait", "--for=condition=Established", "crd/widgets.example.com", "--timeout=40s")


async def test_a_custom_kind_from_definition_to_deletion(kubectl: Kubectl) -> None:
    """A definition is applied, its kind is served under its short name, strict fields are enforced, all goes again."""
    await _a_defined_kind(kubectl)
    assert "widget.example.com/w created" in await kubectl.apply(WIDGET)
    assert (await kubectl.run("get", "wd")).split() == ["NAME", "SIZE", "w", "3"]
    assert ["Size:", "3"] in await kubectl.lines("describe", "widget", "w")
    wrong = await kubectl.apply(WIDGET.replace("size: 3", "size: 3, sise: 4"), code=1)
    assert 'unknown field "spec.sise"' in wrong
    assert "must be of type integer" in await kubectl.apply(WIDGET.replace("size: 3", "size: x"), code=1)
    await kubectl.run("patch", "widget", "w", "--type=merge", "-p", '{"spec":{"size":5}}')
    assert await kubectl.run("get", "widget", "w", "-o", "jsonpath={.spec.size}") == "5"
    await kubectl.run("delete", "crd", "widgets.example.com", "--timeout=40s")
    assert "could not find" in await kubectl.run("get", "widgets", code=1)


async def test_a_custom_kind_is_explained_and_scaled(kubectl: Kubectl) -> None:
    """Explain shows the schema's descriptions, scale uses the paths of the definition, apply works on the server."""
    await _a_defined_kind(kubectl)
    assert "How large the widget is." in await kubectl.run("explain", "widget.spec.size")
    assert "    size\t<integer>" in await kubectl.run("explain", "widgets", "--recursive")
    await kubectl.apply(WIDGET, "--server-side")
    await kubectl.run("scale", "widget", "w", "--replicas=7")
    assert await kubectl.run("get", "widget", "w", "-o", "jsonpath={.spec.size}") == "7"
    assert "conflict" in await kubectl.apply(WIDGET, "--server-side", code=1)
    assert "+  size: 4" in await kubectl.run("diff", "-f", "-", stdin=WIDGET.replace("3", "4"), code=1)
