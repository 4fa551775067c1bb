"""Rules: for each kind of workload, where its counts are, what its roles are, and which pods belong to them.

A rule is data. Ours are in ``kinds.yaml``; a user's have the same form and replace ours for the same kind. Rule
sets are loaded and checked by :mod:`.loading`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Final, Literal

from spinney.api.documents import Step
from spinney.api.struct import Struct
from spinney.grouping import terms
from spinney.grouping.terms import Path, Steps, Term

TextTerm = str | int
"""A term as it is written: ``spec.replicas else 1``, or a number."""

Fallback = Literal["Wait", "Alone", "Default"]
"""What happens to a pod whose rule cannot be applied: it waits, is a gang of its own, or the default rule holds."""

_ROOTS: Final = ("each", "spec", "status")


class CountsFrom(Struct, frozen=True, kw_only=True):
    """Another object that holds the counts."""

    kind: str
    """`group/Kind` of the object."""
    name: tuple[str, ...]
    """Where its name is: paths in the owner, and `label KEY` of the pod; the first that is there."""


class After(Struct, frozen=True, kw_only=True):
    """Why a role starts later than others: until one of its pods exists it is not needed."""

    role: str = ""
    """It waits for the role of this name."""
    names: str = ""
    """A path to names; it waits for others if there are any."""
    previous: bool = False
    """It waits for the element before its own."""
    when: Mapping[str, str] = {}
    """Paths and the values they must have for this to hold."""


class Split(Struct, frozen=True, kw_only=True):
    """A role that is several equal groups of pods."""

    by: str
    """The pod label with the number of the group."""
    count: TextTerm = 1
    """How many groups there are."""


class Segments(Struct, frozen=True, kw_only=True):
    """A role that may be cut into segments, each with a topology constraint of its own."""

    index: str
    """The pod label with the number of the pod."""
    size: TextTerm | None = None
    """How many pods a segment has; else the annotation kai.scheduler/segment-size on pod, template or owner says so."""
    name: str = "{role}-{index}"
    """What a segment is called."""
    leader: str = ""
    """The role whose pods belong to segment 0; pods of this role are then numbered from 1."""
    apart: Mapping[str, str] = {}
    """Paths and values with which the leader stands beside the segments instead."""


class Makes(Struct, frozen=True, kw_only=True):
    """Pods that a workload makes from one template; for ``spinney simulate``, which has no controllers."""

    each: str = ""
    """A path; there are such pods for each element found."""
    count: TextTerm = 1
    """How many."""
    template: str
    """The path of the pod template."""


class Copies(Struct, frozen=True, kw_only=True):
    """A workload that is several equal ones."""

    count: TextTerm = 1
    """How many there are."""
    label: str
    """The pod label with the number of each."""


class PodRole(Struct, frozen=True, kw_only=True):
    """Pods of a workload that are alike: a sub-group."""

    each: str = ""
    """A path; there is one role per element found. Absent: one role."""
    name: str
    """Text, or paths and texts joined by `else`; `{index}` is the number of the element."""
    unless: str = ""
    """A path; where it is true there is no role."""
    pods: Mapping[str, str] | Literal["rest"]
    """Labels and their values (text or path) by which pods are recognised; `rest`: pods of no other role."""
    replicas: TextTerm = 1
    """How many pods there will be. A role of 0 replicas is none."""
    floor: TextTerm = "replicas"
    """How many pods are needed."""
    template: str = ""
    """The path of the pod template whose annotations give topology and the annotations in `floor`."""
    named_topology: bool = False
    """Refuse a topology level without a topology name; otherwise it counts for nothing."""
    after: tuple[After, ...] = ()
    """Why the role starts later than others."""
    split: Split | None = None
    """The role is several equal groups."""
    segments: Segments | None = None
    """The role may be cut into segments."""
    alone: bool = False
    """Each pod is a gang of its own."""
    makes: tuple[str, ...] = ()
    """Where its pod template is, the first path that is there; by default `template`. For `spinney simulate`."""


class Rule(Struct, frozen=True, kw_only=True):
    """How pods of one kind of workload are grouped."""

    kind: str
    """`group/Kind`, any version; core kinds are `v1/Kind`."""
    resource: str = ""
    """What the API server calls the kind in URLs; by default the plural Kubernetes would guess."""
    labels: tuple[str, ...] = ()
    """The rule is only for pods that have these labels."""
    through: bool = False
    """Look through the kind to the owner below, which inherits its labels and annotations."""
    counts: CountsFrom | None = None
    """Another object that holds the counts; by default the owner does."""
    one_per: str = "owner"
    """A gang for each `owner`, `counts` object, `pod`, or value of `label KEY`."""
    together: tuple[TextTerm, ...] = ()
    """Annotations with which the pods are one gang per owner though `onePer` says pod."""
    name: str = "pg-{owner}-{uid}"
    """What the gang is called: `{owner}` and `{uid}` of the object it is for, `{label}` the value of the label."""
    priority: str = "train"
    """The priority class where nothing else says one."""
    priority_from: tuple[str, ...] = ()
    """Where the kind names a priority class of its own: paths, and `label KEY` of the owner."""
    floor: TextTerm = 1
    """How many pods are needed, if there are no roles."""
    replicas: TextTerm | None = None
    """How many pods there will be, if there are no roles; a floor above it is reported."""
    at_most: TextTerm | None = None
    """The floor is never above this: pods that have finished are not needed again."""
    one_by_one: Mapping[str, str] = {}
    """Paths and values with which pods are made one after the other: the floor is then 1, whatever is asked for."""
    zero: bool = False
    """A floor of 0 is meant: nothing is needed. Otherwise it is refused."""
    override: tuple[TextTerm, ...] = ()
    """Terms of which the first that is there is the floor; the last role takes what the others leave."""
    required: tuple[str, ...] = ()
    """Paths that must be there and not be 0, empty, or something with 0 replicas; not checked with an override."""
    allowed: Mapping[str, tuple[str, ...]] = {}
    """Paths and the values they may have, if they are there."""
    roles: tuple[PodRole, ...] = ()
    """The sub-groups; absent: all pods are alike."""
    root: tuple[TextTerm, ...] = ()
    """How many roles must be satisfied: the first term that is there, or `all` of those that have started."""
    makes: tuple[Makes, ...] = ()
    """The pods that the workload makes, if there are no roles; for `spinney simulate`."""
    copies: Copies | None = None
    """The workload is several equal ones; for `spinney simulate`."""
    fallback: Fallback | None = None
    """What happens when the rule cannot be applied; by default as the configuration says."""

    @property
    def key(self) -> str:
        """Return what is unique to the rule: its kind and, if it is only for some pods, their labels."""
        return " ".join((self.kind, *self.labels))

    @property
    def plural(self) -> str:
        """Return what the kind is called in URLs."""
        return self.resource or guessed_plural(self.kind.rpartition("/")[2])

    @property
    def label(self) -> str:
        """Return the pod label by which the owner's pods are several gangs, if they are."""
        return self.one_per.removeprefix("label ") if self.one_per.startswith("label ") else ""


