"""What plugins got wrong in a session: which function, what it raised or answered, and how often.

A plugin fails by raising, or by answering with something that is no answer: a score that is not a number, a truth value
that is a text. Both go the same way. The caller takes the careful answer instead, the first failure of a function is
logged, all are counted, and what is told to users names plugin, function and fault.
"""

from collections import Counter
from collections.abc import Callable, Collection
from typing import Any, Final

import structlog

from spinney.extensions.answers import fault_of
from spinney.gangs.tree import GangKey

log = structlog.get_logger()


TOLD_ELSEWHERE: Final = frozenset({"predicate", "node_order", "gpu_order", "pre_predicate", "subset_nodes"})
"""Extension points whose failures are part of the reason why a pod found no node."""
_KEPT: Final = 1000


class Failures:
    """The failures of one session. Mutable."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        """How often plugins failed, by plugin and extension point."""
        self.total = 0
        """How often plugins failed."""
        self.about: GangKey | None = None
        """The gang that is being looked at."""
        self._lately: list[tuple[int, str]] = []
        self._of_gangs: dict[GangKey, dict[tuple[str, str, str], str]] = {}
        self._first: dict[tuple[str, str, str], str] = {}

    def add(
        self, event: str, plugin: str, hook: str, fn: Callable[..., Any], error: BaseException, **fields: Any
    ) -> str:
        """Note a failure while its error is being handled; return what to tell about it.

        ``event`` says in the log what was made of it.
        """
        function = getattr(fn, "__qualname__", type(fn).__qualname__).replace(".<locals>", "")
        said = f"{function} {fault_of(error)} (at {hook})"
        self.counts[plugin, hook] += 1
        self.total += 1
        if hook not in TOLD_ELSEWHERE and len(self._lately) < _KEPT:
            self._lately.append((self.total, f"plugin {plugin} failed: {said}"))
        if self.about is not None:
            self._of_gangs.setdefault(self.about, {}).setdefault((plugin, hook, function), said)
        if (plugin, hook, function) not in self._first:
            self._first[plugin, hook, function] = said
            log.exception(event, plugin=plugin, hook=hook, function=function, error=fault_of(error), **fields)
        return said

    def since(self, total: int) -> list[str]:
        """Return what plugins got wrong since so many failures, each once, apart from what reasons tell by themselves.

        What is told is forgotten.
        """
        found = dict.fromkeys(said for number, said in self._lately if number > total)
        self._lately.clear()
        return list(found)

    def at(self, hooks: Collection[str]) -> bool:
        """Tell whether a plugin got something wrong at one of some extension points."""
        return any(hook in hooks for _, hook in self.counts)

    def told(self, hooks: Collection[str], gang: GangKey) -> dict[str, str]:
        """Return what plugins got wrong at some extension points while a gang was looked at, by plugin."""
        found: dict[str, list[str]] = {}
        for (plugin, hook, _), said in self._of_gangs.get(gang, {}).items():
            if hook in hooks:
                found.setdefault(plugin, []).append(said)
        return {plugin: "; ".join(faults) for plugin, faults in found.items()}
