"""The scheduler's configuration: which plugins, in which order, with which arguments; which actions; a few switches.

Two forms are accepted. Our own lists plugins and actions in order. KAI's SchedulingShard form overlays a default set by
name, each plugin with a priority that gives its place, and derives some from the placement strategy.

A file is read strictly: every fault is said at once, each with its line and path and, for a word that does not exist,
the nearest that does. Given the plugins there are, their names and what they declare to take are checked as well.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
import structlog
import yaml

from spinney.api.durations import parse_duration
from spinney.backends.documents import (
    Document,
    DocumentProblem,
    InvalidConfiguration,
    InvalidDocument,
    Step,
    decode,
    nearest,
    parse,
)
from spinney.scheduler.framework.plugin import PluginRegistry, UnknownPlugin

log = structlog.get_logger()

KAI_PLUGINS: Final = (
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
"""The rules of the profile that decides as KAI does."""
DEFAULT_PLUGINS: Final = (
    "predicates",
    "proportion",
    "priority",
    "elastic",
    "kubeflow",
    "ray",
    "nodeavailability",
    "packing",
    "resourcetype",
    "podaffinity",
    "subgrouporder",
    "taskorder",
    "nominatednode",
    "dynamicresources",
    "minruntime",
    "topology",
)
KAI_ACTIONS: Final = ("allocate", "consolidation", "reclaim", "preempt", "stalegangeviction")
"""The actions of the profile that decides as KAI does."""
DEFAULT_ACTIONS: Final = ("allocate", "relocation", "consolidation", "reclaim", "preempt", "stalegangeviction")

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

_NOT_IN_KAI: Final = (
    "use_scheduling_signatures",
    "backtracking",
    "explain",
    "honour_preemption_policy",
    "narrow_victims",
    "spare_just_bound",
    "keep_promises",
    "weigh_lost_work",
    "refuse_unhonoured",
)
"""Switches that are off in the profile that decides as KAI does."""


class PluginOption(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A plugin and its arguments."""

    name: str
    """The plugin: a built-in one, or one that an installed package declares (docs/plugins.md)."""
    arguments: dict[str, str] = {}
    """Settings of the plugin, as text; what the built-in ones take is below."""
    enabled: bool = True
    """Off: the plugin is left out, which is shorter than to list all others."""


class VictimSearchLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """How long actions may search for victims; looked at between scenarios."""

    action_seconds: float = 20.0
    """For all jobs of one action in one cycle."""
    job_seconds: float = 5.0
    """For one job, and never more than half of what the action has left."""


