"""Which gangs the objects of a cluster define, for any scheduler.

Objects come in any order and from any watch. Every book of gangs that listens hears of each gang as it appears, changes
and goes. Gangs of a Workload of Kubernetes 1.35 are listed nowhere: a book asks for one when a pod names it
(:meth:`GangDefinitions.derive`), and is told when the Workload changes.
"""

from collections.abc import Callable
from typing import Any, Final, Protocol

from spinney.api import coscheduling, kai, volcano, workload_v1alpha1, workload_v1alpha2, workload_v1beta1
from spinney.api.podgang import PodGang
from spinney.api.scheduling import PriorityClass
from spinney.cluster.surroundings import keep
from spinney.gangs.composites import NativeGroups
from spinney.gangs.declarations import NEVER, with_declarations
from spinney.gangs.sources import coscheduling as coscheduling_source
from spinney.gangs.sources import kai as kai_source
from spinney.gangs.sources import native, podgang
from spinney.gangs.sources import volcano as volcano_source
from spinney.gangs.sources.context import SourceContext
from spinney.gangs.tree import Gang, GangKey
from spinney.kube.keys import Key

_SOURCES: Final[dict[type[Any], tuple[str, Callable[[Any, SourceContext], Gang]]]] = {
    PodGang: (podgang.SOURCE, podgang.gang),
    kai.PodGroup: (kai_source.SOURCE, kai_source.gang),
    coscheduling.PodGroup: (coscheduling_source.SOURCE, coscheduling_source.gang),
    volcano.PodGroup: (volcano_source.SOURCE, volcano_source.gang),
}
"""Kinds of which every object is one gang, with the source of its key."""
_NATIVE: Final = frozenset({workload_v1alpha2.PodGroup, workload_v1beta1.PodGroup})


class GangListener(Protocol):
    """A book of gangs."""

    def put_gang(self, gang: Gang) -> None:
        """Take in a gang that appeared or changed."""

    def remove_gang(self, key: GangKey) -> None:
        """Take out a gang that is gone."""

    def attach(self, part: GangKey, before: GangKey, home: GangKey) -> None:
        """Have pods that name ``part`` belong to the gang ``home`` and no longer to ``before``; each may be itself."""

    def derive_again(self, workload: Key | None) -> None:
        """Ask again for the gangs of a Workload that pods name, or of every Workload."""


