"""The command line is quick to start, lists what it can do, and answers mistakes with one clear sentence."""

import subprocess
import sys

from click.testing import CliRunner

from spinney import __version__
from spinney.cli import COMMANDS, main


def test_help_lists_every_command() -> None:
    """``spinney --help`` names every command with what it is for."""
    output = CliRunner().invoke(main, ["--help"]).output

    assert all(command in output for command in COMMANDS)


def test_every_command_explains_itself() -> None:
    """Each command answers ``--help``."""
    for command in COMMANDS:
        answer = CliRunner().invoke(main, [command, "--help"])
        assert answer.exit_code == 0, command
        assert "Usage:" in answer.output


def test_help_pays_for_nothing_it_does_not_use() -> None:
    """Help, of ``spinney`` and of every command, imports neither numpy nor the HTTP stack nor any other room."""
    script = """
import contextlib, io, sys
from spinney.cli import COMMANDS, main
for command in ("", *COMMANDS):
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        assert not main([*filter(None, [command]), "--help"], standalone_mode=False), command
    assert "Usage: " in shown.getvalue(), command
heavy = {"aiohttp", "asyncio", "cryptography", "difflib", "msgspec", "numpy", "rich", "structlog", "yaml"}
rooms = {name for name in sys.modules if name.startswith("spinney.") and not name.startswith("spinney.cli")}
print(sorted(rooms | heavy & set(sys.modules)))
"""
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout

    assert output.strip() == "[]"


def test_version_is_printed() -> None:
    """``spinney version`` prints the version and nothing else."""
    assert CliRunner().invoke(main, ["version"]).output == f"{__version__}\n"


def test_an_unknown_command_is_named() -> None:
    """A typo in a command is an error that repeats the word and offers the nearest."""
    answer = CliRunner().invoke(main, ["shceduler"])

    assert answer.exit_code == 2
    assert "there is no command 'shceduler'; did you mean scheduler?" in answer.output
