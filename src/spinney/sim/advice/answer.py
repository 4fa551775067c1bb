"""What is known about one subject, as a value, and the words for how its pods stand."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from spinney.api.struct import Struct
from spinney.cluster.pods import PodRecord
from spinney.cluster.statuses import TERMINAL, PodStatus
from spinney.explain.amounts import counted, listed
from spinney.explain.reasons import Explanation
from spinney.sim.overview.queue_table import QueueLine
from spinney.sim.remedies.change import Remedy

STARTS_ANYWAY: Final = "it starts without a change, once the schedulers have done what they are about to do"
WORST_FIRST: Final = ("pending", "gated", "placeable", "terminating", "starting", "running", "ended", "empty")
"""States, those first that matter most to the person who asks."""
_STATES: Final = {
    PodStatus.PENDING: "pending",
    PodStatus.GATED: "gated",
    PodStatus.BINDING: "starting",
    PodStatus.BOUND: "starting",
    PodStatus.RUNNING: "running",
    **dict.fromkeys(TERMINAL, "ended"),
}


class Answer(Struct, frozen=True, kw_only=True):
    """Everything known about why a subject waits, or that it does not."""

    subject: str
    namespace: str = ""
    state: str = ""
    """In a word: running, starting, pending, gated, placeable, terminating, ended, empty, unreadable."""
    sentences: tuple[str, ...] = ()
    history: tuple[str, ...] = ()
    """What happened so far: failures, evictions, how long it has waited."""
    recorded: tuple[str, ...] = ()
    """What the cluster's own components wrote down, each with who said it; of the scheduler the newest."""
    explanations: tuple[Explanation, ...] = ()
    starts_anyway: bool = False
    """What waits starts without a change."""
    remedies: tuple[Remedy, ...] = ()
    """What lets it start; each was tried on the snapshot. The cheapest first."""
    tried: int = 0
    """How many clusters were tried for it: the one as it is, and changed ones."""
    exhausted: bool = True
    """False: the search for remedies ended early."""
    parts: tuple["Answer", ...] = ()
    queue: QueueLine | None = None

    def saying(self, *more: str) -> "Answer":
        """Return the answer with further sentences."""
        return msgspec.structs.replace(self, sentences=(*self.sentences, *more))


def state_of(record: PodRecord) -> str:
    """Return the state of a pod, in a word."""
    return _STATES.get(record.status, "terminating")


def census(by_state: Mapping[str, Sequence[PodRecord]]) -> str:
    if sum(map(len, by_state.values())) == 1:
        ((word, (record,)),) = by_state.items()
        where = f" on {record.node}" if record.node else ""
        who = f", to be placed by {record.pod.spec.scheduler_name}" if word == "pending" else ""
        return f"the pod is {word}{where}{who}"
    parts = [f"{len(by_state[word])} {word}" for word in WORST_FIRST if word in by_state]
    return f"{counted(sum(map(len, by_state.values())), 'pod')}: {listed(parts)}"
