"""The scheduler's configuration: which plugins, in which order, with which arguments; which actions; a few switches.

Two forms are accepted. Our own lists plugins and actions in order. KAI's SchedulingShard form overlays a default set by
name, each plugin with a priority that gives its place, and derives some from the placement strategy.
"""

import math
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

import msgspec
import structlog
import yaml

from spinney.api.durations import parse_duration

log = structlog.get_logger()

DEFAULT_PLUGINS: Final = (
    "predicates",
    "proportion",
    "priority",
    "elastic",
    "kubeflow",
    "ray",
    "nodeavailability",
    "gpusharingorder",
    "gpupack",
    "resourcetype",
    "subgrouporder",
    "taskorder",
    "nominatednode",
    "dynamicresources",
    "nodeplacement",
    "minruntime",
    "topology",
)
DEFAULT_ACTIONS: Final = ("allocate", "consolidation", "reclaim", "preempt", "stalegangeviction")

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


_NOT_IN_KAI: Final = (
    "use_scheduling_signatures",
    "backtracking",
    "explain",
    "honour_preemption_policy",
    "narrow_victims",
    "spare_just_bound",
)
"""Switches that are off in the profile that decides as KAI does."""


class InvalidConfiguration(ValueError):  # noqa: N818 - named for the situation
    """A configuration that cannot be used; the text names the field and what to write instead."""


