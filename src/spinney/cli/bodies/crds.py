"""``spinney crds``: print the custom resource definitions, or write them into a directory."""

from pathlib import Path

import click

from spinney.api.schema.crd import KINDS, manifest_text, write_manifests


def crds(output: Path | None) -> None:
    """Show the custom resource definitions Spinney works with, ready for kubectl apply."""
    if output is None:
        for kind in KINDS:
            click.echo(manifest_text(kind), nl=False)
        return
    try:
        written = write_manifests(output)
    except OSError as error:
        raise click.ClickException(f"{output}: cannot be written: {error.strerror}") from error
    for path in written:
        click.echo(path)
