"""``spinney manifests``: everything an installation needs, for ``kubectl apply -f -``."""

import click

from spinney.cli.options import TEXT_FILE, with_body


@click.command()
@click.option("--values", "values_files", multiple=True, type=TEXT_FILE, help="Values, as the Helm chart takes them.")
@click.option(
    "--config",
    type=TEXT_FILE,
    help="The operator's configuration: its profiles decide which rights are granted and whether our scheduler runs.",
)
@click.option("--namespace", default="spinney-system", show_default=True, help="Where the processes run.")
@click.option("--image", help="The container image; by default spinney with the tag of this version.")
@click.option("--replicas", type=int, help="Of each process; by default 2, and 1 without leader election.")
@click.option(
    "--crds/--no-crds",
    default=True,
    show_default=True,
    help="Whether Grove's CRDs are among them; no others ever are (see spinney crds).",
)
@click.option("--operator/--no-operator", default=True, show_default=True, help="Whether the operator is among them.")
@click.option("--scheduler-config", type=TEXT_FILE, help="The session scheduler's configuration.")
@click.option("--coscheduler", is_flag=True, help="The coscheduler too, for the scheduler name coscheduling.")
@click.option("--coscheduler-config", type=TEXT_FILE, help="The coscheduler's configuration; implies --coscheduler.")
@click.option("--grouper", is_flag=True, help="The grouper too: pods of any workload become gangs.")
@click.option("--grouper-config", type=TEXT_FILE, help="The grouper's configuration; implies --grouper.")
@with_body
def manifests() -> None:
    """Print the manifests of an installation.

    CRDs, least-privilege RBAC for the enabled profiles, configuration, deployments, services, network policies and
    disruption budgets: what the Helm chart installs with the same values. The operator makes its own webhook
    certificate and registers its webhooks. With --no-operator --coscheduler there is only the coscheduler, for pods
    that name a PodGroup themselves. With --grouper the kinds of its enabled rules may be read, and the session
    scheduler waits for it.
    """