class PluginOption(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A plugin and its arguments."""

    name: str
    """The plugin: a built-in one, or one that an installed package declares (docs/plugins.md)."""
    arguments: dict[str, str] = {}
    """Settings of the plugin, as text; what the built-in ones take is below."""
    enabled: bool = True
    """Off: the plugin is left out, which is shorter than to list all others."""


class VictimSearch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """How long actions may search for victims; looked at between scenarios."""

    action_seconds: float = 20.0
    """For all jobs of one action in one cycle."""
    job_seconds: float = 5.0
    """For one job, and never more than half of what the action has left."""


class SchedulerConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """What a scheduler is configured with."""

    plugins: tuple[PluginOption, ...] = tuple(PluginOption(name) for name in DEFAULT_PLUGINS)
    """The rules, in the order in which they are asked."""
    actions: tuple[str, ...] = DEFAULT_ACTIONS
    """What a cycle does, in this order."""
    scheduler_names: tuple[str, ...] = ("spinney-scheduler", "kai-scheduler")
    """Pods whose `schedulerName` is one of these are placed."""
    use_scheduling_signatures: bool = True
    """Jobs that ask for exactly what another job was just refused are not tried."""
    backtracking: bool = True
    """A gang that greedy placement fails, but that may fit, is tried in other ways."""
    inference_preemptible: bool = False
    """Jobs of priority class `inference` may be disturbed; off: they may not."""
    max_consolidation_preemptees: int = 16
    """At most that many jobs are moved for one; -1 is unlimited."""
    allow_consolidating_reclaim: bool = True
    """Victims that find another place do not count as lost when it is judged whether a reclaim is just."""
    default_staleness_grace_seconds: float = 60.0
    """How long a gang may stay below its minimum; negative is for ever."""
    part_gang_grace_seconds: float = 60.0
    """How long a gang that was never complete may stay part-bound before what was bound of it is evicted."""
    device_reservation: bool = False
    """A component of the cluster reserves shared GPUs on nodes; without one, pods that ask for a part are refused."""
    volume_binding_timeout_seconds: float = 600.0
    """How long a placed pod waits for its volumes to be provisioned before its gang is placed anew."""
    stuck_in_releasing_seconds: float = 120.0
    """After that long, what a terminating pod holds is no longer promised to others."""
    node_pool: str | None = None
    """The value of the node pool label that this scheduler serves; empty: nodes without it; absent: all nodes."""
    queue_depth_per_action: dict[str, int] = {}
    """How many jobs of each leaf queue an action looks at, the first in order; absent or 0: all."""
    victim_search: VictimSearch = VictimSearch()
    honour_preemption_policy: bool = True
    """A pod whose ``preemptionPolicy`` is Never waits; nobody is disturbed for it."""
    narrow_victims: bool = True
    """Of the jobs on a node only the pods go that are needed there; off: all their pods that were considered so far."""
    spare_just_bound: bool = True
    """Jobs that were given nodes in the same cycle are not victims: their binds may be on their way."""
    spare_within_share: bool = True
    """Jobs of queues that hold no more than they may claim are not even moved for reclaim."""
    victims_across_nodes: bool = True
    """Where the jobs on no single node make room, those on several nodes may go together for one pod."""
    explain: bool = True
    """Refused jobs are explained as data, which conditions, events and ``spinney why`` are rendered from."""
    verbosity: int = 0
    """Developer logs, as klog counts: 4 says what node sets plugins made, 7 also of which nodes."""

    @classmethod
    def kai_compat(cls, **changes: Any) -> "SchedulerConfig":
        """Return the profile that decides as KAI does: greedily, and trying every job."""
        own = dict.fromkeys(_NOT_IN_KAI, False)
        return cls(**{**own, **changes})


def load_config(path: Path) -> SchedulerConfig:
    """Read a configuration file; raises :class:`InvalidConfiguration`."""
    try:
        raw = yaml.safe_load(path.read_text())
    except (OSError, yaml.YAMLError) as error:
        raise InvalidConfiguration(f"{path}: cannot be read: {error}") from error
    try:
        return parse_config(raw if raw is not None else {})
    except InvalidConfiguration as error:
        raise InvalidConfiguration(f"{path}: {error}") from error


def parse_config(raw: object) -> SchedulerConfig:
    """Return the configuration in ``raw``: our own form, or a SchedulingShard; raises :class:`InvalidConfiguration`."""
    if not isinstance(raw, dict):
        raise InvalidConfiguration(f"expected a mapping, found {type(raw).__name__}")
    if raw.get("kind") == "SchedulingShard":
        return _from_shard(raw.get("spec") or {})
    fields = {key: value for key, value in raw.items() if key not in {"apiVersion", "kind", "metadata"}}
    fields["plugins"] = _plugin_list(fields["plugins"]) if "plugins" in fields else None
    if fields["plugins"] is None:
        del fields["plugins"]
    known = [field.encode_name for field in msgspec.structs.fields(SchedulerConfig)]
    for key in fields:
        if key not in known:
            raise InvalidConfiguration(f"{key}: no such field{_nearest(key, known)}")
    try:
        return msgspec.convert(fields, SchedulerConfig)
    except msgspec.ValidationError as error:
        raise InvalidConfiguration(str(error)) from error


def _plugin_list(found: object) -> list[Any]:
    """Accept plugins as names, as mappings with a name, or as one mapping from name to arguments."""
    if not isinstance(found, list):
        raise InvalidConfiguration(f"plugins: expected a list, found {type(found).__name__}")
    plugins: list[Any] = []
    for each in found:
        if isinstance(each, str):
            plugins.append({"name": each})
        elif isinstance(each, dict):
            arguments = {str(key): str(value) for key, value in (each.get("arguments") or {}).items()}
            plugins.append({**each, "arguments": arguments})
        else:
            raise InvalidConfiguration(f"plugins: expected a name or a mapping, found {each!r}")
    return plugins


def _from_shard(spec: Mapping[str, Any]) -> SchedulerConfig:
    for key in spec:
        if key not in _SHARD_KEYS:
            raise InvalidConfiguration(f"spec.{key}: no such field{_nearest(key, sorted(_SHARD_KEYS))}")
        if key in _SHARD_WITHOUT_EFFECT:
            log.warning("field of the shard has no effect here", field=f"spec.{key}", why=_SHARD_WITHOUT_EFFECT[key])
    strategy = spec.get("placementStrategy") or {}
    gpu, cpu = strategy.get("gpu", "binpack"), strategy.get("cpu", "binpack")
    for field, value in (("gpu", gpu), ("cpu", cpu)):
        if value not in {"binpack", "spread"}:
            raise InvalidConfiguration(f"spec.placementStrategy.{field}: expected binpack or spread, found {value!r}")
    arguments: dict[str, dict[str, str]] = {name: {} for name in _SHARD_PRIORITIES}
    arguments["nodeplacement"] = {"gpu": gpu, "cpu": cpu}
    runtimes = spec.get("minRuntime") or {}
    arguments["minruntime"] = {
        ours: str(runtimes[theirs])
        for ours, theirs in (
            ("defaultPreemptMinRuntime", "preemptMinRuntime"),
            ("defaultReclaimMinRuntime", "reclaimMinRuntime"),
        )
        if theirs in runtimes
    }
    if "kValue" in spec:
        arguments["proportion"] = {"kValue": str(spec["kValue"])}
    enabled = dict.fromkeys(_SHARD_PRIORITIES, True)
    enabled["gpupack"] = enabled["gpusharingorder"] = gpu == "binpack"
    enabled["gpuspread"] = gpu == "spread"
    plugins = _overlaid(dict(_SHARD_PRIORITIES), enabled, arguments, spec.get("plugins") or {}, "plugins")
    acting = dict.fromkeys(_SHARD_ACTIONS, True)
    acting["consolidation"] = gpu == cpu == "binpack"
    actions = _overlaid(dict(_SHARD_ACTIONS), acting, {}, spec.get("actions") or {}, "actions")
    return SchedulerConfig(
        plugins=tuple(PluginOption(name, arguments.get(name, {})) for name in plugins if name not in _IGNORED_PLUGINS),
        actions=tuple(actions),
        node_pool=str(spec.get("partitionLabelValue") or ""),
        queue_depth_per_action=dict(spec.get("queueDepthPerAction") or {}),
        victim_search=_search_budgets(spec.get("scenarioSearchBudgets") or {}),
    )


def _search_budgets(found: Mapping[str, Any]) -> VictimSearch:
    """Return how long searches may take; KAI's figures for single actions and generators have no counterpart here."""
    defaults = VictimSearch()
    action = found.get("maxActionSearchDuration")
    if isinstance(action, Mapping):
        action = action.get("default")
    return VictimSearch(
        action_seconds=_seconds("maxActionSearchDuration", action, defaults.action_seconds),
        job_seconds=_seconds("maxJobSearchDuration", found.get("maxJobSearchDuration"), defaults.job_seconds),
    )


def _seconds(field: str, duration: object, default: float) -> float:
    """Return a duration in seconds; KAI's 0 is unlimited."""
    if duration is None:
        return default
    try:
        return parse_duration(str(duration)).total_seconds() or math.inf
    except ValueError as error:
        raise InvalidConfiguration(f"spec.scenarioSearchBudgets.{field}: {error}") from error


def _overlaid(
    priorities: dict[str, int],
    enabled: dict[str, bool],
    arguments: dict[str, dict[str, str]],
    overlay: Mapping[str, Any],
    what: str,
) -> list[str]:
    """Apply per-name changes; return the enabled names, highest priority first."""
    for name, change in overlay.items():
        if not isinstance(change, dict):
            raise InvalidConfiguration(f"spec.{what}.{name}: expected a mapping, found {change!r}")
        if "enabled" in change or name not in priorities:
            enabled[name] = change.get("enabled", True) is not False
        priorities[name] = int(change.get("priority", priorities.get(name, 0)))
        if "arguments" in change:
            arguments[name] = {str(key): str(value) for key, value in (change["arguments"] or {}).items()}
    return sorted((name for name in priorities if enabled[name]), key=lambda name: (-priorities[name], name))


def _nearest(word: str, known: list[str]) -> str:
    found = get_close_matches(word, known, 1)
    return f"; did you mean {found[0]}?" if found else f"; known are {', '.join(known)}"
