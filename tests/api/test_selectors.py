"""Selecting by label and by field."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.api.selectors import (
    FieldSelector,
    InvalidSelector,
    LabelSelector,
    LabelSelectorRequirement,
    Requirement,
    Selector,
    SelectorOperator,
)
from spinney.api.struct import convert

LABELS = {"app": "web", "tier": "2", "example.com/zone": "a"}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ("app", True),
        ("!app", False),
        ("!gone", True),
        ("app=web", True),
        ("app==web", True),
        ("app!=web", False),
        ("gone!=web", True),
        ("app in (web, api)", True),
        ("app notin (web,api)", False),
        ("gone notin (x)", True),
        ("tier>1", True),
        ("tier<2", False),
        ("tier > 1 , app = web", True),
        ("example.com/zone in (a,b),app", True),
        ("app=", False),
        ("gone in (,a)", False),
        ("app in (in, web)", True),
    ],
)
def test_text_selects_as_kubectl_would(text: str, matches: bool) -> None:
    """Equality, sets, existence and comparison mean what they mean in Kubernetes."""
    selector = Selector.parse(text)
    assert selector.matches(LABELS) is matches
    assert Selector.parse(str(selector)) == Selector.parse(str(Selector.parse(str(selector))))


@pytest.mark.parametrize(
    "text",
    ["=", "a in", "a in b", "a in (b", "a b", "a>x", "a,,b", "a,", "-a=b", "a=b c", "a=!", "a>-3", "a=" + "x" * 64],
)
def test_refuses_what_is_no_selector(text: str) -> None:
    """The error repeats the text and says what was expected."""
    with pytest.raises(InvalidSelector, match="is not a selector"):
        Selector.parse(text)


keys = st.sampled_from(["app", "tier", "a.b/c", "x"])
words = st.sampled_from(["", "web", "2", "10", "a-b"])
requirements = st.one_of(
    st.builds(Requirement, keys, st.sampled_from([SelectorOperator.EXISTS, SelectorOperator.DOES_NOT_EXIST])),
    st.builds(
        Requirement,
        keys,
        st.sampled_from([SelectorOperator.IN, SelectorOperator.NOT_IN]),
        st.lists(words, min_size=1, max_size=3, unique=True).map(tuple),
    ),
    st.builds(
        Requirement,
        keys,
        st.sampled_from([SelectorOperator.GREATER, SelectorOperator.LESS]),
        st.sampled_from(["1", "5"]).map(lambda n: (n,)),
    ),
)


@given(st.lists(requirements, max_size=4), st.dictionaries(keys, words))
def test_text_means_the_same_selection(parts: list[Requirement], labels: dict[str, str]) -> None:
    """Parsing what was written selects the same objects."""
    selector = Selector(tuple(parts))
    assert Selector.parse(str(selector)).matches(labels) == selector.matches(labels)


@given(st.dictionaries(keys, words), st.dictionaries(keys, words))
def test_structured_selectors_agree_with_their_text(wanted: dict[str, str], labels: dict[str, str]) -> None:
    """A LabelSelector and the text made of it match the same labels."""
    structured = LabelSelector(
        match_labels=wanted, match_expressions=(LabelSelectorRequirement(key="app", operator="Exists"),)
    )
    assert structured.matches(labels) == Selector.parse(str(structured)).matches(labels)


def test_an_empty_label_selector_matches_everything() -> None:
    """Without labels and expressions nothing is excluded."""
    assert convert(LabelSelector, {}).matches({"a": "b"})


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ("spec.nodeName=n1", True),
        ("spec.nodeName==n1", True),
        ("spec.nodeName!=n1", False),
        ("status.phase=", True),
        (r"metadata.name=a\,b\=c\\d,spec.nodeName!=n2", True),
    ],
)
def test_field_selectors_compare_fields(text: str, matches: bool) -> None:
    """Fields are compared as text, absent ones as empty, with escapes undone."""
    selector = FieldSelector.parse(text)
    assert selector.matches({"spec.nodeName": "n1", "metadata.name": r"a,b=c\d"}) is matches
    assert FieldSelector.parse(str(selector)) == selector


def test_refuses_what_is_no_field_selector() -> None:
    """A part without an operator is refused with the whole text."""
    with pytest.raises(InvalidSelector, match="expected path=value"):
        FieldSelector.parse("spec.nodeName")
