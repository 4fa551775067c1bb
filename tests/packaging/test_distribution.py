"""What is published: a source archive and a wheel, built from the checkout without a package index, that install."""

import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from configparser import ConfigParser
from email import message_from_bytes
from pathlib import Path

import pytest

from tests.backends.test_third_party_install import run

ROOT = Path(__file__).resolve().parents[2]
BUILD = "import sys, hatchling.build as build; print(getattr(build, f'build_{sys.argv[1]}')(sys.argv[2]))"


def built(kind: str, source: Path, into: Path) -> Path:
    """Build a distribution with the backend that is installed here."""
    return into / run(sys.executable, "-c", BUILD, kind, into, cwd=source).splitlines()[-1]


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source archive of this checkout."""
    return built("sdist", ROOT, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the source archive as an installer does where it finds no wheel."""
    unpacked = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        archive.extractall(unpacked, filter="data")
    (source,) = unpacked.iterdir()
    return built("wheel", source, tmp_path_factory.mktemp("wheel"))


def test_the_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    """Modules, data files and the marker for type checkers are all there, and nothing else is."""
    tracked = subprocess.run(["git", "ls-files", "src"], cwd=ROOT, capture_output=True, text=True, check=False)
    if tracked.returncode:
        pytest.skip("not in a git checkout")
    with zipfile.ZipFile(wheel) as archive:
        packaged = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert packaged == {name.removeprefix("src/") for name in tracked.stdout.split() if (ROOT / name).exists()}
    assert "spinney/py.typed" in packaged


def test_the_wheel_announces_the_fixture(wheel: Path) -> None:
    """Wherever the package is installed, pytest finds the plugin that has ``kube_api``."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("entry_points.txt"))
        announced = ConfigParser()
        announced.read_string(archive.read(name).decode())
        module = announced["pytest11"]["spinney"]
        assert f"{module.replace('.', '/')}.py" in archive.namelist()


def test_the_description_stands_alone(wheel: Path) -> None:
    """On a package index no link of the README leads to a file beside it, and every address is the project's."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("METADATA"))
        metadata = message_from_bytes(archive.read(name))
    description = str(metadata.get_payload())
    links = re.findall(r"\]\(([^)]+)\)", description)
    assert links
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    home = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Homepage"]
    beside = re.findall(r"\]\((?!https?:|#)([^)]+)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert beside
    seen = {"png": "raw"}  # a page about a picture is no picture
    assert {f"{home}/{seen.get(path.rpartition('.')[2], 'blob')}/main/{path}" for path in beside} <= set(links)
    assert [path for path in beside if not (ROOT / path.partition("#")[0]).exists()] == []


def test_the_wheel_is_installed_and_runs(wheel: Path, tmp_path: Path) -> None:
    """In a fresh environment the commands are there and say their version; the checkout is not needed."""
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv", cwd=tmp_path)
    python = tmp_path / "venv" / "bin" / "python"
    pip: list[str | Path] = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check"]
    run(*pip, "install", "--no-index", "--no-deps", "--no-compile", wheel, cwd=tmp_path)
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=tmp_path).strip())
    ours = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}  # what it depends on, but not the checkout
    (site / "dependencies.pth").write_text("".join(f"{path}\n" for path in sorted(ours)))
    where = run(python, "-c", "import spinney; print(spinney.__file__)", cwd=tmp_path)
    assert Path(where.strip()).is_relative_to(tmp_path)
    version = wheel.name.split("-")[1]
    for command in ("spinney", "kubectl-spinney"):
        assert version in run(tmp_path / "venv" / "bin" / command, "version", cwd=tmp_path)
    run(tmp_path / "venv" / "bin" / "spinney", "crds", "--output", tmp_path / "crds", cwd=tmp_path)
    assert list((tmp_path / "crds").iterdir())
