# mypy: disable-error-code="no-untyped-call"
"""The official Python client's dynamic client: discovery, objects, subresources, patches, apply, watches, CRDs.

The client blocks, so each test runs in a thread beside the server's loop.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spinney.server import HttpServer
from tests.server.api import a_definition, a_pod

pytestmark = pytest.mark.real
kubernetes = pytest.importorskip("kubernetes", reason="the official client is not installed: `make test-real` does")

Story = Callable[[Any], None]


async def _tell(http: HttpServer, directory: Path, story: Story) -> None:
    """Run ``story`` with a dynamic client that knows nothing but a kubeconfig."""
    from kubernetes import config, dynamic  # noqa: PLC0415 - it may not be there

    path = directory / "config"
    http.write_kubeconfig(path)

    def tell() -> None:
        with config.new_client_from_config(str(path)) as client:
            story(dynamic.DynamicClient(client))

    await asyncio.to_thread(tell)


async def test_objects_are_discovered_and_live(http: HttpServer, tmp_path: Path) -> None:
    """A kind is found by name; its objects are created, read, selected, replaced, patched and deleted."""

    def story(client: Any) -> None:
        pods = client.resources.get(api_version="v1", kind="Pod")
        assert (pods.namespaced, pods.singular_name, "po" in pods.short_names) == (True, "pod", True)
        made = pods.create(body=a_pod(labels={"app": "web"}), namespace="default")
        assert made.spec.schedulerName == "default-scheduler"
        assert pods.get(name="p", namespace="default").metadata.uid == made.metadata.uid
        assert [pod.metadata.name for pod in pods.get(label_selector="app=web").items] == ["p"]
        assert pods.get(field_selector="spec.nodeName=n").items == []
        changed = made.to_dict()
        changed["metadata"]["labels"]["app"] = "api"
        assert pods.replace(body=changed, namespace="default").metadata.labels.app == "api"
        with pytest.raises(kubernetes.dynamic.exceptions.ConflictError):
            pods.replace(body=changed, namespace="default")
        for content_type, patch in (
            ("application/merge-patch+json", {"metadata": {"labels": {"a": "1"}}}),
            ("application/strategic-merge-patch+json", {"metadata": {"labels": {"b": "2"}}}),
            ("application/json-patch+json", [{"op": "add", "path": "/metadata/labels/c", "value": "3"}]),
        ):
            patched = pods.patch(name="p", namespace="default", body=patch, content_type=content_type)
        assert patched.metadata.labels.to_dict() == {"app": "api", "a": "1", "b": "2", "c": "3"}
        pods.delete(name="p", namespace="default", body={"gracePeriodSeconds": 0})
        with pytest.raises(kubernetes.dynamic.exceptions.NotFoundError):
            pods.get(name="p", namespace="default")

    await _tell(http, tmp_path, story)


async def test_subresources_are_their_own(http: HttpServer, tmp_path: Path) -> None:
    """Status, binding, scale and eviction are written through their subresources."""

    def story(client: Any) -> None:
        pods = client.resources.get(api_version="v1", kind="Pod")
        pods.create(body=a_pod(), namespace="default")
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}}
        pods.binding.create(body=binding | {"target": {"kind": "Node", "name": "n"}}, name="p", namespace="default")
        status = {"status": {"phase": "Running"}}
        merge = "application/merge-patch+json"
        assert pods.status.patch(name="p", namespace="default", body=status, content_type=merge).spec.nodeName == "n"
        deployments = client.resources.get(api_version="apps/v1", kind="Deployment")
        template = {"metadata": {"labels": {"a": "b"}}, "spec": a_pod()["spec"]}
        spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
        deployments.create(body={"metadata": {"name": "d"}, "spec": spec}, namespace="default")
        size = {"spec": {"replicas": 4}}
        scaled = deployments.scale.patch(name="d", namespace="default", body=size, content_type=merge)
        assert (scaled.kind, scaled.spec.replicas) == ("Scale", 4)
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
        pods.eviction.create(body=eviction, name="p", namespace="default")

    await _tell(http, tmp_path, story)


async def test_objects_are_applied_on_the_server(http: HttpServer, tmp_path: Path) -> None:
    """Server-side apply creates and owns fields; another manager conflicts, and may force."""

    def story(client: Any) -> None:
        maps = client.resources.get(api_version="v1", kind="ConfigMap")

        def apply(value: str, manager: str, **options: Any) -> Any:
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"v": value}}
            return maps.server_side_apply(body=body, namespace="default", field_manager=manager, **options)

        assert apply("1", "one").data.v == "1"
        with pytest.raises(kubernetes.dynamic.exceptions.ConflictError):
            apply("2", "two")
        owners = apply("2", "two", force_conflicts=True).metadata.managedFields
        assert [owner.manager for owner in owners] == ["two"]

    await _tell(http, tmp_path, story)


async def test_changes_are_watched(http: HttpServer, tmp_path: Path) -> None:
    """A watch begins with what is there, brings every change, and goes on from a revision."""

    def story(client: Any) -> None:
        maps = client.resources.get(api_version="v1", kind="ConfigMap")
        made = maps.create(body={"metadata": {"name": "c"}}, namespace="default")
        seen = []
        for event in maps.watch(namespace="default", name="c", timeout=60):
            seen.append(event["type"])
            if event["type"] == "ADDED":
                maps.patch(name="c", namespace="default", body={"data": {"v": "1"}}, content_type=_MERGE)
            elif event["type"] == "MODIFIED":
                maps.delete(name="c", namespace="default")
            else:
                break
        assert seen == ["ADDED", "MODIFIED", "DELETED"]
        since = maps.watch(namespace="default", resource_version=made.metadata.resourceVersion, timeout=60)
        assert next(iter(since))["type"] == "MODIFIED"

    await _tell(http, tmp_path, story)


async def test_custom_kinds_are_found_when_they_come(http: HttpServer, tmp_path: Path) -> None:
    """A kind defined after the client was made is discovered, and wrong objects of it are refused by field."""

    def story(client: Any) -> None:
        definitions = client.resources.get(api_version="apiextensions.k8s.io/v1", kind="CustomResourceDefinition")
        schema = {"type": "object", "properties": {"size": {"type": "integer", "minimum": 1}}}
        definitions.create(body=a_definition(schema))
        widgets = client.resources.get(api_version="example.com/v1", kind="Widget")
        body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 1}}
        assert widgets.create(body=body, namespace="default").spec.size == 1
        with pytest.raises(kubernetes.dynamic.exceptions.UnprocessibleEntityError, match=r"spec\.size"):
            widgets.patch(name="w", namespace="default", body={"spec": {"size": 0}}, content_type=_MERGE)
        status = {"status": {"ready": True}}
        assert widgets.status.patch(name="w", namespace="default", body=status, content_type=_MERGE).status.ready
        assert widgets.delete(namespace="default", label_selector="a!=b").kind == "WidgetList"

    await _tell(http, tmp_path, story)


_MERGE = "application/merge-patch+json"
