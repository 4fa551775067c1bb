"""The merge patch between two objects does exactly what applying it should."""

from hypothesis import given
from hypothesis import strategies as st

from spinney.api.merge_patch import merge, merge_patch

SCALARS = st.booleans() | st.integers() | st.text(max_size=3)
VALUES = st.recursive(
    SCALARS | st.lists(SCALARS, max_size=3),
    lambda inner: st.dictionaries(st.sampled_from("abcd"), inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.sampled_from("abcd"), VALUES, max_size=4)


@given(OBJECTS, OBJECTS)
def test_a_patched_object_is_the_wanted_one(found: dict[str, object], wanted: dict[str, object]) -> None:
    """Whatever was there, after the patch there is what was wanted."""
    assert merge(found, merge_patch(found, wanted)) == wanted


@given(OBJECTS)
def test_nothing_to_change_is_an_empty_patch(found: dict[str, object]) -> None:
    """An object that is as wanted needs no patch."""
    assert merge_patch(found, found) == {}
