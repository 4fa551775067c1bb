"""The part of NVIDIA's DRA driver that a scheduler can see, so that multi-node NVLink can be tried on simulated nodes.

Each node with GPUs offers one channel as a device. A ComputeDomain gets the ResourceClaimTemplate that it names, from
which each of its pods has a claim for the channel of its node. So one pod of a domain runs on a node, as with the real
driver. Nothing is connected: whether the nodes of a gang really share NVLink is left to topology constraints.
"""

from typing import Final

from spinney.api.compute_domains import CHANNEL_CLASS, COMPUTE_DOMAIN, DRIVER, compute_domain_crd
from spinney.api.core import NODE, Node
from spinney.api.meta import ObjectMeta, owner_reference
from spinney.api.resource_claims import DEVICE_CLASS, RESOURCE_CLAIM_TEMPLATE, RESOURCE_SLICE
from spinney.api.struct import JSON, Struct, to_json
from spinney.kube.client import Client
from spinney.kube.controller import Requeue
from spinney.kube.crds import install_crds
from spinney.kube.keys import Key
from spinney.kube.manager import Manager
from spinney.kube.reconciling import a_controller

_GPU: Final = "nvidia.com/gpu"
_CHANNEL: Final = f"device.driver == '{DRIVER}' && device.attributes['{DRIVER}'].type == 'channel'"


class _Domain(Struct, frozen=True, kw_only=True):
    """What is read of a ComputeDomain."""

    metadata: ObjectMeta
    spec: JSON


class ComputeDomains:
    """Serves ComputeDomains, the claim templates they name and the channels of nodes, until stopped."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.manager = Manager(client, client.runtime)
        self._domains = self.manager.cache(COMPUTE_DOMAIN, _Domain)
        self._nodes = self.manager.cache(NODE, Node)
        a_controller(self.manager, "computedomain", self._serve).watch(self._domains)
        a_controller(self.manager, "channels", self._offer).watch(
            self._nodes, unless=lambda change: change.old is not None
        )

    async def prepare(self) -> None:
        """Have the API server know the kind and the class of devices."""
        await install_crds(self._client, [compute_domain_crd()])
        selectors = [{"cel": {"expression": _CHANNEL}}]
        await self._client.apply(DEVICE_CLASS, {"metadata": {"name": CHANNEL_CLASS}, "spec": {"selectors": selectors}})

    async def run(self) -> None:
        """Serve until the manager is stopped."""
        await self.manager.run()

    async def _serve(self, key: Key) -> Requeue | None:
        domain = self._domains.get(key)
        if domain is None or domain.metadata.deletion_timestamp is not None:
            return None  # its template goes with it
        template = ((domain.spec.get("channel") or {}).get("resourceClaimTemplate") or {}).get("name")
        if template:
            request = {"name": "channel", "exactly": {"deviceClassName": CHANNEL_CLASS}}
            owner = to_json(owner_reference(COMPUTE_DOMAIN, domain.metadata, block=False))
            manifest: JSON = {
                "metadata": {"name": template, "ownerReferences": [owner]},
                "spec": {"spec": {"devices": {"requests": [request]}}},
            }
            await self._client.apply(RESOURCE_CLAIM_TEMPLATE, manifest, domain.metadata.namespace)
        return None

    async def _offer(self, key: Key) -> Requeue | None:
        node = self._nodes.get(key)
        if node is None or _GPU not in node.status.allocatable:
            return None  # the slice of a node that is gone goes with it
        name = node.metadata.name
        channel = {"name": "channel-0", "attributes": {"type": {"string": "channel"}, "id": {"int": 0}}}
        owner = to_json(owner_reference(NODE, node.metadata, block=False))
        manifest: JSON = {
            "metadata": {"name": f"{name}-{DRIVER}", "ownerReferences": [owner]},
            "spec": {
                "driver": DRIVER,
                "nodeName": name,
                "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
                "devices": [channel],
            },
        }
        await self._client.apply(RESOURCE_SLICE, manifest)
        return None
