"""Horizontal autoscaling (``autoscaling/v2``) and the scale subresource (``autoscaling/v1``)."""

from typing import Final

from spinney.api.meta import ObjectMeta
from spinney.api.resource import Resource
from spinney.api.struct import JSON, Struct, constant

HORIZONTAL_POD_AUTOSCALER: Final = Resource(
    "autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", short_names=("hpa",)
)


class CrossVersionObjectReference(Struct, frozen=True, kw_only=True):
    """The object whose scale subresource is driven."""

    api_version: str = ""
    kind: str
    name: str


class HorizontalPodAutoscalerSpec(Struct, frozen=True, kw_only=True):
    """Bounds, target and metrics; metrics and behaviour are carried verbatim."""

    scale_target_ref: CrossVersionObjectReference
    min_replicas: int | None = None
    max_replicas: int
    metrics: tuple[JSON, ...] = ()
    behavior: JSON | None = None


class HorizontalPodAutoscalerStatus(Struct, frozen=True, kw_only=True):
    """What the autoscaler sees and wants."""

    current_replicas: int = 0
    desired_replicas: int = 0


class HorizontalPodAutoscaler(Struct, frozen=True, kw_only=True):
    """Scales a target between two bounds."""

    api_version: str = constant(HORIZONTAL_POD_AUTOSCALER.api_version)
    kind: str = constant(HORIZONTAL_POD_AUTOSCALER.kind)
    metadata: ObjectMeta = ObjectMeta()
    spec: HorizontalPodAutoscalerSpec
    status: HorizontalPodAutoscalerStatus = HorizontalPodAutoscalerStatus()


class ScaleSpec(Struct, frozen=True, kw_only=True):
    """Wanted replicas; absent is zero."""

    replicas: int = 0


class ScaleStatus(Struct, frozen=True, kw_only=True):
    """Present replicas and the pods' selector."""

    replicas: int
    selector: str = ""


class Scale(Struct, frozen=True, kw_only=True):
    """What the scale subresource of any kind looks like."""

    api_version: str = constant("autoscaling/v1")
    kind: str = constant("Scale")
    metadata: ObjectMeta = ObjectMeta()
    spec: ScaleSpec = ScaleSpec()
    status: ScaleStatus = ScaleStatus(replicas=0)
