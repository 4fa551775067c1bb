"""Configuration files of the scheduler: our own form, and KAI's SchedulingShard.

Our own lists plugins and actions in order. A SchedulingShard overlays a default set by name, each plugin with a
priority that gives its place, and derives some from the placement strategy.

A file is read strictly: every fault is said at once, each with its line and path and, for a word that does not exist,
the nearest that does. Given the plugins there are, their names and what they declare to take are checked as well.
"""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import structlog
import yaml

from spinney.api.documents import (
    Document,
    DocumentProblem,
    InvalidConfiguration,
    InvalidDocument,
    Step,
    decode,
    nearest,
    parse,
)
from spinney.api.durations import parse_duration
from spinney.extensions.registry import UnknownPlugin
from spinney.scheduler.config import PluginOption, SchedulerConfig, VictimSearchLimits, twice
from spinney.scheduler.framework.plugin import PluginRegistry

log = structlog.get_logger()

_SHARD_PRIORITIES: Final = {
    "predicates": 1900,
    "proportion": 1800,
    "priority": 1700,
    "nodeavailability": 1600,
    "resourcetype": 1500,
    "podaffinity": 1400,
    "elastic": 1300,
    "kubeflow": 1200,
    "ray": 1100,
    "subgrouporder": 1000,
    "taskorder": 900,
    "nominatednode": 800,
    "dynamicresources": 700,
    "minruntime": 600,
    "topology": 500,
    "gpupack": 300,
    "gpuspread": 300,
    "nodeplacement": 200,
    "gpusharingorder": 100,
}
_SHARD_ACTIONS: Final = {
    "allocate": 500,
    "consolidation": 400,
    "reclaim": 300,
    "preempt": 200,
    "stalegangeviction": 100,
}
_IGNORED_PLUGINS: Final = frozenset({"snapshot", "sg-nodelocalgreedy", "sg-multinodegang", "reflectjoborder"})
"""Parts of KAI that are no plugins here: what they do is built in."""
_SHARD_WITHOUT_EFFECT: Final = {
    "usageDBConfig": "usage over time is not taken into account",
    "args": "flags of KAI's process are not ours",
    "goMemLimit": "this process is not written in Go",
    "goMemLimitRatio": "this process is not written in Go",
}
_SHARD_KEYS: Final = frozenset(
    {
        "partitionLabelValue",
        "placementStrategy",
        "queueDepthPerAction",
        "minRuntime",
        "kValue",
        "scenarioSearchBudgets",
        "plugins",
        "actions",
        *_SHARD_WITHOUT_EFFECT,
    }
)
_DERIVED_ARGUMENTS: Final = {
    ("minruntime", "defaultPreemptMinRuntime"): ("minRuntime", "preemptMinRuntime"),
    ("minruntime", "defaultReclaimMinRuntime"): ("minRuntime", "reclaimMinRuntime"),
    ("proportion", "kValue"): ("kValue",),
}
"""Arguments that a shard gives in fields of its own: plugin and argument, and where in the spec."""


def load_config(path: Path, registry: PluginRegistry | None = None) -> SchedulerConfig:
    """Read a configuration file; raises :class:`InvalidConfiguration`.

    With ``registry`` the names of plugins and their arguments are checked too; without, the code that builds a
    scheduler from the configuration does that.
    """
    try:
        return _read(parse(path.read_text(), str(path)), registry)
    except (OSError, yaml.YAMLError) as error:
        raise InvalidConfiguration(f"{path}: cannot be read: {error}") from error
    except InvalidDocument as error:
        raise InvalidConfiguration(str(error)) from error


def parse_config(raw: object, registry: PluginRegistry | None = None) -> SchedulerConfig:
    """Return the configuration in ``raw``: our own form, or a SchedulingShard; raises :class:`InvalidConfiguration`."""
    try:
        return _read(Document("", raw), registry)
    except InvalidDocument as error:
        said = [f"{each.path}: {each.message}" if each.path else each.message for each in error.problems]
        raise InvalidConfiguration("\n".join(said)) from error


