"""What a running scheduler refused in its last cycle, and where a simulated cycle comes to something else."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from spinney.explain import Explanation
from spinney.gangs.tree import GangKey
from spinney.scheduler.process.endpoint import RefusedGang
from spinney.sim.whatif.outcomes import Waiting

_BECAUSE: Final = (
    "the cluster has changed since that cycle, or the scheduler's configuration is another; --config names its file"
)


def refused_gangs(body: bytes) -> dict[GangKey, RefusedGang]:
    """Return what ``/explanations`` of a scheduler lists, by gang; raises :class:`msgspec.DecodeError`."""
    listed = msgspec.json.decode(body, type=tuple[RefusedGang, ...])
    return {GangKey(each.source, each.namespace, each.name): each for each in listed}


def disagreements(
    gangs: Iterable[GangKey], refused: Mapping[GangKey, RefusedGang], waiting: Iterable[Waiting]
) -> Iterator[str]:
    """Yield a sentence for each of ``gangs`` about which the running scheduler and the simulation differ.

    ``refused`` is what the scheduler's last cycle refused, ``waiting`` what the simulated cycle did not place.
    """
    simulated = {each.gang: each for each in waiting}
    for gang in sorted(gangs):
        ran, would = refused.get(gang), simulated.get(gang)
        if ran is not None and would is None:
            yield f"the running scheduler's last cycle refused {gang}, and this simulation places it: {_BECAUSE}"
        elif ran is None and would is not None:
            yield f"the running scheduler's last cycle did not refuse {gang}, this simulation does: {_BECAUSE}"
        elif ran is not None and would is not None and not _same_reason(ran, would):
            yield f"the running scheduler gives another reason: {ran.message}; {_BECAUSE}"


def _same_reason(ran: RefusedGang, would: Waiting) -> bool:
    """Tell whether both give reasons of the same kinds; amounts differ because the cluster has gone on."""
    if ran.explanation is None or would.explanation is None:
        return ran.message == would.message
    return _kinds(ran.explanation) == _kinds(would.explanation)


def _kinds(explanation: Explanation) -> tuple[object, ...]:
    """Return what kinds of reasons an explanation has, without amounts and counts."""
    queue = explanation.queue
    return (
        queue and (queue.queue, queue.rule, queue.resource),
        explanation.others,
        explanation.required_level,
        frozenset(
            (each.filter, reason.reason) for pod in explanation.pods for each in pod.filters for reason in each.reasons
        ),
        bool(explanation.plugin_errors),
    )
