"""``spinney cases``: run scheduler behaviour cases and report the differences."""

import json
import sys
from pathlib import Path

import click
from rich.console import Console

from spinney.cli.logs import log_to_stderr
from spinney.cli.output import progress
from spinney.sim.cases import InvalidCase, read_cases
from spinney.sim.cases.reporting import as_json, print_reports, unreadable_as_json
from spinney.sim.cases.running import CaseReport, run_case
from spinney.sim.cases.scheduling import SessionScheduler, UnknownProfile

_WIDTH = 120  # of tables that are not printed to a terminal


def cases(
    *,
    paths: tuple[Path, ...],
    print_json: bool,
    built_actions_only: bool,
    only: tuple[str, ...],
    verbosity: int,
    profile: str,
) -> None:
    """Run the behaviour cases in PATH... (files, or directories of *.json files)."""
    log_to_stderr(verbosity)
    try:
        files = read_cases(paths)
    except InvalidCase as error:
        raise click.ClickException(str(error)) from error
    for file in files:
        for warning in file.warnings:
            click.echo(f"warning: {warning}", err=True)
    unreadable = [case for file in files for case in file.unreadable if not only or case.id in only]
    chosen = [(file.path, case) for file in files for case in file.cases if not only or case.id in only]
    missing = set(only) - {case.id for _, case in chosen} - {case.id for case in unreadable}
    if missing:
        raise click.ClickException(f"no such case in the given files: {', '.join(sorted(missing))}")
    try:
        scheduler = SessionScheduler(profile=profile, verbosity=verbosity)
    except UnknownProfile as error:
        raise click.BadParameter(str(error), param_hint="--profile") from error
    reports: list[tuple[Path, CaseReport]] = []
    with progress("running cases", steps=len(chosen)) as say:
        for path, case in chosen:
            say(case.id)
            reports.append((path, run_case(case, scheduler, built_actions_only=built_actions_only)))
    if print_json:
        entries = [*(as_json(report) for _, report in reports), *map(unreadable_as_json, unreadable)]
        click.echo(json.dumps(entries, indent=1))
        return
    print_reports(Console(width=None if sys.stdout.isatty() else _WIDTH), reports)
    for broken in unreadable:
        click.echo(f"cannot be read: {broken.reason}", err=True)
    if unreadable or any(report.differences for _, report in reports if not report.partial):
        sys.exit(1)
