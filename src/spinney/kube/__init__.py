"""Talking to an API server: client, watch caches with indexes, work queue, controllers, leader lease, events.

A :class:`~spinney.kube.client.Client` speaks over a :class:`~spinney.kube.transport.Transport`: HTTP to a real API
server (:func:`~spinney.kube.config.load_kubeconfig`, :func:`~spinney.kube.config.in_cluster`), or a function call to
an embedded one. Everything above it is the same in production, in a test and on virtual time.

What is named here is imported when it is first asked for: code that needs the name of an object does not wait for an
HTTP stack.
"""

from typing import TYPE_CHECKING

from spinney.lazy_exports import exported

if TYPE_CHECKING:
    from spinney.kube.cache import Change, WatchCache
    from spinney.kube.client import Client, PatchKind
    from spinney.kube.controller import Controller, Requeue
    from spinney.kube.errors import ApiError, KubeError
    from spinney.kube.events import EventRecorder
    from spinney.kube.keys import Key
    from spinney.kube.lease import LeaderElection
    from spinney.kube.manager import Manager
    from spinney.kube.metrics import KubeMetrics
    from spinney.kube.pages import Listing
    from spinney.kube.queue import WorkQueue
    from spinney.kube.transport import Response, Transport
    from spinney.kube.watching import WatchEvent

__all__ = [
    "ApiError",
    "Change",
    "Client",
    "Controller",
    "EventRecorder",
    "Key",
    "KubeError",
    "KubeMetrics",
    "LeaderElection",
    "Listing",
    "Manager",
    "PatchKind",
    "Requeue",
    "Response",
    "Transport",
    "WatchCache",
    "WatchEvent",
    "WorkQueue",
]

__getattr__ = exported(
    __name__,
    {
        "cache": ["Change", "WatchCache"],
        "client": ["Client", "PatchKind"],
        "controller": ["Controller", "Requeue"],
        "errors": ["ApiError", "KubeError"],
        "events": ["EventRecorder"],
        "keys": ["Key"],
        "lease": ["LeaderElection"],
        "manager": ["Manager"],
        "metrics": ["KubeMetrics"],
        "pages": ["Listing"],
        "queue": ["WorkQueue"],
        "transport": ["Response", "Transport"],
        "watching": ["WatchEvent"],
    },
)
