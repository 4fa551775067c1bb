"""What the package imports is what it declares: nothing that merely happens to be installed with something else."""

import ast
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
DISTRIBUTIONS = packages_distributions()


def imported(tree: ast.AST) -> Iterator[str]:
    """Yield the top-level packages a module imports when it runs."""
    if isinstance(tree, ast.If) and ast.unparse(tree.test) == "TYPE_CHECKING":
        yield from (package for otherwise in tree.orelse for package in imported(otherwise))
        return
    if isinstance(tree, ast.Import):
        yield from (name.name.partition(".")[0] for name in tree.names)
    if isinstance(tree, ast.ImportFrom) and tree.level == 0 and tree.module:
        yield tree.module.partition(".")[0]
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, ast.expr):
            yield from imported(node)


@cache
def third_parties() -> dict[str, str]:
    """Return a module that imports it for each package that is neither Python's nor ours."""
    own = sys.stdlib_module_names | {"spinney"}
    return {
        package: str(path.relative_to(ROOT))
        for path in sorted((ROOT / "src").rglob("*.py"))
        for package in imported(ast.parse(path.read_text(encoding="utf-8")))
        if package not in own
    }


def names(requirements: list[str]) -> set[str]:
    """Return the distributions that requirements name."""
    return {canonicalize_name(Requirement(each).name) for each in requirements}


def test_every_import_is_declared() -> None:
    """Whatever a module of Spinney imports is a dependency, or one of an extra."""
    extras = PROJECT["project"]["optional-dependencies"].values()
    declared = names([*PROJECT["project"]["dependencies"], *(each for extra in extras for each in extra)])
    undeclared = {
        package: module
        for package, module in third_parties().items()
        if not declared & {canonicalize_name(name) for name in DISTRIBUTIONS.get(package, [package])}
    }
    assert undeclared == {}


def test_every_dependency_is_imported() -> None:
    """Nothing is installed on a user's machine that Spinney does not use."""
    used = {canonicalize_name(name) for package in third_parties() for name in DISTRIBUTIONS.get(package, [package])}
    assert names(PROJECT["project"]["dependencies"]) <= used


def test_what_builds_the_image_is_what_builds_the_package() -> None:
    """The group that the lock of the build is made from says what [build-system] says."""
    assert PROJECT["dependency-groups"]["build"] == PROJECT["build-system"]["requires"]


@pytest.mark.parametrize("lock", ["requirements.image.lock", "requirements.build.lock"])
def test_what_goes_into_the_image_is_locked_by_hash(lock: str) -> None:
    """Every distribution of the image has a version and hashes, and the version is the one that is tested."""
    text = (ROOT / lock).read_text(encoding="utf-8").replace("\\\n", "")
    lines = [line.split("#")[0] for line in text.splitlines() if line and not line.lstrip().startswith("#")]
    tested = {line.partition(" ")[0] for line in (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()}
    assert lines
    for line in lines:
        pinned, *hashes = (part.strip() for part in line.split("--hash="))
        assert hashes, f"{pinned} has no hash; run `make lock`"
        assert pinned.partition(" ")[0] in tested, f"{pinned} is not in requirements.lock; run `make lock`"