class GangDefinitions:
    """The gangs that objects define. Mutable; one writer."""

    KINDS: Final = frozenset(
        {*_SOURCES, *_NATIVE, workload_v1beta1.CompositePodGroup, workload_v1alpha1.Workload, PriorityClass}
    )

    def __init__(self) -> None:
        self.context = SourceContext()
        """What else decides about gangs: the priority classes."""
        self._made_by: dict[GangKey, tuple[object, Callable[[SourceContext], Gang]]] = {}
        self._of_class: dict[str, dict[GangKey, None]] = {}
        """The gangs by the priority class they name, empty if none."""
        self._class_of: dict[GangKey, str] = {}
        self.homes: dict[GangKey, GangKey] = {}
        """Groups that are part of another gang, and of which; not to be written to."""
        self._native = NativeGroups(self)
        self._workloads: dict[Key, workload_v1alpha1.Workload] = {}
        self._priority_classes: dict[str, PriorityClass] = {}
        self._listeners: list[GangListener] = []

    def subscribe(self, listener: GangListener) -> Callable[[], None]:
        """Tell ``listener`` of every gang there is, and of each change until what is returned is called."""
        self._listeners.append(listener)
        for _, make in self._made_by.values():
            listener.put_gang(make(self.context))
        return lambda: self._listeners.remove(listener)

    def put(self, kind: type[Any], key: Key, found: Any) -> None:
        """Take in an object of one of :attr:`KINDS`, ``None`` if it is gone; the same object again changes nothing."""
        if kind in _SOURCES:
            source, make = _SOURCES[kind]
            gang = GangKey(source, *key)
            if found is None:
                self.remove(gang)
            elif self.object_of(gang) is not found:
                self.define(gang, found, lambda context: make(found, context))
        elif kind in _NATIVE:
            self._native.put_group(key, found)
        elif kind is workload_v1beta1.CompositePodGroup:
            self._native.put_composite(key, found)
        elif kind is workload_v1alpha1.Workload:
            if keep(self._workloads, key, found):
                for listener in self._listeners:
                    listener.derive_again(key)
        elif keep(self._priority_classes, key.name, found):
            self._priorities_changed()

    def object_of(self, key: GangKey) -> object | None:
        """Return the object that defines a gang."""
        found = self._made_by.get(key)
        return found[0] if found is not None else None

    def home(self, key: GangKey) -> GangKey:
        """Return the gang that a group is part of; itself if of none."""
        return self.homes.get(key, key)

    def gang(self, key: GangKey) -> Gang | None:
        """Return a gang, if what defines it is there."""
        found = self._made_by.get(key)
        return found[1](self.context) if found is not None else self.derive(key)

    def derive(self, key: GangKey) -> Gang | None:
        """Return the gang that a pod names of a Workload, if the Workload is there and has such a group."""
        if key.source != native.WORKLOAD_SOURCE:
            return None
        workload = self._workloads.get(native.workload_of(key))
        gang = native.workload_gang(workload, key, self.context) if workload is not None else None
        return with_declarations(gang, workload, self.context) if gang is not None else None

    # -- told by pod groups and composites -----------------------------------------------------------------------------

    def define(self, key: GangKey, found: object, make: Callable[[SourceContext], Gang]) -> None:
        """Take in a gang, the object that defines it, and how it is made."""

        def made(context: SourceContext) -> Gang:
            return with_declarations(make(context), found, context)

        self._made_by[key] = found, made
        gang = made(self.context)
        self._leave_class(key)
        self._class_of[key] = gang.priority_class
        self._of_class.setdefault(gang.priority_class, {})[key] = None
        for listener in self._listeners:
            listener.put_gang(gang)

    def remove(self, key: GangKey) -> None:
        """Take out a gang."""
        self._made_by.pop(key, None)
        self._leave_class(key)
        for listener in self._listeners:
            listener.remove_gang(key)

    def attach(self, part: GangKey, home: GangKey) -> None:
        """Have pods that name ``part`` belong to the gang ``home``, which may be itself."""
        before = self.home(part)
        if before == home:
            return
        keep(self.homes, part, home if home != part else None)
        for listener in self._listeners:
            listener.attach(part, before, home)

    def _leave_class(self, key: GangKey) -> None:
        name = self._class_of.pop(key, None)
        if name is not None:
            del self._of_class[name][key]
            if not self._of_class[name]:
                del self._of_class[name]

    def _priorities_changed(self) -> None:
        classes = self._priority_classes.values()
        fallback = [each for each in classes if each.global_default]
        base = SourceContext()
        values = {**base.priorities, **{each.metadata.name: each.value for each in classes}}
        default = fallback[0].value if fallback else base.default_priority
        never = {each.metadata.name for each in classes if each.preemption_policy == NEVER}
        never |= {"" for each in fallback[:1] if each.preemption_policy == NEVER}
        before = self.context
        self.context = SourceContext(priorities=values, default_priority=default, non_preempting=frozenset(never))
        for key in self._concerned(before):
            gang = self._made_by[key][1](self.context)
            for listener in self._listeners:
                listener.put_gang(gang)
        if self.context.fallback != before.fallback:
            for listener in self._listeners:
                listener.derive_again(None)

    def _concerned(self, before: SourceContext) -> list[GangKey]:
        """Return the gangs for which something has changed with the priority classes."""
        after = self.context
        if after.fallback != before.fallback:
            return list(self._made_by)
        known = before.priorities.keys() | after.priorities.keys()
        changed = [each for each in known if before.of_class(each) != after.of_class(each)]
        return [key for name in changed for key in self._of_class.get(name, ())]
