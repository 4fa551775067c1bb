"""What a controller has written counts until its cache shows it, or shows that it is lost."""

from spinney.kube.cache import Change
from spinney.kube.keys import Key
from spinney.kube.reconciling import Latest
from tests.kube.things import Thing, a_thing

KEY = Key("x", "a")


def test_what_was_written_counts_until_the_cache_has_caught_up() -> None:
    """A cache that is behind does not undo a write; one that is ahead does."""
    latest: Latest[Thing] = Latest()
    before, written, after = (a_thing(version=version) for version in "579")
    assert latest.of(KEY, before) is before
    latest.wrote(KEY, written)
    assert latest.of(KEY, before) is written
    assert latest.of(KEY, after) is after


def test_what_was_written_is_lost_with_the_state_it_was_written_to() -> None:
    """A cache that goes back shows what the API server has now: a write of later is in no store any more."""
    latest: Latest[Thing] = Latest()
    latest.of(KEY, a_thing(version="5"))
    latest.wrote(KEY, a_thing(version="7"))
    restored = a_thing(version="3")
    assert latest.of(KEY, restored) is restored


def test_a_write_that_was_seen_and_lost_is_not_gone_on_with() -> None:
    """Its own event asks a controller for nothing, so that the cache is looked at only when it has gone back."""
    latest: Latest[Thing] = Latest()
    before, written = a_thing(version="5"), a_thing(version="7")
    latest.of(KEY, before)
    latest.wrote(KEY, written)
    assert latest.is_written(Change(KEY, before, written, "7"))
    assert latest.of(KEY, before) is before
