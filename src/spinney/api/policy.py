"""Disruption budgets and evictions (``policy/v1``)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from spinney.api.meta import Condition, Object
from spinney.api.resource import Resource
from spinney.api.selectors import LabelSelector
from spinney.api.struct import Struct

POD_DISRUPTION_BUDGET: Final = Resource(
    "policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", short_names=("pdb",)
)


class PodDisruptionBudgetSpec(Struct, frozen=True, kw_only=True):
    """How many of which pods may be missing; numbers or percentages. An empty selector matches every pod."""

    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    selector: LabelSelector | None = None
    unhealthy_pod_eviction_policy: str | None = None


class PodDisruptionBudgetStatus(Struct, frozen=True, kw_only=True):
    """How many more disruptions are allowed now."""

    observed_generation: int | None = None
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    disrupted_pods: Mapping[str, datetime] = {}
    conditions: tuple[Condition, ...] = ()


class PodDisruptionBudget(Object, of=POD_DISRUPTION_BUDGET, frozen=True, kw_only=True):
    """A bound on voluntary disruption of a set of pods."""

    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


def desired_healthy(min_available: int | str | None, max_unavailable: int | str | None, expected: int) -> int:
    """Return how many of ``expected`` pods have to stay healthy; percentages are rounded up."""
    if min_available is not None:
        return _scaled(min_available, expected)
    return max(0, expected - _scaled(max_unavailable if max_unavailable is not None else 1, expected))


def _scaled(value: int | str, of: int) -> int:
    if isinstance(value, str) and value.endswith("%"):
        return -(-int(value[:-1]) * of // 100)
    return int(value)
