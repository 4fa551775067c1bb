"""What ``docs/plugins.md`` shows works as shown."""

import re
from pathlib import Path
from typing import Any

from spinney import scheduler
from spinney.scheduler import Session
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
    names: dict[str, Any] = {name: getattr(scheduler, name) for name in scheduler.__all__}
    exec(blocks("When a plugin is asked")[0], names)
    inventory = an_inventory(a_node("n0"))
    put_job(inventory, "job", 5, minimum=1)

    assert len(placements(a_scheduler(inventory, names["NamespaceLimit"]))) == 3
