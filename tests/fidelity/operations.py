"""Random operations on a few objects: what is sent to both servers by the state machine."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from spinney.api.struct import JSON
from tests.fidelity.exchanges import GEARS, Exchange
from tests.server.api import APPLY, JSON_PATCH, MERGE, STRATEGIC

_CORE = "/api/v1/namespaces/{ns}"
NAMES = ("a", "b", "c")
MANAGERS = ("m1", "m2")


@dataclass(frozen=True)
class Subject:
    """A kind that operations are about: where it lives, and strategies for its content."""

    api_version: str
    kind: str
    path: str
    content: st.SearchStrategy[JSON]  # of a whole object, but for its metadata
    change: st.SearchStrategy[JSON]  # of a merge patch
    last: JSON  # an object that ends a stream of events
    status: st.SearchStrategy[JSON] | None = None
    custom: bool = False
    paths: tuple[str, ...] = ()  # for JSON patches
    values: st.SearchStrategy[Any] = field(default_factory=lambda: st.sampled_from(["x", "y"]))


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[JSON]:
    """Return objects that have some of the fields."""
    return st.fixed_dictionaries({}, optional=fields)


_LETTER = st.sampled_from(["x", "y"])
_LABELS = st.dictionaries(st.sampled_from(["l1", "l2"]), _LETTER, max_size=2)
_NULLABLE_LABELS = st.dictionaries(st.sampled_from(["l1", "l2"]), _LETTER | st.none(), max_size=2)
_FINALIZERS = st.lists(st.sampled_from(["example.com/f", "example.com/g"]), max_size=2, unique=True)
_DATA = st.dictionaries(st.sampled_from(["k1", "k2"]), _LETTER, max_size=2)
_NULLABLE_DATA = st.dictionaries(st.sampled_from(["k1", "k2"]), _LETTER | st.none(), max_size=2)

_ENV = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from(["E", "F"]), "value": _LETTER}),
    max_size=2,
    unique_by=lambda each: each["name"],
)
_CONTAINER = st.fixed_dictionaries(
    {"name": st.sampled_from(["c", "d"]), "image": st.sampled_from(["i:1", "i:2"])},
    optional={"env": _ENV, "args": st.lists(_LETTER, max_size=2)},
)
_CONTAINERS = st.lists(_CONTAINER, min_size=1, max_size=2, unique_by=lambda each: each["name"])
_CONDITION = st.fixed_dictionaries(
    {"type": st.sampled_from(["Ready", "Other"]), "status": st.sampled_from(["True", "False"])}
)
_PART = st.fixed_dictionaries({"name": st.sampled_from(["p", "q"])}, optional={"v": st.integers(0, 2)})
_GEAR_SPEC: dict[str, st.SearchStrategy[Any]] = {
    "min": st.integers(0, 3),
    "replicas": st.integers(1, 3),
    "mode": st.sampled_from(["a", "b", "wrong"]),
    "tags": st.lists(_LETTER, max_size=2),
    "parts": st.lists(_PART, max_size=2),
    "free": st.dictionaries(_LETTER, st.integers(0, 1), max_size=1),
    "note": st.none() | _LETTER,
}
_BACKEND = {"service": {"name": "s", "port": {"number": 80}}}

MAPS = Subject(
    "v1",
    "ConfigMap",
    f"{_CORE}/configmaps",
    content=some(data=_DATA, immutable=st.sampled_from([False, False, True])),
    change=some(data=_NULLABLE_DATA | st.none(), immutable=st.booleans()),
    last={"metadata": {"name": "z"}},
    paths=("/data", "/data/k1", "/metadata/labels/l1", "/metadata/labels", "/metadata/finalizers/-", "/nowhere/at"),
)
PODS = Subject(
    "v1",
    "Pod",
    f"{_CORE}/pods",
    content=st.fixed_dictionaries(
        {
            "spec": st.fixed_dictionaries(
                {"containers": _CONTAINERS, "schedulerName": st.just("nobody")},
                optional={
                    "schedulingGates": st.just([{"name": "example.com/g"}]),
                    "nodeSelector": _DATA,
                    "priorityClassName": st.just("none"),
                },
            )
        }
    ),
    change=some(
        spec=some(
            containers=_CONTAINERS,
            activeDeadlineSeconds=st.integers(0, 2),
            schedulingGates=st.just([]),
            nodeSelector=_NULLABLE_DATA,
            tolerations=st.just([{"key": "k", "operator": "Exists"}]),
        )
    ),
    last={"metadata": {"name": "z"}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    status=some(
        phase=st.sampled_from(["Pending", "Running"]),
        conditions=st.lists(_CONDITION, max_size=2, unique_by=lambda each: each["type"]),
    ),
    paths=("/spec/containers/0/image", "/metadata/labels/l1", "/spec/containers/1", "/spec/nodeName"),
    values=st.sampled_from(["i:1", "i:3"]),
)
GEAR_KIND = Subject(
    "parity.example.com/v1",
    "Gear",
    GEARS,
    content=st.fixed_dictionaries({"spec": some(**_GEAR_SPEC)}),
    change=some(spec=some(**_GEAR_SPEC, unknown=_LETTER)),
    last={"apiVersion": "parity.example.com/v1", "kind": "Gear", "metadata": {"name": "z"}, "spec": {"min": 1}},
    status=some(replicas=st.integers(0, 2), unknown=_LETTER),
    custom=True,
    paths=("/spec/min", "/spec/parts/0", "/spec/tags/-", "/spec/note"),
    values=st.integers(0, 3) | _LETTER,
)
INGRESSES = Subject(
    "networking.k8s.io/v1",
    "Ingress",
    "/apis/networking.k8s.io/v1/namespaces/{ns}/ingresses",
    content=st.fixed_dictionaries(
        {"spec": some(defaultBackend=st.just(_BACKEND), ingressClassName=_LETTER, tls=st.just([{"hosts": ["h"]}]))}
    ),
    change=some(spec=some(ingressClassName=_LETTER | st.none(), defaultBackend=st.none() | st.just(_BACKEND))),
    last={"metadata": {"name": "z"}, "spec": {"defaultBackend": _BACKEND}},
    status=some(loadBalancer=some(ingress=st.just([{"ip": "10.0.0.1"}]))),
    paths=("/spec/ingressClassName", "/spec/tls", "/status/loadBalancer"),
)
SUBJECTS = (MAPS, PODS, GEAR_KIND, INGRESSES)


def metadata(name: str) -> st.SearchStrategy[JSON]:
    """Return metadata of an object with a name; some have an owner."""
    owner = st.sampled_from(NAMES).map(
        lambda owner: [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "name": owner,
                "uid": f"@uid:ConfigMap/{owner}!",
                "blockOwnerDeletion": True,
            }
        ]
    )
    return st.fixed_dictionaries(
        {"name": st.just(name)},
        optional={"labels": _LABELS, "annotations": _LABELS, "finalizers": _FINALIZERS, "ownerReferences": owner},
    )


def _query(**optional: st.SearchStrategy[str]) -> st.SearchStrategy[Mapping[str, str]]:
    return st.fixed_dictionaries({"fieldManager": st.sampled_from(MANAGERS)}, optional=optional)


_DRY = st.just("All")
_VALIDATION = st.sampled_from(["Ignore", "Warn", "Strict"])


@st.composite
def creating(draw: st.DrawFn) -> Exchange:
    """Return a create request."""
    subject = draw(st.sampled_from(SUBJECTS))
    name = draw(st.sampled_from(NAMES))
    body = {"metadata": draw(metadata(name)), **draw(subject.content)}
    if subject.custom or draw(st.booleans()):
        body |= {"apiVersion": subject.api_version, "kind": subject.kind}
    return Exchange("POST", subject.path, body, query=draw(_query(dryRun=_DRY, fieldValidation=_VALIDATION)))


@st.composite
def replacing(draw: st.DrawFn) -> Exchange:
    """Return a replace request, of the newest version, of none, or of an old one."""
    subject = draw(st.sampled_from(SUBJECTS))
    name = draw(st.sampled_from(NAMES))
    about = draw(metadata(name))
    version = draw(st.sampled_from(["", f"@rv:{subject.kind}/{name}!", "1"]))
    if version:
        about["resourceVersion"] = version
    body = {"apiVersion": subject.api_version, "kind": subject.kind, "metadata": about, **draw(subject.content)}
    below = ""
    if subject.status is not None and draw(st.booleans()):
        below, body["status"] = "/status", draw(subject.status)
    return Exchange("PUT", f"{subject.path}/{name}{below}", body, query=draw(_query(dryRun=_DRY)))


@st.composite
def merging(draw: st.DrawFn) -> Exchange:
    """Return a merge patch or strategic merge patch, of the object or its status."""
    subject = draw(st.sampled_from(SUBJECTS))
    name = draw(st.sampled_from(NAMES))
    body: JSON = {**draw(subject.change)}
    if draw(st.booleans()):
        body["metadata"] = draw(some(labels=_NULLABLE_LABELS, finalizers=_FINALIZERS | st.none()))
    below = ""
    if subject.status is not None and draw(st.booleans()):
        below, body["status"] = draw(st.sampled_from(["", "/status"])), draw(subject.status)
    kind = draw(st.sampled_from([MERGE, STRATEGIC]))
    query = draw(_query(dryRun=_DRY, fieldValidation=_VALIDATION))
    return Exchange("PATCH", f"{subject.path}/{name}{below}", body, kind, query)


@st.composite
def json_patching(draw: st.DrawFn) -> Exchange:
    """Return a JSON patch of one or two operations."""
    subject = draw(st.sampled_from(SUBJECTS))
    operations = []
    for _ in range(draw(st.integers(1, 2))):
        operation: JSON = {
            "op": draw(st.sampled_from(["add", "replace", "remove", "test"])),
            "path": draw(st.sampled_from(subject.paths)),
        }
        if operation["op"] != "remove":
            operation["value"] = draw(subject.values)
        operations.append(operation)
    name = draw(st.sampled_from(NAMES))
    return Exchange("PATCH", f"{subject.path}/{name}", operations, JSON_PATCH, draw(_query(dryRun=_DRY)))


@st.composite
def applying(draw: st.DrawFn) -> Exchange:
    """Return a server-side apply, of the object or its status."""
    subject = draw(st.sampled_from(SUBJECTS))
    name = draw(st.sampled_from(NAMES))
    body: JSON = {
        "apiVersion": subject.api_version,
        "kind": subject.kind,
        "metadata": {"name": name, **draw(some(labels=_LABELS))},
    }
    below = ""
    if subject.status is not None and draw(st.integers(0, 3)) == 0:
        below, body["status"] = "/status", draw(subject.status)
    else:
        body |= draw(subject.content)
    query = draw(_query(dryRun=_DRY, force=st.just("true")))
    return Exchange("PATCH", f"{subject.path}/{name}{below}", body, APPLY, query)


@st.composite
def deleting(draw: st.DrawFn) -> Exchange:
    """Return a delete request."""
    subject = draw(st.sampled_from(SUBJECTS))
    name = draw(st.sampled_from(NAMES))
    known = f"{subject.kind}/{name}!"
    options = draw(
        some(
            propagationPolicy=st.sampled_from(["Background", "Foreground", "Orphan"]),
            gracePeriodSeconds=st.sampled_from([0, 5]),
            preconditions=some(
                uid=st.sampled_from([f"@uid:{known}", "other"]),
                resourceVersion=st.sampled_from([f"@rv:{known}", "1"]),
            ),
            dryRun=st.just(["All"]),
        )
    )
    return Exchange("DELETE", f"{subject.path}/{name}", options or None)


@st.composite
def deleting_many(draw: st.DrawFn) -> Exchange:
    """Return a request that deletes what a selector finds."""
    subject = draw(st.sampled_from(SUBJECTS))
    return Exchange("DELETE", subject.path, None, query={"labelSelector": f"l1={draw(_LETTER)}"})


@st.composite
def listing(draw: st.DrawFn) -> Exchange:
    """Return a list request, whole, selected, or a page."""
    subject = draw(st.sampled_from(SUBJECTS))
    query = draw(
        some(
            labelSelector=st.sampled_from(["l1=x", "l1!=x", "l1 in (x,y),!l2", "l2", "l1 notin (x)"]),
            fieldSelector=st.sampled_from(["metadata.name=a", "metadata.name!=a", "status.phase=Pending", "bad=1"]),
            limit=st.sampled_from(["1", "2", "500"]),
            **{"continue": st.just("@next")},
        )
    )
    return Exchange("GET", subject.path, query=query)


@st.composite
def reading(draw: st.DrawFn) -> Exchange:
    """Return a request for one object or its status."""
    subject = draw(st.sampled_from(SUBJECTS))
    below = draw(st.sampled_from(["", "/status"])) if subject.status is not None else ""
    return Exchange("GET", f"{subject.path}/{draw(st.sampled_from(NAMES))}{below}")
