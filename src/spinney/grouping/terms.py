"""Paths and whole-number terms: the little language in which a rule says where counts are.

A *path* is keys joined by dots (``spec.replicas``), ``[*]`` for every element of a list or value of a map, and ``each``
for the element at hand; keys with dots stand in quotes. A *term* is a number, a path, ``annotation KEY``, ``a else b``
(b when a is absent), ``a or b`` (b when a is absent or 0), ``+ - *``, ``min(...)``, ``max(...)``, ``sum(...)`` over the
one ``[*]`` inside, and ``replicas`` for the replicas of the role at hand. ``lenient annotation KEY`` takes 0 as a
number, and anything that is no number as absent. ``pod annotation KEY`` is one of the pod at hand.

Terms are parsed when a rule set is loaded, and evaluated in a :class:`TermInput`. What is absent is ``None``; what is
there and is no whole number is :class:`RuleRefused`.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final

import msgspec

Steps = tuple[str, ...]

_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<annotation>(?:(?:lenient|pod)\s+)?annotation\s+[\w./-]+)
    |(?P<number>\d+)
    |(?P<path>[A-Za-z_]\w*(?:\.(?:\w+|"[^"]+")|\[\*\])*)
    |(?P<mark>[-+*(),]))""",
    re.VERBOSE,
)
_STEP: Final = re.compile(r'\.?(?:(\w+)|"([^"]+)"|\[(\*)\])')
_WORDS: Final = frozenset({"else", "or"})
_FUNCTIONS: Final = ("min", "max", "sum", "indexes")
_INDEXES: Final = re.compile(r"(\d{1,9}(-\d{1,9})?(,\d{1,9}(-\d{1,9})?)*)?")


class InvalidTerm(ValueError):
    """A text that is not a term; the message says where it stops making sense."""


MOST_PODS: Final = 999_999_999
"""What no count may pass: far beyond any cluster, and what every scheduler's objects can hold."""


LONGEST: Final = 500
"""How many characters a term may have."""


class RuleRefused(ValueError):
    """A rule cannot be applied to a workload; the message names the object, the field and what was found."""


@dataclass(frozen=True)
class TermInput:
    """What a term is evaluated in."""

    content: Mapping[str, Any] = field(default_factory=dict)
    each: Any = None
    replicas: int | None = None
    annotation: Callable[[str], str | None] = lambda key: None
    """Of the workload."""
    pod_annotation: Callable[[str], str | None] = lambda key: None


class Term(msgspec.Struct, frozen=True):
    """A whole number that is found in a workload."""

    def value(self, scope: TermInput) -> int | None:
        """Return the number; ``None`` if what it needs is absent."""
        raise NotImplementedError

    def parts(self) -> Iterator["Term"]:
        """Return this term and every term in it."""
        yield self


class Number(Term, frozen=True):
    """A number as written."""

    number: int

    def value(self, scope: TermInput) -> int | None:
        return self.number


class Path(Term, frozen=True):
    """A field of the object that holds the counts, or of the element at hand."""

    steps: Steps

    @property
    def text(self) -> str:
        """Return the path as it was written."""
        return spelled(self.steps)

    def found(self, scope: TermInput) -> list[Any]:
        """Return every value at the path."""
        return list(look_up(scope.content, self.steps, scope.each))

    def value(self, scope: TermInput) -> int | None:
        if self.steps == ("replicas",):
            return scope.replicas
        found = next(look_up(scope.content, self.steps, scope.each), None)
        return found if found is None or type(found) is int else whole_number(found, self.text)


class Annotation(Term, frozen=True):
    """The number an annotation of the workload, or of the pod, carries; at least 1 unless ``lenient``."""

    key: str
    lenient: bool = False
    of_pod: bool = False

    def value(self, scope: TermInput) -> int | None:
        text = scope.pod_annotation(self.key) if self.of_pod else scope.annotation(self.key)
        if text is None:
            return None
        number = int(text) if re.fullmatch(r"[0-9]{1,9}", text) else None
        if self.lenient:
            return number
        if not number:
            whose = " of the pod" if self.of_pod else ""
            expected = f"expected a whole number from 1 to {MOST_PODS}"
            raise RuleRefused(f"annotation {self.key}{whose}: found {text!r}, {expected}")
        return number


