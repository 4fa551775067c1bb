"""The names in a cluster or a snapshot, for :mod:`.completing`. Whatever goes wrong means no names."""

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from spinney.api.core import NAMESPACE, NODE, POD
from spinney.api.meta import ObjectMeta
from spinney.api.resource import Resource
from spinney.api.struct import Struct
from spinney.cli.clusters.choosing import ClusterChoice
from spinney.cli.clusters.connecting import opened
from spinney.kube.client import Client
from spinney.kube.discovery import served
from spinney.kube.errors import KubeError
from spinney.kube.kubeconfig import kubeconfig_paths, read_kubeconfig
from spinney.runtime import Runtime
from spinney.sim.advice.subjects import UnknownSubject, kinds_called

NAMESPACES: Final = (NAMESPACE,)
_PATIENCE: Final = 3.0
"""Seconds after which nothing is offered."""
_PAGE: Final = 200
"""Objects of a kind that are asked for; more would not be offered anyway."""


class _Named(Struct, frozen=True, kw_only=True):
    """As much of any object as completion needs."""

    metadata: ObjectMeta


def contexts(kubeconfig: Path | None) -> list[str]:
    try:
        found = read_kubeconfig([kubeconfig] if kubeconfig is not None else kubeconfig_paths())
    except KubeError:
        return []
    return sorted(found.contexts)


def subjects(choice: ClusterChoice, word: str) -> list[str]:
    """Return the names of what a word such as ``gang`` means; without one, of everything but pods."""
    try:
        kinds = [NODE] if word == "node" else [each for each in kinds_called(word) if word or each != POD]
    except UnknownSubject:
        return []
    return _in_file(choice.file, kinds, choice.namespace) if choice.file is not None else listed(choice, kinds)


def listed(choice: ClusterChoice, kinds: Iterable[Resource]) -> list[str]:
    """Return the names of all objects of some kinds, in the chosen namespace where they have one."""
    runtime = Runtime.system()

    async def ask() -> list[str]:
        transport, _, namespace = opened(choice, runtime)
        try:
            async with asyncio.timeout(_PATIENCE):
                return await _names(Client(transport, runtime, field_manager="spinney-cli"), kinds, namespace)
        finally:
            await transport.close()

    try:
        return asyncio.run(ask())
    except (KubeError, TimeoutError):
        return []
    finally:
        runtime.executor.close()


async def _names(client: Client, kinds: Iterable[Resource], namespace: str) -> list[str]:
    async def of(kind: Resource) -> list[str]:
        here = namespace if kind.namespaced else None
        try:
            async for page in client.pages(kind, here, type=_Named, limit=_PAGE):
                return [each.metadata.name for each in page.items]
        except KubeError:
            return []  # one kind that may not be listed leaves the others
        return []

    found = await asyncio.gather(*(of(kind) for kind in await served(client, kinds)))
    return sorted({name for names in found for name in names})


def _in_file(file: Path, kinds: Iterable[Resource], namespace: str | None) -> list[str]:
    from spinney.sim.snapshots.files import UnreadableSnapshot, read_snapshot  # noqa: PLC0415 - reads with numpy

    try:
        snapshot = read_snapshot(file)
    except UnreadableSnapshot:
        return []
    return sorted(
        {
            found.metadata.name
            for kind in kinds
            for found in snapshot.objects.get(kind, ())
            if namespace in (None, found.metadata.namespace)
        }
    )
