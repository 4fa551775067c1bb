"""The status of a ClusterTopologyBinding: whether each scheduler's own topology agrees with it."""

from collections.abc import Mapping
from datetime import datetime

from spinney.api.conditions import set_condition
from spinney.api.meta import Condition
from spinney.api.topology_binding import ClusterTopologyBinding, ClusterTopologyBindingStatus, SchedulerTopologyStatus
from spinney.backends.interface import TopologyState

DRIFT = "SchedulerTopologyDrift"


def binding_status(
    binding: ClusterTopologyBinding,
    states: Mapping[str, tuple[str, TopologyState]],
    unavailable: Mapping[str, str],
    now: datetime,
    *,
    failed: bool = False,
) -> ClusterTopologyBindingStatus:
    """Return the status; ``states`` has by scheduler the topology it uses and how that compares.

    ``unavailable`` are the topologies of schedulers the binding refers to that are not enabled, or keep none. When a
    backend ``failed`` the generation does not count as observed.
    """
    missing = {name: (topology, TopologyState(False, _unavailable([name]))) for name, topology in unavailable.items()}
    statuses = tuple(
        SchedulerTopologyStatus(
            scheduler_name=scheduler,
            topology_reference=topology,
            in_sync=state.in_sync,
            scheduler_backend_topology_observed_generation=state.observed_generation,
            message=state.message or None,
        )
        for scheduler, (topology, state) in sorted({**states, **missing}.items())
    )
    condition = _drift(statuses, sorted(unavailable))
    conditions = tuple(each for each in binding.status.conditions if each.type != DRIFT or condition is not None)
    if condition is not None:
        conditions = set_condition(conditions, condition, now)
    return ClusterTopologyBindingStatus(
        observed_generation=binding.status.observed_generation if failed else binding.metadata.generation,
        conditions=conditions,
        scheduler_topology_statuses=statuses,
    )


def _drift(statuses: tuple[SchedulerTopologyStatus, ...], unavailable: list[str]) -> Condition | None:
    if unavailable:
        return Condition(type=DRIFT, status="Unknown", reason="TopologyNotFound", message=_unavailable(unavailable))
    if not statuses:
        return None
    apart = [f"{each.scheduler_name}: {each.message}" for each in statuses if not each.in_sync]
    if apart:
        return Condition(type=DRIFT, status="True", reason="Drift", message="; ".join(apart))
    return Condition(type=DRIFT, status="False", reason="InSync", message="every scheduler's topology agrees")


def _unavailable(schedulers: list[str]) -> str:
    return f"no enabled topology-aware scheduler backend is called {', '.join(schedulers)}"
