"""``spinney snapshot``: what scheduling reads of a cluster, in a file."""

import sys
from pathlib import Path

import click

from spinney.cli.clusters.choosing import ClusterChoice
from spinney.cli.clusters.reading import print_unseen, snapshot_of
from spinney.cli.terminal.output import echo
from spinney.explain.amounts import counted
from spinney.sim.snapshots.files import packed_snapshot, write_snapshot
from spinney.sim.snapshots.snapshot import ClusterSnapshot


def snapshot(*, output: Path | None, choice: ClusterChoice) -> None:
    if output is None and sys.stdout.isatty():
        raise click.UsageError("-o -: a snapshot is nothing that a terminal can show; send it to a file or a pipe")
    taken, _ = snapshot_of(choice)
    name = output or "standard output"
    try:
        size = write_snapshot(taken, output) if output is not None else _print(taken)
    except BrokenPipeError:
        raise  # nobody reads on, which is no fault
    except OSError as error:
        raise click.ClickException(f"{name}: cannot be written: {error.strerror}") from error
    count = sum(map(len, taken.objects.values()))
    echo(
        f"{name}: {counted(count, 'object')} of {taken.source} "
        f"({counted(len(taken.nodes), 'node')}, {counted(len(taken.pods), 'pod')}), "
        f"{size / 1024:.1f} KiB",
        err=output is None,
    )
    print_unseen(taken)


def _print(taken: ClusterSnapshot) -> int:
    """Write a snapshot to standard output, and return its size in bytes."""
    packed = packed_snapshot(taken)
    click.echo(packed, nl=False)
    return len(packed)
