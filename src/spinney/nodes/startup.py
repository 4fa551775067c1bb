"""The start-up condition of a pod that waits for other cliques, as its ``grove-initc`` init container states it.

The container's arguments name parents, ``--podcliques=<clique>:<minimum>``: it ends when that many pods of each clique,
in the same gang as its own pod, are ready. A simulated node evaluates the condition itself instead of running an image.
"""

from collections.abc import Callable
from dataclasses import dataclass

from spinney.api.labels import INIT_CONTAINER, POD_GANG
from spinney.nodes.pods import BoundPod, Clique, ContainerSpec

ReadyPods = Callable[[Clique], int]
"""How many pods of a clique are ready now."""


class InvalidStartup(ValueError):
    """Arguments that state no condition; the message shows them."""


@dataclass(frozen=True, slots=True)
class Parent:
    """A clique to wait for, and how many of its pods."""

    clique: Clique
    minimum: int


def is_startup(container: ContainerSpec) -> bool:
    """Tell whether an init container waits for other cliques."""
    return container.name == INIT_CONTAINER


def parents(pod: BoundPod, container: ContainerSpec) -> tuple[Parent, ...]:
    """Return whom the pod waits for; raises :class:`InvalidStartup`."""
    gang = pod.metadata.labels.get(POD_GANG)
    if not gang:
        raise InvalidStartup(f"the pod has the init container {INIT_CONTAINER} and no label {POD_GANG}")
    return tuple(_parent(pod.metadata.namespace, gang, text) for text in _podcliques(container.args))


def unmet(pod: BoundPod, container: ContainerSpec, ready_pods: ReadyPods) -> tuple[Parent, ...]:
    """Return the parents that do not have enough ready pods yet."""
    return tuple(parent for parent in parents(pod, container) if ready_pods(parent.clique) < parent.minimum)


def _podcliques(args: tuple[str, ...]) -> list[str]:
    """Return the values of ``--podcliques`` (or ``-p``), each given as ``flag=value`` or ``flag value``."""
    values: list[str] = []
    remaining = iter(args)
    for argument in remaining:
        flag, equals, text = argument.partition("=")
        if flag not in {"--podcliques", "-p"}:
            raise InvalidStartup(f"argument {argument!r} of {INIT_CONTAINER}: expected --podcliques=<clique>:<minimum>")
        values += (text if equals else next(remaining, "")).split(",")
    return [value for value in values if value]


def _parent(namespace: str, gang: str, text: str) -> Parent:
    clique, colon, minimum = text.rpartition(":")
    if not colon or not clique or not minimum.isdecimal() or int(minimum) < 1:
        raise InvalidStartup(f"{text!r} in the arguments of {INIT_CONTAINER}: expected <clique>:<minimum>, at least 1")
    return Parent((namespace, gang, clique), int(minimum))
