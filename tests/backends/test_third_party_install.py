"""A third party's backend is installed with pip and enabled with three lines; nothing of Spinney is edited.

The example package goes into a fresh virtual environment that sees the packages of this one, as a user's sees an
installed Spinney. Nothing is fetched where the package's build backend is installed here.
"""

import shutil
import subprocess
import sys
import sysconfig
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

import pytest

from spinney.backends.catalogue import GROUP

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "third_party_backend"


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command to its end and return what it printed; a failure shows all of it."""
    done = subprocess.run(
        [str(each) for each in command],
        cwd=cwd,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    assert done.returncode == 0, f"{command} exited with {done.returncode}:\n{done.stdout}"
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The interpreter of a fresh environment that has the example installed, and a copy of the example."""
    home = tmp_path_factory.mktemp("third-party")
    package = shutil.copytree(EXAMPLE, home / "package", ignore=shutil.ignore_patterns("__pycache__"))
    run(sys.executable, "-m", "venv", "--without-pip", home / "venv", cwd=home)
    python = home / "venv" / "bin" / "python"
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=home).strip())
    ours = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (site / "spinney-as-installed.pth").write_text(
        "".join(f"import site; site.addsitedir({path!r})\n" for path in sorted(ours))
    )
    offline = ["--no-build-isolation", "--no-index"] if find_spec("hatchling") else []
    pip: list[str | Path] = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "--disable-pip-version-check",
        "install",
        "--no-deps",
    ]
    run(*pip, *offline, package, cwd=home)
    return python, package


def test_it_is_not_installed_here() -> None:
    """The environment the tests run in does not know the package, so what follows is due to the installation."""
    assert "acme-scheduler" not in {each.name for each in entry_points(group=GROUP)}


def test_three_lines_enable_it(installed: tuple[Path, Path]) -> None:
    """The operator's configuration that names the backend is valid where the package is installed."""
    python, package = installed
    lines = [line for line in (package / "operator.yaml").read_text().splitlines() if line.strip()]
    assert len(lines) == 3
    spinney: list[str | Path] = [python, "-c", "from spinney.cli import main; main()"]
    assert "acme-scheduler" in run(*spinney, "operator", "--config", "operator.yaml", "--check", cwd=package)


def test_a_workload_comes_up_through_it(installed: tuple[Path, Path]) -> None:
    """A PodCliqueSet that names no scheduler is handed to ACME as a gang, and all its pods become ready."""
    python, package = installed
    printed = run(python, "try_it.py", cwd=package).splitlines()
    pods = [line for line in printed if line.endswith("placed by acme-scheduler")]
    assert [line.split()[0].rsplit("-", 1)[0] for line in pods] == ["model-0-leader", *["model-0-worker"] * 3]
    gang = 'AcmeGang model-0: {"minimums": {"model-0-leader": 1, "model-0-worker": 2}, "pool": "shared"}'
    assert printed[-1] == gang


def test_it_keeps_the_contract_where_it_is_installed(installed: tuple[Path, Path]) -> None:
    """The package's own tests, which are the contract suite, pass in that environment."""
    python, package = installed
    command: list[str | Path] = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "tests"]
    assert "passed" in run(*command, cwd=package)
