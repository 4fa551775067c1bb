"""``spinney replay``: a trace of a real cluster through the scheduler, on virtual time."""

from pathlib import Path

import click

from spinney.cli.options import TEXT_FILE, argument, output_option, plugin_option, with_body


@click.command()
@argument(
    "trace",
    type=click.Path(exists=True, path_type=Path),
    meaning="A trace: openb, Philly, DLRM 2025, Standard Workload Format, or a directory of 'spinney record'.",
)
@click.option(
    "--nodes",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The nodes, where they are in a file of their own.",
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
@click.option("--until", metavar="DAY", help="Jobs submitted before this day.")
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
    type=int,
    help="Seed of the order of arrival (openb) and of chance; several give confidence intervals.",
)
@click.option(
    "--every",
    type=click.FloatRange(0),
    default=0.0,
    help="Seconds of virtual time between cycles; by default a cycle follows each event.",
)
@click.option(
    "--run-times",
    default="traced",
    show_default=True,
    metavar="WHAT",
    help="What jobs state about their run time: traced (what the trace has), none, known (the truth), "
    "or a factor such as 2: off by up to so much.",
)
@click.option(
    "--fail",
    "failures",
    multiple=True,
    metavar="NODE@HOURS[+HOURS]",
    help="A node that fails so many hours after the beginning, and comes back so many hours later.",
)
@click.option(
    "--speed",
    default="max",
    show_default=True,
    help="max, or how many seconds of virtual time pass in one of yours.",
)
@click.option(
    "--processes",
    type=click.IntRange(1),
    help="How many pools of nodes that have nothing to do with each other are replayed at once; by default as many as "
    "there are processors. With --plugin or --speed it is one.",
)
@click.option(
    "--placements", type=click.Path(dir_okay=False, path_type=Path), help="Write who was placed where to this file."
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
