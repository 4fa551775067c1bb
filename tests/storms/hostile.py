"""A plugin that fails: in every function it has, now and then, by raising or by answering nonsense."""

import random
from collections.abc import Callable
from typing import Any, ClassVar

import msgspec

from spinney.scheduler import Plugin, Session
from spinney.scheduler.config import PluginOption, SchedulerConfig
from spinney.scheduler.framework.plugin import PluginRegistry
from spinney.scheduler.plugins import default_registry
from tests.operator.storms import Weather

_NONSENSE: tuple[Any, ...] = (float("nan"), -(10**30), "first", None, object(), [1, 2], {"a": 1})


class Hostile(Plugin):
    """Registers functions that fail as often as calls do in the present weather; in calm weather they say nothing."""

    name: ClassVar[str] = "hostile"

    def __init__(self, weather: Weather) -> None:
        super().__init__()
        self._weather = weather

    def on_session_open(self, session: Session) -> None:
        """Register one function for most of what can be registered."""
        chance = self._weather.chance
        if chance.random() < self._weather.rate / 2:
            raise RuntimeError("no session for me")
        add: list[tuple[Callable[..., None], Any]] = [
            (session.add_pre_predicate_fn, None),
            (session.add_predicate_fn, None),
            (session.add_node_order_fn, 0.0),
            (session.add_job_order_fn, 0),
            (session.add_task_order_fn, 0),
            (session.add_queue_order_fn, 0),
        ]
        for register, calm in add:
            register(self._failing(calm))

    def on_session_close(self, session: Session) -> None:
        """Fail as well."""
        self._failing(None)()

    def _failing(self, calm: Any) -> Callable[..., Any]:
        weather = self._weather
        chance: random.Random = weather.chance

        def asked(*_: object) -> Any:
            if chance.random() >= weather.rate:
                return calm
            weather.faults["plugin"] += 1
            if chance.random() < 0.5:
                raise RuntimeError("hostile")
            return chance.choice(_NONSENSE)

        return asked


def with_hostile(config: SchedulerConfig, weather: Weather) -> tuple[SchedulerConfig, PluginRegistry]:
    """Return a configuration that has the plugin, and the registry that provides it."""
    known = default_registry()
    registry = PluginRegistry({name: known.builder(name) for name in known})
    registry.register(Hostile.name, lambda _: Hostile(weather))
    return msgspec.structs.replace(config, plugins=(*config.plugins, PluginOption(Hostile.name))), registry
