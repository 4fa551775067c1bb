"""Whatever is done to the embedded server and to kube-apiserver, in whatever order, both answer the same.

A hypothesis state machine sends random operations to both. After each the answers are compared, ownership of fields
included; at the end the collections, once garbage is collected, and the streams of events since the beginning.
"""

import asyncio
import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from spinney.runtime import Runtime
from spinney.server import ApiServer, ServerOptions
from spinney.sim.embedded.transport import InProcessTransport
from spinney.testing.controlplane import ControlPlane
from tests.fidelity import operations
from tests.fidelity.exchanges import DEFINITION, GEARS, Exchange
from tests.fidelity.operations import SUBJECTS, Subject
from tests.fidelity.twins import Twin, Twins
from tests.server.api import MERGE

pytestmark = [pytest.mark.real, pytest.mark.timeout(3600)]

_RUNS = os.environ.get("SPINNEY_FIDELITY_RUNS")
"""How many histories to try; without it always the same few, which the suite has time for."""
_FEW = 25
_STEPS = 25
_FURNITURE = (
    "/api/v1/namespaces/{ns}/serviceaccounts/default",
    "/api/v1/namespaces/{ns}/configmaps/kube-root-ca.crt",
    GEARS,
)


class Operations(RuleBasedStateMachine):
    """Both servers, in a namespace of their own."""

    plane: ControlPlane

    def __init__(self) -> None:
        super().__init__()
        self._loop = asyncio.new_event_loop()
        self._runtime = Runtime.system()
        self._real = self.plane.connect(self._runtime)
        self._server = ApiServer(self._runtime, ServerOptions(track_all_managers=True))
        self._running = self._server.running()
        self._story: list[str] = []
        self._revisions: dict[tuple[str, Twin], str] = {}
        namespace = f"random-{self._runtime.uid()[:8]}"
        self._twins = Twins(self._real.transport, InProcessTransport(self._server), namespace)
        self._loop.run_until_complete(self._begin())

    async def _begin(self) -> None:
        await self._running.__aenter__()
        await self._twins.ask(Exchange("POST", "/api/v1/namespaces", {"metadata": {"name": "{ns}"}}))
        await self._twins.ask(DEFINITION)
        for path in _FURNITURE:
            await self._twins.real.until(path)
        for subject in SUBJECTS:
            for twin in (self._twins.real, self._twins.embedded):
                answer = await twin.ask(Exchange("GET", subject.path))
                self._revisions[subject.kind, twin] = answer["body"]["metadata"]["resourceVersion"]

    @rule(exchange=operations.creating())
    def create(self, exchange: Exchange) -> None:
        self._ask(exchange)
        self._settle()  # an object whose owner is gone goes, too

    @rule(exchange=operations.replacing())
    def replace(self, exchange: Exchange) -> None:
        self._ask(exchange)
        self._settle()

    @rule(exchange=operations.merging())
    def merge(self, exchange: Exchange) -> None:
        self._ask(exchange)
        self._settle_if_released(exchange)

    @rule(exchange=operations.json_patching())
    def patch(self, exchange: Exchange) -> None:
        self._ask(exchange)

    @rule(exchange=operations.applying())
    def apply(self, exchange: Exchange) -> None:
        self._ask(exchange)
        self._settle_if_released(exchange)

    @rule(exchange=operations.listing() | operations.reading())
    def read(self, exchange: Exchange) -> None:
        self._ask(exchange)

    @rule(exchange=operations.deleting() | operations.deleting_many())
    def delete(self, exchange: Exchange) -> None:
        self._ask(exchange)
        self._settle()

    def _ask(self, exchange: Exchange) -> None:
        real, ours = self._loop.run_until_complete(self._twins.ask(exchange))
        self._compare(str(exchange), real, ours)
        self._story.append(f"{exchange}\n    -> {real['status']}")

    def _settle_if_released(self, exchange: Exchange) -> None:
        """Settle after a change that may let an object go, or its owner, or make one whose owner is gone."""
        if "finalizers" in str(exchange.body) or "ownerReferences" in str(exchange.body):
            self._settle()

    def _settle(self) -> None:
        """Wait until the real garbage collector has done what ours has."""
        for subject in SUBJECTS:
            real, ours = self._loop.run_until_complete(self._twins.settled(subject.path))
            self._compare(f"all of {subject.path}", real, ours)

    def _compare(self, what: str, real: Any, ours: Any) -> None:
        if real != ours:
            pytest.fail("\n".join([*self._story, what, *differences(real, ours)]), pytrace=False)

    def teardown(self) -> None:
        try:
            self._settle()
            for subject in SUBJECTS:
                self._compare(f"events of {subject.path}", *self._loop.run_until_complete(self._events(subject)))
        finally:
            self._loop.run_until_complete(self._end())
            self._loop.close()
            self._runtime.executor.close()

    async def _events(self, subject: Subject) -> tuple[Any, Any]:
        await self._twins.ask(Exchange("POST", subject.path, subject.last))
        real, ours = [
            await twin.events(subject.path, self._revisions[subject.kind, twin], subject.last["metadata"]["name"])
            for twin in (self._twins.real, self._twins.embedded)
        ]
        return real, ours

    async def _end(self) -> None:
        for subject in SUBJECTS:
            for name in operations.NAMES:
                released = {"metadata": {"finalizers": None}}
                await self._twins.real.ask(Exchange("PATCH", f"{subject.path}/{name}", released, MERGE))
        await self._twins.real.ask(Exchange("DELETE", "/api/v1/namespaces/{ns}"))
        await self._running.__aexit__(None, None, None)
        await self._real.transport.close()


def differences(real: Any, ours: Any, path: str = "") -> Iterator[str]:
    """Return every place in which two values differ."""
    if isinstance(real, dict) and isinstance(ours, dict):
        for name in sorted(real.keys() | ours.keys()):
            yield from differences(real.get(name), ours.get(name), f"{path}.{name}")
    elif isinstance(real, list) and isinstance(ours, list) and len(real) == len(ours):
        for index, (each, other) in enumerate(zip(real, ours, strict=True)):
            yield from differences(each, other, f"{path}[{index}]")
    elif real != ours:
        yield f"    {path}\n      real: {real}\n      ours: {ours}"


def test_random_operations_are_answered_alike(controlplane: ControlPlane) -> None:
    """No sequence of operations makes the servers answer differently, or leaves them in different states."""
    machine = type("OperationsOnPlane", (Operations,), {"plane": controlplane})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=_FEW if _RUNS is None else int(_RUNS),
            derandomize=_RUNS is None,
            phases=(Phase.generate,) if _RUNS is None else tuple(Phase),
            stateful_step_count=_STEPS,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            report_multiple_bugs=False,
        ),
    )
