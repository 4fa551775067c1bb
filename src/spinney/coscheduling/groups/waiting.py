"""Pods that have a node and wait for permission to be bound to it.

A waiting pod holds its node in the ledger. It leaves when every Permit plugin that asked it to wait has allowed it,
when any rejects it, or when the shortest of their times runs out, which counts as a rejection by the plugin whose time
it was. The plugin that made it wait gets the verdict at once, inside the call that settled it: when a group is
rejected, what it held is free before the next pod is looked at.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final

from spinney.coscheduling.framework import SUCCESS, Code, CycleState, QueuedPod, StateKey, Status
from spinney.coscheduling.groups.group import Group
from spinney.kube.keys import Key

TIMED_OUT: Final[StateKey[str]] = StateKey("why its time at Permit is up")
"""Left for the plugins that are told that a pod lost its node."""
Settled = Callable[["WaitingPod", Status], None]
"""Called with the verdict on a waiting pod."""


class WaitingPod:
    """One pod that waits at Permit. Mutable; its outcome is settled once."""

    def __init__(
        self, queued: QueuedPod, node: str, state: CycleState, timeouts: Mapping[str, float], settled: Settled
    ) -> None:
        self.key = queued.key
        self.node = node
        self.state = state
        self._pending = dict(timeouts)
        self._settled: Settled | None = settled
        self._abandoned: Settled | None = None
        self._plugin, self._seconds = min(timeouts.items(), key=lambda item: (item[1], item[0]))
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._time_out)

    @property
    def awaited(self) -> Collection[str]:
        """The plugins that hold the pod."""
        return self._pending.keys()

    def allow(self, plugin: str) -> None:
        """Note that ``plugin`` no longer holds the pod; the last one to do so lets it go."""
        self._pending.pop(plugin, None)
        if not self._pending:
            self._settle(SUCCESS)

    def reject(self, plugin: str, reason: str) -> None:
        """Send the pod back; later answers do not count."""
        self._settle(Status(Code.UNSCHEDULABLE, (reason,), plugin))

    def extend(self, seconds: float) -> None:
        """Have the time run out so much later."""
        when, self._seconds = self._timer.when() + seconds, self._seconds + seconds
        self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(when, self._time_out)

    def abandon(self) -> None:
        """Stop waiting without a verdict: the scheduler ends or stands by, and nobody is told."""
        self._timer.cancel()
        self._abandoned, self._settled = self._settled, None

    def send_back(self, reason: str) -> None:
        """Have a pod that was abandoned give up its node: the scheduler goes on."""
        self._settled = self._abandoned
        self.reject(self._plugin, reason)

    def _time_out(self) -> None:
        reason = f"waited {self._seconds:g}s for permission to bind and did not get it"
        self.state.write(TIMED_OUT, reason)
        self.reject(self._plugin, reason)

    def _settle(self, status: Status) -> None:
        settled, self._settled = self._settled, None
        if settled is not None:
            self._timer.cancel()
            settled(self, status)


class WaitingPods:
    """The pods that wait at Permit, by key. Mutable."""

    def __init__(self) -> None:
        self._pods: dict[Key, WaitingPod] = {}
        self.began: Callable[[WaitingPod], None] = lambda _: None
        """Told of each pod that begins to wait."""

    def add(self, pod: WaitingPod) -> None:
        self._pods[pod.key] = pod
        self.began(pod)

    def remove(self, key: Key) -> None:
        """Forget a pod whose outcome is settled."""
        self._pods.pop(key, None)

    def send_back(self, group: Group, keys: Collection[Key], plugin: str, reason: str) -> None:
        """Have members of a group give up their nodes without the group being rejected: it goes on elsewhere."""
        waiting, group.waiting = group.waiting, {}
        for key in keys:
            held = self._pods.get(key) if key in waiting else None
            if held is not None:
                held.reject(plugin, reason)
        group.waiting = {key: None for key in waiting if key not in keys}

    def get(self, key: Key) -> WaitingPod | None:
        return self._pods.get(key)

    def __iter__(self) -> Iterator[WaitingPod]:
        return iter(list(self._pods.values()))

    def __len__(self) -> int:
        return len(self._pods)


class JointBind:
    """Members that leave Permit together, some of which need volumes or devices first: who is still awaited.

    None is bound before all are ready. If one fails, none is. Mutable; its verdict is settled once.
    """

    def __init__(self, members: Iterable[Key]) -> None:
        self._awaited = set(members)
        self._verdict: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def ready(self, member: Key) -> None:
        """Note that a member has what it needs; the last one lets all go."""
        self._awaited.discard(member)
        if not self._awaited:
            self._settle("")

    def fail(self, reason: str) -> None:
        """Note that a member will not go; no other one will, unless all were let go before."""
        self._settle(reason)

    async def verdict(self) -> str:
        """Wait for all members; return why they may not go, or the empty string."""
        return await asyncio.shield(self._verdict)

    def _settle(self, verdict: str) -> None:
        if not self._verdict.done():
            self._verdict.set_result(verdict)
