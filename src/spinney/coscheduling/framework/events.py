"""What happened in the cluster, as far as it may make a rejected pod schedulable.

A plugin that rejects pods registers which events could change its mind, each with a hint that looks at the pod and the
event. A pod waits untouched until an event arrives that one of the plugins that rejected it registered and whose hint
agrees.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Flag, auto
from typing import Any

from msgspec.structs import replace

from spinney.api.core import POD, Pod
from spinney.api.resource import Resource


class Action(Flag):
    """What happened to an object."""

    ADD = auto()
    UPDATE = auto()
    DELETE = auto()
    ANY = ADD | UPDATE | DELETE


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """Something happened to an object: ``old`` is absent for an addition, ``new`` for a deletion."""

    resource: Resource
    action: Action
    old: Any = None
    new: Any = None


def room_freed(pod: Pod, node: str) -> ClusterEvent:
    """Return the event that ``pod``, which held room on ``node`` or was promised it, does so no longer."""
    return ClusterEvent(POD, Action.DELETE, old=replace(pod, spec=replace(pod.spec, node_name=node)))


def was_resized(pod: Pod, event: ClusterEvent) -> bool:
    """Tell, as a hint, whether a pod on a node now asks for something else: it may ask for less."""
    if event.old is None or event.new is None or not event.new.spec.node_name:
        return False
    return bool(claimed(event.old) != claimed(event.new))


def claimed(pod: Pod) -> tuple[Any, ...]:
    """Return what decides about how much a pod takes from its node; what was granted counts until it is given back."""
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    granted = tuple((each.name, each.allocated_resources, each.resources) for each in statuses)
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    return pod.spec.resources, tuple(each.resources for each in containers), granted, pod.status.resize


Hint = Callable[[Pod, ClusterEvent], bool]
"""Tells whether an event may make a pod schedulable that this plugin rejected."""


@dataclass(frozen=True, slots=True)
class EventHint:
    """An event a plugin wants its rejected pods woken by; without a hint every such event wakes them."""

    resource: Resource
    actions: Action
    hint: Hint | None = None

    def concerns(self, event: ClusterEvent) -> bool:
        """Tell whether ``event`` is of the registered kind."""
        return event.resource == self.resource and bool(event.action & self.actions)

    def wakes(self, pod: Pod, event: ClusterEvent) -> bool:
        """Tell whether ``event``, which is of the registered kind, is reason enough to try ``pod`` again."""
        return self.hint is None or self.hint(pod, event)