class Choice(Term, frozen=True):
    """The first of two that is there; with ``skip_zero``, and is not 0."""

    first: Term
    second: Term
    skip_zero: bool

    def value(self, scope: TermInput) -> int | None:
        found = self.first.value(scope)
        if found is None or (self.skip_zero and found == 0):
            return self.second.value(scope)
        return found

    def parts(self) -> Iterator[Term]:
        yield self
        yield from self.first.parts()
        yield from self.second.parts()


class Combination(Term, frozen=True):
    """Several terms added, subtracted, multiplied, or the least or greatest of them; absent if one of them is."""

    how: str
    terms: tuple[Term, ...]

    def value(self, scope: TermInput) -> int | None:
        values = [term.value(scope) for term in self.terms]
        found = [value for value in values if value is not None]
        if len(found) < len(values):
            return None
        match self.how:
            case "min":
                return min(found)
            case "max":
                return max(found)
            case "+":
                return sum(found)
            case "-":
                return found[0] - found[1]
            case _:
                return found[0] * found[1]

    def parts(self) -> Iterator[Term]:
        yield self
        for term in self.terms:
            yield from term.parts()


class Sum(Term, frozen=True):
    """A term for every element of a list or value of a map, added up; absent if the list or map is."""

    over: Path
    term: Term

    def value(self, scope: TermInput) -> int | None:
        around = Path(self.over.steps[:-1])
        if not any(isinstance(each, list | Mapping) for each in around.found(scope)):
            return None
        total = 0
        for each in self.over.found(scope):
            found = self.term.value(replace(scope, each=each))
            if found is None:
                return None
            total += found
        return total

    def parts(self) -> Iterator[Term]:
        yield self
        yield self.over
        yield from self.term.parts()


class Indexes(Term, frozen=True):
    """How many indexes a text such as ``0,2-4`` lists, as indexed Jobs write them; absent if the text is."""

    path: Path

    def value(self, scope: TermInput) -> int | None:
        text = next(iter(self.path.found(scope)), None)
        if text is None:
            return None
        if not isinstance(text, str) or not _INDEXES.fullmatch(text):
            raise RuleRefused(f"{self.path.text}: found {text!r}, expected indexes such as '0,2-4'")
        ranges = [part.partition("-") for part in text.split(",") if part]
        return sum(int(last or first) - int(first) + 1 for first, _, last in ranges)

    def parts(self) -> Iterator[Term]:
        yield self
        yield self.path


def needed(term: Term, scope: TermInput) -> int:
    """Return the number of a term that must have one; raises :class:`RuleRefused` naming the paths that are absent."""
    found = term.value(scope)
    if found is None:
        names = [part.text for part in term.parts() if isinstance(part, Path) and part.steps[0] != "each"]
        named = names or [part.text for part in term.parts() if isinstance(part, Path)]
        raise RuleRefused(f"{' and '.join(dict.fromkeys(named)) or 'the count'}: not there, expected a whole number")
    return found


def whole_number(value: object, where: str) -> int:
    """Return a value as a whole number, also when it is one as text."""
    if isinstance(value, bool) or not (
        isinstance(value, int)
        or (isinstance(value, float) and value.is_integer())
        or (isinstance(value, str) and re.fullmatch(r"-?\d{1,18}", value))
    ):
        raise RuleRefused(f"{where}: found {value!r}, expected a whole number")
    return int(value)


def look_up(content: Any, steps: Steps, each: Any = None) -> Iterator[Any]:
    """Yield the values at a path that are there and not null."""
    start, rest = (each, steps[1:]) if steps[:1] == ("each",) else (content, steps)
    yield from _below(start, rest)


def _below(value: Any, steps: Steps) -> Iterator[Any]:
    if value is None:
        return
    if not steps:
        yield value
    elif steps[0] == "*":
        inside = value if isinstance(value, list) else value.values() if isinstance(value, Mapping) else ()
        for each in inside:
            yield from _below(each, steps[1:])
    elif isinstance(value, Mapping):
        yield from _below(value.get(steps[0]), steps[1:])


def spelled(steps: Steps) -> str:
    """Return a path as people write it."""
    text = ""
    for step in steps:
        text += "[*]" if step == "*" else f'."{step}"' if not re.fullmatch(r"\w+", step) else f".{step}"
    return text.removeprefix(".")


# -- parsing ---------------------------------------------------------------------------------------------------------


@cache
def parse_path(text: str) -> Path:
    """Parse a path; raises :class:`InvalidTerm`."""
    found = parse(text)
    if not isinstance(found, Path):
        raise InvalidTerm(f"{text!r} is not a path such as spec.replicas")
    return found


