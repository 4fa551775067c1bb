"""``spinney manifests``: everything an installation needs, for ``kubectl apply -f -``."""

from pathlib import Path

import click
import yaml

from spinney.backends import every_backend
from spinney.backends.documents import InvalidDocument
from spinney.cli.installing import Installation, installation
from spinney.operator.configuration import check, load


@click.command()
@click.option(
    "--config",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="The operator's configuration: its profiles decide which rights are granted and whether our scheduler runs.",
)
@click.option("--namespace", default="spinney-system", show_default=True, help="Where the processes run.")
@click.option("--image", default="spinney:latest", show_default=True, help="The container image.")
@click.option("--replicas", default=1, show_default=True, help="Of each process; with more, configure leader election.")
@click.option("--crds/--no-crds", default=True, show_default=True, help="Whether the CRDs are among them.")
def manifests(config: Path | None, namespace: str, image: str, replicas: int, *, crds: bool) -> None:
    """Print the manifests of an installation.

    CRDs, least-privilege RBAC for the enabled profiles, configuration, deployments and the webhook service. The
    operator makes its own webhook certificate and registers its webhooks.
    """
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
