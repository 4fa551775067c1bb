"""What docs/operate.md deletes by its label is everything that is installed."""

import re
from pathlib import Path
from typing import Final

import pytest
import yaml

from .rendering import ROOT, printed
from .test_chart import VALUES

PAGE: Final = ROOT / "docs" / "operate.md"
OF_OTHERS: Final = {"ServiceMonitor", "PrometheusRule", "Certificate", "Issuer"}
"""Kinds that not every cluster has, so kubectl could not delete anything if they were named."""


def deleted_by_label() -> set[frozenset[str]]:
    """Return the kinds that the page deletes by label, of each command."""
    commands = re.findall(r"kubectl delete ([a-z,]+) --namespace spinney-system --selector", PAGE.read_text())
    return {frozenset(command.split(",")) for command in commands}


@pytest.mark.parametrize("values", ["everything", "grouper with the operator's profiles"])
def test_every_kind_is_deleted_by_label(values: str, tmp_path: Path) -> None:
    """Both commands of the page name every kind that an installation has, and no other."""
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(VALUES[values]))
    (kinds,) = deleted_by_label()
    objects = [each for each in printed("--values", str(file)) if each["kind"] not in OF_OTHERS | {"Namespace"}]
    assert {_plural(each["kind"]) for each in objects} == kinds


def _plural(kind: str) -> str:
    return re.sub("ys$", "ies", f"{kind.lower()}s")
