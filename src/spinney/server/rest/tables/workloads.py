"""The columns of deployments and their like: what runs in them, and how far they are."""

from datetime import datetime
from typing import Any

from spinney.api.selectors import LabelSelector
from spinney.api.struct import JSON, convert
from spinney.server.rest.tables.columns import AGE, NAME, Column, at, field, named
from spinney.server.rest.tables.durations import age

_NONE = "<none>"


def equalities(labels: Any) -> str:
    """Return labels as a selector, ``a=b,c=d``."""
    return ",".join(f"{name}={value}" for name, value in sorted((labels or {}).items())) or _NONE


def selected(selector: Any) -> str:
    """Return a label selector in the form people type."""
    return str(convert(LabelSelector, selector or {})) or _NONE


def _containers(path: str) -> tuple[Column, Column]:
    def joined(name: str) -> Any:
        return lambda obj, _: ",".join(str(each.get(name, "")) for each in at(obj, f"{path}.containers", ()))

    return Column("Containers", joined("name"), priority=1), Column("Images", joined("image"), priority=1)


def _job_status(job: JSON, _: datetime) -> str:
    true = {each.get("type") for each in at(job, "status.conditions", ()) if each.get("status") == "True"}
    for condition in ("Complete", "Failed", "Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if condition in true:
            return condition
    return "Terminating" if job["metadata"].get("deletionTimestamp") else "Running"


def _completions(job: JSON, _: datetime) -> str:
    done, wanted = at(job, "status.succeeded", 0), at(job, "spec.completions")
    if wanted is not None:
        return f"{done}/{wanted}"
    workers = at(job, "spec.parallelism", 1)
    return f"{done}/1 of {workers}" if workers > 1 else f"{done}/1"


def _duration(job: JSON, now: datetime) -> str:
    started = at(job, "status.startTime")
    return age(started, now) if started else ""


def _last_schedule(job: JSON, now: datetime) -> str:
    when = at(job, "status.lastScheduleTime")
    return age(when, now) if when else _NONE


def _controller(obj: JSON, _: datetime) -> str:
    owners = [each for each in obj["metadata"].get("ownerReferences") or () if each.get("controller")]
    if not owners:
        return _NONE
    group = str(owners[0].get("apiVersion", "")).rpartition("/")[0]
    kind = str(owners[0].get("kind", "")).lower()
    return f"{kind}.{group}/{owners[0].get('name')}" if group else f"{kind}/{owners[0].get('name')}"


def _counted(*names: tuple[str, str]) -> tuple[Column, ...]:
    return tuple(field(name, path, 0, kind="integer") for name, path in names)


_TEMPLATE = _containers("spec.template.spec")
_SELECTED = Column("Selector", lambda obj, _: selected(at(obj, "spec.selector")), priority=1)
_EQUAL = Column("Selector", lambda obj, _: equalities(at(obj, "spec.selector")), priority=1)
_READY = Column("Ready", lambda obj, _: f"{at(obj, 'status.readyReplicas', 0)}/{at(obj, 'spec.replicas', 1)}")
_SCALED = _counted(("Desired", "spec.replicas"), ("Current", "status.replicas"), ("Ready", "status.readyReplicas"))

WORKLOADS: dict[str, tuple[Column, ...]] = {
    "deployments.apps": (
        NAME,
        _READY,
        field("Up-to-date", "status.updatedReplicas", 0),
        field("Available", "status.availableReplicas", 0),
        AGE,
        *_TEMPLATE,
        _SELECTED,
    ),
    "statefulsets.apps": (NAME, _READY, AGE, *_TEMPLATE),
    "daemonsets.apps": (
        NAME,
        *_counted(
            ("Desired", "status.desiredNumberScheduled"),
            ("Current", "status.currentNumberScheduled"),
            ("Ready", "status.numberReady"),
            ("Up-to-date", "status.updatedNumberScheduled"),
            ("Available", "status.numberAvailable"),
        ),
        Column("Node Selector", lambda obj, _: equalities(at(obj, "spec.template.spec.nodeSelector"))),
        AGE,
        *_TEMPLATE,
        _SELECTED,
    ),
    "replicasets.apps": (NAME, *_SCALED, AGE, *_TEMPLATE, _SELECTED),
    "replicationcontrollers": (NAME, *_SCALED, AGE, *_TEMPLATE, _EQUAL),
    "podtemplates": (
        NAME,
        *(Column(each.name, each.cell) for each in _containers("template.spec")),
        Column("Pod Labels", lambda obj, _: equalities(at(obj, "template.metadata.labels"))),
    ),
    "jobs.batch": (
        NAME,
        Column("Status", _job_status),
        Column("Completions", _completions),
        Column("Duration", _duration),
        AGE,
        *_TEMPLATE,
        _SELECTED,
    ),
    "cronjobs.batch": (
        NAME,
        field("Schedule", "spec.schedule", ""),
        field("Timezone", "spec.timeZone"),
        Column("Suspend", lambda obj, _: str(at(obj, "spec.suspend", False)), type="boolean"),
        Column("Active", lambda obj, _: len(at(obj, "status.active", ())), type="integer"),
        Column("Last Schedule", _last_schedule),
        AGE,
        *_containers("spec.jobTemplate.spec.template.spec"),
        Column("Selector", lambda obj, _: selected(at(obj, "spec.jobTemplate.spec.selector")), priority=1),
    ),
    "controllerrevisions.apps": named(
        Column("Controller", _controller),
        field("Revision", "revision", 0),
    ),
}
