"""``spinney validate``: what is wrong with manifests, file by file, and what only a cluster can tell."""

import sys
from pathlib import Path
from typing import Any

import click

from spinney.api.documents import DocumentProblem
from spinney.cli.manifests.judging import Verdict, setting_of, verdict_on
from spinney.cli.manifests.objects import Manifest, read_each
from spinney.cli.terminal.output import echo, print_data


def validate(*, files: tuple[Path, ...], config: Path | None, output: str) -> None:
    manifests, unread = read_each(files)
    if not manifests and output == "text":
        raise click.ClickException("\n".join(map(str, unread)))
    setting = setting_of(config, manifests)
    verdicts = [(manifest, verdict_on(manifest, setting)) for manifest in manifests]
    faulty = sum(bool(verdict.problems) for _, verdict in verdicts)
    if output != "text":
        print_data([*map(_unread, unread), *(_as_data(*each) for each in verdicts)], output)
    else:
        for problem in unread:
            echo(str(problem))
        for manifest, verdict in verdicts:
            _print(manifest, verdict)
        not_done = dict.fromkeys(line for _, verdict in verdicts for line in verdict.not_done)
        if not_done:
            echo("\nnot checked, because only a cluster can:")
            echo("\n".join(f"  {line}" for line in not_done))
        unknown = sum(not verdict.checked for _, verdict in verdicts)
        left = f"; {unknown} could not be checked" if unknown else ""
        echo(f"\n{len(verdicts) - faulty - unknown} of {len(verdicts)} objects are valid{left}")
    if faulty or unread:
        sys.exit(1)


def _print(manifest: Manifest, verdict: Verdict) -> None:
    for problem in verdict.problems:
        echo(str(problem))
    for warning in verdict.warnings:
        echo(f"{manifest.document.source}: warning: {warning}")


def _unread(problem: DocumentProblem) -> dict[str, Any]:
    """Return what is said of a file in which no object could be read."""
    place = {"source": problem.source, "line": problem.line, "kind": "", "name": ""}
    return {**place, "valid": False, "checked": False, "problems": [_told(problem)], "warnings": [], "notDone": []}


def _told(problem: DocumentProblem) -> dict[str, Any]:
    return {"line": problem.line, "path": problem.path, "message": problem.message}


def _as_data(manifest: Manifest, verdict: Verdict) -> dict[str, Any]:
    return {
        "source": manifest.document.source,
        "line": manifest.document.line(),
        "kind": manifest.kind,
        "name": manifest.name,
        "valid": not verdict.problems,
        "checked": verdict.checked,
        "problems": [_told(each) for each in verdict.problems],
        "warnings": verdict.warnings,
        "notDone": verdict.not_done,
    }
