"""From a changed object to the keys it concerns."""

from spinney.api.keys import Key
from spinney.api.resource import Resource
from spinney.kube.cache import Change
from spinney.kube.controller import to_controller_of, to_label
from tests.kube.model import THING
from tests.kube.things import Thing, a_thing


def change(old: Thing | None, new: Thing | None) -> Change[Thing]:
    return Change(Key("x", "a"), old, new, "2")


def test_a_change_wakes_the_controller_of_the_object() -> None:
    """A child maps to its controlling owner of the given kind."""
    mapper = to_controller_of(THING)
    assert list(mapper(change(None, a_thing(owner="o")))) == [Key("x", "o")]
    assert list(mapper(change(None, a_thing()))) == []


def test_an_object_that_changes_hands_wakes_both_owners() -> None:
    """Old and new owner are both told."""
    moved = change(a_thing(owner="before"), a_thing(owner="after"))
    assert list(to_controller_of(THING)(moved)) == [Key("x", "before"), Key("x", "after")]


def test_an_owner_of_another_kind_or_group_is_not_woken() -> None:
    """Kind and group must match; the version need not."""
    other = Resource("another.group", "v1", "Thing", "things")
    newer = Resource(THING.group, "v9", "Thing", "things")
    assert list(to_controller_of(other)(change(None, a_thing(owner="o")))) == []
    assert list(to_controller_of(newer)(change(None, a_thing(owner="o")))) == [Key("x", "o")]


def test_a_label_names_the_key() -> None:
    """An object maps to the object of its namespace that its label names."""
    labelled = a_thing(labels={"app": "web"})
    assert list(to_label("app")(change(labelled, None))) == [Key("x", "web")]
    assert list(to_label("tier")(change(labelled, None))) == []
