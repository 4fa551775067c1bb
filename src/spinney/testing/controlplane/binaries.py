"""Finding the binaries of a control plane, and building those that are missing.

The directory named by ``KUBEBUILDER_ASSETS`` comes first; such a directory holds the newest minor. Older minors have an
API server and a scheduler of their own, which is where they differ, and are served by the newest controller manager and
kubectl: that saves a third of their build. What is lacking is built from the pins under ``hack/controlplane`` into
``SPINNEY_CONTROLPLANE_CACHE`` (default ``~/.cache/spinney/controlplane``), once. etcd too: an API server serves
watches without a resource version, and consistent lists from its cache, only on an etcd new enough to report progress.
"""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from spinney.testing.controlplane.features import MINORS, gang_api

_OF_EACH_MINOR = ("kube-apiserver", "kube-scheduler")
_OF_THE_NEWEST = ("kube-controller-manager", "kubectl")
_BUILD_SCRIPT = Path(__file__).resolve().parents[4] / "hack" / "controlplane" / "build.sh"
_NO_GO = 3  # the exit code with which the build script says that there is no Go


class BinariesMissing(RuntimeError):
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
    newest = MINORS[-1]
    assets = os.environ.get("KUBEBUILDER_ASSETS", "")
    programs = _programs(assets if minor == newest else "", minor, _OF_EACH_MINOR)
    programs |= _programs(assets, newest, _OF_THE_NEWEST)
    etcd = _programs(assets, "etcd", ("etcd",))
    return Binaries(
        minor=minor,
        etcd=etcd["etcd"],
        kube_apiserver=programs["kube-apiserver"],
        kube_controller_manager=programs["kube-controller-manager"],
        kube_scheduler=programs["kube-scheduler"],
        kubectl=programs["kubectl"],
    )


def _programs(assets: str, target: str, names: tuple[str, ...]) -> dict[str, Path]:
    """Return each program from the assets if it is there, else from the build of ``target``."""
    found = {name: Path(assets) / name for name in names if assets and (Path(assets) / name).is_file()}
    if len(found) == len(names):
        return found
    built = _built(target)
    return {name: built / name for name in names} | found


def _built(target: str) -> Path:
    if not _BUILD_SCRIPT.is_file():
        raise BinariesMissing(
            f"no binaries of {target}, and no {_BUILD_SCRIPT} to build them with: "
            "run from a source tree, or set KUBEBUILDER_ASSETS to a directory that holds them"
        )
    build = subprocess.run([str(_BUILD_SCRIPT), target], stdout=subprocess.PIPE, text=True, check=False)  # noqa: S603
    if build.returncode == _NO_GO:
        raise GoMissing(f"{target} has to be built from source and `go` is not on PATH")
    if build.returncode != 0:
        raise BinariesMissing(
            f"`{_BUILD_SCRIPT} {target}` failed with exit code {build.returncode}; its output is above"
        )
    return Path(build.stdout.strip())
