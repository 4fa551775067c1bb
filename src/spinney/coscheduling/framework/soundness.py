"""What is wrong with a plugin as it is written, found when its profile is made."""

from collections.abc import Iterator
from typing import Final

from spinney.coscheduling.framework.points import (
    Bind,
    Filter,
    FrameworkPlugin,
    NodeFilter,
    Permit,
    PostBind,
    PostFilter,
    PreBind,
    PreEnqueue,
    PreFilter,
    QueueSort,
    Reserve,
    Score,
)
from spinney.extensions.answers import shown
from spinney.extensions.soundness import awaited_faults, called_faults, name_faults

_CALLED: Final[dict[type[FrameworkPlugin], tuple[str, ...]]] = {
    QueueSort: ("sort_key",),
    PreEnqueue: ("pre_enqueue",),
    PreFilter: ("pre_filter",),
    Filter: ("concerns", "filter"),
    NodeFilter: ("filter_node",),
    PostFilter: ("post_filter",),
    Score: ("score",),
    Reserve: ("reserve", "unreserve"),
    Permit: ("permit",),
}
_AWAITED: Final[dict[type[FrameworkPlugin], tuple[str, ...]]] = {
    PreBind: ("pre_bind",),
    Bind: ("bind",),
    PostBind: ("post_bind",),
}


def faults_of(plugin: object) -> Iterator[str]:
    """Yield what is wrong with a plugin that was made, each with what to write."""
    if not isinstance(plugin, FrameworkPlugin):
        yield f"it is {shown(plugin)}, expected an object of a class that extends an extension point"
        return
    yield from name_faults(getattr(plugin, "name", None))
    for point, methods in _CALLED.items():
        if isinstance(plugin, point):
            yield from called_faults(type(plugin), methods)
    for point, methods in _AWAITED.items():
        if isinstance(plugin, point):
            yield from awaited_faults(type(plugin), methods)
