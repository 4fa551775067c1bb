"""Equal parts of cached objects have one body, and nothing about the objects changes."""

from collections.abc import Mapping

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from spinney.api.struct import Struct
from spinney.kube import sharing
from spinney.kube.sharing import Sharing


class Inner(Struct, frozen=True, kw_only=True):
    """Something with parts."""

    text: str = ""
    maybe: str | None = None
    number: int = 0
    words: tuple[str, ...] = ()
    labels: Mapping[str, str] = {}


class Outer(Struct, frozen=True, kw_only=True):
    """An object as a cache holds it."""

    inner: Inner = Inner()
    other: Inner | None = None


small = st.sampled_from(["", "a", "b", "c"])
inners = st.builds(
    Inner,
    text=small,
    maybe=st.none() | small,
    number=st.integers(0, 2),
    words=st.lists(small, max_size=3).map(tuple),
    labels=st.dictionaries(small, small, max_size=2),
)
outers = st.lists(st.builds(Outer, inner=inners, other=st.none() | inners), max_size=30)


def copied(obj: Outer) -> Outer:
    """Return an equal object that shares nothing with this one."""
    return msgspec.json.decode(msgspec.json.encode(obj), type=Outer)


@settings(deadline=None)
@given(objects=outers)
def test_sharing_changes_no_value(objects: list[Outer]) -> None:
    """Whatever is shared, every object is still equal to what was decoded."""
    pool = Sharing()
    for obj in objects:
        shared = copied(obj)
        pool.share(shared)
        assert shared == obj


def test_equal_parts_have_one_body() -> None:
    """Texts, sequences and mappings seen before are used again."""
    pool = Sharing()
    original = Outer(inner=Inner(text="some text", words=("x", "y"), labels={"app": "web"}))
    first, second = copied(original), copied(original)
    pool.share(first)
    pool.share(second)
    assert first.inner.text is second.inner.text
    assert first.inner.words is second.inner.words
    assert first.inner.labels is second.inner.labels


def test_fields_that_never_repeat_are_left_alone() -> None:
    """A field that is different each time is no longer remembered after a trial; the others still are."""
    pool = Sharing()
    for number in range(sharing.TRIAL + 1):
        pool.share(Outer(inner=Inner(text=f"unique {number}", words=("x",))))
    first, second = (copied(Outer(inner=Inner(text="same now", words=("x",)))) for _ in range(2))
    pool.share(first)
    pool.share(second)
    assert first.inner.words is second.inner.words
    assert first.inner.text is not second.inner.text


def test_what_is_remembered_is_bounded() -> None:
    """Parts not used for long are forgotten, so that a pool does not grow with everything that ever was."""
    pool = Sharing()
    old = Outer(inner=Inner(text="of old"))
    pool.share(old)
    for number in range(sharing.TRIAL):
        pool.share(Outer(inner=Inner(text=f"text {number % 10}")))
    for number in range(3 * sharing.GENERATION):
        pool.share(Outer(inner=Inner(text=f"new {number}")))
    again = copied(old)
    pool.share(again)
    assert again.inner.text is not old.inner.text


class Anything(Struct, frozen=True, kw_only=True):
    """A part that keeps what the user wrote."""

    template: Mapping[str, object] = {}


class Holder(Struct, frozen=True, kw_only=True):
    """An object with such a part."""

    spec: Anything = Anything()


def test_numbers_beyond_64_bits_are_kept_as_they_are() -> None:
    """JSON carries any number, and one of a user's must not end who watches: the part is only not shared."""
    shared = Sharing()
    first, second = (Holder(spec=Anything(template={"gpus": 10**20})) for _ in range(2))
    for each in (first, second):
        shared.share(each)

    assert first == second == Holder(spec=Anything(template={"gpus": 10**20}))
