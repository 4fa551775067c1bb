"""The table of backends is complete, and has a reason for every scenario that does not run on every backend."""

import re
import subprocess
import sys
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

from spinney.backends.builtin import BACKENDS as SHIPPED
from spinney.backends.builtin import every_backend
from spinney.operator.configuration import check
from spinney.operator.operator import Settings
from tests.e2e.backends import BACKENDS, LEFT_OUT, THOROUGH, WITH_TOPOLOGY

HERE = Path(__file__).parent
SCENARIO = re.compile(
    r"test_(?P<file>\w+)\.py::test_(?P<name>\w+)\[(?=.*\bembedded\b).*?"
    rf"(?P<backend>{'|'.join(backend.name for backend in BACKENDS)})"
)
"""A scenario in pytest's list; in which order cluster, backend and parameters of its own come is pytest's affair."""

GROVES = [
    *(f"gang_scheduling/gs{n}_*" for n in range(1, 13)),
    *(f"gang_termination/gt{n}_*" for n in range(1, 7)),
    *(f"startup_ordering/so{n}_*" for n in range(1, 5)),
    *(f"rolling_updates/ru{n}_*" for n in range(7, 22)),
    *(f"ondelete_updates/od{n}_*" for n in range(1, 10)),
    *(f"topology_bindings/tas{n}_*" for n in (1, *range(17, 23))),
    *(f"topology_packing/tas{n}_*" for n in (*range(2, 17), 23)),
    "resource_sharing/rs1_*",
    "lifecycle/cascade_delete",
    "lifecycle/crd_installer_all_crds_exist",
    "lifecycle/crd_installer_completes",
    "lifecycle/crd_installer_is_idempotent",
    "lifecycle/upgrade_*",
    "nvlink_domains/without_annotation_*",
    "nvlink_domains/a_domain_for_each_replica",
    "nvlink_domains/opting_out",
    "nvlink_domains/an_invalid_group_is_refused",
    "nvlink_domains/the_group_cannot_be_changed",
    "nvlink_domains/cliques_without_gpus_are_skipped",
    "nvlink_domains/inherit_override_and_opt_out_*",
    "nvlink_domains/unsupported_but_enabled",
    "nvlink_domains/supported_but_disabled",
    "nvlink_domains/unsupported_and_disabled",
]
"""Grove's list, those it comments out as flaky included; CM1 runs over TLS in real time, without a backend."""


@cache
def collected() -> dict[str, set[str]]:
    """Return the scenarios that would run, and on which backends each does."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-n", "0", "-p", "no:cacheprovider", str(HERE)]
    listed = subprocess.run(command, capture_output=True, text=True, check=True, cwd=HERE.parents[1]).stdout
    found: dict[str, set[str]] = {}
    for match in map(SCENARIO.search, listed.splitlines()):
        if match is not None:
            found.setdefault(f"{match['file']}/{match['name']}", set()).add(match["backend"])
    return found


def test_every_scenario_runs_on_every_backend_or_a_row_says_why_not() -> None:
    """The pairs of scenario and backend that do not run are exactly those of the table, and no row is idle."""
    names = {backend.name for backend in BACKENDS}
    missing = {(scenario, name) for scenario, ran in collected().items() for name in names - ran}
    explained: set[tuple[str, str]] = set()
    for row in LEFT_OUT:
        assert row.reason
        applies = {
            (scenario, name)
            for scenario, name in missing
            if name in {backend.name for backend in row.backends}
            and any(fnmatch(scenario, pattern) for pattern in row.scenarios)
        }
        assert applies, f"the row {row.reason!r} leaves nothing out"
        explained |= applies
    assert missing == explained


def test_every_scenario_of_grove_is_there() -> None:
    """Each scenario of Grove's list is a test, and runs with KAI, for which it was written."""
    found = collected()
    for pattern in GROVES:
        ran = [backends for scenario, backends in found.items() if fnmatch(scenario, pattern)]
        assert ran, f"no test for {pattern}"
        assert all("kai-scheduler" in backends for backends in ran), pattern


def test_every_backend_has_a_row() -> None:
    """Each backend Spinney ships is in the table once."""
    assert sorted(backend.name for backend in BACKENDS) == sorted(backend.name for backend in SHIPPED)


def test_kai_comes_first() -> None:
    """The scenarios were written for KAI, which therefore runs all of them, first."""
    assert BACKENDS[0].name == "kai-scheduler"
    assert THOROUGH[0] == WITH_TOPOLOGY[0] == BACKENDS[0]


def test_each_row_is_the_default_of_its_configuration() -> None:
    """The configuration written for a row enables its backend and makes it the default."""
    for backend in BACKENDS:
        settings = Settings.of(check(backend.configuration(topology=True, mnnvl=False), every_backend()))
        assert settings.profiles.default == backend.name
        assert settings.topology_enabled
