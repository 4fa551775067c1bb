"""The values of an installation: what they are, their defaults, and what is wrong with given ones."""

import copy
from collections.abc import Iterator
from importlib.resources import files
from inspect import cleandoc
from typing import Annotated, Any, Final, Literal

import msgspec
import yaml

from spinney.api.documents import InvalidDocument, decode, parse
from spinney.api.struct import JSON
from spinney.operator.configuration import OperatorConfiguration


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Values that belong together."""


class Image(_Part, frozen=True, kw_only=True):
    """What containers run."""

    repository: str = "spinney"
    tag: str = ""
    digest: str = ""
    pull_policy: Literal["Always", "IfNotPresent", "Never"] = "IfNotPresent"


class Named(_Part, frozen=True, kw_only=True):
    """A reference by name."""

    name: str


class Resources(_Part, frozen=True, kw_only=True):
    """Requests and limits of each process."""

    operator: JSON = {}
    scheduler: JSON = {}
    coscheduler: JSON = {}
    grouper: JSON = {}
    dashboard: JSON = {}


class Switch(_Part, frozen=True, kw_only=True):
    """Something to have or not."""

    enabled: bool = True


class Budget(Switch, frozen=True, kw_only=True):
    """A PodDisruptionBudget of each process."""

    max_unavailable: int | str = 1


class NetworkValues(Switch, frozen=True, kw_only=True):
    """A NetworkPolicy of each process."""

    metrics_from: list[JSON] = []
    egress: list[JSON] = []


class MetricsService(Switch, frozen=True, kw_only=True):
    """A Service in front of each process's metrics."""

    annotations: dict[str, str] = {}


class Monitor(Switch, frozen=True, kw_only=True):
    """An object of the Prometheus operator."""

    interval: str = ""
    labels: dict[str, str] = {}


class Labelled(Switch, frozen=True, kw_only=True):
    """An object that others find by its labels; one that is null is not there."""

    labels: dict[str, str | None] = {}


class Metrics(_Part, frozen=True, kw_only=True):
    """How metrics are collected."""

    service: MetricsService = MetricsService()
    service_monitor: Monitor = Monitor()
    prometheus_rule: Monitor = Monitor()
    dashboard: Labelled = Labelled()


class CertManager(Switch, frozen=True, kw_only=True):
    """A certificate by cert-manager."""

    issuer_ref: dict[str, str] = {}


class Certificate(_Part, frozen=True, kw_only=True):
    """Who provides the certificate of the webhooks."""

    secret_name: str = ""
    cert_manager: CertManager = CertManager()


class WebhooksValues(_Part, frozen=True, kw_only=True):
    """How the API server reaches the operator."""

    certificate: Certificate = Certificate()


class PodValues(_Part, frozen=True, kw_only=True):
    """What an installation adds to the pods of a process."""

    extra_args: list[str] = []
    extra_env: list[JSON] = []
    extra_volumes: list[JSON] = []
    extra_volume_mounts: list[JSON] = []
    service_account_annotations: dict[str, str] = {}


class OperatorValues(PodValues, frozen=True, kw_only=True):
    """The operator."""

    extra_rules: list[JSON] = []
    enabled: bool = True


class SchedulerValues(PodValues, frozen=True, kw_only=True):
    """The session scheduler."""

    extra_rules: list[JSON] = []
    config: JSON = {}
    verbosity: int = 1
    plugins_config_map: str = ""


class OptionalValues(PodValues, frozen=True, kw_only=True):
    """The coscheduler, or the grouper."""

    extra_rules: list[JSON] = []
    enabled: bool = False
    config: JSON = {}
    verbosity: int = 1


class DashboardCertificate(_Part, frozen=True, kw_only=True):
    """The certificate the dashboard serves with."""

    secret_name: str = ""


class DashboardValues(PodValues, frozen=True, kw_only=True):
    """The dashboard."""

    enabled: bool = False
    certificate: DashboardCertificate = DashboardCertificate()
    behind_proxy: bool = False


class Values(_Part, frozen=True, kw_only=True):
    """Everything that can be said about an installation; the defaults stand in ``values.yaml``, with what they mean."""

    replica_count: Annotated[int, msgspec.Meta(ge=0)] = 2
    image: Image = Image()
    image_pull_secrets: list[Named] = []
    resources: Resources = Resources()
    node_selector: dict[str, str] = {}
    tolerations: list[JSON] = []
    affinity: JSON = {}
    priority_class_name: str = ""
    pod_annotations: dict[str, str] = {}
    pod_labels: dict[str, str] = {}
    topology_spread: Switch = Switch()
    pod_disruption_budget: Budget = Budget()
    network_policy: NetworkValues = NetworkValues()
    metrics: Metrics = Metrics()
    webhooks: WebhooksValues = WebhooksValues()
    operator: OperatorValues = OperatorValues()
    scheduler: SchedulerValues = SchedulerValues()
    coscheduler: OptionalValues = OptionalValues()
    grouper: OptionalValues = OptionalValues()
    dashboard: DashboardValues = DashboardValues()
    config: OperatorConfiguration = OperatorConfiguration()


