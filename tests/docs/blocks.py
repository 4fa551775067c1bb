"""The commands in a page: its fenced blocks that a reader would type into a shell.

In a ``console`` block a command follows ``$`` and what it prints comes after it, with ``...`` for anything. In a block
without a prompt (``bash``, ``sh``, or no language and a first word that is a program's) every line is a command.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w*)\n(?P<body>.*?)^(?P=indent)```", re.MULTILINE | re.DOTALL)
_PROGRAMS = (
    "make",
    "spinney",
    "kubectl",
    "helm",
    "python",
    "pip",
    ".venv/",
    "bash",
    "export",
    "docker",
    "podman",
    "curl",
)
_FAILS = re.compile(r"\s+# exits with (\d+)$")


@dataclass(frozen=True)
class Step:
    """A command of a page, and what it prints according to the page."""

    page: str
    command: str
    output: str = ""

    @property
    def words(self) -> str:
        """Return the command without the remark about how it ends."""
        return _FAILS.sub("", self.command)

    @property
    def code(self) -> int:
        """Return the exit status the page promises."""
        fails = _FAILS.search(self.command)
        return int(fails[1]) if fails else 0


def steps(path: Path, name: str) -> Iterator[Step]:
    """Yield the commands of a page, in order."""
    for match in _FENCE.finditer(path.read_text()):
        indent, language = match["indent"], match["language"]
        lines = [line.removeprefix(indent) for line in match["body"].splitlines()]
        if language == "console":
            yield from _session(lines, name)
        elif language in ("bash", "sh") or (not language and lines and lines[0].startswith(_PROGRAMS)):
            for line in lines:
                command = re.sub(r"\s+#.*$", "", line)
                if command and not command.startswith("#"):
                    yield Step(name, command)


def _session(lines: list[str], name: str) -> Iterator[Step]:
    lines = list(lines)
    while lines:
        command = lines.pop(0).removeprefix("$ ")
        if command.endswith("<<'EOT'"):
            end = lines.index("EOT") + 1
            command, lines = "\n".join([command, *lines[:end]]), lines[end:]
        output = []
        while lines and not lines[0].startswith("$ "):
            output.append(lines.pop(0))
        yield Step(name, command, "\n".join(output))