class SuspendedWorkloads(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """Suspended workloads that wait in queues without pods, and are resumed when their gang would start."""

    kinds: tuple[Literal["Job", "JobSet", "TrainJob"], ...] = ()
    """Of these kinds, those with the label `spinney.dev/admission: queue`; empty: none."""
    per_queue: Annotated[int, msgspec.Meta(ge=1)] = 100
    """How many of each queue are tried, the first in order of priority and age; the others cost next to nothing."""
    hold_seconds: Annotated[float, msgspec.Meta(gt=0)] = 60.0
    """How long room is kept for the pods of a workload that was resumed."""


class NodeProvisioning(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """One ProvisioningRequest for each gang that lacks nodes, instead of a condition on each of its pods."""

    class_name: str = ""
    """`best-effort-atomic-scale-up.autoscaling.x-k8s.io`, `check-capacity.autoscaling.x-k8s.io` or a class of the cloud
    provider's; empty: none are made."""
    parameters: dict[str, str] = {}
    """What the class takes, such as `ValidUntilSeconds`."""
    min_pods: Annotated[int, msgspec.Meta(ge=1)] = 2
    """Smaller gangs ask with the condition of their pods."""
    retry_seconds: Annotated[float, msgspec.Meta(gt=0)] = 300.0
    """After which a request that failed is made again."""


class SchedulerConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """What a scheduler is configured with."""

    plugins: tuple[PluginOption, ...] = tuple(PluginOption(name) for name in DEFAULT_PLUGINS)
    """The rules, in the order in which they are asked. A list replaces the default one; see `extraPlugins`."""
    extra_plugins: tuple[PluginOption, ...] = ()
    """Added to `plugins`, at the end; one that is in there already is given its arguments, or disabled, where it is."""
    actions: tuple[str, ...] = DEFAULT_ACTIONS
    """What a cycle does, in this order."""
    scheduler_names: tuple[str, ...] = ("spinney-scheduler", "kai-scheduler")
    """Pods whose `schedulerName` is one of these are placed."""
    wait_for_grouper: bool = False
    """Pods that belong to a workload wait until the grouper has said which gang they are in; off: they are placed one
    by one if they name no group. Switch it on where `spinney grouper` runs."""
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
    allocate_seconds: float = 20.0
    """How long jobs are placed in one cycle, after the first thousand. Those not reached come first in the next."""
    victim_search: VictimSearchLimits = VictimSearchLimits()
    suspended_workloads: SuspendedWorkloads = SuspendedWorkloads()
    provisioning_requests: NodeProvisioning = NodeProvisioning()
    honour_preemption_policy: bool = True
    """A pod whose ``preemptionPolicy`` is Never waits; nobody is disturbed for it."""
    narrow_victims: bool = True
    """Of the jobs on a node only the pods go that are needed there; off: all their pods that were considered so far."""
    spare_just_bound: bool = True
    """Jobs that were given nodes in the same cycle are not victims: their binds may be on their way."""
    keep_promises: bool = True
    """What a search for victims has found is kept for later cycles: who was promised a node comes first, and there."""
    move_again_seconds: float = 86400.0
    """A job is not moved again for the same one before so long; 0: at once."""
    max_checkpoint_grace_seconds: float = 600.0
    """The longest time that a victim may ask for to checkpoint before it is evicted; 0: nobody is asked."""
    max_own_min_runtime_seconds: float = 3600.0
    """The longest time that a gang may ask for to run undisturbed; 0: only what its queue says counts."""
    weigh_lost_work: bool = True
    """Of equally important jobs the one goes first that loses least work for each GPU it gives back: the time since
    its start, or since its last checkpoint; off: the youngest."""
    spare_within_share: bool = True
    """Jobs of queues that hold no more than they may claim are not even moved for reclaim."""
    victims_across_nodes: bool = True
    """Where the jobs on no single node make room, those on several nodes may go together for one pod."""
    refuse_unhonoured: bool = True
    """Jobs that require what no loaded plugin keeps wait, and say which one is missing; off: it is ignored."""
    bind_events: Literal["pods", "gangs"] = "pods"
    """Who is told of binds: `pods`: each pod, as with kube-scheduler; `gangs`: the gang, once for the pods that are
    bound together, which costs the API server much less. What was refused is told of each pod either way."""
    explain: bool = True
    """Refused jobs are explained as data, which conditions, events and ``spinney why`` are rendered from."""
    verbosity: int = 0
    """Developer logs, as klog counts: 4 says what node sets plugins made, 7 also of which nodes."""

    def __post_init__(self) -> None:
        """Put the extra plugins into the list, which is all that anybody reads."""
        if self.extra_plugins:
            listed = {option.name: option for option in (*self.plugins, *self.extra_plugins)}
            msgspec.structs.force_setattr(self, "plugins", tuple(listed.values()))
            msgspec.structs.force_setattr(self, "extra_plugins", ())

    @classmethod
    def kai_compat(cls, **changes: Any) -> "SchedulerConfig":
        """Return the profile that decides as KAI does: greedily, and trying every job."""
        own = {
            **dict.fromkeys(_NOT_IN_KAI, False),
            "move_again_seconds": 0.0,
            "plugins": tuple(PluginOption(name) for name in KAI_PLUGINS),
            "actions": KAI_ACTIONS,
        }
        return cls(**{**own, **changes})


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


def check_plugins(options: Sequence[PluginOption], registry: PluginRegistry) -> None:
    """Check that plugins exist and take the arguments they are given.

    Raises :class:`UnknownPlugin` and :class:`InvalidConfiguration`.
    """
    problems = [
        f"plugins[{number}].arguments.{argument}: plugin {option.name}: {message}"
        for number, option in enumerate(options)
        for argument, message in registry.argument_problems(option.name, option.arguments)
    ]
    if problems:
        raise InvalidConfiguration("\n".join(problems))


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
    for number, option in enumerate(config.plugins):
        here: tuple[Step, ...] = ("spec", "plugins", option.name) if is_shard else _listed_at(document, option, number)
        try:
            found = registry.argument_problems(option.name, option.arguments)
        except UnknownPlugin as error:
            yield document.problem(here, str(error))
            continue
        for argument, message in found:
            path = (*here, "arguments", argument)
            derived = _DERIVED_ARGUMENTS.get((option.name, argument))
            if is_shard and derived is not None and argument not in document.at(*here, "arguments").value:
                path = ("spec", *derived)
            yield document.problem(path, f"plugin {option.name}: {message}")


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
