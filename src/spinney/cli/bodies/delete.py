"""``spinney delete``: delete what manifests name."""

import sys
from pathlib import Path

import click

from spinney.cli.clusters.choosing import ClusterChoice
from spinney.cli.clusters.connecting import Connection, advice, with_cluster
from spinney.cli.manifests.objects import namespace_for, read_named, resource_for
from spinney.cli.terminal.output import echo
from spinney.kube.errors import KubeError, NotFound


def delete(
    *,
    files: tuple[Path, ...],
    choice: ClusterChoice,
    dry_run: bool,
    ignore_not_found: bool,
) -> None:
    manifests = read_named(files, "deleted")

    async def use(connection: Connection) -> int:
        missing, found = 0, []
        for manifest in reversed(manifests):
            resource = await resource_for(connection.client, manifest)
            where = namespace_for(manifest, resource, choice.namespace, connection.namespace)
            found.append((manifest, resource, where))
        for manifest, resource, where in found:
            try:
                await connection.client.delete(
                    resource, manifest.name, where, propagation_policy="Background", dry_run=dry_run
                )
            except NotFound:
                missing += not ignore_not_found
                echo(f"{manifest.kind} {manifest.name} was not there", err=True)
            except KubeError as error:
                raise click.ClickException(f"{manifest}: {advice(error)}") from error
            else:
                echo(f"{manifest.kind} {manifest.name} deleted{' (dry run)' if dry_run else ''}")
        return missing

    if with_cluster(choice, use):
        sys.exit(1)
