"""The example package works as its README says: found by its entry point, configured, and true to the contract."""

import tomllib
from importlib import import_module
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType

import pytest

from spinney.backends import every_backend
from spinney.backends.catalogue import GROUP
from spinney.operator.configuration import check

PACKAGE = Path(__file__).resolve().parents[2] / "examples" / "third_party_backend"


@pytest.fixture
def acme(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Make the example importable, as installing it would."""
    monkeypatch.syspath_prepend(str(PACKAGE / "src"))
    monkeypatch.syspath_prepend(str(PACKAGE / "tests"))

    return import_module("test_acme")


@pytest.mark.usefixtures("acme")
def test_the_example_is_enabled_by_a_profile() -> None:
    """The entry point of its pyproject makes the backend available to the configuration."""
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())
    declared = project["project"]["entry-points"][GROUP]
    catalogue = every_backend()
    catalogue.discover([EntryPoint(name=name, value=value, group=GROUP) for name, value in declared.items()])
    text = "scheduler: {profiles: [{name: acme-scheduler, default: true, config: {pool: gpu}}]}"
    assert check(text, catalogue).profiles.default == "acme-scheduler"


def test_the_example_keeps_the_contract(acme: ModuleType) -> None:
    """Every test of the contract suite passes for the example."""
    suite = acme.TestAcme()
    tests = [name for name in dir(suite) if name.startswith("test_")]
    assert len(tests) > 10
    for name in tests:
        getattr(suite, name)()
