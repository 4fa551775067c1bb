"""``spinney record``: what happens on a cluster, to be replayed later."""

import signal
import time
from datetime import timedelta
from pathlib import Path

import click

from spinney.api.core import NODE, POD
from spinney.api.durations import InvalidDuration, parse_duration
from spinney.cli.clusters.choosing import ClusterChoice
from spinney.cli.clusters.reading import print_unseen, snapshot_of
from spinney.cli.terminal.output import echo
from spinney.explain.amounts import counted
from spinney.sim.snapshots.files import write_snapshot
from spinney.sim.snapshots.snapshot import ClusterSnapshot


def record(*, directory: Path, every: str, lasting: str | None, choice: ClusterChoice) -> None:
    period = _duration(every, "--every")
    end = time.monotonic() + _duration(lasting, "--for").total_seconds() if lasting is not None else None
    before: ClusterSnapshot | None = None
    written = missed = 0
    due = time.monotonic()
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        while True:
            taken = _look(choice, must=before is None)
            if taken is None:
                missed += 1
            else:
                if before is None:
                    print_unseen(taken)
                if before is None or taken.objects != before.objects:
                    write_snapshot(taken, directory / f"{taken.taken:%Y%m%dT%H%M%S%f}.json.gz")
                    written += 1
                before = taken
            due = max(due + period.total_seconds(), time.monotonic())  # what was missed is not made up for
            if end is not None and due > end:
                break
            time.sleep(max(due - time.monotonic(), 0.0))
    except OSError as error:
        raise click.ClickException(f"{directory}: cannot be written: {error.strerror}") from error
    except KeyboardInterrupt:
        pass
    except SystemExit as ended:  # of Ctrl-C while the cluster is read
        if ended.code != 128 + signal.SIGINT:
            raise
    them = "it" if written == 1 else "them"
    without = f", {counted(missed, 'time')} without an answer" if missed else ""
    echo(f"{directory}: {counted(written, 'snapshot')}{without}; 'spinney replay {directory}' replays {them}")


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
