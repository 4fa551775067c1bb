"""The gang of a pod: a pure function of the pod, its owners, the rules and what else may be read.

The rule is chosen from the top of the owner chain downwards; kinds without a rule, and those that say so, are looked
through. The rule then says which object the gang is for and how many pods it needs (:mod:`.floors`); queue, priority
and topology are found in the same way for every kind (:mod:`.attributes`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spinney.api.core import Pod
from spinney.grouping import attributes, floors
from spinney.grouping.attributes import Conventions, GangAttributes
from spinney.grouping.floors import RuledPod
from spinney.grouping.owners import Owner, inheriting, pod_as_owner
from spinney.grouping.rules import DEFAULT_RULE, POD_KIND, Rule, RuleSet, term, text_at
from spinney.grouping.shapes import Shape
from spinney.grouping.terms import RuleRefused, TermInput
from spinney.grouping.world import World


@dataclass(frozen=True)
class GangDescription:
    """A gang as the rules see it, before it is written down."""

    name: str
    namespace: str
    owner: Owner
    """The object the gang is for, with what it inherits."""
    rule: Rule
    shape: Shape
    attributes: GangAttributes
    above: tuple[Owner, ...] = ()
    """What owns that object, nearest first."""

    @property
    def problems(self) -> tuple[str, ...]:
        """Return what is odd about the gang, though it can be made."""
        return self.shape.problems + self.attributes.problems


@dataclass(frozen=True)
class Grouping:
    """Where a pod belongs."""

    gang: GangDescription
    sub_group: str | None
    """The sub-group of the gang that the pod is in, if the gang has some."""
    alone: bool
    """The pod is a gang of its own beside the workload's."""
    counts: Owner | None = None
    """The object with the counts, if that is another than the owner."""


@dataclass(frozen=True)
class Chosen:
    """A rule, the object it is applied to, and the chain below and above that."""

    rule: Rule
    owner: Owner
    """With what it inherits from above."""
    chain: tuple[Owner, ...]
    """All owners, nearest first."""


def describe(pod: Pod, chain: Sequence[Owner], rules: RuleSet, conventions: Conventions, world: World) -> Grouping:
    """Return the gang of a pod; raises :class:`RuleRefused` if the rule of its kind cannot be applied."""
    return apply(choose(pod, chain, rules), pod, conventions, world)


def choose(pod: Pod, chain: Sequence[Owner], rules: RuleSet) -> Chosen:
    """Return the rule for a pod: that of the highest owner which has one and is not looked through."""
    found = [rules.get(owner.group_kind, pod.metadata.labels) for owner in chain]
    for place in reversed(range(len(chain))):
        rule = found[place]
        if rule is not None and not rule.through:
            return Chosen(rule, inheriting(chain[place], chain[place + 1 :]), tuple(chain))
    unknown = [place for place, rule in enumerate(found) if rule is None]
    if unknown:
        place = unknown[-1]
        return Chosen(DEFAULT_RULE, inheriting(chain[place], chain[place + 1 :]), tuple(chain))
    rule = rules.get(POD_KIND, pod.metadata.labels) or DEFAULT_RULE
    return Chosen(rule, inheriting(pod_as_owner(pod), chain), tuple(chain))


def apply(chosen: Chosen, pod: Pod, conventions: Conventions, world: World) -> Grouping:
    """Apply a rule to a pod."""
    rule, owner = chosen.rule, chosen.owner
    counts = _counts(rule, owner, pod, world)
    subject = RuledPod(
        rule=rule,
        counts=counts,
        owner=owner,
        chain=chosen.chain,
        pod=pod,
        peers=lambda: world.peers(owner, pod),
        started=world.started,
        roles=world.roles,
    )
    shape = floors.shape(subject)
    group_owner = _group_owner(rule, owner, counts, pod, subject)
    description = GangDescription(
        name=_name(rule, group_owner, pod),
        namespace=pod.metadata.namespace or "",
        owner=group_owner,
        rule=rule,
        shape=shape,
        attributes=attributes.attributes(
            group_owner, _looked_at(chosen, group_owner), pod, rule, conventions=conventions, world=world
        ),
        above=_above(chosen, group_owner),
    )
    own_role = shape.role is None and bool(shape.sub_groups)
    return Grouping(
        description, shape.role, alone=shape.alone or own_role, counts=counts if counts is not owner else None
    )


def _counts(rule: Rule, owner: Owner, pod: Pod, world: World) -> Owner:
    if rule.counts is None:
        return owner
    for text in rule.counts.name:
        name = text_at(text, owner.content, pod.metadata.labels)
        if name:
            found = world.find(rule.counts.kind, owner.metadata.namespace or pod.metadata.namespace or "", name)
            if found is None:
                kind = rule.counts.kind.rpartition("/")[2]
                raise RuleRefused(f"{kind} {name} does not exist yet; {owner} takes its counts from it")
            return inheriting(found, (owner,))
    places = ", ".join(rule.counts.name)
    raise RuleRefused(f"{owner} does not name its {rule.counts.kind.rpartition('/')[2]} yet; looked at {places}")


def _group_owner(rule: Rule, owner: Owner, counts: Owner, pod: Pod, subject: RuledPod) -> Owner:
    if rule.one_per == "counts":
        return counts
    if rule.one_per == "pod":
        scope = TermInput(counts.content, annotation=subject.annotation)
        if all(term(text).value(scope) is None for text in rule.together):
            return inheriting(pod_as_owner(pod), (owner,))
    return owner


def _looked_at(chosen: Chosen, group_owner: Owner) -> tuple[Owner, ...]:
    """Return the owners whose labels say how the gang stands, nearest first."""
    uids = {owner.metadata.uid for owner in chosen.chain}
    own = () if group_owner.metadata.uid in uids and chosen.chain else (group_owner,)
    return (*own, *chosen.chain)


def _above(chosen: Chosen, group_owner: Owner) -> tuple[Owner, ...]:
    """Return what owns the object that a gang is for; all of the chain, if that is not in it."""
    uids = [owner.metadata.uid for owner in chosen.chain]
    own = group_owner.metadata.uid
    return chosen.chain[uids.index(own) + 1 :] if own in uids else chosen.chain


def _name(rule: Rule, owner: Owner, pod: Pod) -> str:
    value = pod.metadata.labels.get(rule.label, "") if rule.label else ""
    template = rule.name if value or "{label}" not in rule.name else Rule(kind="").name
    return template.format(owner=owner.metadata.name, uid=owner.metadata.uid or "", label=value)


def top_owner_metadata(owner: Owner) -> str:
    """Return the text by which KAI's tools learn what a group is for."""
    group, _, version = owner.api_version.rpartition("/")
    fields: Mapping[str, str] = {
        "name": owner.metadata.name,
        "uid": owner.metadata.uid or "",
        "group": group,
        "version": version,
        "kind": owner.kind,
    }
    return "".join(f"{key}: {value or chr(34) * 2}\n" for key, value in fields.items())
