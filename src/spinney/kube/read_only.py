"""A transport through which nothing can be written, for looking at a cluster without any risk to it."""

from spinney.kube.errors import KubeError
from spinney.kube.guarding import GuardedTransport
from spinney.kube.transport import Request


class WriteRefused(KubeError):
    """Something tried to write through a read-only transport; a bug of the caller."""


class ReadOnlyTransport(GuardedTransport):
    """Passes reads on and refuses everything else."""

    def admit(self, request: Request) -> Request:
        """Refuse."""
        raise WriteRefused(f"{request} was not sent: this process only reads")
