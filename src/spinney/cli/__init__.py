"""What people touch: the ``spinney`` command.

A sub-command is a click command in a module of :mod:`spinney.cli.commands`, imported when it is asked for. The module
only declares what its commands take; what they do is in :mod:`spinney.cli.bodies` (see ``options.py``).
"""

import io
import os
import signal
import sys
from importlib import import_module
from pathlib import Path
from traceback import walk_tb
from typing import Any

import click
from click.shell_completion import CompletionItem

from spinney.cli.options import meant
from spinney.cli.terminal.printable import printable

__all__ = ["main"]

COMMANDS = {
    "apply": "Apply manifests to a cluster (server-side).",
    "cases": "Run behaviour cases of scheduler and grouper, and report the differences.",
    "completion": "Print a script for your shell to complete commands and names.",
    "coscheduler": "Run the pod-at-a-time scheduler with coscheduling against a cluster.",
    "crds": "Print or write the CRD manifests.",
    "dashboard": "Serve a page that shows the cluster, live; it only reads.",
    "delete": "Delete what manifests name.",
    "demo": "Bring a gang up on an embedded cluster and show it.",
    "drain": "Empty nodes, one gang at a time, within disruption budgets.",
    "grouper": "Make gangs of the pods of any workload: Jobs, JobSets, Ray, Kubeflow and your own kinds.",
    "get": "List gangs, sets or nodes of any cluster.",
    "manifests": "Print the manifests of an installation.",
    "operator": "Run the operator against a cluster.",
    "plan": "Plan changes of a cluster, with what each costs.",
    "queues": "Show the queues: entitled to, holding, asking for.",
    "record": "Write what happens on a cluster to files, to be replayed.",
    "replay": "Replay a trace of a real cluster through the scheduler.",
    "scheduler": "Run the session scheduler against a cluster.",
    "simulate": "Say what would be placed where, on a snapshot.",
    "snapshot": "Write what scheduling reads of a cluster to a file.",
    "top": "Watch gangs on the nodes of a cluster, live.",
    "up": "Run an embedded cluster in the foreground.",
    "validate": "Check manifests without a cluster.",
    "version": "Print the version.",
    "wait-for": "Wait until other cliques of the same gang are ready (the start-up init container).",
    "why": "Say why something waits, and what would help.",
}
_MODULES = {
    "changing": ("apply", "crds", "delete", "drain", "plan"),
    "looking": ("get", "queues", "record", "snapshot", "top", "why"),
    "processes": ("coscheduler", "dashboard", "grouper", "manifests", "operator", "scheduler", "wait-for"),
    "shell": ("completion", "version"),
    "simulating": ("cases", "demo", "replay", "simulate", "up", "validate"),
}
"""Which module of :mod:`spinney.cli.commands` declares which commands."""


_TRACEBACK = "SPINNEY_TRACEBACK"
"""The environment variable that shows where a fault of ours happened."""
_ALGEBRA_THREADS = "OPENBLAS_NUM_THREADS"
"""How many threads numpy's linear algebra starts when it is loaded. Unless told, one for each core; we need none."""
_PRINTERS = ("click", "rich")
"""Packages that write to standard output for us."""


class LazyGroup(click.Group):
    """A group whose commands live in modules that are imported on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = next(module for module, commands in _MODULES.items() if cmd_name in commands)
        command = getattr(import_module(f"spinney.cli.commands.{module}"), cmd_name.replace("-", "_"))
        assert isinstance(command, click.Command)
        return command

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run the command line; what cannot be printed, help included, is told in a sentence.

        A stream that is closed takes what is printed, and nobody reads it.
        """
        for name in ("stdout", "stderr"):
            if getattr(sys, name) is None:
                setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - as long as it runs
        try:
            return super().main(*args, **extra)
        except OSError as error:
            if not _is_about_printing(error):
                raise
            from spinney.cli.terminal.output import let_go, unwritable  # noqa: PLC0415 - only where nothing is printed

            let_go(sys.stdout)
            click.echo(f"Error: {unwritable(error)}", err=True)
            sys.exit(1)

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; a fault of ours is one sentence too, with where to take it."""
        try:
            return super().invoke(ctx)
        except click.ClickException as error:
            if type(error) is not click.ClickException:
                raise  # about what was typed, not about what was read
            raise click.ClickException(printable(error.message)) from error
        except (click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise  # who reads only the first lines has had enough, which click knows
        except KeyboardInterrupt:
            click.echo(err=True)  # what the terminal shows of Ctrl-C has no line of its own
            ctx.exit(128 + signal.SIGINT)
        except Exception as error:
            if _is_about_printing(error):
                raise
            if isinstance(error, ModuleNotFoundError) and str(error.name).startswith("spinney.server"):
                raise click.ClickException(
                    f"'spinney {ctx.invoked_subcommand}' needs the embedded API server, which is not installed here:"
                    " pip install 'spinney[embedded]'"
                ) from error
            if os.environ.get(_TRACEBACK):
                raise
            said = printable(" ".join(f"{type(error).__name__}: {error}".split()))
            raise click.ClickException(
                f"this should not have happened ({said}); run it again with {_TRACEBACK}=1 and report what it prints"
            ) from error

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; a typo is answered with the nearest."""
        if args and args[0] not in COMMANDS and args[0][:1].isalnum():
            ctx.fail(f"there is no command {args[0]!r}{meant(args[0], COMMANDS)} 'spinney --help' lists them.")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Offer commands without importing them, so that pressing tab never waits."""
        if not incomplete or incomplete[0].isalnum():
            return [CompletionItem(name, help=COMMANDS[name]) for name in COMMANDS if name.startswith(incomplete)]
        return super().shell_complete(ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name]) for name in self.list_commands(ctx)])


def _is_about_printing(error: Exception) -> bool:
    """Tell whether what was raised is that standard output cannot be written: click or rich were at it then."""
    if not isinstance(error, OSError):
        return False
    *_, (innermost, _) = walk_tb(error.__traceback__)
    return innermost.f_globals.get("__name__", "").partition(".")[0] in _PRINTERS


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="spinney", prog_name="spinney")
def main() -> None:
    """Gang scheduling for AI workloads on Kubernetes."""
    os.environ.setdefault(_ALGEBRA_THREADS, "1")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # an encoding without lines and dots shows the rest
