"""What commands take, apart from what they do.

A command is declared in the module of its name and done by one in :mod:`spinney.cli.bodies`, which is imported when the
command runs. So help and completion cost what click costs, and never wait for numpy or an HTTP stack.
"""

import os
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import click

from spinney.cli import completing

_Decorated = TypeVar("_Decorated", bound=Callable[..., Any])


class TextFile(click.Path):
    """A file that must be there and hold text, so that nothing that reads it meets bytes that are none."""

    def __init__(self) -> None:
        super().__init__(exists=True, dir_okay=False, path_type=Path)

    def convert(self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return the path."""
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        try:
            path.read_text(encoding="utf-8")
        except OSError as error:
            self.fail(f"{path} cannot be read: {error.strerror}", param, ctx)
        except UnicodeDecodeError:
            self.fail(f"{path} is not a text file; YAML or JSON is expected", param, ctx)
        return path


class PluginText(click.ParamType[tuple[Path, str, dict[str, str]]]):
    """``FILE[:CLASS][,KEY=VALUE...]``: a plugin in a file, and its arguments; becomes path, class and arguments.

    A directory stands for all its Python files, which is how a ConfigMap is mounted.
    """

    name = "FILE[:CLASS][,KEY=VALUE]"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[Path, str, dict[str, str]]:
        """Return the three parts."""
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
        return Path(path) if Path(path).is_dir() else TEXT_FILE.convert(path, param, ctx), name, arguments


INTERRUPTED: Final = 130
"""The exit status shells expect after Ctrl-C."""
KUBECONFIG: Final = Path("~/.spinney/kubeconfig")
"""Where ``spinney up`` writes how to reach it."""
FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
"""A file that must be there, of whatever form."""
TEXT_FILE: Final = TextFile()


class Told(click.Argument):
    """An argument that says what it means, for the reference; click has a place for that only with options."""

    def __init__(self, *declarations: Any, meaning: str, **attributes: Any) -> None:
        super().__init__(*declarations, **attributes)
        self.meaning = meaning


def argument(name: str, *, meaning: str, **attributes: Any) -> Callable[[_Decorated], _Decorated]:
    """Add a positional argument and say what it means."""
    return click.argument(name, cls=Told, meaning=meaning, **attributes)


def done_by(target: str) -> Callable[[Callable[[], None]], Callable[..., None]]:
    """Have a declared command done by ``module:function``, which gets its parameters by name."""

    def decorated(declared: Callable[[], None]) -> Callable[..., None]:
        def run(**parameters: Any) -> None:
            module, _, function = target.partition(":")
            getattr(import_module(module), function)(**parameters)

        run.__name__, run.__doc__ = declared.__name__, declared.__doc__
        return run

    return decorated


def meant(word: str, known: Iterable[str]) -> str:
    """Return a hint at the word somebody probably meant, to go on a sentence with; just its end if none is near."""
    from difflib import get_close_matches  # noqa: PLC0415 - only mistakes pay for it

    near = get_close_matches(word.lower(), list(known), 1)
    return f"; did you mean {near[0]}?" if near else "."


def cluster_options(command: _Decorated) -> _Decorated:
    """Add the options that choose a cluster; the command gets ``kubeconfig`` and ``context``."""
    context = click.option(
        "--context",
        metavar="NAME",
        shell_complete=completing.contexts,
        help="Context of the kubeconfig; by default the current one.",
    )
    return click.option(
        "--kubeconfig",
        type=TEXT_FILE,
        help="Cluster to use; by default $KUBECONFIG, ~/.kube/config, or the cluster this runs in.",
    )(context(command))


def namespace_option(command: _Decorated) -> _Decorated:
    """Add ``-n``/``--namespace``."""
    return click.option(
        "-n",
        "--namespace",
        metavar="NAME",
        shell_complete=completing.namespaces,
        help="Namespace; by default the context's.",
    )(command)


def from_option(command: _Decorated) -> _Decorated:
    """Add ``--from``, a snapshot file instead of a cluster; the command gets ``from_file``."""
    return click.option(
        "--from",
        "from_file",
        type=FILE,
        help="Read a file instead of a cluster: of 'spinney snapshot', KAI's snapshot zip, or manifests.",
    )(command)


def file_option(command: _Decorated) -> _Decorated:
    """Add ``-f``/``--file``, manifests; the command gets ``files``."""
    return click.option(
        "-f",
        "--file",
        "files",
        multiple=True,
        required=True,
        type=click.Path(path_type=Path, allow_dash=True, exists=True),
        help="File, directory, or - for standard input; may be repeated.",
    )(command)


def scheduler_config_option(command: _Decorated) -> _Decorated:
    """Add ``--config``, how the scheduler in question is configured."""
    return click.option(
        "--config", type=TEXT_FILE, help="The scheduler's configuration, where it is not the default one."
    )(command)


def plugin_option(command: _Decorated) -> _Decorated:
    """Add ``--plugin``, policies in files; the command gets ``plugins``, each as path, class and arguments."""
    return click.option(
        "--plugin",
        "plugins",
        multiple=True,
        type=PluginText(),
        metavar="FILE[:CLASS][,KEY=VALUE]",
        help="Python file with a plugin of yours, or directory of them, added after those configured; may be repeated.",
    )(command)


def output_option(*forms: str) -> Callable[[_Decorated], _Decorated]:
    """Add ``-o``/``--output`` with these forms; the first is the default."""
    return click.option(
        "-o", "--output", type=click.Choice(forms), default=forms[0], show_default=True, help="How to print it."
    )
