"""What packages export lazily is there, and what they do not export is refused as Python refuses it."""

from importlib import import_module

import pytest

PACKAGES = ["spinney.backends", "spinney.scheduler", "spinney.server", "spinney.sim"]


@pytest.mark.parametrize("name", PACKAGES)
def test_every_name_is_there(name: str) -> None:
    """Each name that a package lists can be imported from it."""
    package = import_module(name)

    for each in package.__all__:
        assert getattr(package, each) is not None


@pytest.mark.parametrize("name", PACKAGES)
def test_another_name_is_refused(name: str) -> None:
    """A misspelt import says which module lacks which name."""
    with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'Misspelt'"):
        _ = import_module(name).Misspelt
