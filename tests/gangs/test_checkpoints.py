"""What pods and gangs say about checkpoints, read from annotations that anybody may write."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from spinney.api.labels import EVICTION_REQUEST, LAST_CHECKPOINT
from spinney.gangs.checkpoints import annotations_of, request, request_of
from spinney.gangs.sources.context import timestamp_of
from spinney.gangs.tree import GangKey

NOW = datetime(2026, 1, 1, 12, 0, 0, 250_000, tzinfo=UTC)
JOB = GangKey("podgang", "team", "urgent-0")


def test_a_request_survives_being_written() -> None:
    """What is read from a pod is what was written on it."""
    said = request(JOB, now=NOW, grace=timedelta(minutes=5), message="why", action="preempt", moves_to="n1")
    written = {key: text for key, text in annotations_of(said).items() if text is not None}
    assert request_of(written) == said


@pytest.mark.parametrize(
    "change",
    [
        {"beneficiary": "urgent"},
        {"beneficiary": ["podgang", "urgent"]},
        {"asked": "2026-01-01T00:00:00"},
        {"by": "0001-01-01T00:00:00+14:00"},
        {"by": None},
        {"by": 7},
    ],
)
def test_a_request_that_cannot_be_read_is_none(change: dict[str, object]) -> None:
    """Whoever writes nonsense on a pod has asked nobody, and no cycle fails for it."""
    good = {"beneficiary": list(JOB), "asked": "2026-01-01T00:00:00Z", "by": "2026-01-01T00:05:00Z"}
    assert request_of({EVICTION_REQUEST: json.dumps(good)}) is not None
    assert request_of({EVICTION_REQUEST: json.dumps(good | change)}) is None


@pytest.mark.parametrize("text", ["", "soon", "2026-01-01", "0001-01-01T00:00:00+14:00"])
def test_a_checkpoint_that_is_no_time_is_none(text: str) -> None:
    """A workload that writes nonsense has made no checkpoint."""
    assert timestamp_of({LAST_CHECKPOINT: text}, LAST_CHECKPOINT) is None


def test_a_request_that_is_nested_without_end_is_none() -> None:
    """Who may annotate a pod may write anything there; no scheduler ends for it."""
    assert request_of({EVICTION_REQUEST: '{"why":' + "[" * 5000 + "]" * 5000 + "}"}) is None
