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
"""Seconds after which what was found by then is offered."""
_PAGE: Final = 500
"""Objects of a kind that are asked for at a time."""
MOST: Final = 200
"""Names that are offered at most."""


class _Named(Struct, frozen=True, kw_only=True):
    """As much of any object as completion needs."""

    metadata: ObjectMeta


def contexts(kubeconfig: Path | None) -> list[str]:
    try:
        found = read_kubeconfig([kubeconfig] if kubeconfig is not None else kubeconfig_paths())
    except KubeError:
        return []
    return sorted(found.contexts)


def subjects(choice: ClusterChoice, word: str, beginning: str) -> list[str]:
    """Return names, that begin so, of what a word such as ``gang`` means; without one, of everything but pods."""
    try:
        kinds = [NODE] if word == "node" else [each for each in kinds_called(word) if word or each != POD]
    except UnknownSubject:
        return []
    if choice.file is not None:
        return _in_file(choice.file, kinds, choice.namespace)
    return listed(choice, kinds, beginning)


def listed(choice: ClusterChoice, kinds: Iterable[Resource], beginning: str) -> list[str]:
    """Return names of objects of some kinds that begin so, in the chosen namespace where they have one."""
    runtime = Runtime.system()
    found: set[str] = set()

    async def ask() -> None:
        transport, _, namespace = opened(choice, runtime)
        try:
            async with asyncio.timeout(_PATIENCE):
                client = Client(transport, runtime, field_manager="spinney-cli")
                await asyncio.gather(
                    *(_find(client, kind, namespace, beginning, found) for kind in await served(client, kinds))
                )
        finally:
            await transport.close()

    try:
        asyncio.run(ask())
    except (KubeError, TimeoutError):
        return sorted(found)
    finally:
        runtime.executor.close()
    return sorted(found)


async def _find(client: Client, kind: Resource, namespace: str, beginning: str, found: set[str]) -> None:
    """Add to ``found`` the names of a kind that begin so, as many as are offered."""
    here = namespace if kind.namespaced else None
    mine: set[str] = set()
    try:
        async for page in client.pages(kind, here, type=_Named, limit=_PAGE):
            mine |= {each.metadata.name for each in page.items if each.metadata.name.startswith(beginning)}
            found |= mine
            if len(mine) >= MOST:
                return
    except KubeError:
        return  # one kind that may not be listed leaves the others


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
