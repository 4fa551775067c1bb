"""Eviction: a deletion that asks the disruption budgets first.

A budget's status (``disruptionsAllowed``) is kept by a controller. Where none runs, the server itself counts the
healthy pods that the budget selects, so that a budget means something in a cluster of only server and nodes.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from spinney.api.field_error import FieldError
from spinney.api.policy import desired_healthy
from spinney.api.selectors import LabelSelector
from spinney.api.struct import JSON, convert
from spinney.api.time import parse_timestamp, timestamp
from spinney.server.exchange.status import StatusError, bad_request, internal_error, too_many_requests
from spinney.server.operations.context import Context, Target
from spinney.server.operations.deleting import delete, delete_options, is_dry_run
from spinney.server.operations.reading import get
from spinney.server.operations.write import WriteOptions
from spinney.server.store import Record

_BUDGETS = "poddisruptionbudgets.policy"
_RECENT = timedelta(minutes=2)


async def evict(context: Context, target: Target, body: JSON, options: WriteOptions) -> None:
    """Delete a pod if no disruption budget speaks against it; raise a 429 that names the budget otherwise."""
    named = (body.get("metadata") or {}).get("name")
    if named and named != target.name:
        raise bad_request(f"name in URL does not match name in Eviction object: {target.name} and {named}")
    wanted = body.get("deleteOptions") or {}
    deletion = delete_options(wanted, {})
    options.dry_run = options.dry_run or is_dry_run(wanted, {})
    found = get(context, target)
    pod = found.decode()
    if needs_budget(pod):
        budgets = [(record, record.decode()) for record in _covering(context, found)]
        if len(budgets) > 1:
            raise internal_error(
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
            )
        for record, budget in budgets:
            spend(context, record, budget, pod, dry_run=options.dry_run)
    await delete(context, Target(target.kind, target.namespace, target.name), deletion, options)


def needs_budget(pod: JSON) -> bool:
    """Tell whether a pod counts against budgets: not while it is pending, ended or being deleted."""
    phase = (pod.get("status") or {}).get("phase")
    return phase not in {"Succeeded", "Failed", "Pending"} and "deletionTimestamp" not in pod["metadata"]


def spend(context: Context, record: Record, budget: JSON, pod: JSON, *, dry_run: bool) -> None:
    """Take one disruption from a budget, or raise a 429."""
    name = budget["metadata"]["name"]
    status = budget.setdefault("status", {})
    allowed = allowed_disruptions(context, budget)
    unhealthy = not is_ready(pod)
    if unhealthy and (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return
    if allowed.allowed <= 0:
        if unhealthy and allowed.healthy >= allowed.desired > 0:
            return
        raise _refused(name, allowed.healthy, allowed.desired)
    if dry_run:
        return
    now = context.runtime.clock.now()
    disrupted = _recent(status.get("disruptedPods") or {}, now)
    disrupted[pod["metadata"]["name"]] = timestamp(now)
    status["disruptedPods"] = disrupted
    status["disruptionsAllowed"] = allowed.allowed - 1
    context.store.write(_BUDGETS, record.key, budget)


def is_ready(pod: JSON) -> bool:
    """Tell whether a pod's Ready condition is True."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


def _covering(context: Context, pod: Record) -> list[Record]:
    covering = []
    for record in context.store.records(_BUDGETS, pod.key.namespace):
        selector = (record.decode().get("spec") or {}).get("selector")
        if selector is not None and convert(LabelSelector, selector).matches(pod.labels):
            covering.append(record)
    return covering


def _recent(disrupted: JSON, now: datetime) -> JSON:
    return {name: when for name, when in disrupted.items() if now - parse_timestamp(when) < _RECENT}


def _refused(name: str, healthy: int, desired: int) -> StatusError:
    detail = f"The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
    return too_many_requests(
        "Cannot evict pod as it would violate the pod's disruption budget.",
        causes=[FieldError("DisruptionBudget", "", detail)],
    )


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
    disrupted = _recent((budget.get("status") or {}).get("disruptedPods") or {}, context.runtime.clock.now())
    expected = healthy = 0
    for record in context.store.records("pods", budget["metadata"]["namespace"]):
        if not selector.matches(record.labels):
            continue
        pod = record.decode()
        if (pod.get("status") or {}).get("phase") in {"Succeeded", "Failed"}:
            continue
        expected += 1
        healthy += not record.deleting and record.key.name not in disrupted and is_ready(pod)
    desired = desired_healthy(spec.get("minAvailable"), spec.get("maxUnavailable"), expected)
    return Allowance(max(0, healthy - desired), healthy, desired)
