"""The plugins of ``examples/plugins`` do what they say."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
from structlog.testing import capture_logs

from spinney.scheduler import Plugin, Scheduler, SchedulerConfig, Session
from spinney.scheduler.config import PluginOption
from tests.scheduler.building import (
    a_gang,
    a_node,
    a_pod,
    a_runtime,
    a_scheduler,
    an_inventory,
    placements,
    put_gang,
    put_job,
)

EXAMPLES = Path(__file__).parents[2] / "examples" / "plugins"


def example(name: str) -> ModuleType:
    """Load an example as a user would: from its file."""
    spec = spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_gpu_predicate_refuses_nodes_without_a_free_gpu() -> None:
    """A GPU pod goes to the node with a free GPU, and the reason names the others."""
    inventory = an_inventory(a_node("full", gpus=1), a_node("free", gpus=1))
    inventory.apply(a_pod("tenant", gpus=1, node="full"))
    put_job(inventory, "job", 1)
    plugin: type[Plugin] = example("gpu_predicate").GpuPredicate

    assert placements(a_scheduler(inventory, plugin)) == {"job-0": "free"}


@pytest.mark.parametrize("columns", ["true", "false"])
def test_the_utilization_score_prefers_busy_nodes(columns: str) -> None:
    """Alone, without any other score, it puts a pod beside others, in either form."""
    inventory = an_inventory(a_node("a-empty"), a_node("b-busy"), a_node("c-empty"))
    inventory.apply(a_pod("tenant", gpus=4, node="b-busy"))
    put_job(inventory, "job", 3)
    plugin: type[Plugin] = example("gpu_utilization").GpuUtilization
    scheduler = a_scheduler(inventory, plugin, only=True)
    config = SchedulerConfig(plugins=(PluginOption(plugin.name, {"columns": columns}),))
    scheduler = Scheduler(config, inventory, runtime=a_runtime(), registry=scheduler.registry)

    assert set(placements(scheduler).values()) == {"b-busy"}


def test_the_tracker_counts_what_is_placed_in_the_end() -> None:
    """Placements that were undone are counted out again."""
    inventory = an_inventory(a_node("n1", gpus=3))
    put_job(inventory, "fits", 2)
    put_job(inventory, "does-not", 4)
    plugin: type[Plugin] = example("namespace_tracker").NamespaceAllocationTracker
    opened: list[Plugin] = []

    class Remembered(plugin):  # type: ignore[misc,valid-type]
        def on_session_open(self, session: Session) -> None:
            opened.append(self)
            super().on_session_open(session)

    a_scheduler(inventory, Remembered).run_cycle()

    assert opened[0].pods_per_namespace == {"team": 2}  # type: ignore[attr-defined]


def test_whatever_a_namespace_is_called_its_pods_are_told() -> None:
    """The log has words of its own, and a namespace may be called like one."""
    inventory = an_inventory(a_node("n0"))
    inventory.apply(a_pod("p", namespace="event"))

    with capture_logs() as logs:
        result = a_scheduler(inventory, example("namespace_tracker").NamespaceAllocationTracker).run_cycle()

    assert not result.failures
    assert [each["by_namespace"] for each in logs if each["event"] == "pods allocated"] == [{"event": 1}]


@pytest.mark.parametrize(("preemptible", "node"), [(True, "regular"), (False, "regular")])
def test_regular_nodes_are_preferred(preemptible: bool, node: str) -> None:
    """While a regular node has room, everybody goes there, though the spot instance is fuller."""
    inventory = an_inventory(a_node("a-spot", gpus=2, labels={"runai.io/instance-type": "spot"}), a_node("regular"))
    put_gang(inventory, a_gang("job", preemptible=preemptible), [a_pod("p", gang="job", gpus=1)])
    plugin: type[Plugin] = example("spot_instances").SpotInstances

    assert placements(a_scheduler(inventory, plugin)) == {"p": node}


def test_only_preemptible_pods_run_on_spot_instances() -> None:
    """With nothing but a spot instance, a preemptible pod runs and another waits."""
    for preemptible in (True, False):
        inventory = an_inventory(a_node("spot", labels={"runai.io/instance-type": "spot"}))
        put_gang(inventory, a_gang("job", preemptible=preemptible), [a_pod("p", gang="job", gpus=1)])
        plugin: type[Plugin] = example("spot_instances").SpotInstances
        result = a_scheduler(inventory, plugin).run_cycle()

        assert bool(result.binds) is preemptible
        if not preemptible:
            assert "spot-instance-manager" in result.unschedulable[0].message
