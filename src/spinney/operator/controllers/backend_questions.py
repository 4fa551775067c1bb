"""What a PodClique asks its backend about pods, and what is made of a backend that gets it wrong.

A backend may raise anything, answer with anything and change anything in a pod. What is wrong is told with its name and
the method's; a pod that would not be found again, or would run before its gang, is not created.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from spinney.api import labels as marks
from spinney.api.core import Pod
from spinney.api.podgang import PodGang
from spinney.api.struct import encode
from spinney.backends.interface import PodManifest, SchedulerBackend
from spinney.backends.lending import lent
from spinney.extensions.answers import fault_of, instance_of
from spinney.operator.status.last_errors import ReconcileFault
from spinney.runtime.faults import raised, told

_a_bool: Final[Callable[[Any], bool]] = instance_of(bool, "True or False")
_nothing: Final[Callable[[Any], None]] = instance_of(type(None), "None: it changes the pod it is given")


class BackendFault(ReconcileFault):
    """A backend failed, or answered with something that is no answer; the message names it and the method."""


@dataclass(frozen=True)
class BackendQuestions:
    """The questions to one backend about pods of one gang."""

    backend: SchedulerBackend
    gang: PodGang

    def prepare(self, pod: PodManifest) -> None:
        """Have a pod prepared; raises if it has no scheduler, or has lost its gate or what the operator finds it by."""
        before = _identity(pod)
        with self._asking("prepare_pod"):
            _nothing(self.backend.prepare_pod(pod, lent(self.gang)))
            after = _identity(pod)
        self._check_json(pod)
        changed = ", ".join(field for field, value in after.items() if value != before[field])
        if changed:
            raise BackendFault(f"{self._name}: prepare_pod changed {changed} of a pod; it must leave that alone")
        if not pod["spec"].get("schedulerName"):
            text = "left a pod without spec.schedulerName, which default-scheduler would place apart from its gang"
            raise BackendFault(f"{self._name}: prepare_pod {text}; set it")

    def is_prepared(self, pod: Pod) -> bool:
        """Tell whether a pod that waits for a node is still of use to its gang."""
        with self._asking("is_prepared_for"):
            return _a_bool(self.backend.is_prepared_for(lent(pod), lent(self.gang)))

    def may_release(self, pod: Pod, gang: PodGang) -> bool:
        """Tell whether the gate of a pod may be opened."""
        with self._asking("may_release"):
            return _a_bool(self.backend.may_release(lent(pod), lent(gang)))

    def _check_json(self, pod: PodManifest) -> None:
        try:
            encode(pod)
        except raised() as error:
            text = f"prepare_pod left a pod that cannot be written as JSON ({told(error)})"
            raise BackendFault(f"{self._name}: {text}; put only texts, numbers, lists and dicts in it") from error

    @contextmanager
    def _asking(self, method: str) -> Iterator[None]:
        try:
            yield
        except raised() as error:
            raise BackendFault(f"{self._name}: {method} {fault_of(error)}") from error

    @property
    def _name(self) -> str:
        return f"scheduler backend {self.backend.name!r}"


def _identity(pod: PodManifest) -> dict[str, object]:
    """Return by field what of a pod a backend must leave alone: that by which it is found, and its gate."""
    metadata, spec = pod.get("metadata") or {}, pod.get("spec") or {}
    labels = metadata.get("labels") or {}
    owners = metadata.get("ownerReferences") or ()
    return {
        "metadata.name": metadata.get("name"),
        "metadata.namespace": metadata.get("namespace"),
        "metadata.ownerReferences": [owner.get("uid") for owner in owners],
        **{f"label {label}": labels.get(label) for label in FOUND_BY},
        f"gate {marks.POD_GANG_GATE}": any(
            gate.get("name") == marks.POD_GANG_GATE for gate in spec.get("schedulingGates") or ()
        ),
    }


FOUND_BY: Final = (
    marks.MANAGED_BY,
    marks.PART_OF,
    marks.POD_CLIQUE,
    marks.POD_GANG,
    marks.POD_INDEX,
    marks.POD_TEMPLATE_HASH,
)
"""The labels by which a pod is found."""
