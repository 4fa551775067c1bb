"""Kubernetes' pod groups and what they are parts of: composites of 1.37, whose groups are placed together.

A PodGroup without a parent is a gang of its own. One with a parent is a part of the gang of the composite at the root
of its tree: its pods count in a pod set of its own there. Objects come in any order; while a composite is missing, the
pods of all groups below it wait for it.

Topology keys stay where they are in the tree: what is below lies in one domain. Where composites are
inside each other too deep to be walked, the pods wait and are told so.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from spinney.api import workload_v1alpha2, workload_v1beta1
from spinney.gangs.sources import native
from spinney.gangs.sources.context import SourceContext
from spinney.gangs.tree import DEEPEST, Gang, GangKey, GroupSet, Member, PodSet
from spinney.kube.keys import Key

if TYPE_CHECKING:
    from spinney.gangs.definitions import GangDefinitions

SOURCE: Final = "composite"

NativeGroup = workload_v1alpha2.PodGroup | workload_v1beta1.PodGroup
Composite = workload_v1beta1.CompositePodGroup


class NativeGroups:
    """The pod groups and composites there are. Mutable; fed by watch events."""

    def __init__(self, groups: "GangDefinitions") -> None:
        self._groups = groups
        self._leaves: dict[Key, NativeGroup] = {}
        self._composites: dict[Key, Composite] = {}
        self._below: dict[Key, _Below] = {}
        """What names a composite as its parent."""

    def put_group(self, key: Key, group: NativeGroup | None) -> None:
        """Take in a PodGroup, ``None`` if it is gone."""
        before = self._leaves.get(key)
        if group is not None and before is group:
            return
        parent = _parent(group) if group is not None else ""
        if group is not None and before is not None and parent and before.spec == group.spec:
            self._leaves[key] = group  # all that its composite is told of it
            return
        self._leaves.pop(key, None)
        if before is not None and _parent(before) != parent:
            self._leave(key, _parent(before), is_composite=False)
            self._groups.attach(GangKey(native.SOURCE, *key), GangKey(native.SOURCE, *key))
        if group is None:
            self._groups.remove(GangKey(native.SOURCE, *key))
            return
        self._leaves[key] = group
        if parent:
            above = Key(key.namespace, parent)
            self._attach((key,), above)
            if self._below_of(above).put((False, key), _pod_set(key, group), 0):
                self._renew(above)
            self._groups.remove(GangKey(native.SOURCE, *key))  # it is no gang of its own
        else:
            self._groups.define(GangKey(native.SOURCE, *key), group, lambda context: native.gang(group, context))

    def put_composite(self, key: Key, composite: Composite | None) -> None:
        """Take in a composite, ``None`` if it is gone."""
        if composite is not None and self._composites.get(key) is composite:
            return
        before = self._composites.pop(key, None)
        if before is not None and (composite is None or _parent(before) != _parent(composite)):
            self._leave(key, _parent(before), is_composite=True)
        if composite is not None:
            self._composites[key] = composite
        if before is None or composite is None or _parent(before) != _parent(composite):
            self._attach(self._leaves_below(key), key)
        if composite is None or _parent(composite):
            self._groups.remove(GangKey(SOURCE, *key))  # it is gone, or not at the root
        self._renew(key)

    def _leave(self, child: Key, parent: str, *, is_composite: bool) -> None:
        above = Key(child.namespace, parent)
        siblings = self._below.get(above)
        if siblings is None:
            return
        siblings.remove((is_composite, child))
        if not siblings.keys:
            del self._below[above]
        self._renew(above)

    def _below_of(self, composite: Key) -> "_Below":
        return self._below.setdefault(composite, _Below())

    def _root(self, composite: Key) -> Key:
        """Return the composite at the root, or the first missing one on the way there."""
        seen = {composite}
        while (found := self._composites.get(composite)) is not None and _parent(found):
            composite = Key(composite.namespace, _parent(found))
            if composite in seen:
                break
            seen.add(composite)
        return composite

    def _attach(self, leaves: Iterable[Key], composite: Key) -> None:
        """Have groups below a composite belong to the gang at its root."""
        home: GangKey | None = None
        for leaf in leaves:
            home = home or GangKey(SOURCE, *self._root(composite))
            self._groups.attach(GangKey(native.SOURCE, *leaf), home)

    def _renew(self, key: Key) -> None:
        """Make anew what a composite comes to, and those above as far as it changes them, up to the gang of the root.

        One that is inside itself gets as deep as is walked, and never to a root.
        """
        while (composite := self._composites.get(key)) is not None:
            below = self._below.get(key)
            height = min(below.height if below is not None else 0, DEEPEST) + 1
            tree = _NEVER if height > DEEPEST else _tree(key, composite, below.parts if below is not None else ())
            parent = _parent(composite)
            if not parent:
                self._define(key, composite, tree)
                return
            above = Key(key.namespace, parent)
            if not self._below_of(above).put((True, key), tree, height):
                return
            key = above

    def _define(self, key: Key, composite: Composite, tree: GroupSet) -> None:
        gang, problem = GangKey(SOURCE, *key), ""
        if tree is _NEVER:
            problem = (
                f"what is in CompositePodGroup {key.name} is nested deeper than {DEEPEST} levels, which is too deep"
            )
        self._groups.define(gang, composite, lambda context: _gang(gang, composite, tree, problem, context))

    def _leaves_below(self, root: Key) -> Iterator[Key]:
        seen, composites = {root}, [root]
        for key in composites:
            for is_composite, child in self._below[key].keys if key in self._below else ():
                if not is_composite:
                    yield child
                elif child not in seen:
                    seen.add(child)
                    composites.append(child)


class _Below:
    """What names a composite as its parent, in order: what each comes to, and how many composites deep. Mutable."""

    def __init__(self) -> None:
        self.keys: list[tuple[bool, Key]] = []
        """Whether it is a composite itself, and its key."""
        self.parts: list[Member] = []
        self._heights: list[int] = []
        self.height = 0
        """That of the highest."""

    def put(self, key: tuple[bool, Key], part: Member, height: int) -> bool:
        """Have a child come to ``part``; tell whether that is news."""
        place = bisect_left(self.keys, key)
        if self.keys[place : place + 1] != [key]:
            self.keys.insert(place, key)
            self.parts.insert(place, part)
            self._heights.insert(place, height)
        elif self.parts[place] == part and self._heights[place] == height:
            return False
        else:
            self.parts[place] = part
            lost, self._heights[place] = self._heights[place], height
            self._lose(lost)
        self.height = max(self.height, height)
        return True

    def remove(self, key: tuple[bool, Key]) -> None:
        """Take out a child."""
        place = bisect_left(self.keys, key)
        if self.keys[place : place + 1] == [key]:
            del self.keys[place], self.parts[place]
            self._lose(self._heights.pop(place))

    def _lose(self, height: int) -> None:
        if height == self.height:
            self.height = max(self._heights, default=0)


_NEVER: Final = GroupSet(name="", min_groups=1)
"""A tree of nothing that is never complete: what is nested too deep comes to it."""


def _tree(key: Key, composite: Composite, parts: Iterable[Member]) -> GroupSet:
    policy = composite.spec.scheduling_policy.gang
    needed = policy.min_group_count if policy is not None else 1
    # A PodGroup may have the same name.
    return GroupSet(
        f"composite {key.name}", tuple(parts), needed, native.constraint(composite.spec.scheduling_constraints)
    )


def _parent(found: NativeGroup | Composite) -> str:
    if isinstance(found, workload_v1alpha2.PodGroup):
        return ""
    return found.spec.parent_composite_pod_group_name or ""


def _pod_set(key: Key, group: NativeGroup) -> PodSet:
    policy = group.spec.scheduling_policy.gang
    return PodSet(
        key.name, policy.min_count if policy is not None else 1, native.constraint(group.spec.scheduling_constraints)
    )


def _gang(key: GangKey, composite: Composite, tree: GroupSet, problem: str, context: SourceContext) -> Gang:
    spec = composite.spec
    gang = context.gang(key, tree, composite.metadata, spec.priority_class_name, spec.priority)
    return replace(gang, disrupted_whole=native.is_disrupted_whole(spec.disruption_mode), problem=problem)
