"""``spinney record``: what happens on a cluster, to be replayed later."""

import time
from datetime import timedelta
from pathlib import Path

import click

from spinney.api.core import NODE, POD
from spinney.api.durations import InvalidDuration, parse_duration
from spinney.cli.clusters.choosing import ClusterChoice
from spinney.cli.clusters.reading import print_unseen, snapshot_of
from spinney.cli.running import Ending, signals_restored
from spinney.cli.terminal.output import echo
from spinney.explain.amounts import counted
from spinney.sim.snapshots.files import write_snapshot
from spinney.sim.snapshots.snapshot import ClusterSnapshot


def record(*, directory: Path, every: str, lasting: str | None, choice: ClusterChoice) -> None:
    period = _duration(every, "--every")
    end = time.monotonic() + _duration(lasting, "--for").total_seconds() if lasting is not None else None
    recorder = _Recorder(directory)
    with signals_restored():
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            _go_on(recorder, choice, period.total_seconds(), end)
        except OSError as error:
            raise click.ClickException(
                f"{directory}: cannot be written: {error.strerror}; {recorder.told}. Make room, or whatever it needs, "
                "and start again with the same directory"
            ) from error
        except KeyboardInterrupt:
            pass
        except SystemExit:  # of Ctrl-C or SIGTERM while the cluster is read
            if not recorder.written:
                echo(f"{directory}: nothing was recorded", err=True)
                raise
    echo(f"{directory}: {recorder.told}")


def _go_on(recorder: "_Recorder", choice: ClusterChoice, period: float, end: float | None) -> None:
    """Look at the cluster until it is time to end, or a signal came."""
    ending = Ending()
    due = time.monotonic()
    while True:
        taken = _look(choice, must=recorder.before is None)
        ending.listen()
        recorder.take_in(taken)
        due = max(due + period, time.monotonic())  # what was missed is not made up for
        if (end is not None and due > end) or ending.wait(max(due - time.monotonic(), 0.0)):
            return


class _Recorder:
    """What was recorded so far. Mutable."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.before: ClusterSnapshot | None = None
        self.written = self._missed = 0

    def take_in(self, taken: ClusterSnapshot | None) -> None:
        """Write a snapshot if it differs from the one before; ``None``: there was no answer."""
        if taken is None:
            self._missed += 1
            return
        if self.before is None:
            print_unseen(taken)
        if self.before is None or taken.objects != self.before.objects:
            write_snapshot(taken, self._directory / f"{taken.taken:%Y%m%dT%H%M%S%f}.json.gz")
            self.written += 1
        self.before = taken

    @property
    def told(self) -> str:
        """Return what came of it."""
        them = "it" if self.written == 1 else "them"
        without = f", {counted(self._missed, 'time')} without an answer" if self._missed else ""
        replayed = f"; 'spinney replay {self._directory}' replays {them}" if self.written else ""
        return f"{counted(self.written, 'snapshot')}{without}{replayed}"


def _look(choice: ClusterChoice, *, must: bool) -> ClusterSnapshot | None:
    """Return what there is; ``None`` if there is no whole answer, unless it ``must``: nothing may come of it at all."""
    try:
        return _replayable(snapshot_of(choice)[0])
    except click.ClickException as failure:
        if must:
            raise
        echo(f"warning: nothing recorded this time, trying again: {failure.message}", err=True)
        return None


def _replayable(taken: ClusterSnapshot) -> ClusterSnapshot:
    """Return a snapshot that ``replay`` does not leave out."""
    for kind in (NODE, POD):
        if taken.refused(kind):
            raise click.ClickException(
                f"{kind.plural} may not be listed, and a recording without them cannot be replayed; "
                "docs/operate.md has a read-only role that sees all that is needed"
            )
    return taken


def _duration(text: str, option: str) -> timedelta:
    try:
        found = parse_duration(text)
    except InvalidDuration as error:
        raise click.BadParameter(str(error), param_hint=option) from error
    if found <= timedelta(0):
        raise click.BadParameter(f"found {text!r}, expected a duration above 0, such as 30s or 1h", param_hint=option)
    return found
