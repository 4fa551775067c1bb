"""Priority classes (``scheduling.k8s.io/v1``)."""

from typing import Final

from spinney.api.meta import ObjectMeta
from spinney.api.resource import Resource
from spinney.api.struct import Struct, constant

PRIORITY_CLASS: Final = Resource(
    "scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", namespaced=False, short_names=("pc",)
)


class PriorityClass(Struct, frozen=True, kw_only=True):
    """A named priority; the one marked ``global_default`` is for pods that name none."""

    api_version: str = constant(PRIORITY_CLASS.api_version)
    kind: str = constant(PRIORITY_CLASS.kind)
    metadata: ObjectMeta = ObjectMeta()
    value: int
    global_default: bool = False
    description: str = ""
    preemption_policy: str | None = None
