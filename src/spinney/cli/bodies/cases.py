"""``spinney cases``: run behaviour cases of the scheduler and of the grouper, and report the differences."""

import json
import sys
from pathlib import Path

import click

from spinney.cli.running import in_one_line
from spinney.cli.terminal.console import ReadableConsole
from spinney.cli.terminal.logs import log_to_stderr
from spinney.cli.terminal.output import echo, progress
from spinney.sim.cases.reading import InvalidCase, read_cases
from spinney.sim.cases.running import CaseReport, as_json, print_reports, run_case, unreadable_as_json
from spinney.sim.cases.scheduling import SessionScheduler, UnknownProfile
from spinney.sim.grouping_cases import reading as grouping_reading
from spinney.sim.grouping_cases import running as grouping_running

_WIDTH = 120  # of tables that are not printed to a terminal


def cases(
    *,
    paths: tuple[Path, ...],
    print_json: bool,
    only: tuple[str, ...],
    verbosity: int,
    profile: str,
) -> None:
    log_to_stderr(verbosity)
    of_scheduler, of_grouper = grouping_reading.sorted_out(paths)
    with in_one_line(InvalidCase):
        files = read_cases(of_scheduler)
    for file in files:
        for warning in file.warnings:
            echo(f"warning: {warning}", err=True)
    unreadable = [case for file in files for case in file.unreadable if not only or case.id in only]
    chosen = [(file.path, case) for file in files for case in file.cases if not only or case.id in only]
    grouping = [(path, case) for path, case in grouping_reading.read(of_grouper) if not only or case.id in only]
    found = {case.id for _, case in chosen} | {case.id for _, case in grouping} | {case.id for case in unreadable}
    if missing := set(only) - found:
        raise click.ClickException(f"no such case in the given files: {', '.join(sorted(missing))}")
    try:
        scheduler = SessionScheduler(profile=profile, verbosity=verbosity)
    except UnknownProfile as error:
        raise click.BadParameter(str(error), param_hint="--profile") from error
    reports: list[tuple[Path, CaseReport]] = []
    with progress("running cases", steps=len(chosen)) as say:
        for path, case in chosen:
            say(case.id)
            reports.append((path, run_case(case, scheduler)))
    groupings = [(path, grouping_running.run(each)) for path, each in grouping]
    if print_json:
        entries = [
            *(as_json(report) for _, report in reports),
            *map(unreadable_as_json, unreadable),
            *(grouping_running.as_json(report) for _, report in groupings),
        ]
        echo(json.dumps(entries, indent=1))
        return
    console = ReadableConsole(width=None if sys.stdout.isatty() else _WIDTH)
    if reports:
        print_reports(console, reports)
    if groupings:
        grouping_running.print_reports(console, groupings)
    for broken in unreadable:
        echo(f"cannot be read: {broken.reason}", err=True)
    failed = any(not report.passed for _, report in reports)
    if unreadable or failed or any(report.verdict == "failed" for _, report in groupings):
        sys.exit(1)
