"""Whatever a client sends, the server answers: with a result, or with an error that blames the request."""

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.server.api import (
    APPLY,
    CONFIG_MAPS,
    DEFINITIONS,
    JSON_PATCH,
    MERGE,
    NODES,
    PODS,
    STRATEGIC,
    WIDGETS,
    Api,
    a_definition,
    an_api,
)

_SCALARS = st.none() | st.booleans() | st.integers(-2, 10) | st.text("ab-", max_size=3) | st.floats(0, 2)
_NAMES = st.sampled_from(
    (
        "metadata",
        "name",
        "namespace",
        "labels",
        "finalizers",
        "ownerReferences",
        "uid",
        "spec",
        "status",
        "containers",
        "resources",
        "limits",
        "target",
        "kind",
        "schedulingGates",
        "tolerations",
        "volumes",
        "conditions",
        "nodeName",
        "priority",
        "template",
        "selector",
        "webhooks",
        "value",
        "replicas",
    )
)
_JSON = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=5), max_leaves=25
)
_COLLECTIONS = (
    PODS,
    NODES,
    CONFIG_MAPS,
    WIDGETS,
    "/api/v1/namespaces",
    "/api/v1/namespaces/default/services",
    "/api/v1/namespaces/default/secrets",
    "/api/v1/namespaces/default/events",
    "/api/v1/namespaces/default/persistentvolumeclaims",
    "/apis/apps/v1/namespaces/default/deployments",
    "/apis/batch/v1/namespaces/default/jobs",
    "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
    "/apis/scheduling.k8s.io/v1/priorityclasses",
    "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups",
    "/apis/scheduling.k8s.io/v1beta1/namespaces/default/workloads",
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
    DEFINITIONS,
)
_SUBRESOURCES = ("", "/status", "/binding", "/eviction", "/scale", "/nothing")
_OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "fieldManager": st.just("m"),
        "force": st.just("true"),
        "labelSelector": st.text("ab=!,() ", max_size=6),
        "fieldSelector": st.text("ab=.!,", max_size=6),
        "limit": st.sampled_from(["1", "-1", "x"]),
        "continue": st.text("abc", max_size=4),
        "resourceVersion": st.sampled_from(["0", "1", "110", "x"]),
        "gracePeriodSeconds": st.sampled_from(["0", "x"]),
        "propagationPolicy": st.sampled_from(["Orphan", "Foreground", "x"]),
        "dryRun": st.sampled_from(["All", "x"]),
    },
)


def _object(content: Any) -> Any:
    """Give most objects a name, so that they get past the first check."""
    if isinstance(content, dict) and isinstance(content.get("metadata", {}), dict):
        return {**content, "metadata": {**content.get("metadata", {}), "name": "a"}}
    return content


@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE"]),
            st.sampled_from(_COLLECTIONS),
            st.booleans(),
            st.sampled_from(_SUBRESOURCES),
            _JSON.map(_object),
            st.sampled_from([MERGE, STRATEGIC, JSON_PATCH, APPLY, "application/json"]),
            _OPTIONS,
        ),
        min_size=1,
        max_size=6,
    )
)
async def test_no_request_is_the_servers_fault(steps: list[Any]) -> None:
    """Random requests never end in an internal error."""
    api = an_api()
    await api.create(DEFINITIONS, a_definition())
    for method, collection, named, subresource, body, content_type, query in steps:
        path = f"{collection}/a{subresource}" if named else collection
        answer = await api.send(method, path, body, query=query, headers={"content-type": content_type})
        assert answer.status != 500, (method, path, body, answer.body)


