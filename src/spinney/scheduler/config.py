"""The scheduler's configuration: which plugins, in which order, with which arguments; which actions; a few switches."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final, Literal

import msgspec

from spinney.api.documents import InvalidConfiguration
from spinney.scheduler.framework.plugin import PluginRegistry

_FIRST: Final = ("predicates", "proportion", "priority", "elastic", "kubeflow", "ray", "nodeavailability")
_ORDERS: Final = ("subgrouporder", "taskorder", "nominatednode", "dynamicresources")
_LAST: Final = ("minruntime", "topology")
KAI_PLUGINS: Final = (*_FIRST, "gpusharingorder", "gpupack", "resourcetype", *_ORDERS, "nodeplacement", *_LAST)
"""The rules of the profile that decides as KAI does."""
DEFAULT_PLUGINS: Final = (*_FIRST, "packing", "resourcetype", "podaffinity", *_ORDERS, *_LAST)
_DEFAULT_ARGUMENTS: Final = {"topology": {"planAhead": "64"}}
"""What the default list gives its plugins, by name: where the default of a plugin itself is what KAI does."""
KAI_ACTIONS: Final = ("allocate", "consolidation", "reclaim", "preempt", "stalegangeviction")
"""The actions of the profile that decides as KAI does."""
DEFAULT_ACTIONS: Final = ("allocate", "relocation", "consolidation", "reclaim", "preempt", "stalegangeviction")


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
    """How long actions may search for victims; looked at between scenarios and the steps they are made of."""

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

    plugins: tuple[PluginOption, ...] = tuple(
        PluginOption(name, _DEFAULT_ARGUMENTS.get(name, {})) for name in DEFAULT_PLUGINS
    )
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
    """After that long, what a terminating pod holds is no longer promised to others, and it keeps no gang whole."""
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
    """Which objects get events of binds: `pods`: each pod, as with kube-scheduler; `gangs`: the gang, once for the pods
    that are bound together, which costs the API server much less. What was refused is told of each pod either way."""
    explain: bool = True
    """Refused jobs are explained as data, which conditions, events and ``spinney why`` are rendered from."""
    verbosity: int = 0
    """Developer logs, as klog counts: 4 says what node sets plugins made, 7 also of which nodes."""

    def __post_init__(self) -> None:
        """Put the extra plugins into the list, which is all that is read."""
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


def twice(options: Sequence[PluginOption]) -> Iterator[tuple[int, str]]:
    """Yield where a list has a plugin that is enabled before, each with what to say of it."""
    names = [option.name if option.enabled else None for option in options]
    for number, name in enumerate(names):
        if name is not None and name in names[:number]:
            yield number, f"plugin {name} is there twice, so its scores would count twice; take one of the two out"


def check_plugins(options: Sequence[PluginOption], registry: PluginRegistry) -> None:
    """Check that plugins exist, take the arguments they are given and do not contradict each other.

    Raises :class:`UnknownPlugin` and :class:`InvalidConfiguration`.
    """
    problems = [
        f"plugins[{number}].arguments.{argument}: plugin {option.name}: {message}"
        for number, option in enumerate(options)
        for argument, message in registry.argument_problems(option.name, option.arguments)
    ]
    problems += (message for _, message in twice(options))
    problems += (message for _, message in registry.contradictions([each.name for each in options if each.enabled]))
    if problems:
        raise InvalidConfiguration("\n".join(problems))
