"""How much is held: what tests of long-lived things compare before and after many objects came and went."""

import gc
from types import FunctionType, MethodType, ModuleType

_PASSED_OVER = (type, ModuleType, FunctionType, MethodType)


def held_by(root: object) -> int:
    """Return how many objects are reachable from ``root``, not counting code."""
    seen: dict[int, object] = {}
    waiting = [root]
    while waiting:
        found = waiting.pop()
        if id(found) in seen or isinstance(found, _PASSED_OVER):
            continue
        seen[id(found)] = found
        waiting += gc.get_referents(found)
    return len(seen)