DEFAULT_RULE: Final = Rule(kind="*")
"""For kinds without a rule: one gang per owner, floor 1."""

POD_KIND: Final = "v1/Pod"


@dataclass(frozen=True)
class RuleSet:
    """The rules in force, by their keys."""

    rules: Mapping[str, Rule]

    @classmethod
    def of(cls, rules: Iterable[Rule]) -> "RuleSet":
        return cls({rule.key: rule for rule in rules})

    def get(self, kind: str, labels: Mapping[str, str]) -> Rule | None:
        """Return the rule of a ``group/Kind`` for a pod with these labels."""
        special = (rule for rule in self._special.get(kind, ()) if all(labels.get(label) for label in rule.labels))
        return next(special, None) or self.rules.get(kind)

    def replaced_by(self, others: Iterable[Rule], without: Iterable[str] = ()) -> "RuleSet":
        """Return these rules without some kinds, and with others in place of those with the same key."""
        left_out = frozenset(without)
        kept = {key: rule for key, rule in self.rules.items() if rule.kind not in left_out}
        return RuleSet({**kept, **{rule.key: rule for rule in others}})

    @cached_property
    def _special(self) -> Mapping[str, Sequence[Rule]]:
        found: dict[str, list[Rule]] = {}
        for rule in self.rules.values():
            if rule.labels:
                found.setdefault(rule.kind, []).append(rule)
        return found

    def watched(self) -> dict[str, set[Steps]]:
        """Return the kinds the rules read, each with the paths of spec and status that are read."""
        found: dict[str, set[Steps]] = {}
        for rule in self.rules.values():
            if rule.kind == POD_KIND:
                continue
            own = found.setdefault(rule.kind, set())
            if rule.counts is None:
                own |= set(paths_of(rule))
            else:
                own |= {path.steps for each in rule.counts.name if (path := _path(each)) is not None}
                found.setdefault(rule.counts.kind, set()).update(paths_of(rule))
        return found

    def plural_of(self, kind: str) -> str:
        """Return what a kind is called in URLs."""
        rule = self.rules.get(kind)
        return rule.plural if rule is not None else guessed_plural(kind.rpartition("/")[2])


@cache
def term(text: TextTerm) -> Term:
    """Return the term that a text of a rule is."""
    return terms.parse(text)


