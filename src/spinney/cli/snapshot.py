"""``spinney snapshot``: what scheduling reads of a cluster, in a file."""

from pathlib import Path

import click

from spinney.cli.connecting import ClusterChoice, cluster_options, snapshot_of
from spinney.cli.why import print_unseen
from spinney.sim.snapshot_files import write_snapshot


@click.command()
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("snapshot.json.gz"),
    show_default=True,
    help="File to write (mode 0600).",
)
@cluster_options
def snapshot(*, output: Path, kubeconfig: Path | None, context: str | None) -> None:
    """Write a snapshot of a cluster for 'spinney simulate' and '--from'.

    It holds what scheduling reads and nothing else: no secrets, no environment, no commands.
    """
    taken, _ = snapshot_of(ClusterChoice(kubeconfig, context), None)
    try:
        size = write_snapshot(taken, output)
    except OSError as error:
        raise click.ClickException(f"{output}: cannot be written: {error.strerror}") from error
    count = sum(map(len, taken.objects.values()))
    click.echo(
        f"{output}: {count} objects of {taken.source} ({len(taken.nodes)} nodes, {len(taken.pods)} pods), "
        f"{size / 1024:.1f} KiB"
    )
    print_unseen(taken)
