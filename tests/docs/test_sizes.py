"""What CONTRIBUTING.md says about sizes holds: modules that are read in one sitting, packages with an order inside."""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "spinney"


def test_no_module_is_longer_than_600_lines() -> None:
    """A longer one holds more than one idea."""
    lengths = {path: len(path.read_text().splitlines()) for path in PACKAGE.rglob("*.py")}

    assert {path for path, length in lengths.items() if length > 600} == set()


def test_no_package_has_more_than_40_modules_without_packages_inside() -> None:
    """A longer list has no order to read it in."""
    modules = {
        each: len(list(each.glob("*.py"))) for each in (PACKAGE, *(p.parent for p in PACKAGE.rglob("__init__.py")))
    }
    flat = {each for each in modules if not list(each.glob("*/__init__.py"))}

    assert {each for each in flat if modules[each] > 40} == set()
