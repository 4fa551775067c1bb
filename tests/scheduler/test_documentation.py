"""What ``docs/plugins.md`` shows works as shown."""

import re
from pathlib import Path
from typing import Any

import pytest

from spinney import scheduler
from spinney.scheduler import Plugin, PluginRegistry, Session
from spinney.scheduler.framework.hooks import Hooks
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

    assert len(found) == 4
    result = a_scheduler(inventory, *found.values()).run_cycle()
    assert len(result.binds) == 1
    assert not result.failures


def test_every_extension_point_is_documented() -> None:
    """Each ``add_...`` method of a session is named in the table."""
    text = DOCUMENT.read_text()
    spelled_out = text.replace("`..._deserved_...`", "`add_get_queue_deserved_resources_fn`")
    missing = [name for name in dir(Session) if name.startswith("add_") and f"`{name}`" not in spelled_out]
    assert missing == []


def test_a_session_offers_what_its_hooks_take() -> None:
    """Each ``add_...`` of the hooks is one of the session, and says the same about itself."""
    names = [name for name in dir(Hooks) if name.startswith("add_")]
    assert names == [name for name in dir(Session) if name.startswith("add_")]
    assert all(getattr(Session, name).__doc__ == getattr(Hooks, name).__doc__ for name in names)


def test_the_limit_that_is_shown_holds() -> None:
    """The plugin with an event handler places three pods of a namespace."""
    names: dict[str, Any] = {}
    exec(blocks("When a plugin is asked")[0], names)
    inventory = an_inventory(a_node("n0"))
    put_job(inventory, "job", 5, minimum=1)

    assert len(placements(a_scheduler(inventory, names["NamespaceLimit"]))) == 3
