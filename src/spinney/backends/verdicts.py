"""What a backend says of a set, asked for admission and for the set's status alike."""

from collections.abc import Callable
from typing import Any, Final

from spinney.api.grove import PodCliqueSet
from spinney.backends.interface import Degradation, SchedulerBackend
from spinney.extensions.answers import InvalidAnswer, instance_of, shown

_EXPECTED: Final = "a list of Degradation from validate_pod_clique_set"
_a_list: Final[Callable[[Any], list[Any]]] = instance_of(list, _EXPECTED)


async def verdict(backend: SchedulerBackend, pcs: PodCliqueSet, old: PodCliqueSet | None) -> list[Degradation]:
    """Return what a set asks for and will not get; raises what the backend raises, or :class:`InvalidAnswer`."""
    answer = _a_list(await backend.validate_pod_clique_set(pcs, old))
    for index, each in enumerate(answer):
        if not isinstance(each, Degradation):
            raise InvalidAnswer(f"{shown(each)} as element {index}", _EXPECTED)
    return answer
