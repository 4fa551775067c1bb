"""What commands take, apart from what they do.

A command is declared in :mod:`spinney.cli.commands` and done in :mod:`spinney.cli.bodies`, which is imported when the
command runs. So help and completion cost what click costs, and never wait for numpy or an HTTP stack.
"""

import math
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import timedelta
from functools import reduce, wraps
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import click

from spinney.cli.clusters import completing
from spinney.cli.clusters.choosing import ClusterChoice
from spinney.cli.terminal.abilities import takes_commands

_YEAR: Final = 365 * 86_400
_Decorated = TypeVar("_Decorated", bound=Callable[..., Any])

_ENDING_BY_THEMSELVES: Final = ("check_only", "rights")
"""Flags with which a process does not run."""


class TextFile(click.Path):
    """A file that must be there and hold text, so that nothing that reads it meets bytes that are none."""

    def __init__(self, expected: str = "YAML or JSON") -> None:
        super().__init__(exists=True, dir_okay=False, path_type=Path)
        self._expected = expected

    def convert(self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None) -> Path:
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        try:
            path.read_text(encoding="utf-8")
        except OSError as error:
            self.fail(f"{path} cannot be read: {error.strerror}", param, ctx)
        except UnicodeDecodeError:
            self.fail(f"{path} is not a text file; {self._expected} is expected", param, ctx)
        return path


class PluginParameter(click.ParamType[tuple[Path, str, dict[str, str]]]):
    """``FILE[:CLASS][,KEY=VALUE...]``: a plugin in a file, and its arguments; becomes path, class and arguments.

    A directory stands for all its Python files, which is how a ConfigMap is mounted.
    """

    name = "FILE[:CLASS][,KEY=VALUE]"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[Path, str, dict[str, str]]:
        if not isinstance(value, str):
            return cast("tuple[Path, str, dict[str, str]]", value)
        where, *settings = value.split(",")
        path, colon, name = where.rpartition(":")
        if not colon or "/" in name or name.endswith(".py"):
            path, name = where, ""
        arguments = {}
        for setting in settings:
            key, equals, text = setting.partition("=")
            if not equals or not key:
                self.fail(f"{setting!r} is no argument; expected KEY=VALUE, as in {where},limit=3", param, ctx)
            arguments[key] = text
        return Path(path) if Path(path).is_dir() else _PYTHON_FILE.convert(path, param, ctx), name, arguments


