"""A client for tests that block: plain objects in and out, by apiVersion and kind."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml

from spinney.api import yaml_text
from spinney.api.resource import Resource
from spinney.api.struct import JSON
from spinney.kube.client import Client

T = TypeVar("T")

Find = Callable[[str, str], Resource | None]  # by apiVersion and kind
NAMESPACE = "default"


class UnknownKind(LookupError):
    """A kind that the server does not serve."""


class BlockingClient:
    """The verbs of the API; each waits for its answer. Errors are those of :mod:`spinney.kube.errors`.

    Objects of namespaced kinds are in the namespace ``default`` unless they, or the call, name another. Usable from any
    thread but the one of the loop.
    """

    def __init__(self, client: Client, find: Find, loop: asyncio.AbstractEventLoop) -> None:
        self._client = client
        self._find = find
        self._loop = loop

    def get(self, api_version: str, kind: str, name: str, namespace: str = NAMESPACE) -> JSON:
        """Return one object; raises ``NotFound``."""
        resource = self._resource(api_version, kind)
        return self._wait(self._client.get(resource, name, namespace if resource.namespaced else None))

    def list(
        self, api_version: str, kind: str, namespace: str | None = None, *, labels: str | None = None
    ) -> tuple[JSON, ...]:
        """Return the objects of a namespace, or of all; ``labels`` is a selector such as ``app=web``."""
        resource = self._resource(api_version, kind)
        listed = self._wait(self._client.list(resource, namespace, label_selector=labels))
        return tuple(_complete(resource, item) for item in listed.items)

    def create(self, obj: JSON) -> JSON:
        """Create one object and return it as it is stored."""
        resource = self._resource(obj["apiVersion"], obj["kind"])
        return self._wait(self._client.create(resource, obj, _namespace(resource, obj)))

    def apply(self, manifest: JSON | str | Path) -> tuple[JSON, ...]:
        """Apply an object, YAML text with any number of them, or a file (server-side apply); return all as stored."""
        return tuple(self._apply(obj) for obj in _objects(manifest))

    def patch(
        self,
        api_version: str,
        kind: str,
        name: str,
        patch: JSON,
        namespace: str = NAMESPACE,
        *,
        subresource: str | None = None,
    ) -> JSON:
        """Merge a patch into an object, or into a subresource such as ``status``."""
        resource = self._resource(api_version, kind)
        within = namespace if resource.namespaced else None
        return self._wait(self._client.patch(resource, name, patch, within, subresource=subresource))

    def delete(self, api_version: str, kind: str, name: str, namespace: str = NAMESPACE) -> None:
        """Delete one object; finalizers may keep it for a while."""
        resource = self._resource(api_version, kind)
        self._wait(self._client.delete(resource, name, namespace if resource.namespaced else None))

    def wait_for(
        self,
        api_version: str,
        kind: str,
        name: str,
        until: Callable[[JSON], object],
        namespace: str = NAMESPACE,
        *,
        timeout: float = 60.0,
    ) -> JSON:
        """Return an object as soon as it is there and ``until`` is true of it; raises ``TimeoutError`` with the object.

        It is watched, not polled: ``until`` is asked about every state that the object takes.
        """
        resource = self._resource(api_version, kind)
        done = self._followed(resource, name, namespace, timeout, lambda obj: obj is not None and until(obj))
        found = self._wait(done)
        assert found is not None, "until is asked about objects only"
        return found

    def wait_until_gone(
        self, api_version: str, kind: str, name: str, namespace: str = NAMESPACE, *, timeout: float = 60.0
    ) -> None:
        """Return as soon as an object is not there any more; raises ``TimeoutError`` with the object."""
        resource = self._resource(api_version, kind)
        self._wait(self._followed(resource, name, namespace, timeout, lambda obj: obj is None))

    def _resource(self, api_version: str, kind: str) -> Resource:
        found = self._find(api_version, kind)
        if found is None:
            raise UnknownKind(f"{kind} in {api_version} is not served here; apply its CustomResourceDefinition first")
        return found

    def _wait(self, answer: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(answer, self._loop).result()

    def _apply(self, obj: JSON) -> JSON:
        resource = self._resource(obj["apiVersion"], obj["kind"])
        return self._wait(self._client.apply(resource, obj, _namespace(resource, obj)))

    async def _followed(
        self, resource: Resource, name: str, namespace: str, timeout: float, done: Callable[[JSON | None], object]
    ) -> JSON | None:
        """Return the object, or ``None`` while there is none, as soon as that is what was waited for."""
        within, chosen = namespace if resource.namespaced else None, f"metadata.name={name}"
        seen: JSON | None = None
        try:
            async with asyncio.timeout(timeout):
                while True:  # the server ends a watch after a while
                    listed = await self._client.list(resource, within, field_selector=chosen)
                    seen = _complete(resource, listed.items[0]) if listed.items else None
                    if done(seen):
                        return seen
                    async for event in self._client.watch(
                        resource, within, field_selector=chosen, resource_version=listed.resource_version
                    ):
                        seen = None if event.type == "DELETED" else event.object
                        if done(seen):
                            return seen
        except TimeoutError as error:
            found = f"is:\n{yaml.safe_dump(seen, sort_keys=False)}" if seen else "is not there"
            raise TimeoutError(f"waited {timeout:g} seconds for {resource.kind} {name}, which {found}") from error


def _complete(resource: Resource, item: JSON) -> JSON:
    """Return an item of a list with what it is: lists of built-in kinds do not say it in each item."""
    return {"apiVersion": resource.api_version, "kind": resource.kind, **item}


def _namespace(resource: Resource, obj: JSON) -> str | None:
    return (obj["metadata"].get("namespace") or NAMESPACE) if resource.namespaced else None


def _objects(manifest: JSON | str | Path) -> list[JSON]:
    if isinstance(manifest, Mapping):
        return [manifest]
    text = manifest.read_text(encoding="utf-8") if isinstance(manifest, Path) else manifest
    return [each for each in yaml_text.load_all(text) if each]
