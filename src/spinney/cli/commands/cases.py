"""``spinney cases``: run behaviour cases of the scheduler and of the grouper, and report the differences."""

from pathlib import Path

import click

from spinney.cli.options import argument, with_body


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
