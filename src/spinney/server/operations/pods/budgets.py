"""How many disruptions a PodDisruptionBudget allows right now."""

from dataclasses import dataclass
from datetime import timedelta

from spinney.api.selectors import LabelSelector
from spinney.api.struct import JSON, convert
from spinney.api.time import parse_timestamp
from spinney.server.operations.context import Context

_RECENT = timedelta(minutes=2)


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a budget allows, and the counts it comes from."""

    allowed: int
    healthy: int
    desired: int


def allowed_disruptions(context: Context, budget: JSON) -> Allowance:
    """Return what the budget allows: from its status if a controller keeps it, else by counting pods."""
    status = budget.get("status") or {}
    observed = status.get("observedGeneration", 0)
    if observed and observed >= budget["metadata"].get("generation", 0):
        return Allowance(
            status.get("disruptionsAllowed", 0), status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
        )
    return _counted(context, budget)


def _counted(context: Context, budget: JSON) -> Allowance:
    spec = budget.get("spec") or {}
    selector = convert(LabelSelector, spec.get("selector") or {})
    disrupted = (budget.get("status") or {}).get("disruptedPods") or {}
    now = context.runtime.clock.now()
    expected = healthy = 0
    for record in context.store.records("pods", budget["metadata"]["namespace"]):
        if not selector.matches(record.labels):
            continue
        pod = record.decode()
        status = pod.get("status") or {}
        if status.get("phase") in {"Succeeded", "Failed"}:
            continue
        expected += 1
        when = disrupted.get(record.key.name)
        leaving = record.deleting or (when is not None and now - parse_timestamp(when) < _RECENT)
        conditions = status.get("conditions") or ()
        if not leaving and any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions):
            healthy += 1
    desired = _desired(spec, expected)
    return Allowance(max(0, healthy - desired), healthy, desired)


def _desired(spec: JSON, expected: int) -> int:
    if "minAvailable" in spec:
        return _scaled(spec["minAvailable"], expected)
    return max(0, expected - _scaled(spec.get("maxUnavailable", 1), expected))


def _scaled(value: object, of: int) -> int:
    """Return a count, or a percentage of ``of`` rounded up."""
    if isinstance(value, str) and value.endswith("%"):
        return -(-int(value[:-1]) * of // 100)
    return int(str(value))
