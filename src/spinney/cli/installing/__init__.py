"""The objects of an installation, described once for ``spinney manifests`` and for the Helm chart.

The operator registers its webhooks itself, so they are not among the objects.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from spinney.api.schema.crd import definition, kinds_of
from spinney.api.struct import JSON, to_json
from spinney.backends import SchedulerBackend
from spinney.cli.installing.description import ChartSetting, Description, made
from spinney.cli.installing.page import DASHBOARD, page_objects
from spinney.cli.installing.processes import PROCESSES
from spinney.cli.installing.roles import roles
from spinney.cli.installing.surroundings import surroundings


@dataclass(frozen=True, kw_only=True)
class Installation:
    """What to install, and where."""

    values: JSON
    namespace: str
    version: str
    crds: bool = True


def described(backends: Iterable[type[SchedulerBackend]]) -> dict[str, list[Description]]:
    """Return the descriptions of all objects, by the file of the chart they are in."""
    return {
        "roles": roles(backends),
        **{process.command: process.objects() for process in PROCESSES},
        DASHBOARD.command: page_objects(),
        "surroundings": surroundings(),
    }


def installation(options: Installation, backends: Iterable[type[SchedulerBackend]]) -> list[JSON]:
    """Return every object of an installation, in the order in which to apply them."""
    setting = ChartSetting(options.values, options.namespace, options.version)
    objects: list[JSON] = []
    if options.crds and options.values["operator"]["enabled"]:
        objects += [to_json(definition(kind)) for kind in kinds_of("grove")]
    objects.append({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": options.namespace}})
    descriptions = [each for part in described(backends).values() for each in part]
    found: list[JSON] = made(descriptions, setting)
    return objects + found
