"""``spinney scheduler``: run the session scheduler against a cluster, or beside another scheduler without writing."""

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from spinney.cli.options import ProcessOptions
from spinney.cli.processes import loaded_meanwhile, print_checked, run_process
from spinney.cli.terminal.logs import log_to_stderr
from spinney.kube.manager import Manager
from spinney.runtime import collection_held_off, settle_garbage_collector
from spinney.scheduler.intake.sources import COMPONENT, OPTIONAL_KINDS

if TYPE_CHECKING:
    from spinney.cli.settings.session import PluginText
    from spinney.cli.settings.session_process import SessionSettings
    from spinney.scheduler.process.shadow import Shadow

_WIDTH = 140  # of tables that are not printed to a terminal


def scheduler(
    *,
    config: Path | None,
    plugins: "tuple[PluginText, ...]",
    check_only: bool,
    dry_run: bool,
    scheduler_names: tuple[str, ...],
    process: ProcessOptions,
) -> None:
    log_to_stderr(process.verbosity, json=process.log_json)
    if check_only:
        checked = _loaded(config, plugins)
        print_checked(config, checked.spelled_out(), *checked.losses())
        return

    async def run(manager: Manager) -> None:
        settings, served = await loaded_meanwhile(manager, OPTIONAL_KINDS, partial(_loaded, config, plugins))
        settings = settings.changed(verbosity=process.verbosity, scheduler_names=scheduler_names)
        running, shadow = settings.composed(manager, served, dry_run=dry_run)
        manager.stop_on_signals()
        await running.run()
        if shadow is not None:
            _print_comparison(shadow)

    run_process(process, COMPONENT, run, read_only=dry_run)


def _loaded(config: Path | None, plugins: "tuple[PluginText, ...]") -> "SessionSettings":
    """Load the scheduler and read its configuration."""
    with collection_held_off():
        from spinney.cli.settings.session_process import session_settings  # noqa: PLC0415
    settle_garbage_collector()
    return session_settings(config, plugins)


def _print_comparison(shadow: "Shadow") -> None:
    # Tables need rich, which takes a tenth of a start to load.
    from spinney.cli.pictures.comparison import print_comparison  # noqa: PLC0415
    from spinney.cli.terminal.console import ReadableConsole  # noqa: PLC0415

    print_comparison(ReadableConsole(width=None if sys.stdout.isatty() else _WIDTH), shadow)