def terms_of(rule: Rule) -> Iterator[tuple[tuple[Step, ...], TextTerm]]:
    """Return every number of a rule that its gangs depend on, with where it stands."""
    single: list[tuple[tuple[Step, ...], TextTerm | None]] = [
        (("floor",), rule.floor),
        (("replicas",), rule.replicas),
        (("atMost",), rule.at_most),
    ]
    for field, several in (("together", rule.together), ("override", rule.override)):
        single += [((field, number), text) for number, text in enumerate(several)]
    single += [(("root", number), text) for number, text in enumerate(rule.root) if text != "all"]
    for number, role in enumerate(rule.roles):
        where = ("roles", number)
        single += [((*where, "replicas"), role.replicas), ((*where, "floor"), role.floor)]
        if role.split is not None:
            single.append(((*where, "split", "count"), role.split.count))
        if role.segments is not None:
            single.append(((*where, "segments", "size"), role.segments.size))
    yield from ((path, text) for path, text in single if text is not None)


def places_of(rule: Rule) -> Iterator[tuple[tuple[Step, ...], str]]:
    """Return every path of a rule that its gangs depend on, with where it stands."""
    single: list[tuple[tuple[Step, ...], str]] = [
        (("required", number), text) for number, text in enumerate(rule.required)
    ]
    for field, conditions in (("allowed", rule.allowed), ("oneByOne", rule.one_by_one)):
        single += [((field, path), path) for path in conditions]
    for number, role in enumerate(rule.roles):
        where = ("roles", number)
        for field, path in (("each", role.each), ("unless", role.unless), ("template", role.template)):
            single.append(((*where, field), path))
        for place, after in enumerate(role.after):
            single += [((*where, "after", place, "names"), after.names)]
            single += [((*where, "after", place, "when", path), path) for path in after.when]
        if role.segments is not None:
            single += [((*where, "segments", "apart", path), path) for path in role.segments.apart]
    yield from ((path, text) for path, text in single if text)


def paths_of(rule: Rule) -> Iterator[Steps]:
    """Return the paths of spec and status that a rule reads in the object that holds the counts."""
    for where, text in (*terms_of(rule), *places_of(rule)):
        yield from _seen_from(role_at(rule, where), term(text))
    for role in rule.roles:
        for text in (role.name, *(role.pods.values() if isinstance(role.pods, Mapping) else ())):
            for part in text.split(" else "):
                if (path := _path(part)) is not None:
                    yield from _seen_from(role, path)
        if role.template:
            for steps in _seen_from(role, term(role.template)):
                yield (*steps, "metadata", "annotations")
    for text in rule.priority_from:
        if (path := _path(text)) is not None:
            yield path.steps


def role_at(rule: Rule, where: tuple[Step, ...]) -> PodRole | None:
    """Return the role that a place in a rule belongs to."""
    return rule.roles[where[1]] if where[0] == "roles" and isinstance(where[1], int) else None


def _seen_from(role: PodRole | None, found: Term) -> Iterator[Steps]:
    """Return the paths in a term, those that begin with ``each`` from the root of the object."""
    over: Steps = ()
    for part in found.parts():
        if isinstance(part, terms.Sum):
            over = part.over.steps
        if not isinstance(part, Path):
            continue
        if part.steps[0] == "each":
            begin = over or (terms.parse_path(role.each).steps if role is not None and role.each else ())
            if begin:
                yield (*begin, *part.steps[1:])
        elif part.steps[0] in _ROOTS:
            yield part.steps


def _path(text: str) -> Path | None:
    """Return a text as a path, if it is one: it begins with each, spec or status."""
    if text.partition(".")[0] not in _ROOTS or "." not in text:
        return None
    return terms.parse_path(text)


def text_value(text: str, scope: terms.TermInput, *, index: int = 0) -> str | None:
    """Return the text that ``a else b`` means here: a path's value, or the words themselves; ``None``: not there."""
    for part in text.split(" else "):
        path = _path(part)
        if path is None:
            return part.replace("{index}", str(index))
        found: Any = next(iter(path.found(scope)), None)
        if found not in (None, ""):
            return str(found)
    return None


def text_at(text: str, content: Mapping[str, Any], labels: Mapping[str, str]) -> str | None:
    """Return what is at a path in ``content``, or for ``label KEY`` what that label says; ``None``: not there."""
    if text.startswith("label "):
        return labels.get(text.removeprefix("label "))
    return next((str(each) for each in terms.look_up(content, terms.parse_path(text).steps)), None)


def guessed_plural(kind: str) -> str:
    """Return the plural that Kubernetes guesses for a kind."""
    lower = kind.lower()
    if lower.endswith("s"):
        return f"{lower}es"
    return f"{lower[:-1]}ies" if lower.endswith("y") else f"{lower}s"