class WrittenPath(click.Path):
    """A file or directory that is going to be written.

    ``-`` is standard output, which becomes ``None``, or is refused where that has something else to take.
    """

    def __init__(self, *, no_dash: str = "", **checks: Any) -> None:
        super().__init__(path_type=Path, **checks)
        self._no_dash = no_dash

    def convert(  # type: ignore[override]
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> Path | None:
        if value == "-" and self._no_dash:
            self.fail(f"- is standard output, {self._no_dash}; ./- is what is called so", param, ctx)
        return None if value == "-" else Path(os.fsdecode(super().convert(value, param, ctx)))


class OutputFile(WrittenPath):
    """A file that is going to be written: that it can be is known before the work whose outcome it takes."""

    def __init__(self, *, no_dash: str) -> None:
        super().__init__(no_dash=no_dash, dir_okay=False, writable=True)

    def convert(  # type: ignore[override]
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> Path | None:
        path = super().convert(value, param, ctx)
        if path is None:
            return None
        if not path.parent.is_dir():
            self.fail(f"{path} cannot be written: there is no directory {path.parent}", param, ctx)
        if not path.exists() and not os.access(path.parent, os.W_OK):
            self.fail(f"{path} cannot be written: no file may be made in {path.parent}", param, ctx)
        return path


class Seconds(click.FloatRange):
    """A number of seconds, from none to a year."""

    def __init__(self) -> None:
        super().__init__(0, _YEAR)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found = super().convert(value, param, ctx)
        if math.isnan(found):
            self.fail(f"{value} is no number of seconds; expected 0 to {_YEAR}", param, ctx)
        return found


class Duration(click.ParamType[timedelta | None]):
    """A duration as Go and Kubernetes write it; 0 is none."""

    name = "DURATION"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta | None:
        from spinney.api.durations import InvalidDuration, parse_duration  # noqa: PLC0415 - only where it is asked for

        try:
            return parse_duration(value) or None
        except InvalidDuration as error:
            self.fail(str(error), param, ctx)


DURATION: Final = Duration()
SECONDS: Final = Seconds()
FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
"""A file that must be there, of whatever form."""
TEXT_FILE: Final = TextFile()
_PYTHON_FILE: Final = TextFile("Python")
SEVERAL_FILES: Final = "and more than one file is written; name a directory"
"""Why ``-`` is refused for a directory."""


class DescribedArgument(click.Argument):
    """An argument that says what it means, for the reference; click has a place for that only with options."""

    def __init__(self, *declarations: Any, meaning: str, **attributes: Any) -> None:
        super().__init__(*declarations, **attributes)
        self.meaning = meaning


def argument(name: str, *, meaning: str, **attributes: Any) -> Callable[[_Decorated], _Decorated]:
    """Add a positional argument and say what it means."""
    return click.argument(name, cls=DescribedArgument, meaning=meaning, **attributes)


def with_body(declared: Callable[[], None]) -> Callable[..., None]:
    """Have a declared command do what the function of its name in the module of its name in ``bodies`` does."""
    name = declared.__name__

    @wraps(declared)
    def run(**parameters: Any) -> None:
        from spinney.runtime.collection import collection_held_off  # noqa: PLC0415

        with _loading(), collection_held_off():
            load_structlog()
            body = getattr(import_module(f"spinney.cli.bodies.{name}"), name)
        body(**parameters)

    return run


def with_process_body(declared: Callable[[], None]) -> Callable[..., None]:
    """Do the same for a process of a cluster: from here on, while it is being loaded, SIGTERM ends it with 0.

    There is nothing to finish yet. Once it runs it has handlers of its own. A process that only checks is a command.
    """
    run = with_body(declared)

    @wraps(declared)
    def run_as_process(**parameters: Any) -> None:
        if any(parameters.get(flag) for flag in _ENDING_BY_THEMSELVES):
            run(**parameters)
            return
        before = signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
        try:
            run(**parameters)
        finally:
            signal.signal(signal.SIGTERM, before)

    return run_as_process


def load_structlog() -> None:
    """Have structlog loaded as where rich is not installed; later imports of rich find it.

    With rich it loads a highlighter for tracebacks that show the values of variables. Ours never do, and loading it
    takes a tenth of a process's start.
    """
    if "structlog" in sys.modules or "rich" in sys.modules:
        return
    sys.modules["rich"] = None  # type: ignore[assignment]  # how Python is told that there is no such module
    try:
        import structlog  # noqa: F401, PLC0415
    finally:
        del sys.modules["rich"]


@contextmanager
def _loading() -> Iterator[None]:
    """Show at once that the command was understood: what it needs is read from disk, which may take a second."""
    if not takes_commands(sys.stderr):
        yield
        return
    click.echo("loading ...", nl=False, err=True)
    try:
        yield
    finally:
        click.echo("\r\x1b[K", nl=False, err=True)


METRICS_SETTING: Final = "--metrics-port or --metrics-address"
"""What chooses where metrics and probes are served, for messages."""


@dataclass(frozen=True)
class ProcessOptions:
    """What every process that works on a cluster takes."""

    kubeconfig: Path | None
    verbosity: int
    log_json: bool
    leader_elect: bool
    lease_namespace: str
    endpoint: tuple[str, int] | None
    """Address and port of metrics and probes, if they are served."""


def process_options(*, leading: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the options of a process; the command gets them as ``process``. ``leading`` says what needs the lease."""
    options = (
        click.option("--kubeconfig", type=TEXT_FILE, help="Cluster; by default the one this runs in, or kubectl's."),
        click.option(
            "-v",
            "verbosity",
            type=click.IntRange(0),
            default=1,
            show_default=True,
            metavar="N",
            help="How much to log, as klog counts.",
        ),
        click.option("--log-json", is_flag=True, help="Log one JSON object per line."),
        click.option(
            "--leader-elect/--no-leader-elect", default=False, help=f"{leading} only while holding the lease."
        ),
        click.option("--lease-namespace", default="kube-system", show_default=True, help="Where the lease is."),
        metrics_options,
    )
    names = [field.name for field in fields(ProcessOptions)]

    def decorated(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def run(**parameters: Any) -> None:
            process = ProcessOptions(**{name: parameters.pop(name) for name in names})
            command(process=process, **parameters)

        return reduce(lambda made, option: option(made), reversed(options), run)

    return decorated


def metrics_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add where metrics and probes are served; the command gets address and port as ``endpoint``, if they are."""

    @click.option(
        "--metrics-address",
        default="",
        metavar="ADDRESS",
        help="Address to serve /metrics, /livez and /readyz on; by default all.",
    )
    @click.option(
        "--metrics-port",
        type=click.IntRange(0, 65535),
        help="Serve /metrics, /livez and /readyz on this port; 0 takes a free one.",
    )
    @wraps(command)
    def run(*, metrics_address: str, metrics_port: int | None, **parameters: Any) -> None:
        command(endpoint=None if metrics_port is None else (metrics_address, metrics_port), **parameters)

    return run


def configuration_options(*, config: str, check: str) -> Callable[[_Decorated], _Decorated]:
    """Add ``--config`` and ``--check`` of a process; the command gets ``config`` and ``check_only``."""
    checking = click.option("--check", "check_only", is_flag=True, help=f"Only check the configuration, {check}.")
    reading = click.option("--config", type=TEXT_FILE, help=f"Configuration file{config}.")
    return lambda command: reading(checking(command))


def meant(word: str, known: Iterable[str]) -> str:
    """Return a hint at the word the user probably meant, to go on a sentence with; just its end if none is near."""
    from difflib import get_close_matches  # noqa: PLC0415 - only mistakes pay for it

    near = get_close_matches(word.lower(), list(known), 1)
    return f"; did you mean {near[0]}?" if near else "."


def cluster_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that choose a cluster; the command gets these, and ``-n`` and ``--from``, as ``choice``."""

    @click.option(
        "--kubeconfig",
        type=TEXT_FILE,
        help="Cluster to use; by default $KUBECONFIG, ~/.kube/config, or the cluster this runs in.",
    )
    @click.option(
        "--context",
        metavar="NAME",
        shell_complete=completing.contexts,
        help="Context of the kubeconfig; by default the current one.",
    )
    @wraps(command)
    def run(**parameters: Any) -> None:
        names = ("kubeconfig", "context", "namespace", "from_file")
        command(choice=ClusterChoice(*(parameters.pop(name, None) for name in names)), **parameters)

    return run


namespace_option: Final = click.option(
    "-n",
    "--namespace",
    metavar="NAME",
    shell_complete=completing.namespaces,
    help="Namespace; by default the context's.",
)
from_option: Final = click.option(
    "--from",
    "from_file",
    type=FILE,
    help="Read a file instead of a cluster: of 'spinney snapshot', KAI's snapshot zip, or manifests.",
)
file_option: Final = click.option(
    "-f",
    "--file",
    "files",
    multiple=True,
    required=True,
    type=click.Path(path_type=Path, allow_dash=True, exists=True),
    help="File, directory, or - for standard input; may be repeated.",
)
scheduler_config_option: Final = click.option(
    "--config", type=TEXT_FILE, help="The scheduler's configuration, where it is not the default one."
)
node_groups_option: Final = click.option(
    "--node-groups",
    type=TEXT_FILE,
    help="Kinds of nodes that could be added, as in 'spinney up -f'; count is how many at most.",
)
plugin_option: Final = click.option(
    "--plugin",
    "plugins",
    multiple=True,
    type=PluginParameter(),
    metavar="FILE[:CLASS][,KEY=VALUE]",
    help="Python file with a plugin of yours, or directory of them, added after those configured; may be repeated.",
)
"""The command gets each as path, class and arguments."""


def timeout_option(default: str, meaning: str) -> Callable[[_Decorated], _Decorated]:
    """Add ``--timeout``; the command gets ``None`` for ever."""
    return click.option("--timeout", type=DURATION, default=default, show_default=True, help=meaning)


def output_option(*forms: str) -> Callable[[_Decorated], _Decorated]:
    """Add ``-o``/``--output`` with these forms; the first is the default."""
    return click.option(
        "-o", "--output", type=click.Choice(forms), default=forms[0], show_default=True, help="How to print it."
    )
