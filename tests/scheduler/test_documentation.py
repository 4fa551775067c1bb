"""What ``docs/plugins.md`` shows works as shown."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from spinney import scheduler
from spinney.scheduler import BatchEvent, EventHandler, Plugin, PluginRegistry, Scenario, Session
from tests.scheduler.building import a_node, a_scheduler, an_inventory, placements, put_job

DOCUMENT = Path(__file__).parents[2] / "docs" / "plugins.md"


def blocks(heading: str) -> list[str]:
    """Return the Python blocks below a heading."""
    section = DOCUMENT.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL)


def test_the_first_plugin_passes_the_test_that_is_shown() -> None:
    """The plugin of the first section and the test of a later one run together."""
    names: dict[str, object] = {}
    exec(blocks("A plugin in ten minutes")[0], names)
    exec(blocks("Testing a plugin")[0], names)
    shown = names["test_regular_nodes_first"]

    assert callable(shown)
    shown()


def test_every_block_runs_as_it_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever copies a section into a file has all the names it needs, and plugins that a scheduler takes and asks."""
    monkeypatch.setattr(scheduler, "register_plugin_builder", PluginRegistry().register)  # not in this process
    headings = re.findall(r"^## (.*)$", DOCUMENT.read_text(), flags=re.MULTILINE)
    found: dict[str, type[Plugin]] = {}
    for heading in headings:
        if heading == "Testing a plugin":  # it tests the plugin of the first section, see above
            continue
        names: dict[str, Any] = {}
        for block in blocks(heading):
            exec(block, names)
        found |= {
            each.name: each
            for each in names.values()
            if isinstance(each, type) and issubclass(each, Plugin) and each is not Plugin
        }
    inventory = an_inventory(a_node("n0"))
    put_job(inventory, "job", 1)

    assert len(found) == 5
    result = a_scheduler(inventory, *found.values()).run_cycle()
    assert len(result.binds) == 1
    assert not result.failures


def test_every_extension_point_is_documented() -> None:
    """Each ``add_...`` method of a session is named in the table."""
    text = DOCUMENT.read_text()
    spelled_out = text.replace("`..._deserved_...`", "`add_get_queue_deserved_resources_fn`")
    missing = [name for name in dir(Session) if name.startswith("add_") and f"`{name}`" not in spelled_out]
    assert missing == []


def test_the_metric_that_is_shown_counts_session_after_session() -> None:
    """A metric is registered once, and every session's plugin finds it."""
    names: dict[str, Any] = {}
    exec(blocks("Extension points")[0], names)
    inventory = an_inventory(a_node("n0"))
    scheduler = a_scheduler(inventory, names["BoundPods"])
    for job in ("first", "second"):
        put_job(inventory, job, 2)
        result = scheduler.run_cycle()
        assert not result.failures

    assert scheduler.metrics.get_sample_value("our_pods_bound_total", {"namespace": "team"}) == 6  # two, then all four


def our_types(hint: Any) -> Iterator[type]:
    """Yield the classes of this project that a type is made of."""
    if isinstance(hint, list | tuple):
        for each in hint:
            yield from our_types(each)
    elif get_args(hint):
        yield from our_types(get_args(hint))
    elif isinstance(hint, type) and hint.__module__.startswith("spinney."):
        yield hint


def test_what_functions_are_given_and_answer_is_importable_where_authors_import_from() -> None:
    """A plugin with types is written with imports from `spinney.scheduler` alone."""
    names = {"Session": Session}
    asked = [get_type_hints(getattr(Session, name), localns=names) for name in dir(Session) if name.startswith("add_")]
    asked += [get_type_hints(each) for each in (EventHandler, BatchEvent, Scenario)]
    needed = {each.__name__ for hints in asked for each in our_types(list(hints.values()))}

    assert {"Amounts", "GroupSet", "PodInfo", "QueueTurn"} < needed
    assert needed - set(scheduler.__all__) == {"ColumnTraits", "NodeTraits"}  # which are written as keywords


def test_the_limit_that_is_shown_holds() -> None:
    """The plugin with an event handler places three pods of a namespace."""
    names: dict[str, Any] = {}
    exec(blocks("When a plugin is asked")[0], names)
    inventory = an_inventory(a_node("n0"))
    put_job(inventory, "job", 5, minimum=1)

    assert len(placements(a_scheduler(inventory, names["NamespaceLimit"]))) == 3
