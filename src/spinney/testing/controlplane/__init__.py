"""A real Kubernetes control plane on loopback, for suites that claim Kubernetes behaviour.

``with ControlPlane("1.37") as plane:`` starts etcd, kube-apiserver and kube-controller-manager (and kube-scheduler
where asked for) with the gang scheduling API of that minor switched on, waits until they answer, and ends them again.
Nothing outside a temporary directory is touched. The binaries are found or built by :mod:`.binaries`.
"""

from spinney.testing.controlplane.binaries import Binaries, BinariesMissing, GoMissing, find_binaries
from spinney.testing.controlplane.features import MINORS, GangApi, gang_api
from spinney.testing.controlplane.plane import ControlPlane
from spinney.testing.controlplane.process import ProcessFailed

__all__ = [
    "MINORS",
    "Binaries",
    "BinariesMissing",
    "ControlPlane",
    "GangApi",
    "GoMissing",
    "ProcessFailed",
    "find_binaries",
    "gang_api",
]
