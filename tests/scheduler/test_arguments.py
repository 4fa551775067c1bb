"""What a plugin declares to take is all it can be given, and a mistake is named where it was written."""

from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import pytest

from spinney.api.documents import InvalidConfiguration
from spinney.api.durations import InvalidDuration
from spinney.extensions.arguments import InvalidArguments, written
from spinney.scheduler import Plugin, PluginOption, SchedulerConfig, Session, load_config, parse_config, read_arguments
from spinney.scheduler.framework.plugin import PluginRegistry
from spinney.scheduler.plugins import BUILT_IN, default_registry
from spinney.sim.snapshots.files import configuration_of
from tests.scheduler.building import a_node, a_scheduler, an_inventory


class Mood(StrEnum):
    """A few words."""

    CALM = "calm"
    WILD = "wild"


class Tastes(msgspec.Struct, frozen=True, rename="camel"):
    """What somebody's plugin takes."""

    node_label: str = "pool"
    weight: Annotated[float, msgspec.Meta(ge=0, lt=10)] = 1.5
    at_most: int = 3
    strict_order: bool = False
    patience: timedelta = timedelta(minutes=5)
    kind: Literal["a", "b"] = "a"
    mood: Mood = Mood.CALM
    depth: Literal["all"] | int | None = None


class Tasteful(Plugin):
    """Declares its arguments."""

    name = "tasteful"
    arguments_type = Tastes

    def on_session_open(self, session: Session) -> None:
        """Do nothing."""


class Undeclared(Plugin):
    """Says nothing about its arguments."""

    name = "undeclared"

    def on_session_open(self, session: Session) -> None:
        """Do nothing."""


@pytest.fixture
def registry() -> PluginRegistry:
    """The installed plugins, and two of somebody's own."""
    registry = default_registry()
    registry.register("tasteful", Tasteful)
    registry.register("undeclared", Undeclared)
    return registry


def test_text_becomes_what_the_plugin_declared() -> None:
    """Numbers, truth values, durations and words are read from text; what is not given has its default."""
    found = {"weight": "2", "strictOrder": "True", "patience": "1h30m", "mood": "wild"}

    assert read_arguments(Tastes, found) == Tastes(
        weight=2.0, strict_order=True, patience=timedelta(minutes=90), mood=Mood.WILD
    )


def test_what_is_written_is_read_back() -> None:
    """Arguments spelled out with their defaults mean the same."""
    chosen = Tastes(strict_order=True, patience=timedelta(seconds=1.5), weight=0.25)

    assert read_arguments(Tastes, written(chosen)) == chosen


@pytest.mark.parametrize(
    ("argument", "text", "said"),
    [
        ("nodeLable", "x", "unknown argument; did you mean 'nodeLabel'?"),
        ("weight", "heavy", "found 'heavy', expected a number of at least 0 and less than 10"),
        ("weight", "nan", "found 'nan', expected a number of at least 0 and less than 10"),
        ("atMost", "2.5", "found '2.5', expected a whole number"),
        ("depth", "few", "found 'few', expected all or a whole number"),
        ("strictOrder", "perhaps", "found 'perhaps', expected true or false"),
        ("patience", "5", str(InvalidDuration("5"))),
        ("patience", "3000000h", "'3000000h' is too long; the longest duration is 2562047h47m16s, which is 292 years"),
        ("kind", "c", "found 'c', expected a or b"),
        ("mood", "odd", "found 'odd', expected calm or wild"),
    ],
)
def test_a_mistake_says_what_was_found_and_what_is_allowed(argument: str, text: str, said: str) -> None:
    """Every kind of argument names its values."""
    with pytest.raises(InvalidArguments) as refused:
        read_arguments(Tastes, {argument: text})

    assert refused.value.problems == [(argument, said)]


