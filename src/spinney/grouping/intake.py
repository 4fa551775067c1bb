"""Pods into places: which gang each pod of a served scheduler belongs to, and what happens when no rule applies."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from spinney.api.core import POD, Pod
from spinney.api.meta import OwnerReference
from spinney.api.scheduling import PriorityClass
from spinney.grouping import joining, podgangs, selecting
from spinney.grouping.configuration import LoadedGrouperConfiguration
from spinney.grouping.describing import Chosen, Grouping, apply, choose
from spinney.grouping.likeness import Alike
from spinney.grouping.membership import Member, Membership
from spinney.grouping.metrics import GroupingMetrics
from spinney.grouping.owner_cache import NotFetched, NotListed, OwnerCache
from spinney.grouping.owners import MOST_OWNERS, Owner, OwnerMissing, climb, group_kind, owner_of
from spinney.grouping.roles import RememberedRoles
from spinney.grouping.rules import DEFAULT_RULE, Fallback, Rule
from spinney.grouping.terms import RuleRefused
from spinney.grouping.world import KindDefault, World
from spinney.kube.cache import WatchCache
from spinney.kube.controller import Requeue
from spinney.kube.events import EventRecorder, reference
from spinney.kube.keys import Key, key_of

REFUSED: Final = "GroupingRefused"
PATIENCE_SECONDS: Final = 5.0
"""How long an owner may be missing before the pod says so: watches take a moment."""

ALONE: Final = Rule(kind="*", one_per="pod")
"""The rule of pods that are gangs of their own because their kind's rule cannot be applied."""


class LeftAlone(RuleRefused):
    """An owner of a pod asks that its pods be left alone."""

    def __init__(self, owners: tuple[str, ...]) -> None:
        super().__init__("its owner asks that it be left alone")
        self.owners = owners
        """Their uids."""


