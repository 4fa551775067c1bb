"""What runs in a cluster until it is stopped, and the manifests that install it."""

from collections.abc import Mapping
from pathlib import Path

import click

from spinney.cli.options import (
    FILE,
    TEXT_FILE,
    cluster_options,
    configuration_options,
    metrics_options,
    plugin_option,
    process_options,
    with_body,
    with_process_body,
)


@click.command()
@configuration_options(config=", in the grammar of kube-scheduler's profiles", check="with its plugins, and print it")
@plugin_option
@click.option("--controller/--no-controller", default=True, show_default=True, help="Keep the status of PodGroups too.")
@process_options(leading="Schedule")
@with_process_body
def coscheduler() -> None:
    """Run the coscheduler against a cluster."""


@click.command()
@cluster_options
@click.option("--address", default="127.0.0.1", show_default=True, help="Address to serve the page on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8090, show_default=True, help="Port; 0 takes any free one."
)
@click.option(
    "--authentication",
    type=click.Choice(["kubeconfig", "token"]),
    help="As whom the cluster is read: as the kubeconfig's user (the default on loopback; only there), or as each "
    "viewer, by their own bearer token (the default elsewhere).",
)
@click.option("--tls-cert-file", type=FILE, help="The certificate to serve with, in PEM; needed off loopback.")
@click.option("--tls-private-key-file", type=FILE, help="Its private key.")
@click.option(
    "--behind-proxy",
    is_flag=True,
    help="Serve off loopback without TLS, to a proxy that has TLS and passes on each viewer's bearer token.",
)
@click.option(
    "-n",
    "--namespace",
    "namespaces",
    multiple=True,
    metavar="NAME",
    help="Namespace to show where not all may be listed; may be repeated.",
)
@click.option(
    "--scheduler",
    "schedulers",
    multiple=True,
    metavar="URL",
    help="Where a session scheduler serves /cycles (its --metrics-port): http://HOST:PORT; may be repeated.",
)
@click.option(
    "--prometheus",
    metavar="URL",
    help="A Prometheus that scrapes the scheduler: use of queues over days, beyond the two hours kept in memory.",
)
@metrics_options
@click.option("-v", "--verbose", count=True, help="Say more; twice for everything.")
@with_process_body
def dashboard() -> None:
    """Serve a page that shows the cluster, live: map, gangs, queues, and what would happen if. It only reads.

    On loopback the cluster is read as the kubeconfig's user. Elsewhere TLS is needed and every viewer brings a bearer
    token; each sees what that token may read.
    """


@click.command()
@configuration_options(config=": rules of your own, scheduler names, fallback", check="and print the rules in force")
@click.option("--rights", is_flag=True, help="Only print the ClusterRole that the enabled rules and profiles need.")
@process_options(leading="Write")
@with_process_body
def grouper() -> None:
    """Make gangs of the pods of any workload: Jobs, JobSets, LeaderWorkerSets, Ray, Kubeflow, Spark and your own kinds.

    Without a configuration pods of spinney-scheduler are grouped by the built-in rules. Switch on waitForGrouper in the
    scheduler's configuration, so that no pod starts before its gang is known.
    """


@click.command()
@click.option("--values", "values_files", multiple=True, type=TEXT_FILE, help="Values, as the Helm chart takes them.")
@click.option(
    "--config",
    type=TEXT_FILE,
    help="The operator's configuration: its profiles decide which rights are granted and whether our scheduler runs.",
)
@click.option("--namespace", default="spinney-system", show_default=True, help="Where the processes run.")
@click.option("--image", help="The container image; by default spinney with the tag of this version.")
@click.option(
    "--replicas",
    type=click.IntRange(0, 2**31 - 1),
    help="Of each process; by default 2, and 1 without leader election.",
)
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
    scheduler waits for it; with --no-operator there is only the grouper, for a scheduler that is installed elsewhere.
    """


@click.command()
@configuration_options(config="", check="and print it with every default")
@click.option("--kubeconfig", type=TEXT_FILE, help="Cluster to run against.")
@with_process_body
def operator() -> None:
    """Run the operator against a cluster."""


@click.command()
@configuration_options(config=": Spinney's own form, or a KAI SchedulingShard", check="and print it with every default")
@plugin_option
@click.option("--dry-run", is_flag=True, help="Only watch: decide, write nothing, and compare with who does write.")
@click.option(
    "--scheduler-name",
    "scheduler_names",
    multiple=True,
    metavar="NAME",
    help="Serve pods of this name, instead of those the configuration lists; may be repeated.",
)
@process_options(leading="Schedule")
@with_process_body
def scheduler() -> None:
    """Run the session scheduler against a cluster.

    With --dry-run it runs beside another scheduler, whose pods --scheduler-name names (default-scheduler, say), and
    never writes. It logs what it would have done, and when it is stopped it prints a comparison.
    """


POD_INFO = Path("/var/grove/pod-info")


class Parents(click.ParamType[Mapping[str, int]]):
    """``<clique>:<minimum>``, several separated by commas."""

    name = "CLIQUE:MINIMUM"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> Mapping[str, int]:
        """Read one option value."""
        minimums: dict[str, int] = {}
        for part in filter(None, value.split(",")):
            clique, _, minimum = part.rpartition(":")
            if not clique or not minimum.isdigit() or int(minimum) < 1:
                self.fail(f"{part!r} is not <clique>:<minimum> with a minimum of at least 1", param, ctx)
            minimums[clique] = int(minimum)
        return minimums


@click.command("wait-for")
@click.option(
    "-p", "--podcliques", type=Parents(), multiple=True, help="A clique to wait for and how many ready pods of it."
)
@click.option(
    "--pod-info",
    type=click.Path(path_type=Path, file_okay=False),
    default=POD_INFO,
    show_default=True,
    help="Directory with the files namespace and podgangname.",
)
@click.option("--kubeconfig", type=TEXT_FILE, help="Default: the pod's own service account.")
@with_body
def wait_for() -> None:
    """Wait until other cliques of this pod's gang have enough ready pods, then end."""
