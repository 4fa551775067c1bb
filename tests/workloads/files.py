"""The published workloads, as they are written in ``tests/data/workloads``."""

from pathlib import Path

import yaml

from spinney.api.struct import JSON

WORKLOADS = Path(__file__).parents[1] / "data" / "workloads"


def files() -> dict[str, Path]:
    """Return every workload file by its name without ending."""
    return {path.stem: path for path in sorted(WORKLOADS.glob("*.yaml"))}


def documents(path: Path) -> list[JSON]:
    """Return the objects in a file."""
    return [document for document in yaml.safe_load_all(path.read_text(encoding="utf-8")) if document]


def pod_clique_set(path: Path) -> JSON:
    """Return the PodCliqueSet in a file."""
    (found,) = [each for each in documents(path) if each["kind"] == "PodCliqueSet"]
    return found
