"""``spinney manifests``: everything an installation needs, for ``kubectl apply -f -``."""

from pathlib import Path

import click
import yaml

from spinney.backends import every_backend
from spinney.backends.documents import InvalidDocument
from spinney.cli.installing import Installation, installation
from spinney.operator.configuration import check, load


def manifests(config: Path | None, namespace: str, image: str, replicas: int, *, crds: bool) -> None:
    """Print the manifests of an installation."""
    catalogue = every_backend()
    try:
        loaded = check("", catalogue) if config is None else load(config, catalogue)
    except InvalidDocument as error:
        raise click.ClickException("\n".join(str(problem) for problem in error.problems)) from error
    options = Installation(
        configuration=loaded,
        text=config.read_text() if config is not None else "",
        namespace=namespace,
        image=image,
        replicas=replicas,
        crds=crds,
    )
    click.echo(yaml.safe_dump_all(installation(options, catalogue), sort_keys=False), nl=False)
