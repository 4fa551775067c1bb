"""Who may touch what the operator makes: the operator, Kubernetes' own controllers, and whom the configuration exempts.

Pods may always be deleted. A PodCliqueSet annotated ``grove.io/disable-managed-resource-protection: "true"`` lets
any user change what belongs to it.
"""

from collections.abc import Callable
from typing import Final

from spinney.api import labels as marks
from spinney.api.admission import AdmissionRequest
from spinney.api.grove import PodCliqueSet
from spinney.kube.keys import Key

KUBERNETES: Final = frozenset(
    {
        "system:kube-controller-manager",  # fills the token Secret
        "system:serviceaccount:kube-system:generic-garbage-collector",
        "system:serviceaccount:kube-system:horizontal-pod-autoscaler",
        "system:serviceaccount:kube-system:namespace-controller",
    }
)
"""Kubernetes' own controllers, without which generated objects are neither completed nor removed."""

LookUp = Callable[[Key], PodCliqueSet | None]


class WriteAuthorizer:
    """Judges writes to managed objects."""

    def __init__(self, sets: LookUp, *, operator: str, exempt: tuple[str, ...] = ()) -> None:
        self._sets = sets
        self._operator = operator
        self._trusted = KUBERNETES | {operator, *exempt}

    def judge(self, request: AdmissionRequest) -> tuple[str | None, tuple[str, ...]]:
        """Return why a request is refused, or ``None``, and what to warn of."""
        if request.operation == "CONNECT" or (request.operation == "DELETE" and request.resource.resource == "pods"):
            return None, ()
        managed = request.old_object if request.operation in {"UPDATE", "DELETE"} else request.object
        labels = ((managed or {}).get("metadata") or {}).get("labels") or {}
        name = labels.get(marks.PART_OF)
        if not name:
            return None, (f"the object has no label {marks.PART_OF} and is not protected",)
        pcs = self._sets(Key(request.namespace, name))
        if pcs is None:
            return None, (f"PodCliqueSet {name!r} does not exist; the object is not protected",)
        if pcs.metadata.annotations.get(marks.DISABLE_PROTECTION) == "true":
            return None, ()
        user = request.user_info.username
        if user in self._trusted:
            return None, ()
        return (
            f"{request.operation.lower()} of {request.resource.resource} {request.namespace}/{request.name} by {user}: "
            f"it is managed for PodCliqueSet {name!r} and only {self._operator} may change it; to change it by hand, "
            f"annotate the PodCliqueSet with {marks.DISABLE_PROTECTION}=true"
        ), ()
