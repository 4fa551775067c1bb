"""``spinney coscheduler``: run the pod-at-a-time scheduler with coscheduling against a cluster."""

from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from spinney.api.documents import InvalidConfiguration
from spinney.cli.options import ProcessOptions
from spinney.cli.processes import loaded_meanwhile, print_checked, run_process
from spinney.cli.running import in_one_line
from spinney.cli.terminal.logs import log_to_stderr
from spinney.coscheduling.process.reading import COMPONENT, OPTIONAL_KINDS
from spinney.kube.client import Client
from spinney.kube.manager import Manager
from spinney.runtime import Runtime, collection_held_off, settle_garbage_collector

if TYPE_CHECKING:
    from spinney.cli.settings.coscheduler_process import CoschedulerSettings
    from spinney.cli.settings.session import PluginText


def coscheduler(
    *,
    config: Path | None,
    plugins: "tuple[PluginText, ...]",
    check_only: bool,
    controller: bool,
    process: ProcessOptions,
) -> None:
    log_to_stderr(process.verbosity, json=process.log_json)
    if check_only:
        settings = _loaded(config, plugins)
        _check(settings)
        print_checked(config, settings.configuration)
        return

    async def run(manager: Manager) -> None:
        settings, served = await loaded_meanwhile(manager, OPTIONAL_KINDS, partial(_loaded, config, plugins))
        scheduler = settings.composed(manager.client, manager, served, controller=controller)
        manager.stop_on_signals()
        await scheduler.run()

    run_process(process, COMPONENT, run, InvalidConfiguration)


def _loaded(config: Path | None, plugins: "tuple[PluginText, ...]") -> "CoschedulerSettings":
    """Load the scheduler and read its configuration."""
    with collection_held_off():
        from spinney.cli.settings.coscheduler_process import coscheduler_settings  # noqa: PLC0415
    settle_garbage_collector()
    return coscheduler_settings(config, plugins)


def _check(settings: "CoschedulerSettings") -> None:
    """Make every profile with its plugins, as the process would; says what the process would."""
    from spinney.cli.manifests.offline_backends import Unreachable  # noqa: PLC0415 - brings the backends along

    runtime = Runtime.system()
    with in_one_line(ValueError), closing(runtime.executor):
        settings.composed(Client(Unreachable(), runtime, field_manager=COMPONENT))
