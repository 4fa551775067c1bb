"""A correction does what it says and touches nothing else."""

from hypothesis import given
from hypothesis import strategies as st

from spinney.operator.desired.corrections import of_fields, of_members, of_texts
from spinney.server.patches.json import apply_json_patch

KEYS = st.sampled_from(["a", "a/b", "~c", "example.com/d"])
TEXTS = st.dictionaries(KEYS, st.text(max_size=2), max_size=4)
FIELDS = st.dictionaries(KEYS, st.integers() | st.lists(st.integers(), max_size=2) | st.none(), max_size=4)
NAMES = st.lists(st.sampled_from("abc"), unique=True, max_size=3).map(tuple)


@given(TEXTS, TEXTS, st.sets(KEYS))
def test_texts_are_put_in_and_only_the_unwanted_ones_out(
    found: dict[str, str], wanted: dict[str, str], unwanted: set[str]
) -> None:
    """What is wanted is there, what is unwanted is not, and the rest is as it was; an absent map is made."""
    patch = of_texts("/labels", found, wanted, unwanted=sorted(unwanted))
    before = {"labels": found} if found else {}
    after = apply_json_patch(before, patch).get("labels", {})
    kept = {key: text for key, text in found.items() if key not in unwanted}
    assert after == kept | wanted


@given(FIELDS, FIELDS)
def test_fields_become_exactly_those_wanted(found: dict[str, object], wanted: dict[str, object]) -> None:
    """After the correction there is what is wanted and nothing else; without a difference there is no correction."""
    patch = of_fields("/spec", found, wanted)
    assert bool(patch) == (found != wanted)
    assert apply_json_patch({"spec": found}, patch)["spec"] == wanted


@given(NAMES, NAMES)
def test_members_are_added_and_none_is_taken(found: tuple[str, ...], wanted: tuple[str, ...]) -> None:
    """A list gets what it lacks, at its end."""
    patch = of_members("/finalizers", found, wanted)
    after = apply_json_patch({"finalizers": list(found)} if found else {}, patch).get("finalizers", [])
    assert after == [*found, *(each for each in wanted if each not in found)]