SECTIONS: Final = {"scheduler": ("provisioningRequests", "suspendedWorkloads"), "grouper": ("admission",)}
"""What the chart reads of configurations that are not checked otherwise: sections; neither they nor keys are empty."""
DEFAULTS: Final = files("spinney.cli.installing").joinpath("values.yaml")


def default_values() -> JSON:
    """Return every value with its default."""
    found: JSON = yaml.safe_load(DEFAULTS.read_text(encoding="utf-8"))
    return found


def read_values(text: str, source: str) -> JSON:
    """Return the values of a file; raises :class:`~spinney.api.documents.InvalidDocument` with what is wrong."""
    document = parse(text, source)
    decode(Values, document)
    found: JSON = document.value or {}
    paths = (*_emptied(found), *_nulls(found.get("config") or {}, default_values()["config"]), *_empty_sections(found))
    emptied = [document.problem(path, "found nothing; leave the key out for its defaults") for path in paths]
    if emptied:
        raise InvalidDocument(emptied)
    return found


def _emptied(values: JSON, kind: type[_Part] = Values, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Return the parts that are there and empty: to Helm that means that not even their defaults are."""
    for field in msgspec.structs.fields(kind):
        if field.encode_name not in values:
            continue
        value, place = values[field.encode_name], (*path, field.encode_name)
        if value is None and _is_needed(field):
            yield place
        elif isinstance(field.type, type) and issubclass(field.type, _Part):
            yield from _emptied(value, field.type, place)


def _nulls(config: JSON, defaults: JSON, path: tuple[str, ...] = ("config",)) -> Iterator[tuple[str, ...]]:
    """Return the keys of the operator's configuration that are empty, and not to take a default of the chart away."""
    for key, value in config.items():
        place = (*path, key)
        if value is None and key not in defaults:
            yield place
        elif isinstance(value, dict):
            yield from _nulls(value, defaults.get(key) or {}, place)


def _empty_sections(values: JSON) -> Iterator[tuple[str, ...]]:
    for process, sections in SECTIONS.items():
        config = (values.get(process) or {}).get("config") or {}
        for section in sections:
            place, found = (process, "config", section), config.get(section, {})
            if found is None:
                yield place
            elif isinstance(found, dict):
                yield from ((*place, key) for key, value in found.items() if value is None)


def _is_needed(field: msgspec.structs.FieldInfo) -> bool:
    """Tell whether there is no installation without it: parts of parts, what processes are told, numbers, switches."""
    if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
        return True
    return field.encode_name == "config" or (isinstance(field.default, int | str) and field.default != "")


def merged(defaults: JSON, changes: JSON) -> JSON:
    """Return values with changes made to them as Helm makes them: mappings key by key, all else as a whole."""
    result = copy.deepcopy(defaults)
    for key, value in changes.items():
        both = isinstance(result.get(key), dict) and isinstance(value, dict)
        result[key] = merged(result[key], value) if both else value
    return {key: value for key, value in result.items() if value is not None}


def schema() -> JSON:
    """Return the JSON schema of the values, for ``values.schema.json``; a word that does not exist is an error."""
    made = _strict(msgspec.json.schema(Values))
    for kind in _parts(_Part):
        needed = [field.encode_name for field in msgspec.structs.fields(kind) if _is_needed(field)]
        if kind.__name__ in made["$defs"]:
            made["$defs"][kind.__name__]["required"] += needed
    for process, sections in SECTIONS.items():
        kind_of = made["$defs"]["Values"]["properties"][process]["$ref"].rpartition("/")[2]
        config = made["$defs"][kind_of]["properties"]["config"]
        section = {"type": "object", "additionalProperties": {"not": {"type": "null"}}}
        config["properties"] = dict.fromkeys(sections, section)
    return {"$schema": "http://json-schema.org/draft-07/schema#", **made}


def _parts(kind: type[_Part]) -> Iterator[type[_Part]]:
    for each in kind.__subclasses__():
        yield each
        yield from _parts(each)


def _strict(part: Any) -> Any:
    if isinstance(part, list):
        return [_strict(each) for each in part]
    if not isinstance(part, dict):
        return part
    found = {key: _strict(value) for key, value in part.items() if key not in ("format", "default", "properties")}
    if isinstance(found.get("description"), str):
        found["description"] = cleandoc(found["description"])  # as compilers from 3.13 on leave a docstring
    if "properties" in part:
        found["properties"] = {name: _strict(value) for name, value in part["properties"].items()}
        found["additionalProperties"] = False
    return found
