"""The language in which rules say where counts are."""

import pytest

from spinney.grouping.terms import InvalidTerm, RuleRefused, TermInput, needed, parse

CONTENT = {"spec": {"replicas": 3, "zero": 0, "roles": {"a": {"replicas": 2}, "b": {}}, "word": "many", "text": "4"}}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (7, 7),
        ("spec.replicas", 3),
        ("spec.text", 4),
        ("spec.missing", None),
        ("spec.missing else 5", 5),
        ("spec.zero else 5", 0),
        ("spec.zero or 5", 5),
        ("spec.missing else spec.zero or 6", 6),
        ("spec.replicas - 1", 2),
        ("spec.replicas + 2 * 2", 7),
        ("(spec.replicas + 2) * 2", 10),
        ("min(spec.replicas, 2)", 2),
        ("max(1, spec.zero)", 1),
        ("sum(spec.roles[*].replicas else 1)", 3),
        ("sum(spec.nothing[*].replicas)", None),
        ("min(spec.replicas, spec.missing)", None),
        ('spec."replicas"', 3),
    ],
)
def test_a_term_finds_a_whole_number_or_nothing(text: str | int, value: int | None) -> None:
    """Paths, alternatives and arithmetic give the number they say; what is absent gives none."""
    assert parse(text).value(TermInput(CONTENT)) == value


@pytest.mark.parametrize("text", ["", "spec.", "spec.a b", "min(1", "a +", "sum(spec.replicas)", "1 $ 2", "else 1"])
def test_what_is_no_term_is_refused_when_it_is_read(text: str) -> None:
    """A mistake in a rule is found when the rule is loaded, not when a pod comes."""
    with pytest.raises(InvalidTerm):
        parse(text)


def test_annotations_of_the_workload_and_of_the_pod_are_apart() -> None:
    """A term says whose annotation it means."""
    scope = TermInput(annotation={"size": "3"}.get, pod_annotation={"size": "2", "own": "1"}.get)
    asked = ("annotation size", "pod annotation size", "annotation own", "pod annotation own else 9")
    assert [parse(text).value(scope) for text in asked] == [3, 2, None, 1]


def test_a_field_that_is_no_number_is_named() -> None:
    """The message names the field, what was found and what was expected."""
    with pytest.raises(RuleRefused, match=r"spec\.word: found 'many', expected a whole number"):
        parse("spec.word").value(TermInput(CONTENT))


def test_a_count_that_must_be_there_is_named() -> None:
    """The message names the path that is absent."""
    with pytest.raises(RuleRefused, match=r"spec\.nothing"):
        needed(parse("sum(spec.nothing[*].replicas else 1)"), TermInput(CONTENT))


@pytest.mark.parametrize(("text", "value"), [("0", 0), ("3", 3), ("many", None), ("-1", None)])
def test_a_lenient_annotation_takes_what_is_no_number_as_absent(text: str, value: int | None) -> None:
    """Zero is a number; anything else counts as not there."""
    scope = TermInput(annotation={"key": text}.get)
    assert parse("lenient annotation key").value(scope) == value


@pytest.mark.parametrize("text", ["0", "-1", "many", "1.5", " 2"])
def test_an_annotation_must_be_a_whole_number_of_at_least_one(text: str) -> None:
    """A minimum of zero or less, or one that is no number, is refused with the annotation named."""
    with pytest.raises(RuleRefused, match=r"annotation example\.com/least"):
        parse("annotation example.com/least").value(TermInput(annotation={"example.com/least": text}.get))
