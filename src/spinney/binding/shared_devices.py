"""Which shared GPU a pod was given: written on the pod before it is bound.

The labels are KAI's (``runai-gpu-group``, or one per device). The program that reserves devices on the node goes by
them, and so does a scheduler that starts later and has to know who shares what.
"""

from collections.abc import Mapping

import structlog

from spinney.api.core import POD
from spinney.binding.placement import Placement
from spinney.cluster.pods import GPU_GROUP_LABEL
from spinney.kube.client import Client, PatchKind
from spinney.kube.errors import KubeError
from spinney.kube.reconciling import unless_gone

log = structlog.get_logger()


class SharedDeviceWriter:
    """Writes the devices of pods that share some; fills ``PreBind``."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def needs(self, placement: Placement) -> bool:
        return bool(placement.gpu_groups)

    async def prepare(self, placement: Placement) -> None:
        """Write the devices on the pod."""
        await self._label(placement, dict(group_labels(placement.gpu_groups)))

    async def release(self, placement: Placement) -> None:
        """Take them off again."""
        try:
            await unless_gone(self._label(placement, dict.fromkeys(group_labels(placement.gpu_groups))))
        except KubeError as error:
            log.warning("devices not taken off the pod", pod=str(placement.pod), error=str(error))

    def interrupt(self) -> None:
        """Nothing here has to be waited for."""

    async def _label(self, placement: Placement, labels: Mapping[str, str | None]) -> None:
        patch = {"metadata": {"uid": placement.uid, "labels": labels}}
        pod = placement.pod
        await self._client.patch(POD, pod.name, patch, pod.namespace, kind=PatchKind.STRATEGIC)


def group_labels(groups: tuple[str, ...]) -> Mapping[str, str]:
    """Return the labels of a pod that shares these devices."""
    if len(groups) == 1:
        return {GPU_GROUP_LABEL: groups[0]}
    return {f"{GPU_GROUP_LABEL}/{group}": group for group in groups}
