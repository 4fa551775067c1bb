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
from spinney.gangs.tree import DEEPEST, Gang, GangKey, GroupSet, PodSet
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
        self._pod_sets: dict[Key, PodSet] = {}
        """What the groups that name a parent are in its tree."""
        self._children: dict[Key, list[tuple[bool, Key]]] = {}
        """What names a composite as its parent, in order: whether it is a composite itself, and its key."""

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
        self._pod_sets.pop(key, None)
        if before is not None and _parent(before) != parent:
            self._leave(key, _parent(before), is_composite=False)
            self._groups.attach(GangKey(native.SOURCE, *key), GangKey(native.SOURCE, *key))
        if group is None:
            self._groups.remove(GangKey(native.SOURCE, *key))
            return
        self._leaves[key] = group
        if parent:
            self._pod_sets[key] = _pod_set(key, group)
            self._join(key, parent, is_composite=False)
            self._groups.remove(GangKey(native.SOURCE, *key))  # it is no gang of its own
        else:
            self._groups.define(GangKey(native.SOURCE, *key), group, lambda context: native.gang(group, context))

    def put_composite(self, key: Key, composite: Composite | None) -> None:
        """Take in a composite, ``None`` if it is gone."""
        if composite is not None and self._composites.get(key) is composite:
            return
        before = self._composites.pop(key, None)
        parent = _parent(composite) if composite is not None else ""
        if before is not None and _parent(before) != parent:
            self._leave(key, _parent(before), is_composite=True)
        if composite is not None:
            self._composites[key] = composite
        if parent:
            self._groups.remove(GangKey(SOURCE, *key))  # it is not at the root
            self._join(key, parent, is_composite=True)
        else:
            self._refresh(key, self._leaves_below(key))

    def _join(self, child: Key, parent: str, *, is_composite: bool) -> None:
        above, own = Key(child.namespace, parent), (is_composite, child)
        siblings = self._children.setdefault(above, [])
        place = bisect_left(siblings, own)
        if siblings[place : place + 1] != [own]:
            siblings.insert(place, own)
        self._refresh(self._root(above), self._leaves_below(child) if is_composite else (child,))

    def _leave(self, child: Key, parent: str, *, is_composite: bool) -> None:
        above, own = Key(child.namespace, parent), (is_composite, child)
        siblings = self._children.get(above, [])
        place = bisect_left(siblings, own)
        if siblings[place : place + 1] == [own]:
            del siblings[place]
        if not siblings:
            self._children.pop(above, None)
        self._refresh(self._root(above), ())

    def _root(self, composite: Key) -> Key:
        """Return the composite at the root, or the first missing one on the way there."""
        seen = {composite}
        while (found := self._composites.get(composite)) is not None and _parent(found):
            composite = Key(composite.namespace, _parent(found))
            if composite in seen:
                break
            seen.add(composite)
        return composite

    def _refresh(self, root: Key, joined: Iterable[Key]) -> None:
        """Bring the gang of a root up to date, to which groups may have ``joined``."""
        key = GangKey(SOURCE, *root)
        for leaf in joined:
            self._groups.attach(GangKey(native.SOURCE, *leaf), key)
        composite = self._composites.get(root)
        if composite is None:
            self._groups.remove(key)
            return
        problem = ""
        try:
            tree = self._tree(root, frozenset())
        except _TooDeep as error:
            tree, problem = _NEVER, str(error)
        if tree is None:
            self._groups.remove(key)
            return
        self._groups.define(key, composite, lambda context: _gang(key, composite, tree, problem, context))

    def _tree(self, key: Key, above: frozenset[Key]) -> GroupSet | None:
        composite = self._composites.get(key)
        if composite is None or key in above:
            return None
        if len(above) >= DEEPEST:
            raise _TooDeep(f"CompositePodGroup {key.name} is nested deeper than {DEEPEST} levels, which is too deep")
        members: list[PodSet | GroupSet] = []
        for is_composite, child in self._children.get(key, ()):
            if is_composite:
                inner = self._tree(child, above | {key})
                members += [inner] if inner is not None else []
            else:
                members.append(self._pod_sets[child])
        policy_of_groups = composite.spec.scheduling_policy.gang
        needed = policy_of_groups.min_group_count if policy_of_groups is not None else 1
        # A PodGroup may have the same name.
        return GroupSet(
            f"composite {key.name}", tuple(members), needed, native.constraint(composite.spec.scheduling_constraints)
        )

    def _leaves_below(self, root: Key) -> Iterator[Key]:
        seen, composites = {root}, [root]
        for key in composites:
            for is_composite, child in self._children.get(key, ()):
                if not is_composite:
                    yield child
                elif child not in seen:
                    seen.add(child)
                    composites.append(child)


class _TooDeep(ValueError):
    """Composites of which too many are inside each other."""


_NEVER: Final = GroupSet(name="", min_groups=1)
"""A tree of nothing that is never complete."""


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