@dataclass
class PodIntake:
    """Reconciles pods. Keeps what was last said about each, so that it is said once. Mutable."""

    configuration: LoadedGrouperConfiguration
    scheduler_names: frozenset[str]
    pods: WatchCache[Pod]
    owners: OwnerCache
    priority_classes: WatchCache[PriorityClass]
    namespaces: WatchCache[Owner] | None
    kind_defaults: Callable[[], Mapping[tuple[str, str], KindDefault]]
    events: EventRecorder
    metrics: GroupingMetrics
    membership: Membership
    wake: Callable[[Key], None]
    """Asks for a look at a gang."""
    leave: Callable[[Pod], Awaitable[None]]
    """Says on a pod that it is not grouped, so that no scheduler waits for that."""
    _seen: Alike[Member] = field(default_factory=Alike)
    _roles: RememberedRoles = field(default_factory=RememberedRoles)
    _said: dict[Key, str] = field(default_factory=dict)
    _waiting_since: dict[Key, float] = field(default_factory=dict)
    _fallen_back: dict[Key, Rule] = field(default_factory=dict)

    async def reconcile(self, key: Key) -> Requeue | None:
        """Find the place of one pod."""
        pod = self.pods.get(key)
        if pod is None or not self.serves(pod):
            self._forget(key)
            if pod is not None and self.looks_at(pod) and self._selects(pod) is False:
                await self.leave(pod)
            return None
        self._fallen_back.pop(key, None)
        if self.take_in(key, pod):
            return None
        try:
            grouping, chain = await self.described(pod)
        except LeftAlone as asked:
            self._forget(key)
            self.membership.refuse(key, asked.owners)
            await self.leave(pod)
            return None
        except RuleRefused as error:
            return await self._refused(key, pod, error)
        except NotListed as error:
            self._say(key, pod, "", str(error), "the pod waits until they can")
            raise
        self._waiting_since.pop(key, None)
        self._say_unread(key, pod, chain)
        self._settle(key, self.remembered(pod, grouping, chain))
        return None

    def take_in(self, key: Key, pod: Pod) -> bool:
        """Give a pod its place at once, if one like it has been seen; ``False``: it has to be looked at."""
        if key in self._fallen_back or key in self._said:
            return False
        try:
            chain = climb(pod, self.owners.find)
        except (NotFetched, RuleRefused):
            return False
        place = self._seen.get(pod, chain)
        if place is not None:
            self._settle(key, place)
        return place is not None

    def serves(self, pod: Pod) -> bool:
        """Tell whether a pod is the grouper's: of a served scheduler, selected, and in no other group."""
        return self.looks_at(pod) and self._selects(pod) is True

    def looks_at(self, pod: Pod) -> bool:
        """Tell whether a pod is to be told something: its gang, or that it has none because it is not selected."""
        return (
            pod.spec.scheduler_name in self.scheduler_names
            and not selecting.skip_requested(pod.metadata)
            and selecting.foreign_group(pod) is None
        )

    def count_foreign(self, old: Pod | None, new: Pod) -> None:
        """Count a pod of a served scheduler that has come to name another group."""
        group = selecting.foreign_group(new) if new.spec.scheduler_name in self.scheduler_names else None
        if group is not None and (old is None or selecting.foreign_group(old) != group):
            self.metrics.foreign_pods.labels(group).inc()

    async def described(self, pod: Pod, peers: Iterable[Pod] = ()) -> tuple[Grouping, tuple[Owner, ...]]:
        """Return the gang of a pod and its owners, reading what is not known yet; raises :class:`RuleRefused`."""
        while True:
            try:
                return self.applied(pod, peers, self._fallen_back.get(key_of(pod)))
            except NotFetched as wanted:
                await self.owners.fetch(wanted)

    def applied(
        self, pod: Pod, peers: Iterable[Pod] = (), instead: Rule | None = None
    ) -> tuple[Grouping, tuple[Owner, ...]]:
        """Return the gang of a pod and its owners by its rule, or by another one ``instead``.

        Raises :class:`RuleRefused`, such as :class:`LeftAlone`, and :class:`NotFetched` where an owner has to be read
        first.
        """
        pod, chain = joining.as_made(pod), climb(pod, self.owners.find)
        if selecting.skip_requested_by(owner.metadata for owner in chain):
            raise LeftAlone(_uids(chain))
        chosen, world = choose(pod, chain, self.configuration.rules), self._world(chain, peers)
        if instead is not None:
            chosen = Chosen(instead, chosen.owner, chosen.chain)
        grouping = apply(chosen, pod, self.configuration.written, world)
        if grouping.alone:
            own = msgspec.structs.replace(ALONE, priority=chosen.rule.priority)
            grouping = apply(Chosen(own, chosen.owner, chain), pod, self.configuration.written, world)
        return grouping, chain

    def remembered(self, pod: Pod, grouping: Grouping, chain: tuple[Owner, ...]) -> Member:
        """Return the place of a pod, for others like it, too."""
        place = _place(pod, grouping, chain)
        if is_common(grouping):
            self._seen.put(pod, chain, place)
        return place

    # -- deciding ------------------------------------------------------------------------------------------------------

    def _world(self, chain: tuple[Owner, ...], peers: Iterable[Pod]) -> World:
        versions = {group_kind(owner.api_version, ""): owner.api_version for owner in chain}

        def find(kind: str, namespace: str, name: str) -> Owner | None:
            group, _, kind_name = kind.rpartition("/")
            api_version = versions.get(f"{group}/", f"{group}/")
            wanted = OwnerReference(api_version=api_version, kind=kind_name, name=name, uid="")
            return self.owners.find(wanted, namespace)

        return World(
            find=find,
            peers=lambda owner, pod: peers,
            priority_classes=_Names(self.priority_classes),
            kind_defaults=self.kind_defaults(),
            roles=self._roles,
        )

    async def _refused(self, key: Key, pod: Pod, error: RuleRefused) -> Requeue | None:
        """Say on the pod why its rule cannot be applied, and do with it what is configured."""
        now = self.owners.client.runtime.clock.monotonic()
        waited = now - self._waiting_since.setdefault(key, now)
        if pod.metadata.deleting:
            return None
        if isinstance(error, OwnerMissing) and waited < PATIENCE_SECONDS:
            return Requeue()
        chosen = self._chosen_at_last(pod)
        rule, text, fallback = "", str(error), self.configuration.written.fallback
        if chosen is not None:
            owner = chosen.owner
            rule, fallback = chosen.rule.kind, chosen.rule.fallback or fallback
            text = f"the rule for {rule} cannot be applied to {owner.kind} {owner.metadata.name}: {error}"
        self._say(key, pod, rule, text, _CONSEQUENCES[fallback])
        if fallback == "Wait":
            left = self.membership.refuse(key, _uids(chosen.chain) if chosen is not None else ())
            if left is not None:
                self.wake(left)
            return Requeue()
        self._fallen_back[key] = ALONE if fallback == "Alone" else DEFAULT_RULE
        try:
            grouping, chain = await self.described(pod)
        except RuleRefused:
            return Requeue()
        self._settle(key, _place(pod, grouping, chain))
        return None

    def _say_unread(self, key: Key, pod: Pod, chain: tuple[Owner, ...]) -> None:
        """Say on a pod that its owner's kind has a rule which is not applied, because the owner may not be read."""
        above = owner_of(chain[-1].metadata if chain else pod.metadata)
        kind = group_kind(above.api_version, above.kind) if above is not None and len(chain) < MOST_OWNERS else ""
        if above is None or self.configuration.rules.get(kind, pod.metadata.labels) is None:
            self._said.pop(key, None)
            return
        text = f"{above.kind} {above.name} may not be read, so the rule for {kind} is not applied"
        self._say(key, pod, kind, text, "grant what 'spinney grouper --rights' prints, and start the grouper again")

    def _say(self, key: Key, pod: Pod, kind: str, text: str, consequence: str) -> None:
        """Say once on a pod why it is not grouped as the rule for its kind would have it."""
        if self._said.get(key) != text:
            self._said[key] = text
            self.metrics.refusals.labels(kind).inc()
            self.events.event(reference(POD, pod), "Warning", REFUSED, f"{text}; {consequence}")

    def _chosen_at_last(self, pod: Pod) -> Chosen | None:
        """Return the rule that failed and whom it is for; ``None`` where it did not come so far."""
        try:
            return choose(pod, climb(pod, self.owners.find), self.configuration.rules)
        except (NotFetched, RuleRefused):
            return None

    def _settle(self, key: Key, place: Member) -> None:
        left = self.membership.put(key, place)
        if left is not None:
            self.wake(left)
        self.wake(place.gang)

    def _forget(self, key: Key) -> None:
        self._said.pop(key, None)
        self._waiting_since.pop(key, None)
        self._fallen_back.pop(key, None)
        left = self.membership.remove(key)
        if left is not None:
            self.wake(left)

    def _selects(self, pod: Pod) -> bool | None:
        """Tell whether a pod is one of those that are grouped; ``None`` while its namespace is not known."""
        written = self.configuration.written
        if not selecting.labels_match(pod.metadata.labels, written.pod_labels):
            return False
        if self.namespaces is None:
            return True
        found = self.namespaces.get(Key("", pod.metadata.namespace or ""))
        if found is None:
            return None
        return selecting.namespace_matches(found.metadata.labels, written.namespace_labels)


