"""The arguments of the scheduler's built-in plugins: the table behind docs/reference/configuration.md.

:func:`asked` builds and opens every built-in plugin with arguments that remember what was asked of them. A test
compares it with the table, so that an argument nobody described, or one that is no longer read, is noticed.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from spinney.runtime import InlineExecutor, Runtime
from spinney.scheduler.config import PluginOption, SchedulerConfig
from spinney.scheduler.plugin import Builder, Plugin, PluginRegistry
from spinney.scheduler.plugins import BUILT_IN
from spinney.sim.cluster import SteppedClock
from spinney.sim.snapshot import ClusterSnapshot
from spinney.sim.whatif import Simulation


@dataclass(frozen=True)
class Argument:
    """One argument of one plugin."""

    plugin: str
    key: str
    default: str
    meaning: str


ARGUMENTS: Final = (
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
        "proportion",
        "kValue",
        "1.0",
        "How strongly recent use counts against a queue when the surplus is divided; 0 is not at all.",
    ),
    Argument(
        "proportion",
        "reclaimerSaturationMultiplier",
        "1.0",
        "A queue takes back only while its use per fair share, times this, is below the giver's; at least 1.",
    ),
    Argument("reservation", "afterSeconds", "300", "How long a gang waits before nodes are kept for it."),
    Argument("reservation", "minPods", "2", "Gangs of fewer pods have nothing kept for them."),
)
OTHER_SPELLINGS: Final = {"relcaimerSaturationMultiplier", "reclaimerUtilizationMultiplier"}
"""What KAI's configurations also call the multiplier."""


class _Remembering(dict[str, str]):
    """No arguments, but it remembers which were asked for."""

    def __init__(self, plugin: str, asked: set[tuple[str, str]]) -> None:
        super().__init__()
        self._plugin, self._asked = plugin, asked

    def get(self, key: str, default: Any = None) -> Any:
        self._asked.add((self._plugin, key))
        return default

    def __contains__(self, key: object) -> bool:
        self._asked.add((self._plugin, str(key)))
        return False


def asked() -> set[tuple[str, str]]:
    """Return every argument that a built-in plugin asks for, as plugin and key."""
    found: set[tuple[str, str]] = set()

    def remembering(name: str, builder: Builder) -> Builder:
        def build(_: Mapping[str, str]) -> Plugin:
            return builder(_Remembering(name, found))

        return build

    registry = PluginRegistry({name: remembering(name, builder) for name, builder in BUILT_IN.items()})
    config = SchedulerConfig(plugins=tuple(map(PluginOption, registry)))
    runtime = Runtime(SteppedClock(), random.Random(0), InlineExecutor())
    Simulation(ClusterSnapshot(), config, runtime=runtime, registry=registry).cycle()
    return {(plugin, key) for plugin, key in found if key not in OTHER_SPELLINGS}
