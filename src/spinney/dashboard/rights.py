"""What a viewer may read: every kind in all namespaces, in some, or not at all.

Asked by reading: one object of each kind, with the viewer's own credentials. A namespace in which the viewer may not
list pods is not looked into any further.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from spinney.api.core import EVENT, NAMESPACE, NODE, POD
from spinney.api.resource import Resource
from spinney.kube.client import Client
from spinney.kube.discovery import served
from spinney.kube.errors import Forbidden, InternalError, NotFound
from spinney.runtime.tasks import together
from spinney.sim.snapshots.snapshot import FAILED, FORBIDDEN, KINDS, Unseen

_AT_ONCE: Final = 8
FOLLOWED: Final[tuple[Resource, ...]] = (*KINDS, EVENT)


@dataclass(frozen=True)
class ReadableScope:
    """What may be read. Two scopes are equal if they show the same."""

    everywhere: frozenset[Resource]
    """Kinds that may be listed over the whole cluster."""
    within: Mapping[str, frozenset[Resource]]
    """By namespace, the kinds that may be listed there and not everywhere."""
    refused: frozenset[Resource]
    """Kinds that are served and may be listed nowhere."""
    failing: frozenset[Resource] = frozenset()
    """Kinds that the API server cannot list, such as one whose conversion webhook is away."""

    @property
    def namespaces(self) -> tuple[str, ...] | None:
        """Return the namespaces whose pods are shown; ``None`` for all."""
        if POD in self.everywhere:
            return None
        return tuple(sorted(name for name, kinds in self.within.items() if POD in kinds))

    @property
    def unseen(self) -> tuple[Unseen, ...]:
        """Return what is not shown, and why."""
        partly = {kind for kinds in self.within.values() for kind in kinds}
        reasons = (
            dict.fromkeys(partly, f"{FORBIDDEN} in every namespace")
            | dict.fromkeys(self.refused, FORBIDDEN)
            | dict.fromkeys(self.failing, f"{FAILED}: the API server fails when it is asked")
        )
        return tuple(Unseen(what=str(kind), reason=reasons[kind]) for kind in FOLLOWED if kind in reasons)


async def readable(client: Client, namespaces: Sequence[str] = ()) -> ReadableScope:
    """Return what the client's user may read; ``namespaces`` are tried where not all may be listed.

    Raises ``Unauthorized`` for a user whom the API server does not know.
    """
    known = await served(client, FOLLOWED)
    kinds = [kind for kind in FOLLOWED if kind in known]
    failing: set[Resource] = set()
    everywhere = frozenset(await _allowed(client, kinds, None, failing))
    left = [kind for kind in kinds if kind not in everywhere and kind not in failing]
    scoped = [kind for kind in left if kind.namespaced]
    within: dict[str, frozenset[Resource]] = {}
    if scoped:
        for name in await _candidates(client, namespaces, everywhere):
            if POD not in everywhere and not await _allowed(client, [POD], name, failing):
                continue
            found = frozenset(await _allowed(client, scoped, name, failing))
            if found:
                within[name] = found
    seen = everywhere.union(*within.values())
    refused = frozenset(kinds) - seen - failing
    return ReadableScope(everywhere, within, refused, frozenset(failing))


async def _candidates(client: Client, named: Sequence[str], everywhere: Iterable[Resource]) -> list[str]:
    if NAMESPACE not in everywhere:
        return list(dict.fromkeys(named))
    listed = await client.list(NAMESPACE)
    return sorted({*named, *(item["metadata"]["name"] for item in listed.items)})


async def _allowed(
    client: Client, kinds: Iterable[Resource], namespace: str | None, failing: set[Resource]
) -> list[Resource]:
    """Return which kinds may be listed, and add to ``failing`` those that the API server cannot list."""
    turns = asyncio.Semaphore(_AT_ONCE)

    async def may(kind: Resource) -> bool:
        async with turns:
            try:
                await client.raw("GET", kind.path(namespace), query={"limit": "1"})
            except (Forbidden, NotFound):
                return False
            except InternalError:
                if kind in (NODE, POD):  # there is nothing to show without them
                    raise
                failing.add(kind)
                return False
            return True

    asked = list(kinds)
    answers = await together(*map(may, asked))
    return [kind for kind, allowed in zip(asked, answers, strict=True) if allowed]
