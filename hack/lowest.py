"""Prints the lowest version that pyproject.toml allows of each direct dependency, as constraints for pip.

``make lowest`` tests with them: a bound that nobody has tried is a guess.
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"


def requirements() -> Iterator[str]:
    """Yield every requirement of the package, its extras and its groups."""
    written = tomllib.loads(PROJECT.read_text(encoding="utf-8"))
    yield from written["project"]["dependencies"]
    for extra in written["project"]["optional-dependencies"].values():
        yield from extra
    for group in written["dependency-groups"].values():
        yield from (each for each in group if isinstance(each, str))


def lowest() -> Iterator[str]:
    """Yield one pin for each distribution."""
    for requirement in sorted(set(requirements())):
        found = re.match(r"([A-Za-z0-9._-]+)>=([0-9.]+)", requirement)
        if found is None:
            sys.exit(f"{PROJECT}: {requirement!r} has no lower bound; write it as NAME>=VERSION")
        yield f"{found[1]}=={found[2]}"


if __name__ == "__main__":
    sys.stdout.writelines(f"{pin}\n" for pin in lowest())
