"""The documentation lists what differs from Kubernetes, and nothing that the tests do not know about."""

from pathlib import Path

from tests.fidelity.differences import EXPLAINED_IN, HEADING, IN_STREAMS, OF_FIELDS, ONLY_REAL
from tests.fidelity.exchanges import STORIES
from tests.fidelity.kinds import KIND_STORIES
from tests.fidelity.manifests import MANIFEST_STORIES

_ROOT = Path(__file__).parents[2]
_STORIES = (*STORIES.values(), *KIND_STORIES.values(), *MANIFEST_STORIES.values())


def _documented() -> dict[str, str]:
    section = (_ROOT / EXPLAINED_IN).read_text().partition(HEADING)[2]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")]
    return {cells[0].strip(): cells[2].strip() for cells in rows[2:]}


def test_every_difference_is_documented_with_its_reason() -> None:
    """The table of the documentation has exactly the differences that the comparison allows for."""
    exchanges = [exchange for story in _STORIES for exchange in story]
    allowed = {
        *ONLY_REAL.values(),
        IN_STREAMS,
        OF_FIELDS,
        *(exchange.known for exchange in exchanges if exchange.known),
    }
    documented = _documented()
    assert set(documented) == allowed
    assert all(documented.values())


def test_the_comparison_is_broad() -> None:
    """At least four hundred requests are compared."""
    assert sum(map(len, _STORIES)) >= 400
