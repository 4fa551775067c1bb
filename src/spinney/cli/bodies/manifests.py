"""``spinney manifests``: everything an installation needs, for ``kubectl apply -f -``."""

from pathlib import Path

import click
import yaml

import spinney
from spinney.backends import every_backend
from spinney.backends.documents import InvalidDocument
from spinney.cli.installing import COSCHEDULER_CONFIG, Installation, installation
from spinney.coscheduling.configuration import InvalidConfiguration, load_configuration
from spinney.operator.configuration import check, load


def manifests(
    *,
    config: Path | None,
    namespace: str,
    image: str | None,
    replicas: int,
    crds: bool,
    operator: bool,
    coscheduler: bool,
    coscheduler_config: Path | None,
) -> None:
    """Print the manifests of an installation."""
    if not operator and not coscheduler and coscheduler_config is None:
        raise click.UsageError("--no-operator leaves nothing to install; add --coscheduler")
    catalogue = every_backend()
    try:
        loaded = check("", catalogue) if config is None else load(config, catalogue)
    except InvalidDocument as error:
        raise click.ClickException("\n".join(str(problem) for problem in error.problems)) from error
    options = Installation(
        configuration=loaded,
        text=config.read_text() if config is not None else "",
        namespace=namespace,
        image=image or f"spinney:{spinney.__version__}",
        replicas=replicas,
        crds=crds,
        operator=operator,
        coscheduler=_checked(coscheduler_config) if coscheduler_config else COSCHEDULER_CONFIG * coscheduler,
    )
    click.echo(yaml.safe_dump_all(installation(options, catalogue), sort_keys=False), nl=False)


def _checked(configuration: Path) -> str:
    """Return the text of a coscheduler's configuration, which can be used."""
    try:
        load_configuration(configuration)
    except InvalidConfiguration as error:
        raise click.ClickException(str(error)) from error
    return configuration.read_text()
