"""The scheduler's configuration, in our own form and in KAI's."""

import math
from pathlib import Path

import pytest

from spinney.api.documents import InvalidConfiguration
from spinney.scheduler.config import DEFAULT_PLUGINS, PluginOption, SchedulerConfig, check_plugins
from spinney.scheduler.config_files import load_config, parse_config
from spinney.scheduler.plugins import default_registry


def test_a_plugin_that_is_listed_twice_is_refused() -> None:
    """It was opened twice: its scores counted twice, and its handlers too."""
    with pytest.raises(InvalidConfiguration, match=r"plugins\[1\]: plugin predicates is there twice"):
        parse_config({"plugins": ["predicates", "predicates"]}, default_registry())
    options = (PluginOption("predicates"), PluginOption("predicates"))
    with pytest.raises(InvalidConfiguration, match="plugin predicates is there twice"):
        check_plugins(options, default_registry())


def test_a_plugin_may_be_listed_beside_itself_turned_off() -> None:
    """Only one of the two is opened, so nothing counts twice."""
    config = parse_config({"plugins": [{"name": "predicates", "enabled": False}, "predicates"]}, default_registry())
    assert [(plugin.name, plugin.enabled) for plugin in config.plugins] == [("predicates", False), ("predicates", True)]


def test_an_empty_configuration_means_the_defaults() -> None:
    """Every default plugin is one the scheduler has."""
    config = parse_config({})

    assert [plugin.name for plugin in config.plugins] == list(DEFAULT_PLUGINS)
    registry = default_registry()
    assert all(name in registry for name in DEFAULT_PLUGINS)


def test_plugins_are_listed_in_order_with_arguments(tmp_path: Path) -> None:
    """A plugin is a name, or a mapping with arguments, whose values become text."""
    path = tmp_path / "scheduler.yaml"
    path.write_text(
        "plugins:\n"
        "- predicates\n"
        "- {name: nodeplacement, arguments: {gpu: spread, weight: 3}}\n"
        "- {name: ray, enabled: false}\n"
        "actions: [allocate]\n"
        "useSchedulingSignatures: false\n"
    )
    config = load_config(path)

    assert config.plugins == (
        PluginOption("predicates"),
        PluginOption("nodeplacement", {"gpu": "spread", "weight": "3"}),
        PluginOption("ray", enabled=False),
    )
    assert not config.use_scheduling_signatures


@pytest.mark.parametrize(
    ("raw", "complaint"),
    [
        ({"pluggins": []}, "pluggins.*did you mean 'plugins'"),
        ({"plugins": "predicates"}, "plugins: expected a list"),
        ({"plugins": [3]}, "expected a name or a mapping"),
        ({"actions": "allocate"}, "actions"),
        ([], "expected a mapping"),
        (
            {"kind": "SchedulingShard", "spec": {"placementStrategy": {"gpu": "random"}}},
            "placementStrategy.gpu.*random",
        ),
    ],
)
def test_mistakes_are_named(raw: object, complaint: str) -> None:
    """The error says which field is wrong and what was expected."""
    with pytest.raises(InvalidConfiguration, match=complaint):
        parse_config(raw)


def names(config: SchedulerConfig) -> list[str]:
    """Return the plugins of a configuration in order."""
    return [plugin.name for plugin in config.plugins]


def test_a_shard_is_turned_into_an_ordered_list() -> None:
    """Plugins come by descending priority; packing GPUs brings gpupack and gpusharingorder."""
    config = parse_config({"kind": "SchedulingShard", "spec": {}})

    assert names(config)[:3] == ["predicates", "proportion", "priority"]
    assert names(config)[-3:] == ["gpupack", "nodeplacement", "gpusharingorder"]
    assert "gpuspread" not in names(config)


def test_a_shard_that_spreads_gpus_neither_packs_nor_consolidates() -> None:
    """Spreading swaps the GPU order and leaves consolidation out."""
    config = parse_config({"kind": "SchedulingShard", "spec": {"placementStrategy": {"gpu": "spread"}}})

    assert "gpuspread" in names(config)
    assert "gpupack" not in names(config)
    assert "gpusharingorder" not in names(config)
    assert "consolidation" not in config.actions
    assert PluginOption("nodeplacement", {"gpu": "spread", "cpu": "binpack"}) in config.plugins


def test_a_shard_may_change_and_add_plugins() -> None:
    """Entries by name switch plugins off, move them, give them arguments, or bring new ones."""
    spec = {
        "plugins": {
            "ray": {"enabled": False},
            "topology": {"priority": 5000},
            "mine": {"priority": 1, "arguments": {"x": 1}},
        },
        "kValue": 2,
    }
    config = parse_config({"kind": "SchedulingShard", "spec": spec})

    assert "ray" not in names(config)
    assert names(config)[0] == "topology"
    assert config.plugins[-1] == PluginOption("mine", {"x": "1"})
    assert PluginOption("proportion", {"kValue": "2"}) in config.plugins


def test_the_compatible_profile_is_greedy_and_tries_everybody() -> None:
    """For comparison with KAI there is a profile that takes no short cuts and searches no further."""
    config = SchedulerConfig.kai_compat()

    assert not config.use_scheduling_signatures
    assert not config.backtracking


def test_a_shard_says_how_long_searches_may_take() -> None:
    """KAI's search budgets bound ours; its 0 is unlimited."""
    budgets = {"maxActionSearchDuration": {"default": "2m"}, "maxJobSearchDuration": "0s"}
    config = parse_config({"kind": "SchedulingShard", "spec": {"scenarioSearchBudgets": budgets}})
    assert (config.victim_search.action_seconds, config.victim_search.job_seconds) == (120, math.inf)


def test_a_misspelt_field_of_a_shard_is_named() -> None:
    """An unknown field is an error with the nearest one that exists, not silence."""
    with pytest.raises(
        InvalidConfiguration, match=r"spec.placementStrateg: unknown key; did you mean 'placementStrategy'"
    ):
        parse_config({"kind": "SchedulingShard", "spec": {"placementStrateg": {}}})
