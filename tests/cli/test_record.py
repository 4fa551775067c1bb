"""``spinney record`` writes what happens on a cluster, and ``spinney replay`` takes it up again."""

import asyncio
import errno
import os
import signal
from dataclasses import replace
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from spinney.api.core import POD
from spinney.cli import main
from spinney.cli.bodies import record
from spinney.cli.clusters.choosing import ClusterChoice
from spinney.cli.clusters.reading import snapshot_of
from spinney.cli.running import Ending, until_interrupted
from spinney.sim.snapshots.files import write_snapshot
from spinney.sim.snapshots.snapshot import ClusterSnapshot
from tests.cli.clusters import ServedCluster
from tests.cli.workloads import a_training_job, until_refused


def test_a_cluster_is_recorded_and_replayed(served: ServedCluster, tmp_path: Path) -> None:
    """Snapshots are kept where they differ; a replay of them has the cluster's nodes and its gang."""
    served.call(lambda client: until_refused(client, a_training_job("waits", workers=3)))
    week = tmp_path / "week"
    written = served.spinney("record", str(week), "--every", "50ms", "--for", "60ms")

    assert written.exit_code == 0
    assert len(list(week.glob("*.json.gz"))) >= 1
    replayed = CliRunner().invoke(main, ["replay", str(week)])
    assert replayed.exit_code == 0, replayed.output
    assert "1 job on 4 nodes" in replayed.output


def test_no_placements_are_written_over_a_snapshot(served: ServedCluster, tmp_path: Path) -> None:
    """A file of the recording that is replayed is refused as the one for placements."""
    served.spinney("record", str(tmp_path), "--every", "50ms", "--for", "1ms")
    snapshot, *_ = sorted(tmp_path.iterdir())
    before = snapshot.read_bytes()
    refused = CliRunner().invoke(main, ["replay", str(tmp_path), "--placements", str(snapshot)])
    assert "is read by this replay" in " ".join(refused.output.split())
    assert snapshot.read_bytes() == before
    for name, code in (("placements.json.gz", 2), ("placements.json", 0), ("placements.json", 0)):
        answer = CliRunner().invoke(main, ["replay", str(tmp_path), "--placements", str(tmp_path / name)])
        assert answer.exit_code == code, answer.output


def test_a_recording_goes_on_when_the_cluster_is_back(
    served: ServedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cluster that does not answer for a while leaves a gap: it ended the recording of a week."""
    looks = 0

    def sometimes(choice: ClusterChoice) -> tuple[ClusterSnapshot, str | None]:
        nonlocal looks
        looks += 1
        if looks == 2:
            raise click.ClickException("no connection")
        if looks == 4:
            raise KeyboardInterrupt
        return snapshot_of(choice)

    monkeypatch.setattr(record, "snapshot_of", sometimes)
    answer = served.spinney("record", str(tmp_path), "--every", "1ms")

    assert answer.exit_code == 0
    assert "nothing recorded this time, trying again: no connection" in answer.stderr
    assert "1 time without an answer" in answer.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_recording_at_any_time(
    number: signal.Signals, served: ServedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was recorded is told also when the cluster is being read at that moment, which may take most of the time."""
    looks = 0

    async def interrupted() -> None:
        signal.raise_signal(number)
        await asyncio.Event().wait()

    def slow_the_second_time(choice: ClusterChoice) -> tuple[ClusterSnapshot, str | None]:
        nonlocal looks
        looks += 1
        if looks == 2:
            until_interrupted(interrupted())
        return snapshot_of(choice)

    monkeypatch.setattr(record, "snapshot_of", slow_the_second_time)
    answer = served.spinney("record", str(tmp_path), "--every", "1ms")

    assert answer.exit_code == 0
    assert "1 snapshot; 'spinney replay" in answer.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_a_snapshot_is_written_lets_that_be_finished(
    number: signal.Signals, served: ServedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGTERM ended it there and then, without a word; what was seen last is part of the recording."""

    def write(snapshot: ClusterSnapshot, path: Path) -> int:
        signal.raise_signal(number)
        return write_snapshot(snapshot, path)

    monkeypatch.setattr(record, "write_snapshot", write)
    before = signal.getsignal(number)
    answer = served.spinney("record", str(tmp_path), "--every", "1h")

    assert answer.exit_code == 0
    assert "1 snapshot; 'spinney replay" in answer.stdout
    assert len(list(tmp_path.iterdir())) == 1
    assert signal.getsignal(number) is before


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_before_anything_was_recorded_is_told(
    number: signal.Signals, code: int, served: ServedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exit code is that of an interrupted command: there is nothing to replay."""

    async def interrupted() -> None:
        signal.raise_signal(number)
        await asyncio.Event().wait()

    monkeypatch.setattr(record, "snapshot_of", lambda choice: until_interrupted(interrupted()))
    answer = served.spinney("record", str(tmp_path))

    assert answer.exit_code == code
    assert "nothing was recorded" in answer.stderr


def test_a_full_disk_ends_a_recording_with_what_it_has(
    served: ServedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message said only that there is no space; no part of a file is left behind."""
    looks = 0

    def changing(choice: ClusterChoice) -> tuple[ClusterSnapshot, str | None]:
        nonlocal looks
        looks += 1
        found, source = snapshot_of(choice)
        return replace(found, objects={**found.objects, POD: found.pods[: looks - 1]}), source

    def no_space(file: int) -> None:
        if looks == 2:
            raise OSError(errno.ENOSPC, "No space left on device")

    served.call(lambda client: until_refused(client, a_training_job("full", workers=9)))
    monkeypatch.setattr(record, "snapshot_of", changing)
    monkeypatch.setattr(os, "fsync", no_space)
    answer = served.spinney("record", str(tmp_path), "--every", "1ms")

    assert answer.exit_code == 1
    said = " ".join(answer.stderr.split())
    assert "cannot be written: No space left on device; 1 snapshot; 'spinney replay" in said
    assert "start again with the same directory" in said
    assert len(list(tmp_path.iterdir())) == 1


class Clock:
    """Takes the place of ``time``: it goes on while somebody waits, and as it is told. Mutable."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def wait(self, seconds: float) -> bool:
        self.slept.append(seconds)
        self.now += seconds
        return False


def test_what_was_missed_is_not_made_up_for(
    served: ServedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an outage in which each look took long the rhythm is as before: the API server was asked without a rest."""
    clock = Clock()
    looks = 0

    def sometimes(choice: ClusterChoice) -> tuple[ClusterSnapshot, str | None]:
        nonlocal looks
        looks += 1
        if looks == 6:
            raise KeyboardInterrupt
        if looks in {2, 3}:
            clock.now += 100
            raise click.ClickException("no connection")
        return snapshot_of(choice)

    monkeypatch.setattr(record, "snapshot_of", sometimes)
    monkeypatch.setattr(record, "time", clock)
    monkeypatch.setattr(Ending, "wait", lambda _, seconds: clock.wait(seconds))
    served.spinney("record", str(tmp_path), "--every", "10s")

    assert clock.slept == [10, 0, 0, 10, 10]


@pytest.mark.parametrize(
    ("every", "said"),
    [
        ("often", "'often' is not a duration"),
        ("0s", "expected a duration above 0"),
        ("3000000h", "'3000000h' is too long; the longest"),
    ],
)
def test_a_rhythm_that_is_none_is_refused(every: str, said: str, tmp_path: Path) -> None:
    """--every takes a duration above zero, and none that is too long."""
    answer = CliRunner().invoke(main, ["record", str(tmp_path / "week"), "--every", every])

    assert answer.exit_code == 2
    assert said in answer.output
