"""Loading rules: ours, and a user's; what is wrong with them is said at once, with lines."""

from collections.abc import Iterable
from functools import cache
from importlib.resources import files

from spinney.api.documents import Document, DocumentProblem, InvalidDocument, Step, decode, parse
from spinney.api.struct import Struct
from spinney.grouping.mistakes import mistakes
from spinney.grouping.rules import Rule, RuleSet


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
        problems += [document.problem((*where, *path), message) for path, message in mistakes(rule)]
    if problems:
        raise InvalidDocument(problems)
