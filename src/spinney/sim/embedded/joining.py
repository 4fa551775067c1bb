"""The grouper's admission without sockets: new pods are told their gang by a function call."""

from spinney.grouping.grouper import Grouper
from spinney.server import ApiServer
from spinney.server.admission.attributes import Attributes


class JoiningAtCreation:
    """Has the grouper of the same process asked about pods that are created; fills ``MutatingPlugin``."""

    def __init__(self, grouper: Grouper) -> None:
        self._grouper = grouper

    async def admit(self, attributes: Attributes) -> None:
        """Add to a new pod what the grouper tells it."""
        admission, pod = self._grouper.admission, attributes.obj
        if admission is None or pod is None or attributes.operation != "CREATE":
            return
        if attributes.kind.storage != "pods" or attributes.subresource:
            return
        pod["metadata"] |= await admission.changes(pod, attributes.namespace, dry_run=attributes.dry_run)


def join_at_creation(server: ApiServer, grouper: Grouper | None) -> None:
    """Have a server ask the grouper, if there is one, about pods that are created."""
    if grouper is not None:
        server.admit_with(JoiningAtCreation(grouper))