def test_every_mistake_in_a_file_is_named_with_its_line_and_path(tmp_path: Path, registry: PluginRegistry) -> None:
    """Built-in plugins and those of others are checked alike; one that declares nothing is given everything."""
    path = tmp_path / "scheduler.yaml"
    path.write_text(
        "plugins:\n"
        "- name: nodeplacement\n"
        "  arguments:\n"
        "    gpuu: spread\n"
        "- name: ray\n"
        "  arguments: {x: 1}\n"
        "- name: tasteful\n"
        "  arguments: {wieght: 1}\n"
        "- topologgy\n"
        "- name: undeclared\n"
        "  arguments: {anything: goes}\n"
    )
    with pytest.raises(InvalidConfiguration) as refused:
        load_config(path, registry)

    assert str(refused.value).splitlines() == [
        f"{path}:4: plugins[0].arguments.gpuu: plugin nodeplacement: unknown argument; did you mean 'gpu'?",
        f"{path}:6: plugins[1].arguments.x: plugin ray: unknown argument; nothing is expected here",
        f"{path}:8: plugins[2].arguments.wieght: plugin tasteful: unknown argument; did you mean 'weight'?",
        f"{path}:9: plugins[3]: no plugin is called 'topologgy'; did you mean 'topology'?",
    ]


def test_a_mistake_in_a_shard_is_named_where_the_shard_has_it(registry: PluginRegistry) -> None:
    """Arguments that a shard gives in fields of its own are named there."""
    spec = {
        "kValue": -3,
        "minRuntime": {"preemptMinRuntime": "soon"},
        "plugins": {"nodeplacement": {"arguments": {"cpuu": "spread"}}},
    }
    with pytest.raises(InvalidConfiguration) as refused:
        parse_config({"kind": "SchedulingShard", "spec": spec}, registry)

    said = str(refused.value).splitlines()
    assert said[0] == "spec.kValue: plugin proportion: found '-3', expected a number of at least 0"
    assert said[1].startswith("spec.minRuntime.preemptMinRuntime: plugin minruntime: 'soon' is not")
    assert said[2].startswith("spec.plugins.nodeplacement.arguments.cpuu: plugin nodeplacement: unknown argument")


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (
            {"plugins": [{"name": "ray", "enabeld": False}]},
            r"plugins\[0\].enabeld: unknown key; did you mean 'enab",
        ),
        ({"plugins": [{"name": "ray", "arguments": ["x"]}]}, r"plugins\[0\].arguments: expected a mapping"),
        ({"victimSearch": {"actionSecond": 1}}, "victimSearch.actionSecond: unknown key; did you mean 'actionSeconds'"),
        ({"kind": "SchedulingShard", "spec": []}, None),
        ({"kind": "SchedulingShard", "spec": [1]}, "spec: expected a mapping"),
        (
            {"kind": "SchedulingShard", "spec": {"plugins": {"ray": {"priority": "high"}}}},
            "spec.plugins.ray.priority: found 'high', expected a whole number",
        ),
    ],
)
def test_the_shape_of_the_configuration_is_checked(raw: object, said: str | None) -> None:
    """A field at any depth that does not exist, or holds something else, is named with its path."""
    if said is None:
        assert parse_config(raw).plugins
        return
    with pytest.raises(InvalidConfiguration, match=said):
        parse_config(raw)


def test_a_scheduler_is_not_built_with_arguments_nobody_takes() -> None:
    """A configuration made in code is checked too, before anything is scheduled."""
    config = SchedulerConfig(plugins=(PluginOption("predicates"), PluginOption("nodeplacement", {"gpu": "packed"})))

    with pytest.raises(InvalidConfiguration, match=r"plugins\[1\].arguments.gpu: plugin nodeplacement: found 'packed'"):
        a_scheduler(an_inventory(a_node("n1")), config=config)


def test_a_scheduler_is_not_built_with_plugins_that_contradict_each_other() -> None:
    """However the configuration came about, the start says which two do not go together."""
    config = SchedulerConfig(plugins=(PluginOption("reservation"), PluginOption("backfill")))

    with pytest.raises(InvalidConfiguration, match="plugin backfill contradicts plugin reservation"):
        a_scheduler(an_inventory(a_node("n0")), config=config)


def test_every_built_in_plugin_declares_what_it_takes() -> None:
    """None of ours ignores an argument."""
    registry = PluginRegistry(BUILT_IN)

    assert [name for name in BUILT_IN if registry.arguments_type(name) is None] == []


def test_arguments_of_kai_that_are_not_ours_do_not_keep_its_snapshot_from_being_used() -> None:
    """A snapshot says how another scheduler was configured: what has no meaning here is left out."""
    found = configuration_of(
        {"tiers": [{"plugins": [{"name": "nodeplacement", "arguments": {"gpu": "spread", "theirs": "x"}}]}]}
    )

    assert found is not None
    assert found.plugins == (PluginOption("nodeplacement", {"gpu": "spread"}),)
