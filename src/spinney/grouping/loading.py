"""Loading rules: ours, and a user's; what is wrong with them is said at once, with lines."""

from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files

from spinney.api.struct import Struct
from spinney.backends.documents import Document, DocumentProblem, InvalidDocument, Step, decode, parse
from spinney.grouping.rules import PodRole, Rule, RuleSet, TextTerm, term, texts_of
from spinney.grouping.terms import InvalidTerm


class _RuleFile(Struct, frozen=True, kw_only=True):
    rules: tuple[Rule, ...]


@cache
def built_in() -> RuleSet:
    """Return our own rules."""
    document = parse((files(__package__) / "kinds.yaml").read_text(), "kinds.yaml")
    document = Document(document.source, {"rules": document.value["rules"]}, document.lines)
    rules = decode(_RuleFile, document).rules
    check(rules, document, ("rules",))
    return RuleSet.of(rules)


def check(rules: Iterable[Rule], document: Document, at: tuple[Step, ...] = ()) -> None:
    """Check rules beyond their form; raises :class:`InvalidDocument` with everything that is wrong."""
    problems: list[DocumentProblem] = []
    kinds: set[str] = set()
    for number, rule in enumerate(rules):
        where = (*at, number)
        if rule.key in kinds:
            problems.append(document.problem((*where, "kind"), f"a second rule for {rule.key}; a kind has one"))
        kinds.add(rule.key)
        problems += [document.problem((*where, *path), message) for path, message in _faults(rule)]
    if problems:
        raise InvalidDocument(problems)


def _faults(rule: Rule) -> Iterator[tuple[tuple[Step, ...], str]]:
    if "/" not in rule.kind:
        yield ("kind",), f"found {rule.kind!r}, expected group/Kind such as batch/Job"
    if not (rule.one_per in ("owner", "counts", "pod") or (rule.label and " " not in rule.label)):
        yield ("onePer",), f"found {rule.one_per!r}, expected owner, counts, pod or 'label KEY'"
    if rule.one_per == "counts" and rule.counts is None:
        yield ("onePer",), "is counts, and the rule names no other object that holds the counts"
    if rule.roles and (rule.floor != 1 or rule.replicas is not None):
        yield ("floor",), "the roles have floors; a rule has a floor, or roles"
    for path, text in texts_of(rule):
        try:
            term(text)
        except InvalidTerm as error:
            yield path, str(error)
    yield from _text_faults(rule)
    names = {role.name for role in rule.roles}
    rests = [number for number, role in enumerate(rule.roles) if role.pods == "rest"]
    for number in rests[1:]:
        yield ("roles", number, "pods"), "a second role that takes the rest; a rule has one"
    for number, role in enumerate(rule.roles):
        yield from ((("roles", number, *path), message) for path, message in _role_faults(role, names))


def _text_faults(rule: Rule) -> Iterator[tuple[tuple[Step, ...], str]]:
    """Return what is wrong with names, places of names, and what a workload makes."""
    if fault := _unfilled(rule.name, owner="", uid="", label=""):
        yield ("name",), fault
    paths: list[tuple[tuple[Step, ...], TextTerm]] = []
    for number, made in enumerate(rule.makes):
        where = ("makes", number)
        paths += [((*where, "count"), made.count), ((*where, "template"), made.template)]
        paths += [((*where, "each"), made.each)] if made.each else []
    for number, text in enumerate(rule.priority_from):
        paths += [(("priorityFrom", number), text)] if not text.startswith("label ") else []
    for number, text in enumerate(rule.counts.name if rule.counts is not None else ()):
        paths += [(("counts", "name", number), text)] if not text.startswith("label ") else []
    for path, written in paths:
        try:
            term(written)
        except InvalidTerm as error:
            yield path, str(error)


def _unfilled(text: str, **places: str) -> str:
    """Return what is wrong with a text that has places in braces; nothing if all can be filled in."""
    try:
        text.format(**places)
    except (KeyError, IndexError, ValueError):
        known = ", ".join(f"{{{name}}}" for name in places)
        return f"found {text!r}; the places in it may be {known}"
    return ""


def _role_faults(role: PodRole, names: set[str]) -> Iterator[tuple[tuple[Step, ...], str]]:
    if not role.pods:
        yield ("pods",), "names no label; expected labels and values, or rest"
    if role.segments is not None and role.segments.leader and role.segments.leader not in names:
        yield ("segments", "leader"), f"no role is named {role.segments.leader!r}"
    if role.segments is not None and (fault := _unfilled(role.segments.name, role="", index="")):
        yield ("segments", "name"), fault
    if role.segments is not None and role.split is not None:
        yield ("segments",), "a role is split, or has segments, not both"
    for place, after in enumerate(role.after):
        if after.role and after.role not in names:
            yield ("after", place, "role"), f"no role is named {after.role!r}"
