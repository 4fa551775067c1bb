"""``spinney crds``: print custom resource definitions, write them into a directory, or create those a cluster lacks."""

from collections.abc import Sequence
from pathlib import Path

import click

from spinney.api.apiextensions import CUSTOM_RESOURCE_DEFINITION
from spinney.api.schema.crd import OWNERS, CustomKind, definition, kinds_of, manifest_text, write_manifests
from spinney.api.struct import to_json
from spinney.cli.clusters.choosing import ClusterChoice
from spinney.cli.clusters.connecting import Connection, with_cluster
from spinney.cli.terminal.output import echo
from spinney.kube.errors import AlreadyExists


def crds(*, owners: tuple[str, ...], output: Path | None, create: bool, choice: ClusterChoice) -> None:
    kinds = kinds_of(*(OWNERS.values() if "all" in owners else owners))
    if create and output is not None:
        raise click.UsageError("--create writes to a cluster and --output to a directory; give one of them")
    if create:
        with_cluster(choice, lambda connection: _create(connection, kinds))
    elif output is None:
        for kind in kinds:
            echo(manifest_text(kind), nl=False)
    else:
        _write(output, kinds)


async def _create(connection: Connection, kinds: Sequence[CustomKind]) -> None:
    for kind in kinds:
        try:
            await connection.client.create(CUSTOM_RESOURCE_DEFINITION, to_json(definition(kind)))
        except AlreadyExists:
            echo(f"CustomResourceDefinition {kind.crd_name} exists and is left as it is")
        else:
            echo(f"CustomResourceDefinition {kind.crd_name} created")


def _write(directory: Path, kinds: Sequence[CustomKind]) -> None:
    try:
        written = write_manifests(directory, kinds)
    except OSError as error:
        raise click.ClickException(f"{directory}: cannot be written: {error.strerror}") from error
    for path in written:
        echo(path)
