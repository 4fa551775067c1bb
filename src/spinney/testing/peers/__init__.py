"""What others wrote for the same job, run on an API server of yours: KAI, Grove's operator, scheduler-plugins, Volcano.

``make peers`` builds them. ``await install(KAI, client)`` gives a cluster what a peer brings along, and
``with running(KAI, kubeconfig, directory) as peer:`` runs its programs on loopback, in their fastest sensible form.
"""

from spinney.testing.peers.peer import Peer, PeerMissing, RunningPeer, built, crds, install, running
from spinney.testing.peers.recipes import COSCHEDULING, GROVE, KAI, PEERS, VOLCANO

__all__ = [
    "COSCHEDULING",
    "GROVE",
    "KAI",
    "PEERS",
    "VOLCANO",
    "Peer",
    "PeerMissing",
    "RunningPeer",
    "built",
    "crds",
    "install",
    "running",
]
