"""``spinney apply``: write manifests to a cluster by server-side apply."""

from datetime import timedelta
from pathlib import Path
from typing import Final

import click

from spinney.api.documents import DocumentProblem, steps
from spinney.api.resource import Resource
from spinney.api.struct import JSON
from spinney.cli.clusters.choosing import ClusterChoice
from spinney.cli.clusters.coming_up import until_ready
from spinney.cli.clusters.connecting import Connection, advice, with_cluster
from spinney.cli.manifests.objects import Manifest, namespace_for, read_named, resource_for
from spinney.cli.terminal.output import echo
from spinney.kube.errors import ApiError, Conflict, Invalid, KubeError
from spinney.kube.keys import Key

_MISFIT: Final = "failed to create typed patch object"
"""What server-side apply says of fields that a kind does not have, and of values that they cannot hold."""


def apply(
    *,
    files: tuple[Path, ...],
    choice: ClusterChoice,
    dry_run: bool,
    force_conflicts: bool,
    wait: bool,
    timeout: timedelta | None,
) -> None:
    manifests = read_named(files, "applied")

    async def use(connection: Connection) -> None:
        applied: list[tuple[Resource, Key]] = []
        refused: list[str] = []
        for manifest in manifests:
            try:
                resource, where, done = await _apply_one(
                    connection, manifest, choice.namespace, dry_run=dry_run, force=force_conflicts
                )
            except ApiError as error:
                refused.append(_refusal(manifest, error))
            except click.ClickException as error:
                refused.append(error.message)
            except KubeError as error:
                raise click.ClickException("\n".join((*refused, _refusal(manifest, error)))) from error
            else:
                echo(f"{manifest.kind} {manifest.name} {done}{' (dry run)' if dry_run else ''}")
                applied.append((resource, Key(where or "", manifest.name)))
        if refused:  # the others are applied all the same, as kubectl does
            raise click.ClickException("\n".join(refused))
        if wait and not dry_run:
            await until_ready(connection, applied, timeout=timeout)
            echo("everything is ready")

    with_cluster(choice, use)


async def _apply_one(
    connection: Connection, manifest: Manifest, namespace: str | None, *, dry_run: bool, force: bool
) -> tuple[Resource, str | None, str]:
    client = connection.client
    resource = await resource_for(client, manifest)
    where = namespace_for(manifest, resource, namespace, connection.namespace)
    before = await client.find(resource, manifest.name, where)
    applied = await client.apply(resource, manifest.value, where, force=force, dry_run=dry_run)
    if before is None:
        return resource, where, "created"
    return resource, where, "unchanged" if _written(applied) == _written(before) else "configured"


def _written(found: JSON) -> JSON:
    """Return what people write of an object: controllers may change its status while it is being applied."""
    metadata = {key: part for key, part in found["metadata"].items() if key not in ("resourceVersion", "managedFields")}
    return {key: part for key, part in found.items() if key != "status"} | {"metadata": metadata}


def _refusal(manifest: Manifest, error: KubeError) -> str:
    """Return what the server said, each fault in a line with the place of its field in the file."""
    if isinstance(error, Conflict):
        return f"{manifest}: {error}; --force-conflicts takes the fields over"
    if isinstance(error, Invalid) and error.causes:
        document = manifest.document
        faults = (
            DocumentProblem(document.source, document.line(*steps(each.field)), each.field, each.message)
            for each in error.causes
        )
        return "\n".join(dict.fromkeys(map(str, faults)))
    if _MISFIT in str(error) and (found := _misfits(manifest)):
        return "\n".join(map(str, found))
    return f"{manifest}: {advice(error)}"


def _misfits(manifest: Manifest) -> tuple[DocumentProblem, ...]:
    """Return unknown fields and wrong types as ``validate`` tells them: the server names one, without a line."""
    try:
        from spinney.cli.manifests.judging import misfits  # noqa: PLC0415 - only for a refusal
    except ImportError:  # installed without what the embedded cluster takes
        return ()
    return misfits(manifest)
