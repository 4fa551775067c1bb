"""The table of backends is complete, and says why where a scenario cannot run."""

from spinney.backends.builtin import every_backend
from spinney.operator.configuration import check
from spinney.operator.operator import Settings
from tests.e2e.backends import BACKENDS, RUNNING, THOROUGH, WITH_TOPOLOGY


def test_every_backend_has_a_row() -> None:
    """Each backend Spinney ships is in the table once: it runs the scenarios or says why it does not."""
    catalogue = every_backend()
    assert {backend.name for backend in BACKENDS} == {catalogue.canonical(name) for name in catalogue.names()}
    assert len({backend.name for backend in BACKENDS}) == len(BACKENDS)
    assert all(backend.skipped for backend in BACKENDS if backend not in RUNNING)


def test_kai_comes_first() -> None:
    """The scenarios were written for KAI, which therefore runs all of them, first."""
    assert RUNNING[0].name == "kai-scheduler"
    assert THOROUGH[0] == WITH_TOPOLOGY[0] == RUNNING[0]
    assert set(WITH_TOPOLOGY) == set(THOROUGH)


def test_each_row_is_the_default_of_its_configuration() -> None:
    """The configuration written for a row enables its backend and makes it the default."""
    for backend in BACKENDS:
        settings = Settings.of(check(backend.configuration(topology=True, mnnvl=False), every_backend()))
        assert settings.profiles.default == backend.name
        assert settings.topology_enabled
