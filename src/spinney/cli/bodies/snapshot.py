"""``spinney snapshot``: what scheduling reads of a cluster, in a file."""

from pathlib import Path

import click

from spinney.cli.clusters.choosing import ClusterChoice
from spinney.cli.clusters.reading import print_unseen, snapshot_of
from spinney.cli.terminal.output import echo
from spinney.explain.amounts import counted
from spinney.sim.snapshots.files import write_snapshot


def snapshot(*, output: Path, choice: ClusterChoice) -> None:
    taken, _ = snapshot_of(choice)
    try:
        size = write_snapshot(taken, output)
    except OSError as error:
        raise click.ClickException(f"{output}: cannot be written: {error.strerror}") from error
    count = sum(map(len, taken.objects.values()))
    echo(
        f"{output}: {counted(count, 'object')} of {taken.source} "
        f"({counted(len(taken.nodes), 'node')}, {counted(len(taken.pods), 'pod')}), "
        f"{size / 1024:.1f} KiB"
    )
    print_unseen(taken)
