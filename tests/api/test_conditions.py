"""Condition lists, names and timestamps."""

from datetime import UTC, datetime, timedelta

import pytest

from spinney.api import names
from spinney.api.conditions import (
    find_condition,
    is_false,
    is_true,
    remove_condition,
    set_condition,
)
from spinney.api.meta import Condition, ObjectMeta, owner_reference
from spinney.api.podgang import POD_GANG
from spinney.api.struct import encode
from spinney.api.time import micro_timestamp, parse_timestamp, timestamp

START = datetime(2026, 1, 1, tzinfo=UTC)
LATER = START + timedelta(minutes=5, microseconds=7)


def test_a_transition_time_moves_only_with_the_status() -> None:
    """A new message keeps the time, a new status sets it, without fractions of a second."""
    conditions = set_condition((), Condition(type="Ready", status="False", reason="A"), START)
    conditions = set_condition(conditions, Condition(type="Ready", status="False", reason="B"), LATER)
    ready = find_condition(conditions, "Ready")
    assert ready is not None
    assert (ready.reason, ready.last_transition_time) == ("B", START)
    conditions = set_condition(conditions, Condition(type="Ready", status="True"), LATER)
    assert conditions[0].last_transition_time == START + timedelta(minutes=5)


def test_setting_a_condition_keeps_the_others_in_place() -> None:
    """Conditions are keyed by type; their order does not change."""
    conditions = (Condition(type="A", status="True"), Condition(type="B", status="False"))
    changed = set_condition(conditions, Condition(type="A", status="Unknown"), START)
    assert [(c.type, c.status) for c in changed] == [("A", "Unknown"), ("B", "False")]
    assert remove_condition(changed, "A") == conditions[1:]


def test_an_absent_condition_is_neither_true_nor_false() -> None:
    """Nothing is known about a condition nobody has written."""
    assert not is_true((), "Ready")
    assert not is_false((), "Ready")


def test_timestamps_are_those_kubernetes_accepts() -> None:
    """Times have whole seconds, micro times always six decimals, and both read back."""
    assert timestamp(LATER) == "2026-01-01T00:05:00Z"
    assert micro_timestamp(START) == "2026-01-01T00:00:00.000000Z"
    assert parse_timestamp(micro_timestamp(LATER)) == LATER
    assert encode(Condition(type="A", status="True", last_transition_time=START)).endswith(b'"2026-01-01T00:00:00Z"}')
    with pytest.raises(ValueError, match="has no time zone"):
        parse_timestamp("2026-01-01T00:00:00")


def test_an_owner_must_have_been_stored() -> None:
    """An object without a uid cannot own anything, and the error says what to do."""
    with pytest.raises(ValueError, match=r"has no metadata\.uid; read it"):
        owner_reference(POD_GANG, ObjectMeta(name="g", namespace="ns"))
    reference = owner_reference(POD_GANG, ObjectMeta(name="g", uid="u"))
    assert (reference.kind, reference.controller, reference.uid) == ("PodGang", True, "u")


@pytest.mark.parametrize(
    ("check", "valid", "wrong"),
    [
        (names.dns_label_faults, ["a", "a-1", "0" * 63], ["", "A", "-a", "a-", "a.b", "a" * 64]),
        (names.dns_subdomain_faults, ["a.b-c.d", "a" * 253], ["", "a..b", ".a", "a_b", "a" * 254]),
        (
            names.qualified_name_faults,
            ["a", "A_b.c", "example.com/Name"],
            ["", "/a", "a/", "Ex.com/a", "a b", "x" * 64, "a/b/c"],
        ),
        (names.label_value_faults, ["", "a", "A_1"], ["-a", "a b", "x" * 64]),
        (names.env_name_faults, ["A", "a.b-c d", "1"], ["", "A=B", "\x07"]),
        (names.path_segment_faults, ["a", ""], [".", "..", "a/b", "a%b"]),
    ],
)
def test_names_follow_kubernetes(check: names.Check, valid: list[str], wrong: list[str]) -> None:
    """Each kind of name accepts and refuses what Kubernetes does."""
    assert [name for name in valid if check(name)] == []
    assert [name for name in wrong if not check(name)] == []
