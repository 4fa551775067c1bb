"""What happens on no cluster, or on one in this process: simulations, replays, cases, checks of manifests."""

from pathlib import Path

import click

from spinney.cli.clusters.choosing import KUBECONFIG
from spinney.cli.options import (
    FILE,
    SECONDS,
    SEVERAL_FILES,
    TEXT_FILE,
    OutputFile,
    WrittenPath,
    argument,
    cluster_options,
    file_option,
    from_option,
    namespace_option,
    node_groups_option,
    output_option,
    plugin_option,
    with_body,
)


@click.command()
@argument(
    "paths",
    nargs=-1,
    required=True,
    type=click.Path(path_type=Path),
    metavar="PATH...",
    meaning="Files, or directories of *.json files.",
)
@click.option(
    "--json",
    "print_json",
    is_flag=True,
    help="Print one JSON list with the raw outcome of every session and the raw answer to every question.",
)
@click.option("--case", "only", multiple=True, metavar="ID", help="Run only this case; may be repeated.")
@click.option("-v", "verbosity", type=click.IntRange(0), default=0, show_default=True, help="How much to log.")
@click.option("--profile", default="kai-compat", show_default=True, help="The scheduler profile the cases run in.")
@with_body
def cases() -> None:
    """Run the behaviour cases in PATH... (files, or directories of *.json files).

    Files of scheduler cases and files of grouping cases are told apart by what is in them. A grouping case that is
    answered differently on purpose, or whose question does not apply, is reported with the reason and has not passed.

    Exits with 1 if a case failed. With --json the verdicts are in the output, and the exit status only says whether
    the cases could be run.
    """


@click.command()
@click.option("--keep", is_flag=True, help="Leave the cluster running afterwards, for kubectl, until Ctrl-C.")
@click.option("--plain", is_flag=True, help="Print lines instead of a live view; the default without a terminal.")
@with_body
def demo() -> None:
    """Bring gangs up on an embedded GPU cluster and show what happens; takes half a minute."""


@click.command()
@argument(
    "trace",
    type=click.Path(exists=True, path_type=Path),
    meaning="A trace: openb, Philly, DLRM 2025, Standard Workload Format, or a directory of 'spinney record'.",
)
@click.option(
    "--nodes",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The nodes, where they are in a file of their own (openb, Philly).",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["openb", "philly", "dlrm", "swf", "recorded"]),
    help="The format; by default it is recognised.",
)
@click.option(
    "--experiment",
    metavar="NAME",
    help="Which of a trace's experiments: full, half or shared for Philly, HN or CN for DLRM.",
)
@click.option("--node-count", type=click.IntRange(1), help="How many nodes, for a trace that names none (DLRM).")
@click.option("--begin", metavar="DAY", help="Jobs submitted from this day on (YYYY-MM-DD; Philly).")
@click.option("--until", metavar="DAY", help="Jobs submitted before this day (Philly).")
@click.option(
    "--config",
    "configs",
    multiple=True,
    type=TEXT_FILE,
    help="Scheduler configuration; several are replayed side by side.",
)
@plugin_option
@click.option(
    "--seed",
    "seeds",
    multiple=True,
    type=click.IntRange(0),
    help="Seed of the order of arrival (openb) and of chance; several give confidence intervals.",
)
@click.option(
    "--every",
    type=SECONDS,
    default=0.0,
    help="Seconds of virtual time between cycles; by default a cycle follows each event.",
)
@click.option(
    "--run-times",
    default="traced",
    show_default=True,
    metavar="WHAT",
    help="What jobs state about their run time: traced (what the trace has), none, known (the truth), "
    "or a factor from 1 to 1000, such as 2: off by up to so much.",
)
@click.option(
    "--fail",
    "failures",
    multiple=True,
    metavar="NODE@HOURS[+HOURS]",
    help="A node that fails so many hours after the beginning, and comes back so many hours later.",
)
@click.option(
    "--speed", default="max", show_default=True, help="max, or how many seconds of virtual time pass in one of yours."
)
@click.option(
    "--processes",
    type=click.IntRange(1),
    help="How many pools of nodes that have nothing to do with each other are replayed at once; by default as many as "
    "there are processors. With --plugin or --speed it is one.",
)
@click.option(
    "--placements",
    type=OutputFile(no_dash="which has the report; name a file"),
    help="Write who was placed where to this file.",
)
@click.option(
    "--timeline",
    is_flag=True,
    help="With -o json: also what happened when, for the slider of the dashboard's Replay page.",
)
@output_option("table", "json", "html")
@with_body
def replay() -> None:
    """Replay TRACE through the production scheduler: jobs arrive, run for their time and end.

    Nothing is written to any cluster. The same trace, configuration and seed give the same decisions. Every placement
    is checked against the trace by code that knows nothing of the scheduler; if one does not hold, the status is 1.
    """


