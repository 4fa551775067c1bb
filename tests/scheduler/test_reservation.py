"""The reservation plugin: a gang that has waited too long is no longer overtaken."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from msgspec.structs import replace

from spinney.api.kai import Topology as KaiTopology
from spinney.api.meta import OwnerReference
from spinney.api.struct import convert
from spinney.gangs.tree import TopologyConstraintInfo
from spinney.scheduler.config import PluginOption, SchedulerConfig
from spinney.scheduler.intake.inventory import Inventory
from tests.scheduler.building import (
    NOW,
    RACK,
    a_gang,
    a_node,
    a_pod,
    a_scheduler,
    an_inventory,
    placements,
    put_gang,
)

AN_HOUR_AGO = NOW - timedelta(hours=1)
JUST_NOW = NOW - timedelta(seconds=5)


def a_gang_of(inventory: Inventory, name: str, count: int, gpus: int, created: datetime, **about: object) -> None:
    gang = a_gang(name, minimum=count, created=created, **about)  # type: ignore[arg-type]
    put_gang(inventory, gang, (a_pod(f"{name}-{number}", gang=name, gpus=gpus) for number in range(count)))


def reserving(**arguments: str) -> SchedulerConfig:
    config = SchedulerConfig()
    return replace(config, plugins=(*config.plugins, PluginOption("reservation", arguments=arguments)))


def placed(inventory: Inventory, config: SchedulerConfig | None = None) -> Mapping[str, str]:
    return placements(a_scheduler(inventory, config=config if config is not None else reserving()))


def a_crowded_pair() -> Inventory:
    """Two nodes, one of them half full, and a gang that needs both."""
    inventory = an_inventory(a_node("left"), a_node("right"))
    put_gang(inventory, a_gang("running", minimum=1), [a_pod("running-0", gang="running", gpus=4, node="left")])
    a_gang_of(inventory, "large", 2, 8, AN_HOUR_AGO)
    return inventory


def test_small_jobs_overtake_without_it() -> None:
    """What the plugin is for: a small job takes the room a large gang waits for."""
    inventory = a_crowded_pair()
    a_gang_of(inventory, "small", 1, 4, JUST_NOW)
    assert set(placed(inventory, SchedulerConfig())) == {"small-0"}


def test_a_starving_gang_is_not_overtaken() -> None:
    """A later job finds no room on nodes kept for a gang that has waited longer than allowed."""
    inventory = a_crowded_pair()
    a_gang_of(inventory, "small", 1, 4, JUST_NOW)
    assert placed(inventory) == {}


def test_the_reason_names_the_gang_and_its_wait() -> None:
    """Whoever is held back learns by whom and for how long it has waited."""
    inventory = a_crowded_pair()
    a_gang_of(inventory, "small", 1, 4, JUST_NOW)
    result = a_scheduler(inventory, config=reserving()).run_cycle()
    (waiting,) = [each for each in result.unschedulable if each.gang.name == "small"]
    text = "kept for team/large, which has waited 1h0m0s"
    assert text in waiting.message


def test_nodes_the_gang_does_not_need_stay_free_for_all() -> None:
    """Only the nodes that need to empty least are kept."""
    inventory = a_crowded_pair()
    inventory.apply(a_node("spare"))
    put_gang(inventory, a_gang("other", minimum=1), [a_pod("other-0", gang="other", gpus=6, node="spare")])
    a_gang_of(inventory, "small", 1, 2, JUST_NOW)
    assert placed(inventory) == {"small-0": "spare"}


def test_a_gang_that_has_not_waited_long_keeps_nothing() -> None:
    """Before ``afterSeconds`` have passed the cluster is used as usual."""
    inventory = a_crowded_pair()
    a_gang_of(inventory, "small", 1, 4, JUST_NOW)
    assert set(placed(inventory, reserving(afterSeconds="7200"))) == {"small-0"}


def test_what_is_more_urgent_still_overtakes() -> None:
    """A job of higher priority is not held back."""
    inventory = a_crowded_pair()
    a_gang_of(inventory, "urgent", 1, 4, JUST_NOW, priority=90)
    assert set(placed(inventory)) == {"urgent-0"}


def test_the_gang_itself_gets_its_nodes() -> None:
    """Once the nodes are empty the gang is placed on them, and the later job is not."""
    inventory = an_inventory(a_node("left"), a_node("right"))
    a_gang_of(inventory, "large", 2, 8, AN_HOUR_AGO)
    a_gang_of(inventory, "small", 1, 4, JUST_NOW)
    assert placed(inventory) == {"large-0": "left", "large-1": "right"}


def test_a_gang_that_can_never_run_keeps_nothing() -> None:
    """A gang larger than the cluster does not stop it."""
    inventory = a_crowded_pair()
    a_gang_of(inventory, "huge", 9, 8, AN_HOUR_AGO - timedelta(hours=9), queue="elsewhere")
    a_gang_of(inventory, "small", 1, 4, AN_HOUR_AGO - timedelta(hours=2))
    assert set(placed(inventory)) == {"small-0"}


def test_nodes_are_kept_in_one_domain() -> None:
    """A gang that must lie in one rack keeps nodes of one rack, the one that needs to empty least."""
    racks = {"a1": "a", "a2": "a", "b1": "b", "b2": "b"}
    inventory = an_inventory(*(a_node(name, labels={RACK: rack}) for name, rack in racks.items()))
    inventory.apply(convert(KaiTopology, {"metadata": {"name": "dc"}, "spec": {"levels": [{"nodeLabel": RACK}]}}))
    for name, gpus in {"a1": 8, "b1": 2}.items():
        put_gang(inventory, a_gang(f"on-{name}"), [a_pod(f"on-{name}-0", gang=f"on-{name}", gpus=gpus, node=name)])
    constraint = TopologyConstraintInfo("dc", required=RACK)
    a_gang_of(inventory, "large", 2, 8, AN_HOUR_AGO, topology=constraint)
    a_gang_of(inventory, "small", 1, 4, JUST_NOW)
    assert placed(inventory) == {"small-0": "a2"}


def test_what_never_ends_is_not_waited_for() -> None:
    """A node on which a daemon set leaves too little is not kept."""
    inventory = an_inventory(a_node("busy"), a_node("daemons", cpu="2"), a_node("third"))
    put_gang(inventory, a_gang("running"), [a_pod("running-0", gang="running", gpus=4, node="busy")])
    daemon = a_pod("daemon", cpu="2", node="daemons")
    owner = OwnerReference(api_version="apps/v1", kind="DaemonSet", name="agent", uid="agent")
    inventory.apply(replace(daemon, metadata=replace(daemon.metadata, owner_references=(owner,))))
    a_gang_of(inventory, "large", 2, 8, AN_HOUR_AGO)
    a_gang_of(inventory, "small", 1, 4, JUST_NOW)
    assert placed(inventory) == {}