_VALID: dict[str, Any] = {
    PODS: {
        "metadata": {"name": "a", "labels": {"a": "b"}, "annotations": {"a": "b"}, "finalizers": ["example.com/a"]},
        "spec": {
            "containers": [
                {
                    "name": "c",
                    "image": "i",
                    "ports": [{"containerPort": 1}],
                    "env": [{"name": "A"}],
                    "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}},
                }
            ],
            "schedulingGates": [{"name": "g"}],
            "tolerations": [{"key": "k", "operator": "Exists"}],
            "volumes": [{"name": "v"}],
            "topologySpreadConstraints": [{"topologyKey": "z"}],
            "priorityClassName": "system-node-critical",
        },
    },
    NODES: {"metadata": {"name": "a"}, "spec": {"taints": [{"key": "k"}]}, "status": {"capacity": {"cpu": "1"}}},
    WIDGETS: {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"a": [{"b": 1}]}},
    "/api/v1/namespaces/default/services": {"metadata": {"name": "a"}, "spec": {"ports": [{"port": 1}]}},
    "/api/v1/namespaces/default/secrets": {"metadata": {"name": "a"}, "stringData": {"a": "b"}, "data": {"c": "ZA=="}},
    "/apis/apps/v1/namespaces/default/deployments": {
        "metadata": {"name": "a"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "1"}}}]}},
        },
    },
    "/apis/policy/v1/namespaces/default/poddisruptionbudgets": {
        "metadata": {"name": "a"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}, "matchExpressions": []}},
    },
    "/apis/scheduling.k8s.io/v1/priorityclasses": {"metadata": {"name": "a"}, "value": 1, "globalDefault": True},
    "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups": {
        "metadata": {"name": "a"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 1}}, "schedulingConstraints": {"topology": [{"key": "k"}]}},
    },
    "/apis/scheduling.k8s.io/v1beta1/namespaces/default/workloads": {
        "metadata": {"name": "a"},
        "spec": {"podGroupTemplates": [{"name": "a", "schedulingPolicy": {"gang": {"minCount": 1}}}]},
    },
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations": {
        "metadata": {"name": "a"},
        "webhooks": [
            {
                "name": "w",
                "clientConfig": {"service": {"name": "s", "namespace": "n"}},
                "rules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["nodes"]}],
                "namespaceSelector": {"matchLabels": {"a": "b"}},
                "timeoutSeconds": 1,
                "failurePolicy": "Ignore",
            }
        ],
    },
    DEFINITIONS: {**a_definition(), "metadata": {"name": "widgets.example.com"}},
}


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(each for name, child in children for each in _paths(child, (*path, name)))]


def _with(value: Any, path: tuple[Any, ...], other: Any) -> Any:
    if not path:
        return other
    if isinstance(value, dict):
        return {name: _with(child, path[1:], other) if name == path[0] else child for name, child in value.items()}
    return [_with(child, path[1:], other) if index == path[0] else child for index, child in enumerate(value)]


@st.composite
def _nearly_valid(draw: st.DrawFn) -> tuple[str, Any]:
    """A valid object in which one value is replaced by another one, mostly of a wrong type."""
    collection = draw(st.sampled_from(sorted(_VALID)))
    path = draw(st.sampled_from(_paths(_VALID[collection])))
    return collection, _with(_VALID[collection], path, draw(_JSON))


@settings(max_examples=examples(150), deadline=None, phases=(Phase.explicit, Phase.generate))
@given(nearly=_nearly_valid(), patch=st.sampled_from([MERGE, STRATEGIC, APPLY]))
async def test_a_wrong_type_is_the_clients_fault(nearly: tuple[str, Any], patch: str) -> None:
    """An object that is right but for one value is stored or refused, created or patched; then all goes on."""
    collection, obj = nearly
    api = an_api()
    await api.create(DEFINITIONS, a_definition())
    if collection != DEFINITIONS:
        await api.send("POST", collection, _VALID[collection])
    name = "widgets.example.com" if collection == DEFINITIONS else "a"
    for method, path, kind in (
        ("PATCH", f"{collection}/{name}", patch),
        ("PUT", f"{collection}/{name}", "application/json"),
        ("DELETE", f"{collection}/{name}", "application/json"),
        ("POST", collection, "application/json"),
        ("PATCH", f"{collection}/{name}/status", patch),
    ):
        body = None if method == "DELETE" else obj
        answer = await api.send(method, path, body, query={"fieldManager": "m"}, headers={"content-type": kind})
        assert answer.status != 500, (method, path, body, answer.body)
    for path in (PODS, NODES, collection):
        accept = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
        assert (await api.send("GET", path, headers=accept)).status in {200, 404}
    await api.create(CONFIG_MAPS, {"metadata": {"name": "after"}})


@pytest.mark.parametrize("body", [b"\xff\xfe", b'{"a":' * 5000, b"[" * 100_000, b"- " * 5000, b"{a: &a [*a]}", b'"x"'])
@pytest.mark.parametrize("content_type", ["application/json", "application/yaml", APPLY, MERGE])
async def test_undecodable_bodies_are_refused(api: Api, body: bytes, content_type: str) -> None:
    """A body that is no object gets a 400 (or 415), however it is broken."""
    for method, path in (("POST", CONFIG_MAPS), ("PATCH", f"{CONFIG_MAPS}/a")):
        headers = {"content-type": content_type}
        answer = await api.send(method, path, body, headers=headers, query={"fieldManager": "m"})
        assert answer.status in {400, 404, 415}, answer.body


async def test_an_index_of_any_length_is_the_clients_fault(api: Api) -> None:
    """A JSON patch may name an item that no list could have."""
    await api.create(PODS, {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    patch = [{"op": "remove", "path": "/spec/containers/" + "9" * 5000}]
    answer = await api.send("PATCH", f"{PODS}/a", patch, headers={"content-type": JSON_PATCH})
    assert answer.status == 422, answer.body
