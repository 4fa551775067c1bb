"""What the object of a gang says about disturbing others and being disturbed, whatever kind of object it is."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from spinney.api.interruption import checkpoints_on_sigterm
from spinney.api.labels import CHECKPOINT_GRACE, LAST_CHECKPOINT, MIN_RUNTIME
from spinney.gangs.sources.context import SourceContext, duration_of, timestamp_of
from spinney.gangs.tree import Gang

NEVER: Final = "Never"


def with_declarations(gang: Gang, found: Any, context: SourceContext) -> Gang:
    """Return a gang with what ``found``, the object that defines it, declares, and its priority class.

    A ``preemptionPolicy`` of the object itself counts before that of its priority class.
    """
    annotations: Mapping[str, str] = found.metadata.annotations
    policy: str | None = getattr(found.spec, "preemption_policy", None)
    return replace(
        gang,
        preempts=policy != NEVER if policy else context.preempts(gang.priority_class),
        checkpoint_grace=duration_of(annotations, CHECKPOINT_GRACE),
        checkpoints_on_sigterm=checkpoints_on_sigterm(annotations),
        last_checkpoint=timestamp_of(annotations, LAST_CHECKPOINT),
        min_runtime=duration_of(annotations, MIN_RUNTIME),
    )
