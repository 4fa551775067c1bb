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
    volcano_queues: bool = False
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
    Backend("volcano", volcano_queues=True, skipped="no scheduler of the embedded cluster serves volcano's pods yet"),
    Backend("coscheduling", skipped="the coscheduler, which serves its pods, is not part of the embedded cluster yet"),
    Backend("default-scheduler", skipped="the coscheduler, which serves its pods, is not part of the cluster yet"),
)

RUNNING = tuple(backend for backend in BACKENDS if not backend.skipped)

KAI = RUNNING[0]

everywhere = pytest.mark.parametrize(
    ("cluster_name", "backend"),
    [pytest.param("embedded", backend, id=f"embedded-{backend}") for backend in RUNNING]
    + [pytest.param("real", KAI, marks=pytest.mark.real, id=f"real-{KAI}")],
)
"""Marks a scenario that also runs on a real control plane, with the first backend."""
