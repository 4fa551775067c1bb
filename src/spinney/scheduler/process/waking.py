"""Which changes in the cluster can change a scheduling decision: only those are worth a cycle.

A pod that starts to run, becomes ready or gets another condition changes nothing; a pod that appears, loses its last
gate, is deleted or ends does, and so does one that another scheduler binds, or that was asked to go and answers; that
our own bind arrived changes nothing. A pod that waits may be told later what decides where it goes: labels and
annotations name its group and how it shares devices, its status the claims made for it. A pod that is resized where it
runs gives or takes room. That a pod leaves its node helps those who wait; where nobody does, a cycle for it can wait,
too. So can one for a pod whose gang has too few pods to start all the same: it can only count them anew.
A node's heartbeat changes nothing; its labels, taints, capacity or readiness do. Of other objects generation, labels
and annotations tell (a label names the queue of a gang), or, where no generation is read (claims, volumes), whether
anything a scheduler reads differs.
"""

import asyncio
from typing import Any, Final

import msgspec
import numpy as np

from spinney.api.core import Node, Pod
from spinney.api.labels import EVICTION_REQUEST, KAI_LAST_EVICTION, KAI_LAST_START
from spinney.api.meta import Metadata, ObjectMeta
from spinney.api.policy import PodDisruptionBudget
from spinney.cluster.pods import PodRecord
from spinney.cluster.statuses import PodStatus
from spinney.gangs.checkpoints import ANSWERS
from spinney.kube.cache import Change

_WRITTEN_HERE: Final = frozenset({KAI_LAST_START, KAI_LAST_EVICTION})
"""Annotations by which schedulers themselves tell what became of a gang."""


class Alarm:
    """Wakes the next cycle: at once, or a moment later where nobody is in a hurry. Mutable."""

    def __init__(self) -> None:
        self._rings = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._patient_timer: asyncio.TimerHandle | None = None

    @property
    def ringing(self) -> bool:
        """Tell whether the next cycle is woken already."""
        return self._rings.is_set()

    def set(self) -> None:
        """Wake it at once."""
        self._rings.set()

    def set_within(self, seconds: float) -> None:
        """Wake it so many seconds after the first who asks for that."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(seconds, self.set)

    def set_patiently(self, seconds: float) -> None:
        """Wake it within so many seconds, whoever else may be in a hurry: as soon as the least patient asks for."""
        loop = asyncio.get_running_loop()
        if self._patient_timer is not None:
            if self._patient_timer.when() <= loop.time() + seconds:
                return
            self._patient_timer.cancel()
        self._patient_timer = loop.call_later(seconds, self.set)

    def hurry(self) -> None:
        """Wake it at once if it was going to be woken and can be of help."""
        if self._timer is not None:
            self.set()

    def clear(self) -> None:
        """Forget who has asked: a cycle begins."""
        self._rings.clear()
        for timer in filter(None, (self._timer, self._patient_timer)):
            timer.cancel()
        self._timer = self._patient_timer = None

    async def wait(self) -> None:
        """Wait until it is time."""
        await self._rings.wait()


def confirms(record: PodRecord | None, pod: Pod | None) -> bool:
    """Tell whether ``pod`` only says what was assumed of it: that it is on the node it was being bound to."""
    return (
        record is not None
        and pod is not None
        and record.status is PodStatus.BINDING
        and record.node == pod.spec.node_name
        and record.uid == pod.metadata.uid
        and pod.metadata.deletion_timestamp is None
        and not pod.terminal
    )


def asks_for_another_amount(before: PodRecord | None, after: PodRecord | None) -> bool:
    """Tell whether what a pod asks for has changed: how its containers report the same does not count."""
    if before is None or after is None or before.request is after.request:
        return False
    old, new = before.request, after.request
    width = max(len(old.requests), len(new.requests))
    return old.share != new.share or not np.array_equal(old.vector(width), new.vector(width))


def only_gives_room(change: Change[Pod]) -> bool:
    """Tell whether a pod leaves its node, or has left it, and that is all."""
    old, new = change.old, change.new
    if old is None or not old.spec.node_name:
        return False
    return new is None or new.terminal or new.metadata.deletion_timestamp is not None


def may_change_decisions(change: Change[Any]) -> bool:
    """Tell whether ``change`` is worth a scheduling cycle."""
    old, new = change.old, change.new
    if isinstance(new, Pod) and isinstance(old, Pod):
        return _aspects_of_pod(old) != _aspects_of_pod(new)
    if isinstance(new, Node) and isinstance(old, Node):
        return _aspects_of_node(old) != _aspects_of_node(new)
    if isinstance(new, Pod):
        return not new.terminal
    if old is None or new is None:
        return True
    if isinstance(old, PodDisruptionBudget) and isinstance(new, PodDisruptionBudget):
        return (old.spec, old.status.disruptions_allowed) != (new.spec, new.status.disruptions_allowed)
    if isinstance(old.metadata, ObjectMeta) and old.metadata.generation is not None:
        return _aspects_of_metadata(old.metadata) != _aspects_of_metadata(new.metadata)
    return bool(_content(old) != _content(new))


def _content(found: Any) -> Any:
    """Return a projected object without what changes at every write: what is left is what schedulers read."""
    replace = msgspec.structs.replace
    return replace(found, metadata=replace(found.metadata, resource_version=None))


def _aspects_of_metadata(metadata: ObjectMeta) -> tuple[Any, ...]:
    """Return what tells whether a spec, or a label or an annotation that says more about it, has changed."""
    return (metadata.generation, *_marks(metadata))


def _marks(metadata: Metadata) -> tuple[Any, ...]:
    """Return labels, and annotations but for those that schedulers write."""
    return (metadata.labels, {key: text for key, text in metadata.annotations.items() if key not in _WRITTEN_HERE})


def _aspects_of_pod(pod: Pod) -> tuple[Any, ...]:
    """Return what decides whether the pod wants a place, and where: once it has one, only whether it keeps it."""
    leaving = pod.metadata.deletion_timestamp is not None
    if pod.spec.node_name:
        return (pod.metadata.uid, pod.spec.node_name, leaving, pod.terminal, *_answer(pod))
    claims = pod.status.resource_claim_statuses
    return (pod.metadata.uid, "", leaving, pod.terminal, pod.gated, *_marks(pod.metadata), pod.spec.tolerations, claims)


def _answer(pod: Pod) -> tuple[str | None, ...]:
    """Return what a pod that was asked to go has answered."""
    annotations = pod.metadata.annotations
    if EVICTION_REQUEST not in annotations:
        return ()
    return tuple(annotations.get(key) for key in ANSWERS)


def _aspects_of_node(node: Node) -> tuple[Any, ...]:
    conditions = [(condition.type, condition.status) for condition in node.status.conditions]
    return (node.metadata.uid, node.metadata.labels, node.spec, node.status.allocatable, conditions)
