"""ComputeDomain (``resource.nvidia.com``): nodes that share memory over NVLink, as NVIDIA's DRA driver serves them."""

from typing import Final

from spinney.api.resource import Resource
from spinney.api.struct import JSON

COMPUTE_DOMAIN: Final = Resource("resource.nvidia.com", "v1beta1", "ComputeDomain", "computedomains")

DRIVER: Final = "compute-domain.nvidia.com"
CHANNEL_CLASS: Final = "compute-domain-default-channel.nvidia.com"
"""The DeviceClass of the one channel that each node offers to pods of a domain."""


def compute_domain_crd() -> JSON:
    """Return a CRD that serves ComputeDomains with open fields, for clusters on which the driver does not run."""
    open_fields: JSON = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "metadata": {"name": f"{COMPUTE_DOMAIN.plural}.{COMPUTE_DOMAIN.group}"},
        "spec": {
            "group": COMPUTE_DOMAIN.group,
            "names": {"kind": COMPUTE_DOMAIN.kind, "plural": COMPUTE_DOMAIN.plural, "singular": "computedomain"},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": COMPUTE_DOMAIN.version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": open_fields},
                }
            ],
        },
    }
