"""The scheduler configuration inside a KAI snapshot, as ours: its actions and plugins, deciding as KAI decides."""

from typing import Any

from spinney.api.struct import JSON
from spinney.scheduler.actions import BUILT_IN_ACTIONS
from spinney.scheduler.config import PluginOption, SchedulerConfig
from spinney.scheduler.framework.arguments import only_known
from spinney.scheduler.plugins import default_registry


def configuration_of(raw: JSON) -> SchedulerConfig | None:
    """Return the configuration, ``None`` if there is none; plugins, arguments and actions we lack are left out."""
    fields = _lowered(raw)
    actions = [name.strip() for name in str(fields.get("actions") or "").split(",")]
    plugins = [_lowered(plugin) for tier in fields.get("tiers") or () for plugin in _lowered(tier).get("plugins") or ()]
    known = default_registry()
    options = tuple(
        PluginOption(name, only_known(known.arguments_type(name), _text(plugin.get("arguments") or {})))
        for plugin in plugins
        if (name := str(plugin.get("name"))) in known
    )
    if not options:
        return None
    chosen = tuple(name for name in actions if name in BUILT_IN_ACTIONS)
    return SchedulerConfig.kai_compat(explain=True, plugins=options, **({"actions": chosen} if chosen else {}))


def _text(arguments: JSON) -> dict[str, str]:
    return {str(key): str(value) for key, value in arguments.items()}


def _lowered(value: Any) -> dict[str, Any]:
    """Return a mapping with keys as its author may have meant them: KAI's releases differ in their case."""
    return {str(key).lower(): part for key, part in value.items()} if isinstance(value, dict) else {}