def _read(document: Document, registry: PluginRegistry | None) -> SchedulerConfig:
    if not isinstance(document.value, dict):
        raise _wrong(document, (), f"expected a mapping, found {type(document.value).__name__}")
    is_shard = document.value.get("kind") == "SchedulingShard"
    config = _from_shard(document) if is_shard else _from_own_form(document)
    problems = list(_plugin_problems(document, config, registry)) if registry is not None else []
    if problems:
        raise InvalidDocument(problems)
    return config


def _plugin_problems(
    document: Document, config: SchedulerConfig, registry: PluginRegistry
) -> Iterator[DocumentProblem]:
    is_shard = document.value.get("kind") == "SchedulingShard"
    places: dict[str, tuple[Step, ...]] = {}
    for number, option in enumerate(config.plugins):
        here: tuple[Step, ...] = ("spec", "plugins", option.name) if is_shard else _listed_at(document, option, number)
        try:
            found = registry.argument_problems(option.name, option.arguments)
        except UnknownPlugin as error:
            yield document.problem(here, str(error))
            continue
        if option.enabled:
            places[option.name] = here
        for argument, message in found:
            path = (*here, "arguments", argument)
            derived = _DERIVED_ARGUMENTS.get((option.name, argument))
            if is_shard and derived is not None and argument not in document.at(*here, "arguments").value:
                path = ("spec", *derived)
            yield document.problem(path, f"plugin {option.name}: {message}")
    for number, message in twice(config.plugins):
        yield document.problem(_listed_at(document, config.plugins[number], number), message)
    for name, message in registry.contradictions([*places]):
        yield document.problem(places[name], message)


def _listed_at(document: Document, option: PluginOption, number: int) -> tuple[Step, ...]:
    """Return where a plugin stands in a file of our own form."""
    for place, each in enumerate(document.value.get("extraPlugins") or ()):
        if option.name in (each, each.get("name") if isinstance(each, dict) else None):
            return ("extraPlugins", place)
    return ("plugins", number)


def _wrong(document: Document, path: tuple[Step, ...], message: str) -> InvalidDocument:
    return InvalidDocument([document.problem(path, message)])


def _from_own_form(document: Document) -> SchedulerConfig:
    fields = {key: value for key, value in document.value.items() if key not in {"apiVersion", "kind", "metadata"}}
    for key in ("plugins", "extraPlugins"):
        if key in fields:
            fields[key] = _plugin_list(document, key, fields[key])
    return decode(SchedulerConfig, Document(document.source, fields, document.lines))


def _plugin_list(document: Document, key: str, found: object) -> list[Any]:
    """Accept plugins as names, or as mappings with a name."""
    if not isinstance(found, list):
        raise _wrong(document, (key,), f"expected a list, found {type(found).__name__}")
    plugins: list[Any] = []
    for number, each in enumerate(found):
        if isinstance(each, str):
            plugins.append({"name": each})
        elif isinstance(each, dict):
            arguments = _as_text(document, (key, number, "arguments"), each.get("arguments"))
            plugins.append({**each, "arguments": arguments})
        else:
            raise _wrong(document, (key, number), f"expected a name or a mapping, found {each!r}")
    return plugins


def _as_text(document: Document, path: tuple[Step, ...], found: object) -> dict[str, str]:
    """Return the arguments of a plugin, each as text."""
    if found is not None and not isinstance(found, dict):
        raise _wrong(document, path, f"expected a mapping, found {found!r}")
    return {str(key): str(value) for key, value in (found or {}).items()}


