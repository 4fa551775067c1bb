"""Where a suspended workload stands before its gang is made up: the same queue and priority as its gang will have."""

from datetime import UTC, datetime

import msgspec
import pytest

from spinney.api.resource import Resource
from spinney.api.struct import JSON
from spinney.gangs.sources.context import SourceContext
from spinney.queueing.suspended import SuspendedWorkload
from spinney.queueing.virtual_gang import virtual_gang

PRIORITIES = {"urgent": 90, "train": 50}
POD: JSON = {
    "metadata": {"labels": {"kai.scheduler/node-pool": "a100"}},
    "spec": {
        "schedulerName": "spinney-scheduler",
        "priorityClassName": "urgent",
        "containers": [{"name": "c", "image": "i"}],
    },
}
SPECS: dict[str, JSON] = {
    "batch/v1/Job": {"suspend": True, "template": POD},
    "jobset.x-k8s.io/v1alpha2/JobSet": {
        "suspend": True,
        "replicatedJobs": [{"name": "a", "replicas": 1, "template": {"spec": {"template": POD}}}],
    },
}


@pytest.mark.parametrize("kind", SPECS)
@pytest.mark.parametrize(
    "labels",
    [{}, {"project": "vision"}, {"project": "vision", "kai.scheduler/queue": "q"}, {"priorityClassName": "train"}],
    ids=["nothing", "project", "queue", "priority"],
)
def test_it_is_that_of_its_gang(kind: str, labels: dict[str, str]) -> None:
    """Whichever way queue and priority are said, it waits among those that it competes with."""
    api_version, _, name = kind.rpartition("/")
    metadata = {"name": "w", "namespace": "ns", "uid": "u", "labels": labels}
    manifest = {"apiVersion": api_version, "kind": name, "metadata": metadata, "spec": SPECS[kind]}
    workload = msgspec.json.decode(msgspec.json.encode(manifest), type=SuspendedWorkload)
    place = workload.place(SourceContext(priorities=PRIORITIES))
    gang = virtual_gang(manifest, (), names=["spinney-scheduler"], priorities=PRIORITIES, born=datetime.now(UTC)).gang
    expected = (gang.metadata.labels["kai.scheduler/queue"], PRIORITIES[gang.spec.priority_class_name or ""])
    assert (place.queue, place.priority) == expected


def test_a_spec_that_is_nested_without_end_is_read_without_its_depths() -> None:
    """Where a CRD has no schema a spec has any depth; nobody else waits longer for that."""
    deep = b"[" * 5000 + b"]" * 5000
    workload = SuspendedWorkload(spec=msgspec.Raw(b'{"deep":%b,"suspend":true}' % deep))
    assert workload.waits
    assert workload.manifest(Resource("batch", "v1", "Job", "jobs"))["spec"]["suspend"] is True