def parse(text: str | int) -> Term:
    """Parse a term; raises :class:`InvalidTerm`."""
    if isinstance(text, int):
        return Number(text)
    if len(text) > LONGEST:
        raise InvalidTerm(f"{text[:20]!r}... has {len(text)} characters, expected at most {LONGEST}")
    parser = _Parser(text)
    term = parser.choice()
    parser.end()
    return term


class _Parser:
    """Reads one term from left to right. Mutable, used once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[tuple[str, str]] = []
        position = 0
        while text[position:].strip():
            match = _TOKEN.match(text, position)
            if match is None or match.lastgroup is None:
                raise InvalidTerm(f"{text!r}: {text[position:].strip()!r} is not understood")
            kind, token = match.lastgroup, match[match.lastgroup]
            self._tokens.append(("word" if kind == "path" and token in _WORDS else kind, token))
            position = match.end()
        self._next = 0

    def choice(self) -> Term:
        term = self._sum()
        while self._peek()[0] == "word":
            word = self._take()[1]
            term = Choice(term, self._sum(), word == "or")
        return term

    def end(self) -> None:
        if self._next < len(self._tokens):
            raise InvalidTerm(f"{self._text!r}: {self._peek()[1]!r} is too much")

    def _sum(self) -> Term:
        term = self._product()
        while self._peek() in (("mark", "+"), ("mark", "-")):
            how = self._take()[1]
            term = Combination(how, (term, self._product()))
        return term

    def _product(self) -> Term:
        term = self._atom()
        while self._peek() == ("mark", "*"):
            self._take()
            term = Combination("*", (term, self._atom()))
        return term

    def _atom(self) -> Term:
        kind, token = self._take()
        if kind == "number":
            return Number(int(token))
        if kind == "annotation":
            *before, key = token.split()
            return Annotation(key, lenient=before[0] == "lenient", of_pod=before[0] == "pod")
        if kind == "path" and token in _FUNCTIONS and self._peek() == ("mark", "("):
            return self._function(token)
        if kind == "path":
            return Path(tuple(next(filter(None, groups)) for groups in _STEP.findall(token)))
        if (kind, token) == ("mark", "("):
            term = self.choice()
            self._expect(")")
            return term
        raise InvalidTerm(f"{self._text!r}: found {token or 'the end'!r} where a number or a path is expected")

    def _function(self, name: str) -> Term:
        self._expect("(")
        terms = [self.choice()]
        while self._peek() == ("mark", ","):
            self._take()
            terms.append(self.choice())
        self._expect(")")
        match name, terms:
            case "sum", _:
                return self._sum_over(terms)
            case "indexes", [Path() as path]:
                return Indexes(path)
            case "indexes", _:
                raise InvalidTerm(f"{self._text!r}: indexes() needs one path, such as status.failedIndexes")
            case _:
                return Combination(name, tuple(terms))

    def _sum_over(self, terms: list[Term]) -> Term:
        stars = {
            part.steps[: part.steps.index("*") + 1]
            for term in terms
            for part in term.parts()
            if isinstance(part, Path) and "*" in part.steps
        }
        if len(terms) != 1 or len(stars) != 1:
            raise InvalidTerm(f"{self._text!r}: sum() needs one term with one list in it, such as spec.roles[*].count")
        over = stars.pop()
        return Sum(Path(over), _for_each(terms[0], over))

    def _expect(self, mark: str) -> None:
        kind, token = self._take()
        if (kind, token) != ("mark", mark):
            raise InvalidTerm(f"{self._text!r}: found {token or 'the end'!r} where {mark!r} is expected")

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._next] if self._next < len(self._tokens) else ("end", "")

    def _take(self) -> tuple[str, str]:
        token = self._peek()
        self._next += 1
        return token


def _for_each(term: Term, over: Steps) -> Term:
    """Return a term with the path ``over`` in it replaced by the element at hand."""
    match term:
        case Path(steps) if steps[: len(over)] == over:
            return Path(("each", *steps[len(over) :]))
        case Choice(first, second, skip_zero):
            return Choice(_for_each(first, over), _for_each(second, over), skip_zero)
        case Combination(how, terms):
            return Combination(how, tuple(_for_each(each, over) for each in terms))
        case Indexes(Path(steps)) if steps[: len(over)] == over:
            return Indexes(Path(("each", *steps[len(over) :])))
        case _:
            return term
