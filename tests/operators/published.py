"""Other people's operators as they are published.

The controllers are built from the pins in ``hack/operators``; CRDs, webhooks and examples are of the same release.
"""

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from spinney.api.struct import JSON

_BUILD = Path(__file__).resolve().parents[2] / "hack" / "operators" / "build.sh"
_NO_GO = 3  # the exit code with which the build script says that there is no Go


@dataclass(frozen=True)
class Published:
    """What one operator publishes."""

    name: str
    directory: Path

    @property
    def controller(self) -> Path:
        return self.directory / "controller"

    def documents(self, path: str) -> Iterator[JSON]:
        """Yield the objects of a file, or of the files of a folder, by its path in the operator's source."""
        found = self.directory / "published" / path
        for file in sorted(found.glob("*.yaml")) if found.is_dir() else [found]:
            yield from (document for document in yaml.safe_load_all(file.read_text()) if document)


def published(name: str) -> Published:
    """Return an operator, built if need be; a machine without Go skips the test."""
    build = subprocess.run([str(_BUILD), name], stdout=subprocess.PIPE, text=True, check=False)
    if build.returncode == _NO_GO:
        pytest.skip(f"NO OPERATORS: {name} has to be built from source and `go` is not on PATH")
    assert build.returncode == 0, f"`{_BUILD}` failed with exit code {build.returncode}; its output is above"
    return Published(name, Path(build.stdout.strip()))


def for_our_nodes(example: JSON, *, gpus: int = 8) -> JSON:
    """Return an example whose pods ask for our scheduler and for a whole node's GPUs each."""
    adapted: JSON = _with_each_pod(example, gpus)
    return adapted


def _with_each_pod(found: Any, gpus: int) -> Any:
    if isinstance(found, list):
        return [_with_each_pod(each, gpus) for each in found]
    if not isinstance(found, dict):
        return found
    inside = {key: _with_each_pod(value, gpus) for key, value in found.items()}
    if not isinstance(inside.get("containers"), list):
        return inside
    first, *others = inside["containers"]
    asked = {"limits": {"nvidia.com/gpu": str(gpus)}}
    return {**inside, "schedulerName": "spinney-scheduler", "containers": [{**first, "resources": asked}, *others]}
