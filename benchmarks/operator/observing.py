"""What an onlooker sees: pods as they are created and released, and what the API server was asked to do meanwhile."""

import asyncio
import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from benchmarks.operator.shape import NAMESPACE, SIZE
from spinney.api.core import POD, Pod
from spinney.api.labels import POD_GANG
from spinney.kube.cache import Change, WatchCache
from spinney.kube.client import Client
from spinney.operator.pod_states import has_gate

_REQUESTS = re.compile(r"^apiserver_request_total\{(?P<labels>[^}]*)\} (?P<count>\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_WRITES = {"POST", "PUT", "PATCH", "APPLY", "DELETE"}
_OURS = {"podcliquesets", "podcliques", "podcliquescalinggroups", "podgangs", "pods", "services", "serviceaccounts"}
_ALSO = {"roles", "rolebindings", "secrets", "horizontalpodautoscalers", "events"}


PATIENCE_SECONDS = 900.0


@dataclass
class Onlooker:
    """Counts pods from a watch, which is resumed if a busy server ends it. Mutable."""

    client: Client
    created: set[str] = field(default_factory=set)
    released: set[str] = field(default_factory=set)
    members: Counter[str] = field(default_factory=Counter)
    """How many pods of each gang were created."""
    early: dict[str, str] = field(default_factory=dict)
    """Pods that lost their gate while their gang was there in part, and how it stood."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def follow(self) -> None:
        """Watch until cancelled."""
        pods = WatchCache(self.client, POD, Pod, runtime=self.client.runtime, namespace=NAMESPACE)
        pods.subscribe(self._see)
        await pods.run()

    def _see(self, change: Change[Pod]) -> None:
        name = change.key.name
        if change.new is None:
            self.created.discard(name)
            self.released.discard(name)
        else:
            gang = change.new.metadata.labels.get(POD_GANG, "")
            self.members[gang] += name not in self.created
            self.created.add(name)
            if not has_gate(change.new) and name not in self.released:
                self.released.add(name)
                if self.members[gang] < SIZE:
                    self.early[name] = f"{gang} had {self.members[gang]} of {SIZE} pods when {name} lost its gate"
        self.changed.set()

    async def times(self, pods: int) -> tuple[float, float]:
        """Return after how many seconds so many pods existed, and had no gate any more."""
        started = time.perf_counter()
        await self._until(lambda: len(self.created) >= pods)
        created = time.perf_counter() - started
        await self._until(lambda: len(self.released) >= pods)
        return created, time.perf_counter() - started

    async def until_gone(self) -> None:
        """Wait until no pod is left."""
        await self._until(lambda: not self.created)

    async def _until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not holds():
                self.changed.clear()
                await self.changed.wait()


async def writes_so_far(client: Client) -> Counter[str]:
    """Return how many writes the API server has answered, by resource, as its metrics count them."""
    response = await client.raw("GET", "/metrics")
    counts: Counter[str] = Counter()
    for found in _REQUESTS.finditer(response.body.decode()):
        labels = dict(_LABEL.findall(found["labels"]))
        if labels["verb"] in _WRITES and labels["resource"] in _OURS | _ALSO:
            name = labels["resource"] + (f"/{labels['subresource']}" if labels["subresource"] else "")
            counts[name] += int(float(found["count"]))
    return counts
