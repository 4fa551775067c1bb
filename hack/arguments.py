"""The arguments of the scheduler's built-in plugins: the table behind docs/reference/configuration.md.

A test compares it with what the plugins declare, so that an argument nobody described, or one that is gone, is noticed.
"""

from dataclasses import dataclass
from typing import Final

from spinney.extensions.arguments import NoArguments, written
from spinney.scheduler.framework.plugin import PluginRegistry
from spinney.scheduler.plugins import BUILT_IN


@dataclass(frozen=True)
class Argument:
    """One argument of one plugin."""

    plugin: str
    key: str
    default: str
    meaning: str


ARGUMENTS: Final = (
    Argument("backfill", "agingSeconds", "3600", "How long a job waits at least before nodes are kept for it alone."),
    Argument(
        "backfill",
        "giveWay",
        "0",
        "A running job goes for a waiting one if it has so many times as long to run as that costs all; 0: never.",
    ),
    Argument(
        "backfill",
        "giveWayAcrossQueues",
        "false",
        "With `giveWay`: jobs of other queues that hold more than their quota give way, too.",
    ),
    Argument("backfill", "depth", "1", "How many jobs of each queue are given a place and a time; 0: all."),
    Argument("backfill", "minPods", "1", "Jobs of fewer pods are given no place."),
    Argument("backfill", "queues", "", "Queues in which jobs are given places, by name, with commas; empty: all."),
    Argument("backfill", "shortestFirst", "false", "Gangs come first, by age, then all others by wait over run time."),
    Argument(
        "dynamicresources", "maxConsumersPerClaim", "256", "How many pods may share one claim; Kubernetes allows 256."
    ),
    Argument(
        "minruntime",
        "defaultPreemptMinRuntime",
        "0s",
        "How long a gang runs before others of its queue may take its place, where no queue says otherwise.",
    ),
    Argument(
        "minruntime",
        "defaultReclaimMinRuntime",
        "0s",
        "How long a gang runs before other queues may take its place, where no queue says otherwise.",
    ),
    Argument(
        "minruntime",
        "reclaimResolveMethod",
        "lca",
        "Whose setting protects a gang from another queue: `lca`, the one just below the ancestor both queues share; "
        "`queue`, the gang's own.",
    ),
    Argument(
        "nodeplacement", "cpu", "binpack", "Pods without GPUs go to the fullest node, or with `spread` the emptiest."
    ),
    Argument(
        "nodeplacement", "gpu", "binpack", "Pods with GPUs go to the fullest node, or with `spread` the emptiest."
    ),
    Argument(
        "packing",
        "learnFromWaiting",
        "false",
        "Learn what pods ask for from those that wait, too, not only from those that are placed.",
    ),
    Argument(
        "proportion",
        "kValue",
        "1",
        "Taken from configurations of KAI, and without effect: how queues used the cluster before does not count.",
    ),
    Argument(
        "proportion",
        "reclaimerSaturationMultiplier",
        "1",
        "A queue takes back only while its use per fair share, times this, is below the giver's; at least 1.",
    ),
    Argument("reservation", "afterSeconds", "300", "How long a gang waits before nodes are kept for it."),
    Argument("reservation", "minPods", "2", "Gangs of fewer pods have nothing kept for them."),
    Argument(
        "topology",
        "planAhead",
        "0",
        "For how many waiting gangs room is planned before one is placed, at most 256; 0: for none, a gang takes the "
        "tightest domain. The default list of plugins says 64.",
    ),
)


def declared() -> set[tuple[str, str, str]]:
    """Return every argument that a built-in plugin declares, as plugin, key and default."""
    registry = PluginRegistry(BUILT_IN)
    return {
        (name, key, default)
        for name in registry
        for key, default in written((registry.arguments_type(name) or NoArguments)()).items()
    }
