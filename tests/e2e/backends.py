"""Which backends the scenarios run on: one row for each backend Spinney ships, and a reason where they cannot run.

A row says what the operator is configured with and which scheduler of the embedded cluster serves it. The scenarios
run on every row without a reason, in this order; KAI comes first because they were written for it.
"""

from dataclasses import dataclass

import pytest


@dataclass(frozen=True)
class Backend:
    """One backend: its profile, the scheduler name of its pods, and what of the scenarios it can run."""

    name: str
    topology: bool = False
    kai_objects: bool = False  # makes PodGroups and Topologies of KAI's
    volcano_queues: bool = False  # wants Volcano's queue to be open
    coscheduler: bool = False  # served by the coscheduler instead of the session scheduler
    event: str = "Unschedulable"  # the reason of the event on a pod that was not placed
    minimums_first: bool = True  # every gang gets its minimum before any gets more
    skipped: str = ""

    def __str__(self) -> str:
        return self.name

    def configuration(self, *, topology: bool, mnnvl: bool) -> str:
        """Return the operator's configuration file with this backend as the default profile."""
        return "\n".join(
            [
                "apiVersion: operator.config.grove.io/v1alpha1",
                "kind: OperatorConfiguration",
                "leaderElection: {enabled: false}",
                f"topologyAwareScheduling: {{enabled: {str(topology).lower()}}}",
                f"network: {{autoMNNVLEnabled: {str(mnnvl).lower()}}}",
                "scheduler:",
                "  profiles:",
                f"    - {{name: {self.name}, default: true}}",
            ]
        )


BACKENDS = (
    Backend("kai-scheduler", topology=True, kai_objects=True),
    Backend("spinney-scheduler", topology=True),
    Backend("volcano", volcano_queues=True),
    # Pods beyond a minimum are in no group, and pods in no group come before groups.
    Backend("coscheduling", coscheduler=True, event="FailedScheduling", minimums_first=False),
    Backend(
        "default-scheduler",
        coscheduler=True,
        skipped="without gang scheduling it places pod by pod, and the scenarios are about gangs",
    ),
)

RUNNING = tuple(backend for backend in BACKENDS if not backend.skipped)
"""Every backend that can run scenarios: those of scheduling, termination and start-up."""

KAI, SPINNEY = RUNNING[:2]

THOROUGH = (KAI, SPINNEY)
"""Backends that run every scenario, also those that are mostly the operator's affair."""

MINIMUMS_FIRST = tuple(backend for backend in RUNNING if backend.minimums_first)
WITH_TOPOLOGY = tuple(backend for backend in RUNNING if backend.topology)
WITHOUT_TOPOLOGY = tuple(backend for backend in RUNNING if not backend.topology)


def on(*backends: Backend) -> pytest.MarkDecorator:
    """Mark a scenario that runs on other backends than its neighbours."""
    return pytest.mark.parametrize("backend", backends, ids=str)


def everywhere(*backends: Backend) -> pytest.MarkDecorator:
    """Mark a scenario that runs with these backends, and with the first of them also on a real control plane."""
    embedded = [pytest.param("embedded", backend, id=f"embedded-{backend}") for backend in backends]
    real = pytest.param("real", backends[0], marks=pytest.mark.real, id=f"real-{backends[0]}")
    return pytest.mark.parametrize(("cluster_name", "backend"), [*embedded, real])
