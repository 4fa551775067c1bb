"""Priority classes (``scheduling.k8s.io/v1``)."""

from typing import Final

from spinney.api.meta import Object
from spinney.api.resource import Resource

PRIORITY_CLASS: Final = Resource(
    "scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", namespaced=False, short_names=("pc",)
)


class PriorityClass(Object, of=PRIORITY_CLASS, frozen=True, kw_only=True):
    """A named priority; the one marked ``global_default`` is for pods that name none."""

    value: int
    global_default: bool = False
    description: str = ""
    preemption_policy: str | None = None
