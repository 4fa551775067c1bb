"""``spinney cases``: run scheduler behaviour cases and report the differences."""

import json
import sys
from pathlib import Path

import click
from rich.console import Console

from spinney.cli.logs import log_to_stderr
from spinney.sim.cases import InvalidCase, read_cases
from spinney.sim.cases.reporting import as_json, print_reports
from spinney.sim.cases.running import run_case
from spinney.sim.cases.scheduling import SessionScheduler, UnknownProfile

_WIDTH = 120  # of tables that are not printed to a terminal


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PATH...")
@click.option("--json", "print_json", is_flag=True, help="Print one JSON list with the raw outcome of every session.")
@click.option(
    "--built-actions-only",
    is_flag=True,
    help="Run cases that need actions this scheduler lacks with the ones it has. They never count as passed.",
)
@click.option("--case", "only", multiple=True, metavar="ID", help="Run only this case; may be repeated.")
@click.option("-v", "verbosity", type=click.IntRange(0), default=0, show_default=True, help="How much to log.")
@click.option("--profile", default="kai-compat", show_default=True, help="The scheduler profile the cases run in.")
def cases(
    *,
    paths: tuple[Path, ...],
    print_json: bool,
    built_actions_only: bool,
    only: tuple[str, ...],
    verbosity: int,
    profile: str,
) -> None:
    """Run the behaviour cases in PATH... (files, or directories of *.json files).

    Exits with 1 if a case failed; one that was skipped because an action is not built has not failed. With --json the
    verdicts are in the output, and the exit status only says whether the cases could be run.
    """
    log_to_stderr(verbosity)
    try:
        files = read_cases(paths)
    except InvalidCase as error:
        raise click.ClickException(str(error)) from error
    for file in files:
        for warning in file.warnings:
            click.echo(f"warning: {warning}", err=True)
    chosen = [(file.path, case) for file in files for case in file.cases if not only or case.id in only]
    missing = set(only) - {case.id for _, case in chosen}
    if missing:
        raise click.ClickException(f"no such case in the given files: {', '.join(sorted(missing))}")
    try:
        scheduler = SessionScheduler(profile=profile, verbosity=verbosity)
    except UnknownProfile as error:
        raise click.BadParameter(str(error), param_hint="--profile") from error
    reports = [(path, run_case(case, scheduler, built_actions_only=built_actions_only)) for path, case in chosen]
    if print_json:
        click.echo(json.dumps([as_json(report) for _, report in reports], indent=1))
        return
    print_reports(Console(width=None if sys.stdout.isatty() else _WIDTH), reports)
    if any(report.differences for _, report in reports if not report.partial):
        sys.exit(1)
