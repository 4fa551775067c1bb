"""Horizontal autoscaling (``autoscaling/v2``)."""

from typing import Final

from spinney.api.resource import Resource

HORIZONTAL_POD_AUTOSCALER: Final = Resource(
    "autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", short_names=("hpa",)
)
