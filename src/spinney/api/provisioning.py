"""Requests to an autoscaler for the capacity of many pods at once (``autoscaling.x-k8s.io/v1``)."""

from collections.abc import Mapping
from typing import Final

from spinney.api.meta import Condition, Metadata
from spinney.api.resource import Resource
from spinney.api.struct import Struct

PROVISIONING_REQUEST: Final = Resource("autoscaling.x-k8s.io", "v1", "ProvisioningRequest", "provisioningrequests")

CHECK_CAPACITY: Final = "check-capacity.autoscaling.x-k8s.io"
BEST_EFFORT_ATOMIC: Final = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"

CONSUMES: Final = "autoscaling.x-k8s.io/consume-provisioning-request"
PROVISIONING_CLASS: Final = "autoscaling.x-k8s.io/provisioning-class-name"
"""Annotations of pods that a request is for: Cluster Autoscaler adds no other nodes for them."""

PROVISIONED: Final = "Provisioned"
FAILED: Final = "Failed"
BOOKING_EXPIRED: Final = "BookingExpired"
CAPACITY_REVOKED: Final = "CapacityRevoked"


class TemplateReference(Struct, frozen=True, kw_only=True):
    """A PodTemplate of the same namespace."""

    name: str = ""


class PodSetRequest(Struct, frozen=True, kw_only=True):
    """So many pods of one template."""

    pod_template_ref: TemplateReference = TemplateReference()
    count: int = 0


class ProvisioningRequestSpec(Struct, frozen=True, kw_only=True):
    """What is asked for; it cannot be changed."""

    provisioning_class_name: str = ""
    pod_sets: tuple[PodSetRequest, ...] = ()
    parameters: Mapping[str, str] = {}


class ProvisioningRequestStatus(Struct, frozen=True, kw_only=True):
    """What the autoscaler answered."""

    conditions: tuple[Condition, ...] = ()


class ProvisioningRequest(Struct, frozen=True, kw_only=True):
    """Capacity that an autoscaler is asked for."""

    metadata: Metadata = Metadata()
    spec: ProvisioningRequestSpec = ProvisioningRequestSpec()
    status: ProvisioningRequestStatus = ProvisioningRequestStatus()