def _from_shard(document: Document) -> SchedulerConfig:
    spec = document.value.get("spec") or {}
    if not isinstance(spec, dict):
        raise _wrong(document, ("spec",), f"expected a mapping, found {spec!r}")
    for key in spec:
        if key not in _SHARD_KEYS:
            raise _wrong(document, ("spec", str(key)), f"unknown key; {nearest(str(key), sorted(_SHARD_KEYS))}")
        if key in _SHARD_WITHOUT_EFFECT:
            log.warning("field of the shard has no effect here", field=f"spec.{key}", why=_SHARD_WITHOUT_EFFECT[key])
    strategy = spec.get("placementStrategy") or {}
    gpu, cpu = strategy.get("gpu", "binpack"), strategy.get("cpu", "binpack")
    for field, value in (("gpu", gpu), ("cpu", cpu)):
        if value not in {"binpack", "spread"}:
            path = ("spec", "placementStrategy", field)
            raise _wrong(document, path, f"found {value!r}, expected binpack or spread")
    arguments: dict[str, dict[str, str]] = {name: {} for name in _SHARD_PRIORITIES}
    arguments["nodeplacement"] = {"gpu": gpu, "cpu": cpu}
    for (plugin, argument), (*outer, last) in _DERIVED_ARGUMENTS.items():
        around = document.at("spec", *outer).value or {}
        if last in around:
            arguments[plugin][argument] = str(around[last])
    enabled = dict.fromkeys(_SHARD_PRIORITIES, True)
    enabled["gpupack"] = enabled["gpusharingorder"] = gpu == "binpack"
    enabled["gpuspread"] = gpu == "spread"
    plugins = _overlaid(document, "plugins", dict(_SHARD_PRIORITIES), enabled, arguments)
    acting = dict.fromkeys(_SHARD_ACTIONS, True)
    acting["consolidation"] = gpu == cpu == "binpack"
    actions = _overlaid(document, "actions", dict(_SHARD_ACTIONS), acting, {})
    return SchedulerConfig(
        plugins=tuple(PluginOption(name, arguments.get(name, {})) for name in plugins if name not in _IGNORED_PLUGINS),
        actions=tuple(actions),
        node_pool=str(spec.get("partitionLabelValue") or ""),
        queue_depth_per_action=dict(spec.get("queueDepthPerAction") or {}),
        victim_search=_search_budgets(document),
    )


def _search_budgets(document: Document) -> VictimSearchLimits:
    """Return how long searches may take; KAI's figures for single actions and generators have no counterpart here."""
    defaults, found = VictimSearchLimits(), document.at("spec", "scenarioSearchBudgets").value or {}
    action = found.get("maxActionSearchDuration")
    if isinstance(action, Mapping):
        action = action.get("default")
    return VictimSearchLimits(
        action_seconds=_seconds(document, "maxActionSearchDuration", action, defaults.action_seconds),
        job_seconds=_seconds(document, "maxJobSearchDuration", found.get("maxJobSearchDuration"), defaults.job_seconds),
    )


def _seconds(document: Document, field: str, duration: object, default: float) -> float:
    """Return a duration in seconds; KAI's 0 is unlimited."""
    if duration is None:
        return default
    try:
        return parse_duration(str(duration)).total_seconds() or math.inf
    except ValueError as error:
        raise _wrong(document, ("spec", "scenarioSearchBudgets", field), str(error)) from error


def _overlaid(
    document: Document,
    what: str,
    priorities: dict[str, int],
    enabled: dict[str, bool],
    arguments: dict[str, dict[str, str]],
) -> list[str]:
    """Apply what a shard changes by name; return the enabled names, highest priority first."""
    for name, change in (document.at("spec", what).value or {}).items():
        here = ("spec", what, str(name))
        if not isinstance(change, dict):
            raise _wrong(document, here, f"expected a mapping, found {change!r}")
        if "enabled" in change or name not in priorities:
            enabled[name] = change.get("enabled", True) is not False
        priority = change.get("priority", priorities.get(name, 0))
        if not isinstance(priority, int):
            raise _wrong(document, (*here, "priority"), f"found {priority!r}, expected a whole number")
        priorities[name] = priority
        if "arguments" in change:
            arguments[name] = _as_text(document, (*here, "arguments"), change["arguments"])
    return sorted((name for name in priorities if enabled[name]), key=lambda name: (-priorities[name], name))