@dataclass(frozen=True)
class _Names:
    """The names of the priority classes there are."""

    cache: WatchCache[PriorityClass]

    def __contains__(self, name: object) -> bool:
        return Key("", str(name)) in self.cache


_CONSEQUENCES: Final[Mapping[Fallback, str]] = {
    "Wait": "the pod waits until it can",
    "Alone": "the pod is scheduled on its own",
    "Default": "the pod is grouped by its owner, one pod at a time",
}


def _uids(owners: Iterable[Owner]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(owner.metadata.uid for owner in owners if owner.metadata.uid))


def _place(pod: Pod, grouping: Grouping, chain: tuple[Owner, ...]) -> Member:
    counts = (grouping.counts,) if grouping.counts is not None else ()
    gang = Key(pod.metadata.namespace or "", podgangs.gang_name(grouping.gang))
    return Member(
        gang,
        podgangs.group_name(grouping.sub_group),
        _uids((*chain, *counts)),
        alone=is_single(grouping),
        needed=podgangs.needed(grouping.gang),
    )


def is_single(grouping: Grouping) -> bool:
    """Tell whether a gang is one pod, which needs no object of its own."""
    return grouping.gang.owner.group_kind == "v1/Pod" and not grouping.gang.rule.label


def is_common(grouping: Grouping) -> bool:
    """Tell whether a pod with the same owners and labels has the same place."""
    return not is_single(grouping) and grouping.gang.rule.counts is None
