"""Where the workloads are: a few beside these tests, and all of them where they lie beside the checkout."""

from pathlib import Path

import yaml

from spinney.api.struct import JSON

SHIPPED = Path(__file__).parent / "data"
BESIDE_THE_CHECKOUT = Path(__file__).parents[3] / "shared" / "workloads"


def files() -> dict[str, Path]:
    """Return every workload file by its name without ending."""
    found = {path.stem: path for path in sorted(SHIPPED.glob("*.yaml"))}
    return found | {path.stem: path for path in sorted(BESIDE_THE_CHECKOUT.glob("*.yaml"))}


def documents(path: Path) -> list[JSON]:
    """Return the objects in a file."""
    return [document for document in yaml.safe_load_all(path.read_text(encoding="utf-8")) if document]


def pod_clique_set(path: Path) -> JSON:
    """Return the PodCliqueSet in a file."""
    (found,) = [each for each in documents(path) if each["kind"] == "PodCliqueSet"]
    return found
