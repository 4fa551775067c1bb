"""The objects of an installation, described once for ``spinney manifests`` and for the Helm chart.

The operator registers its webhooks itself, so they are not among the objects.
"""

from collections.abc import Iterable

from spinney.api.schema.crd import definition, kinds_of
from spinney.api.struct import JSON, to_json
from spinney.backends import SchedulerBackend
from spinney.cli.installing.description import ChartSetting, Description, made
from spinney.cli.installing.page import DASHBOARD, page_objects
from spinney.cli.installing.processes import PROCESSES
from spinney.cli.installing.roles import roles
from spinney.cli.installing.surroundings import surroundings


def described(backends: Iterable[type[SchedulerBackend]]) -> dict[str, list[Description]]:
    """Return the descriptions of all objects, by the file of the chart they are in."""
    return {
        "roles": roles(backends),
        **{process.command: process.objects() for process in PROCESSES},
        DASHBOARD.command: page_objects(),
        "surroundings": surroundings(),
    }


def installation(setting: ChartSetting, backends: Iterable[type[SchedulerBackend]], *, crds: bool) -> list[JSON]:
    """Return every object of an installation, in the order in which to apply them."""
    objects: list[JSON] = []
    if crds and (setting.values["operator"]["enabled"] or setting.values["grouper"]["enabled"]):  # it writes PodGangs
        objects += [to_json(definition(kind)) for kind in kinds_of("grove")]
    objects.append({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": setting.namespace}})
    descriptions = [each for part in described(backends).values() for each in part]
    found: list[JSON] = made(descriptions, setting)
    return objects + found
