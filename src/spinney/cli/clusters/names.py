"""The names in a cluster or a snapshot, for :mod:`.completing`. Whatever goes wrong means no names."""

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Final

from spinney.api.core import NAMESPACE, NODE, POD
from spinney.api.meta import ObjectMeta
from spinney.api.podgang import POD_GANG
from spinney.api.resource import Resource
from spinney.api.struct import Struct
from spinney.cli.clusters.choosing import ClusterChoice
from spinney.cli.clusters.connecting import opened
from spinney.gangs.source_workloads import workloads
from spinney.kube.client import Client
from spinney.kube.discovery import served
from spinney.kube.errors import KubeError
from spinney.kube.kubeconfig import kubeconfig_paths, read_kubeconfig
from spinney.runtime import Runtime
from spinney.sim.advice.subjects import UnknownSubject, kinds_called, written_out

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


_Naming = Callable[[_Named], Iterable[str]]
"""What is offered for an object: its own name, or those of others that it tells."""


def contexts(kubeconfig: Path | None) -> list[str]:
    try:
        found = read_kubeconfig([kubeconfig] if kubeconfig is not None else kubeconfig_paths())
    except KubeError:
        return []
    return sorted(found.contexts)


def subjects(choice: ClusterChoice, word: str, beginning: str) -> list[str]:
    """Return names, that begin so, of what a word such as ``gang`` means; without one, of everything but pods.

    Workloads, and what owns them, are those that gangs say they were made for.
    """
    named = _own_name
    try:
        kinds = [NODE] if word == "node" else [each for each in kinds_called(word) if word or each != POD]
    except UnknownSubject:
        kinds, named = [POD_GANG], partial(_workloads, word)
    if not word:
        named = _own_name_and_workloads
    if choice.file is not None:
        return _in_file(choice.file, kinds, choice.namespace, named)
    return listed(choice, kinds, beginning, named)


def _own_name(found: _Named) -> Iterable[str]:
    return (found.metadata.name,)


def _workloads(word: str, found: _Named) -> Iterable[str]:
    """Return the names of the workloads of a kind, or of any, that a PodGang was made for."""
    return (each.name for each in workloads(found.metadata) if each.is_called(written_out(word), each.name))


def _own_name_and_workloads(found: _Named) -> Iterable[str]:
    return (*_own_name(found), *_workloads("", found))


def listed(choice: ClusterChoice, kinds: Iterable[Resource], beginning: str, named: _Naming = _own_name) -> list[str]:
    """Return what objects of some kinds are called that begins so, in the chosen namespace where they have one."""
    runtime = Runtime.system()
    found: set[str] = set()

    def wanted(some: Iterable[_Named]) -> set[str]:
        return {name for each in some for name in named(each) if name.startswith(beginning)}

    async def ask() -> None:
        transport, _, namespace = opened(choice, runtime)
        try:
            async with asyncio.timeout(_PATIENCE):
                client = Client(transport, runtime, field_manager="spinney-cli")
                await asyncio.gather(
                    *(_find(client, kind, namespace, wanted, found) for kind in await served(client, kinds))
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


async def _find(
    client: Client, kind: Resource, namespace: str, wanted: Callable[[Iterable[_Named]], set[str]], found: set[str]
) -> None:
    """Add to ``found`` the names of a kind that are wanted, as many as are offered."""
    here = namespace if kind.namespaced else None
    mine: set[str] = set()
    try:
        async for page in client.pages(kind, here, type=_Named, limit=_PAGE):
            mine |= wanted(page.items)
            found |= mine
            if len(mine) >= MOST:
                return
    except KubeError:
        return  # one kind that may not be listed leaves the others


def _in_file(file: Path, kinds: Iterable[Resource], namespace: str | None, named: _Naming) -> list[str]:
    from spinney.sim.snapshots.files import UnreadableSnapshot, read_snapshot  # noqa: PLC0415 - reads with numpy

    try:
        snapshot = read_snapshot(file)
    except UnreadableSnapshot:
        return []
    return sorted(
        {
            name
            for kind in kinds
            for found in snapshot.objects.get(kind, ())
            for name in named(found)
            if namespace in (None, found.metadata.namespace)
        }
    )
