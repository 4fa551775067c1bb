"""What backends say of sets: whether their scheduler honours all that a set asks for.

A backend is asked once for each generation of a set, and again later if it failed. One that rejects a set is asked
again with the next safety resync: it may have gone by what is in the cluster, such as a queue that was not open yet. It
may take long, and the other sets must not wait for it: until it has answered, the set's condition says so.
"""

from collections.abc import Callable, Iterable
from math import inf
from typing import Final

import structlog

from spinney.api.grove import PodCliqueSet
from spinney.api.meta import Condition
from spinney.api.podgang import PodGang
from spinney.backends.interface import Degradation, Rejected, SchedulerBackend
from spinney.backends.lending import lent_set
from spinney.backends.told import TOLD_SECONDS
from spinney.backends.verdicts import verdict
from spinney.kube.keys import Key
from spinney.operator.controllers.backend_calls import BackendCalls
from spinney.operator.status.podcliqueset import CAPABILITIES_MET, capability_condition
from spinney.runtime import Clock

log = structlog.get_logger()

VALIDATION_FAILED: Final = "ValidationFailed"
"""The reason of a set's condition while its backend, which is asked again, could not judge it."""
Generation = tuple[str | None, int | None]
"""uid and generation of a set."""


class SetCapabilities:
    """The answers of backends. Mutable; ``wake`` asks for another look at a set whose answer is there."""

    def __init__(self, wake: Callable[[Key], None], clock: Clock) -> None:
        self._calls = BackendCalls(wake)
        self._answers: dict[Key, tuple[Generation, list[Degradation] | str, float]] = {}  # and until when it counts
        self._clock = clock

    async def run(self) -> None:
        """Wait until cancelled, then end the calls under way."""
        await self._calls.run()

    def forget(self, key: Key) -> None:
        """Forget a set that is gone."""
        self._answers.pop(key, None)
        self._calls.forget(key)

    async def condition(
        self, key: Key, pcs: PodCliqueSet, backend: SchedulerBackend, gangs: Iterable[PodGang]
    ) -> Condition:
        """Return what the backend says of this generation of a set, and the scheduler of its gangs."""
        generation = (pcs.metadata.uid, pcs.metadata.generation)
        known = self._answers.get(key)
        if known is not None and known[0] != generation:
            known = None
        if known is None or self._clock.monotonic() >= known[2]:

            async def ask() -> None:
                answer = await _answer(backend, pcs)
                lasts = TOLD_SECONDS if isinstance(answer, str) else inf
                self._answers[key] = generation, answer, self._clock.monotonic() + lasts

            outcome = await self._calls.outcome(key, generation, backend.name, ask)
            if outcome is not None and outcome.error is not None:
                log.warning("backend could not judge", podcliqueset=str(key), error=outcome.error)
                return Condition(
                    type=CAPABILITIES_MET, status="Unknown", reason=VALIDATION_FAILED, message=outcome.error
                )
            if outcome is not None:
                known = self._answers[key]
            elif known is None:
                text = f"{backend.name} has not answered yet"
                return Condition(type=CAPABILITIES_MET, status="Unknown", reason="Validating", message=text)
        answer = known[1]
        if isinstance(answer, str):
            return Condition(type=CAPABILITIES_MET, status="False", reason="Rejected", message=answer)
        return capability_condition(answer, gangs)


async def _answer(backend: SchedulerBackend, pcs: PodCliqueSet) -> list[Degradation] | str:
    try:
        return await verdict(backend, lent_set(pcs), None)
    except Rejected as rejected:
        return str(rejected)
