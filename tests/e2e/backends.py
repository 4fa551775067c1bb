"""Which backends the scenarios run on: one row for each backend Spinney ships, and a reason for each left-out pair.

A row of :data:`BACKENDS` says what the operator is configured with and which scheduler of the embedded cluster serves
it. Every scenario runs on every row, in this order, unless a row of :data:`LEFT_OUT` says why it does not; KAI comes
first because the scenarios were written for it. ``tests/e2e/test_backends.py`` compares the table with what is
collected.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import pytest

from spinney.testing import peers
from spinney.testing.peers import Peer

Server = Literal["session scheduler", "coscheduler"] | Peer
"""Who places the pods of a backend: one of our schedulers, or the program that the backend was made for."""


@dataclass(frozen=True)
class Backend:
    """One backend: its profile, the scheduler name of its pods, and what of the scenarios it can run."""

    name: str
    config: str = "{}"
    topology: bool = False
    kai_objects: bool = False  # makes PodGroups and Topologies of KAI's
    volcano_queues: bool = False  # wants Volcano's queue to be open
    served_by: Server = "session scheduler"
    event: str = "Unschedulable"  # the reason of the event on a pod that was not placed
    answers: tuple[str, ...] = ("Unschedulable",)  # reasons why a pod is not scheduled that was looked at
    minimums_first: bool = True  # every gang gets its minimum before any gets more

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
                f"    - {{name: {self.name}, default: true, config: {self.config}}}",
            ]
        )


KAI = Backend("kai-scheduler", topology=True, kai_objects=True)
SPINNEY = Backend("spinney-scheduler", topology=True)
VOLCANO = Backend("volcano", config="null", volcano_queues=True)
COSCHEDULING = Backend("coscheduling", served_by="coscheduler", event="FailedScheduling", minimums_first=False)
NATIVE = Backend(
    "default-scheduler",
    config="{gangScheduling: true}",
    served_by="coscheduler",
    event="FailedScheduling",
    minimums_first=False,
)

BACKENDS = (KAI, SPINNEY, VOLCANO, COSCHEDULING, NATIVE)
"""Every backend; all run the scenarios of scheduling."""

EVERY_SCENARIO = bool(os.environ.get("SPINNEY_E2E_EVERY_BACKEND"))
"""Asked to run also what a backend has no part in, on every backend."""

THOROUGH = BACKENDS if EVERY_SCENARIO else (KAI,)
"""Backends that run every scenario, also those that are the operator's affair alone."""

ONE_OF_EACH = BACKENDS if EVERY_SCENARIO else (KAI, COSCHEDULING)
"""Backends for what the operator does and a scheduler answers: one that each of our schedulers serves."""

REAL_KAI = replace(KAI, served_by=peers.KAI)
REAL_VOLCANO = replace(
    VOLCANO,
    served_by=peers.VOLCANO,
    volcano_queues=False,
    answers=("Unschedulable", "Schedulable"),  # the latter of a pod that fits and waits for the rest of its gang
)
REAL_COSCHEDULING = replace(COSCHEDULING, served_by=peers.COSCHEDULING, config="{scheduleTimeoutSeconds: 10}")
REAL = (REAL_KAI, REAL_VOLCANO, REAL_COSCHEDULING)
"""Backends with the scheduler that each was made for (``make peers``), which nobody here wrote."""

MINIMUMS_FIRST = tuple(backend for backend in BACKENDS if backend.minimums_first)
WITH_TOPOLOGY = tuple(backend for backend in BACKENDS if backend.topology)
WITHOUT_TOPOLOGY = tuple(backend for backend in BACKENDS if not backend.topology)


@dataclass(frozen=True)
class LeftOut:
    """Scenarios, as patterns of ``file/name``, that do not run on some backends, and why."""

    scenarios: tuple[str, ...]
    backends: tuple[Backend, ...]
    reason: str


LEFT_OUT = (
    LeftOut(
        ("preemption/*",),
        (COSCHEDULING, NATIVE),
        "victims are found pod by pod there, and tests/coscheduling is about them",
    ),
    LeftOut(
        ("gang_scheduling/gs8_*", "gang_scheduling/gs10_*", "gang_scheduling/gs12_*"),
        (COSCHEDULING, NATIVE),
        "pods beyond a minimum are in no group there, and may come before another gang's minimum",
    ),
    LeftOut(
        ("ondelete_updates/od3_*",),
        (COSCHEDULING, NATIVE),
        "scaling in takes the pods beyond the minimum first, which are in no group, whatever their template",
    ),
    LeftOut(
        ("topology_bindings/*", "topology_packing/*"),
        WITHOUT_TOPOLOGY,
        "it knows no topology, or not three levels of it; that a constraint it cannot keep is refused is tested",
    ),
    LeftOut(("topology_refusals/*",), WITH_TOPOLOGY, "it keeps the constraints that others refuse"),
    LeftOut(
        ("topology_bindings/tas1_*", "topology_bindings/tas18_*", "topology_bindings/tas19_*"),
        (SPINNEY,),
        "it reads the bindings themselves: there is no object of its own that could drift",
    ),
    LeftOut(("topology_bindings/tas22_*",), (SPINNEY,), "what the CRD refuses does not depend on the backend"),
    LeftOut(
        ("failing_nodes/*", "draining_nodes/*", "checkpointing_sets/*"),
        (KAI, VOLCANO, COSCHEDULING, NATIVE),
        "the session scheduler's affair, whoever its gangs come from; the coscheduler's is tried in its own tests",
    ),
    *(
        ()
        if EVERY_SCENARIO
        else (
            LeftOut(
                (
                    "rolling_updates/*",
                    "ondelete_updates/*",
                    "resource_sharing/*",
                    "nvlink_domains/*",
                    "lifecycle/*",
                    "scaling_to_zero/*",
                ),
                (SPINNEY, VOLCANO, COSCHEDULING, NATIVE),
                "the operator's affair alone, the same on every backend; `make test-backends` runs it",
            ),
            LeftOut(
                ("gang_termination/*", "startup_ordering/*"),
                (SPINNEY, VOLCANO, NATIVE),
                "what the operator does and a scheduler only answers; `make test-backends` runs it",
            ),
        )
    ),
)


def on(*backends: Backend) -> pytest.MarkDecorator:
    """Mark a scenario that runs on other backends than its neighbours."""
    return pytest.mark.parametrize("backend", backends, ids=str)


def everywhere(*backends: Backend, peers: Sequence[Backend] = ()) -> pytest.MarkDecorator:
    """Mark a scenario that runs with these backends, and with the first of them also on a real control plane.

    With ``peers`` it runs there with the schedulers that backends were made for, too.
    """
    embedded = [pytest.param("embedded", backend, id=f"embedded-{backend}") for backend in backends]
    real = pytest.param("real", backends[0], marks=pytest.mark.real, id=f"real-{backends[0]}")
    marks = (pytest.mark.real, pytest.mark.peers, pytest.mark.timeout(900))
    others = [pytest.param("peer", backend, marks=marks, id=f"peer-{backend}") for backend in peers]
    return pytest.mark.parametrize(("cluster_name", "backend"), [*embedded, real, *others])
