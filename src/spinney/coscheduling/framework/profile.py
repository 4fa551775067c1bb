"""A profile: which plugins run at which extension point, in which order, for the pods of one scheduler name.

kube-scheduler's own filters and scores are rules of :mod:`spinney.cluster`, wrapped as plugins (:class:`Rules`) so that
a profile orders, weighs and disables them like any other. They are asked before filters and scores of plugins.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar, cast

from spinney.api.documents import InvalidConfiguration
from spinney.cluster.filters import FilterRule
from spinney.cluster.scores import ScoreRule
from spinney.coscheduling.framework.events import EventHint
from spinney.coscheduling.framework.faults import Faults
from spinney.coscheduling.framework.points import (
    Bind,
    Filter,
    FrameworkPlugin,
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
from spinney.extensions.answers import fault_of, instance_of
from spinney.runtime.faults import raised

P = TypeVar("P", bound=FrameworkPlugin)


class InvalidProfile(InvalidConfiguration):
    """A profile that cannot run; the message names the profile, the plugin and what to change."""


class Rules(FrameworkPlugin):
    """A filter and a score of kube-scheduler's that go by one name."""

    def __init__(
        self,
        name: str,
        filter: FilterRule | None = None,  # noqa: A002 - the extension point is called so
        score: ScoreRule | None = None,
        hints: tuple[EventHint, ...] = (),
    ) -> None:
        self.name = name
        self.filter = filter
        self.score = score
        self._hints = hints

    def events(self) -> tuple[EventHint, ...]:
        """Return what may make a node pass that this filter refused."""
        return self._hints


POINTS: Final[dict[str, type[FrameworkPlugin]]] = {
    "queueSort": QueueSort,
    "preEnqueue": PreEnqueue,
    "preFilter": PreFilter,
    "filter": Filter,
    "postFilter": PostFilter,
    "score": Score,
    "reserve": Reserve,
    "permit": Permit,
    "preBind": PreBind,
    "bind": Bind,
    "postBind": PostBind,
}
"""The extension points by the names configurations use, in the order in which a pod meets them."""


PluginLists = Mapping[str, tuple[FrameworkPlugin, ...]]
"""The plugins of each extension point in order."""


def serves(plugin: FrameworkPlugin, point: str) -> bool:
    """Tell whether ``plugin`` has something to do at ``point``."""
    if isinstance(plugin, Rules) and point in {"filter", "score"}:
        return (plugin.filter if point == "filter" else plugin.score) is not None
    return isinstance(plugin, POINTS[point])


class Profile:
    """Plugins in order, point by point; raises :class:`InvalidProfile` when they cannot work together.

    ``weights`` say how much those at ``score`` count.
    """

    def __init__(self, scheduler_name: str, lists: PluginLists, weights: Mapping[str, int]) -> None:
        self.scheduler_name = scheduler_name
        self.faults = Faults()
        self.pre_enqueue = _of(PreEnqueue, lists, "preEnqueue")
        self.pre_filter = _of(PreFilter, lists, "preFilter")
        self.filter_rules = tuple(
            plugin.filter for plugin in lists["filter"] if isinstance(plugin, Rules) and plugin.filter is not None
        )
        self.filters = _of(Filter, lists, "filter")
        self.post_filter = _of(PostFilter, lists, "postFilter")
        self.score_rules = tuple(
            ScoreRule(plugin.score.name, plugin.score.score, weights.get(plugin.name, plugin.score.weight))
            for plugin in lists["score"]
            if isinstance(plugin, Rules) and plugin.score is not None
        )
        self.scores = tuple((plugin, weights.get(plugin.name, 1)) for plugin in _of(Score, lists, "score"))
        self.reserve = _of(Reserve, lists, "reserve")
        self.permit = _of(Permit, lists, "permit")
        self.pre_bind = _of(PreBind, lists, "preBind")
        self.bind = _of(Bind, lists, "bind")
        self.post_bind = _of(PostBind, lists, "postBind")
        self.queue_sort = self._only_queue_sort(_of(QueueSort, lists, "queueSort"))
        self.plugins = tuple({plugin.name: plugin for plugins in lists.values() for plugin in plugins}.values())
        self._check()

    def hints(self) -> dict[str, tuple[EventHint, ...]]:
        """Return by plugin the events that may change its mind."""
        found: dict[str, tuple[EventHint, ...]] = {}
        for plugin in self.plugins:
            try:
                found[plugin.name] = tuple(map(_a_hint, plugin.events()))
            except raised() as error:
                raise InvalidProfile(
                    f"profile {self.scheduler_name}: plugin {plugin.name} cannot say which events concern it: "
                    f"events() {fault_of(error)}; repair the plugin, or take it out of the profile"
                ) from error
        return found

    def _only_queue_sort(self, found: Sequence[QueueSort]) -> QueueSort:
        if len(found) != 1:
            names = ", ".join(plugin.name for plugin in found) or "none"
            raise InvalidProfile(
                f"profile {self.scheduler_name}: a profile has exactly one queueSort plugin, found {names}; "
                "enable one and disable the others under plugins.queueSort"
            )
        return found[0]

    def _check(self) -> None:
        if not self.bind:
            raise InvalidProfile(
                f"profile {self.scheduler_name}: no bind plugin is enabled, so no pod would ever get its node; "
                "enable DefaultBinder"
            )
        for plugin, after in zip(self.post_filter, self.post_filter[1:], strict=False):
            if plugin.must_be_last:
                raise InvalidProfile(
                    f"profile {self.scheduler_name}: {plugin.name} must be the last postFilter plugin, "
                    f"but {after.name} comes after it; enable {after.name} under plugins.postFilter, which comes first"
                )


_a_hint: Final[Callable[[object], EventHint]] = instance_of(EventHint, "an EventHint")


def _of(kind: Callable[..., P], lists: PluginLists, point: str) -> tuple[P, ...]:
    # A callable that makes P, not type[P]: the extension points are abstract, and only asked about.
    assert isinstance(kind, type)
    return tuple(cast("P", plugin) for plugin in lists.get(point, ()) if isinstance(plugin, kind))