@click.command()
@argument(
    "snapshot",
    required=False,
    type=FILE,
    meaning="A file of 'spinney snapshot', KAI's snapshot zip, or manifests; without it the cluster is read.",
)
@from_option
@click.option("-f", "--file", "files", multiple=True, type=TEXT_FILE, help="Workload to add; may be repeated.")
@click.option(
    "--config",
    "configs",
    multiple=True,
    type=TEXT_FILE,
    help="Scheduler configuration; with two, the difference between them is shown.",
)
@plugin_option
@node_groups_option
@click.option(
    "--cycles",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    help="Stop after so many cycles; earlier when one changes nothing.",
)
@namespace_option
@cluster_options
@output_option("table", "wide", "json", "yaml")
@with_body
def simulate() -> None:
    """Run scheduling cycles on SNAPSHOT and say what happens; nothing is written anywhere.

    SNAPSHOT is a file of 'spinney snapshot', KAI's snapshot zip, or manifests; without it the cluster is read. Workload
    files may hold Pods, PodGroups of any family, PodGangs and PodCliqueSets. With --plugin everything is run twice,
    without and with the plugin, and what it changes is shown.
    """


@click.command()
@click.option("--nodes", default="8x8", show_default=True, help="NODESxGPUS: how many nodes, and GPUs on each.")
@click.option(
    "-f", "--file", "cluster_file", type=TEXT_FILE, help="A YAML file that describes the nodes, instead of --nodes."
)
@click.option(
    "--config",
    "configs",
    type=TEXT_FILE,
    multiple=True,
    help="How a process is configured: the operator's file, the grouper's, a scheduler's; may be repeated.",
)
@plugin_option
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port on 127.0.0.1; by default any free one.")
@click.option(
    "--kubeconfig",
    type=WrittenPath(no_dash="which has what happens; name a file", dir_okay=False),
    default=KUBECONFIG,
    show_default=True,
    help="Where to write the kubeconfig (mode 0600).",
)
@click.option(
    "--data-dir",
    type=WrittenPath(no_dash=SEVERAL_FILES, file_okay=False),
    help="Keep the cluster's objects in this directory and go on from what is there; by default nothing is kept.",
)
@click.option(
    "--authorization",
    type=click.Choice(["AlwaysAllow", "RBAC"]),
    default="AlwaysAllow",
    show_default=True,
    help="Whether every client may do everything, or roles and bindings decide.",
)
@click.option(
    "--workloads/--no-workloads",
    default=True,
    help="Make pods of Deployments, StatefulSets and Jobs; leave that off for a controller manager of your own.",
)
@click.option(
    "--dashboard/--no-dashboard", default=True, help="Serve a page on 127.0.0.1 that shows the cluster, live."
)
@click.option("--dashboard-port", type=click.IntRange(0, 65535), default=0, help="Its port; by default any free one.")
@click.option("-v", "--verbose", count=True, help="Say more; twice for everything.")
@with_body
def up() -> None:
    """Run an embedded cluster until Ctrl-C.

    API server, simulated nodes, operator and scheduler run in this process. Point kubectl at the kubeconfig it writes.
    """


@click.command()
@file_option
@click.option("--config", type=TEXT_FILE, help="The operator's configuration: only what it enables is allowed.")
@output_option("text", "json", "yaml")
@with_body
def validate() -> None:
    """Check manifests offline: every fault with its file, line and field.

    Exits with 1 if there is one.
    """
