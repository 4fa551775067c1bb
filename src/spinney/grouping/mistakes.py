"""What is wrong with a rule, found when it is loaded: otherwise only the pods that wait would show it.

Every mistake is said with the place in the rule, what was found there, and what was expected.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from spinney.api.documents import Step
from spinney.api.names import dns_subdomain_faults, qualified_name_faults
from spinney.grouping.rules import PodRole, Rule, TextTerm, places_of, role_at, term, terms_of
from spinney.grouping.terms import InvalidTerm, Path, Sum, Term, parse_path, spelled

Place = tuple[Step, ...]
Mistakes = Iterator[tuple[Place, str]]

_KIND: Final = re.compile(r"[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?")
_LABEL: Final = "label "
_OWNER: Final = ("spec", "status")
"""Where paths in a workload begin: nothing else of it is kept."""


def mistakes(rule: Rule) -> Mistakes:
    """Return what is wrong with a rule."""
    yield from _kind(("kind",), rule.kind)
    if rule.through and rule != Rule(kind=rule.kind, resource=rule.resource, labels=rule.labels, through=True):
        yield ("through",), "is true, so the rule of the owner below holds; remove the other fields"
    yield from _in_the_whole(rule)
    yield from _numbers(rule)
    yield from _paths(rule)
    names: set[str] = set()
    for number, role in enumerate(rule.roles):
        where = ("roles", number)
        if role.name in names:
            yield (*where, "name"), f"a second role of the name {role.name!r}; each has a name of its own"
        names.add(role.name)
    rests = [number for number, role in enumerate(rule.roles) if role.pods == "rest"]
    for number in rests[1:]:
        yield ("roles", number, "pods"), "a second role that takes the rest; a rule has one"
    for number, role in enumerate(rule.roles):
        yield from ((("roles", number, *path), message) for path, message in _in_a_role(role, names))


# -- fields ------------------------------------------------------------------------------------------------------------


def _in_the_whole(rule: Rule) -> Mistakes:
    """Return mistakes in the fields that are about all pods of a workload."""
    yield from _labels((("labels", number), key) for number, key in enumerate(rule.labels))
    if rule.one_per.startswith(_LABEL):
        yield from _labels([(("onePer",), rule.label)])
    elif rule.one_per not in ("owner", "counts", "pod"):
        yield ("onePer",), f"found {rule.one_per!r}, expected owner, counts, pod or 'label KEY'"
    if rule.one_per == "counts" and rule.counts is None:
        yield ("onePer",), "is counts, and the rule names no other object that holds the counts"
    if rule.counts is not None:
        yield from _kind(("counts", "kind"), rule.counts.kind)
        if not rule.counts.name:
            yield ("counts", "name"), "names no place; expected paths such as spec.clusterName, or 'label KEY'"
        yield from _names(("counts", "name"), rule.counts.name)
    yield from _names(("priorityFrom",), rule.priority_from)
    if rule.together and rule.one_per != "pod":
        yield ("together",), f"holds where onePer is pod; found {rule.one_per!r}"
    if rule.roles and (rule.floor != 1 or rule.replicas is not None):
        yield ("floor",), "the roles have floors; a rule has a floor, or roles"
    if rule.root and not rule.roles:
        yield ("root",), "counts roles, and the rule has none"
    if isinstance(rule.floor, int) and rule.floor < (0 if rule.zero else 1):
        yield ("floor",), f"found {rule.floor}, expected at least 1; 0 only with zero: true"
    yield from _gang_name(rule)
    if rule.copies is not None:
        yield from _labels([(("copies", "label"), rule.copies.label)])


def _gang_name(rule: Rule) -> Mistakes:
    """Return mistakes in what gangs are called: two gangs of one name would be one."""
    fault = _unfilled(rule.name, owner="", uid="", label="")
    if fault:
        yield ("name",), fault
    elif rule.label and "{label}" not in rule.name:
        yield ("name",), f"found {rule.name!r}; with {rule.one_per!r} it needs {{label}}, or all gangs have one name"
    elif not rule.label and "{label}" in rule.name:
        yield ("name",), "has {label}, and onePer names no label"
    elif not rule.label and "{owner}" not in rule.name and "{uid}" not in rule.name:
        yield ("name",), f"found {rule.name!r}; it needs {{owner}} or {{uid}}, or all gangs have one name"


def _in_a_role(role: PodRole, names: set[str]) -> Mistakes:
    if not role.pods:
        yield ("pods",), "names no label; expected labels and values, or rest"
    if isinstance(role.pods, Mapping):
        yield from _labels((("pods", key), key) for key in role.pods)
        for key, text in role.pods.items():
            yield from _text(("pods", key), text, role)
    yield from _text(("name",), role.name, role)
    if role.split is not None:
        yield from _labels([(("split", "by"), role.split.by)])
    if role.segments is not None:
        yield from _labels([(("segments", "index"), role.segments.index)])
        if role.segments.leader and role.segments.leader not in names:
            yield ("segments", "leader"), f"no role is named {role.segments.leader!r}"
        if fault := _unfilled(role.segments.name, role="", index=""):
            yield ("segments", "name"), fault
        if role.split is not None:
            yield ("segments",), "a role is split, or has segments, not both"
    for place, after in enumerate(role.after):
        if after.role and after.role not in names:
            yield ("after", place, "role"), f"no role is named {after.role!r}"
        if not (after.role or after.names or after.previous):
            yield ("after", place), "does not say after what; expected role, names or previous"


# -- what stands in them -----------------------------------------------------------------------------------------------


def _numbers(rule: Rule) -> Mistakes:
    """Return mistakes in what are whole numbers."""
    found: list[tuple[Place, TextTerm, str]] = []
    for place, text in terms_of(rule):
        role = role_at(rule, place)
        found.append((place, text, role.each if role is not None else ""))
    for number, made in enumerate(rule.makes):
        found.append((("makes", number, "count"), made.count, made.each))
    if rule.copies is not None:
        found.append((("copies", "count"), rule.copies.count, ""))
    for place, text, each in found:
        of_role = place[0] == "roles" and place[-1] == "floor"
        try:
            fault = _misplaced(term(text), inside=bool(each), replicas=of_role)
        except InvalidTerm as error:
            fault = str(error)
        if isinstance(text, int) and text < 0:
            fault = f"found {text}, expected at least 0"
        if fault and (place != ("floor",) or not isinstance(text, int)):
            yield place, fault


def _paths(rule: Rule) -> Mistakes:
    found: list[tuple[Place, str, bool]] = []
    for place, text in places_of(rule):
        role = role_at(rule, place)
        found.append((place, text, role is not None and bool(role.each) and place[-1] != "each"))
    for number, role in enumerate(rule.roles):
        found += [(("roles", number, "makes", index), text, bool(role.each)) for index, text in enumerate(role.makes)]
    for number, made in enumerate(rule.makes):
        found.append((("makes", number, "template"), made.template, bool(made.each)))
        found += [(("makes", number, "each"), made.each, False)] if made.each else []
    for place, text, inside in found:
        if fault := _no_path(text, inside=inside):
            yield place, fault


def _names(place: Place, texts: Iterable[str]) -> Mistakes:
    """Return mistakes in places where a name is: paths in the workload, and labels."""
    for number, text in enumerate(texts):
        if text.startswith(_LABEL):
            yield from _labels([((*place, number), text.removeprefix(_LABEL))])
        elif fault := _no_path(text, inside=False):
            yield (*place, number), f"{fault}, or 'label KEY'"


def _text(place: Place, text: str, role: PodRole) -> Mistakes:
    """Return mistakes in a text in which paths may stand."""
    for part in text.split(" else "):
        first, dot, _ = part.partition(".")
        is_path = bool(dot) and first in (*_OWNER, "each", "metadata")
        if (is_path or "[*]" in part) and (fault := _no_path(part, inside=bool(role.each))):
            yield place, fault


def _no_path(text: str, *, inside: bool) -> str:
    try:
        return _misplaced(parse_path(text), inside=inside, several=True)
    except InvalidTerm as error:
        return str(error)


def _misplaced(found: Term, *, inside: bool, replicas: bool = False, several: bool = False) -> str:
    """Return which path in a term cannot be there: it begins with nothing that is known, or finds several numbers."""
    added: list[Path] = []
    for part in found.parts():
        if isinstance(part, Sum):
            added.append(part.over)
        if not isinstance(part, Path):
            continue
        begin = part.steps[0]
        if begin == "each" and not (inside or added):
            return f"{spelled(part.steps)}: there is no each here; name the list in the field each"
        if begin not in (*_OWNER, "each") and not (replicas and part.steps == ("replicas",)):
            return f"{spelled(part.steps)}: expected a path that begins with spec. or status."
        if "*" in part.steps and part not in added and not several:
            return f"{spelled(part.steps)}: finds several numbers; sum({spelled(part.steps)}) adds them up"
    return ""


def _labels(keys: Iterable[tuple[Place, str]]) -> Mistakes:
    for place, key in keys:
        for fault in qualified_name_faults(key):
            yield place, f"{key!r} is no key of a label: it {fault}"


def _kind(place: Place, kind: str) -> Mistakes:
    group, _, name = kind.rpartition("/")
    if not _KIND.fullmatch(name) or dns_subdomain_faults(group):
        yield place, f"found {kind!r}, expected group/Kind without a version, such as batch/Job; core kinds are v1/Kind"


def _unfilled(text: str, **places: str) -> str:
    """Return what is wrong with a text that has places in braces; nothing if all can be filled in."""
    try:
        text.format(**places)
    except (KeyError, IndexError, ValueError, AttributeError):
        known = ", ".join(f"{{{name}}}" for name in places)
        return f"found {text!r}; the places in it may be {known}"
    return ""
