"""The client's verbs, against a real HTTP server: what is sent, and what comes back."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from spinney.api.core import NODE, POD, Pod
from spinney.kube.client import Client, PatchKind
from spinney.kube.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Conflict,
    Contended,
    Expired,
    Forbidden,
    Invalid,
    NotFound,
    ServerTimeout,
    TooManyRequests,
    UndecodableResponse,
)
from spinney.kube.http import Endpoint, HttpTransport
from spinney.kube.retrying import NEVER, RetryPolicy
from spinney.kube.warning_headers import warnings_in
from spinney.runtime import Runtime
from tests.kube.model import status_body
from tests.kube.tinyserver import TinyServer, serving

A_POD = {
    "kind": "Pod",
    "metadata": {"name": "a", "namespace": "x"},
    "spec": {"nodeName": "n1", "unheardOf": {"kept": True}},
}

DONE = {"kind": "Status", "metadata": {"name": "a"}, "status": "Success"}


@asynccontextmanager
async def connected(retry: RetryPolicy = NEVER) -> AsyncIterator[tuple[Client, TinyServer]]:
    """Yield a client and the server it talks to."""
    async with serving() as server:
        client = Client(HttpTransport(Endpoint(server.url)), Runtime.virtual(), retry=retry)
        try:
            yield client, server
        finally:
            await client.close()


def answering(*answers: tuple[int, Any]) -> Callable[[web.BaseRequest], Any]:
    """Answer with these statuses and bodies, one after the other."""
    left = list(answers)

    async def answer(_: web.BaseRequest) -> web.StreamResponse:
        status, body = left.pop(0)
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        return web.Response(status=status, body=raw)

    return answer


async def test_reading_keeps_what_it_does_not_know() -> None:
    """An object read without a type is JSON with nothing lost; with a type it is that type."""
    async with connected() as (client, server):
        server.answer = answering((200, A_POD), (200, A_POD))
        assert (await client.get(POD, "a", "x"))["spec"]["unheardOf"] == {"kept": True}
        pod = await client.get(POD, "a", "x", type=Pod)
        assert pod.spec.node_name == "n1"
        assert server.requests[0].path == "/api/v1/namespaces/x/pods/a"


async def test_lists_follow_the_pages() -> None:
    """A long collection is read page by page, all of them with the same selectors."""
    async with connected() as (client, server):
        server.answer = answering(
            (200, {"metadata": {"resourceVersion": "9", "continue": "next"}, "items": [A_POD]}),
            (200, {"metadata": {"resourceVersion": "9"}, "items": [A_POD, A_POD]}),
        )
        listing = await client.list(POD, label_selector="a=b", field_selector="spec.nodeName=n1", limit=1)
        assert (len(listing.items), listing.resource_version) == (3, "9")
        first, second = (dict(request.query) for request in server.requests)
        assert first == {"labelSelector": "a=b", "fieldSelector": "spec.nodeName=n1", "limit": "1"}
        assert second == {**first, "continue": "next"}


async def test_a_list_that_expires_between_pages_is_read_in_one_piece() -> None:
    """When the continue token is too old, everything is asked for at once."""
    async with connected() as (client, server):
        server.answer = answering(
            (200, {"metadata": {"resourceVersion": "9", "continue": "next"}, "items": [A_POD]}),
            (410, status_body(410, "Expired", "too old")),
            (200, {"metadata": {"resourceVersion": "12"}, "items": [A_POD]}),
        )
        listing = await client.list(POD)
        assert (len(listing.items), listing.resource_version) == (1, "12")
        assert "limit" not in server.requests[2].query


async def test_a_misspelt_selector_is_refused() -> None:
    """A word that is no selector does not come to mean every object, least of all in a deletion."""
    wrong: dict[str, Any] = {"lable_selector": "a=b"}
    async with connected() as (client, server):
        for request in (client.list(POD, **wrong), client.delete_collection(POD, "x", **wrong)):
            with pytest.raises(TypeError, match="'lable_selector'; expected any of field_selector, label_selector"):
                await request
        with pytest.raises(TypeError, match="'lable_selector'"):
            await anext(aiter(client.watch(POD, **wrong)))
        assert not server.requests


async def test_an_empty_list_may_be_null() -> None:
    """A server that answers with items null has none."""
    async with connected() as (client, server):
        server.answer = answering((200, {"metadata": {"resourceVersion": "1"}, "items": None}))
        assert (await client.list(NODE)).items == ()


async def test_writes_send_what_they_should() -> None:
    """Every verb uses its method, path, media type and parameters."""
    async with connected() as (client, server):
        pod = {"metadata": {"name": "a", "namespace": "x"}}
        await client.create(POD, pod, dry_run=True)
        await client.replace(POD, pod, subresource="status")
        await client.apply(POD, pod, field_manager="me", force=False)
        await client.patch(POD, "a", {"x": 1}, "x")
        await client.patch(POD, "a", [{"op": "remove", "path": "/x"}], "x", kind=PatchKind.JSON, subresource="status")
        await client.patch(POD, "a", {"x": 1}, "x", kind=PatchKind.STRATEGIC)
        await client.delete(POD, "a", "x", grace_period_seconds=0, propagation_policy="Foreground", uid="u1")
        await client.delete_collection(POD, "x", label_selector="a=b")
        sent = [
            (request.method, request.path, request.headers["content-type"].split("/")[1], dict(request.query))
            for request in server.requests
        ]
        manager = {"fieldManager": "spinney"}
        assert sent == [
            ("POST", "/api/v1/namespaces/x/pods", "json", {**manager, "dryRun": "All"}),
            ("PUT", "/api/v1/namespaces/x/pods/a/status", "json", manager),
            ("PATCH", "/api/v1/namespaces/x/pods/a", "apply-patch+yaml", {"fieldManager": "me", "force": "false"}),
            ("PATCH", "/api/v1/namespaces/x/pods/a", "merge-patch+json", manager),
            ("PATCH", "/api/v1/namespaces/x/pods/a/status", "json-patch+json", manager),
            ("PATCH", "/api/v1/namespaces/x/pods/a", "strategic-merge-patch+json", manager),
            ("DELETE", "/api/v1/namespaces/x/pods/a", "json", {}),
            ("DELETE", "/api/v1/namespaces/x/pods", "json", {"labelSelector": "a=b"}),
        ]


async def test_a_trusting_client_asks_for_no_search() -> None:
    """Its writes, and only its own, are not searched for fields that the server does not know."""
    async with connected() as (client, server):
        trusting = client.trusting()
        await trusting.patch(POD, "a", {"x": 1}, "x")
        await client.patch(POD, "a", {"x": 1}, "x")
        asked = [dict(request.query).get("fieldValidation") for request in server.requests]
        assert asked == ["Ignore", None]
        assert trusting.over(client.transport)._field_validation == "Ignore"


async def test_a_written_object_names_its_kind() -> None:
    """ApiVersion and kind come from the resource, and the caller's object is left as it was."""
    async with connected() as (client, server):
        pod = {"metadata": {"name": "a", "managedFields": [1]}}
        seen = await client.apply(POD, pod, "x")
        body = json.loads(seen["body"])
        assert body == {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}
        assert pod == {"metadata": {"name": "a", "managedFields": [1]}}
        with pytest.raises(ValueError, match=r"Pod 'a' is namespaced"):
            await client.create(POD, pod)
        assert len(server.requests) == 1


async def test_preconditions_of_a_deletion() -> None:
    """The uid and version a deletion is meant for are sent as preconditions."""
    bodies = []
    async with connected() as (client, server):

        async def note(request: web.BaseRequest) -> web.StreamResponse:
            bodies.append(json.loads(await request.read()))
            return web.json_response(DONE)

        server.answer = note
        await client.delete(POD, "a", "x", uid="u1", resource_version="7", grace_period_seconds=0)
        await client.delete(POD, "a", "x")
    assert bodies == [{"gracePeriodSeconds": 0, "preconditions": {"uid": "u1", "resourceVersion": "7"}}, {}]


async def test_nothing_is_deleted_without_a_name() -> None:
    """The path of an object without a name is that of all objects."""
    async with connected() as (client, server):
        with pytest.raises(ValueError, match="no name; without one the whole collection would be deleted"):
            await client.delete(POD, "", "x")
        assert server.requests == []


async def test_a_bind_does_not_read_the_answer_as_a_binding() -> None:
    """The API server answers a bind with a Status, which is success."""
    async with connected() as (client, server):
        server.answer = answering((201, {"kind": "Status", "status": "Success", "code": 201}))
        await client.bind("x", "a", "u1", "n1", annotations={"k": "v"})
        request = server.requests[0]
        assert (request.method, request.path) == ("POST", "/api/v1/namespaces/x/pods/a/binding")


async def test_what_a_bind_and_an_eviction_say() -> None:
    """A bind names pod, uid and node; an eviction its pod and options."""
    bodies = []
    async with connected() as (client, server):

        async def note(request: web.BaseRequest) -> web.StreamResponse:
            bodies.append(json.loads(await request.read()))
            return web.json_response(DONE, status=201)

        server.answer = note
        await client.bind("x", "a", "u1", "n1")
        await client.evict("x", "a", uid="u1", grace_period_seconds=5, dry_run=True)
    assert bodies[0]["metadata"] == {"name": "a", "namespace": "x", "uid": "u1"}
    assert bodies[0]["target"] == {"apiVersion": "v1", "kind": "Node", "name": "n1"}
    assert bodies[1]["deleteOptions"] == {
        "gracePeriodSeconds": 5, "preconditions": {"uid": "u1"}, "dryRun": ["All"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("code", "reason", "error"),
    [
        (400, "BadRequest", BadRequest),
        (403, "Forbidden", Forbidden),
        (404, "NotFound", NotFound),
        (409, "AlreadyExists", AlreadyExists),
        (409, "Conflict", Conflict),
        (410, "Expired", Expired),
        (422, "Invalid", Invalid),
        (429, "TooManyRequests", TooManyRequests),
        (504, "Timeout", ServerTimeout),
        (418, "Teapot", ApiError),
    ],
)
async def test_errors_carry_the_status(code: int, reason: str, error: type[ApiError]) -> None:
    """A refused request raises the error of its reason, with message, causes and when to come back."""
    causes = [{"field": "spec.x", "reason": "FieldValueInvalid", "message": "bad"}]
    async with connected() as (client, server):
        server.answer = answering((code, status_body(code, reason, "no", name="a", causes=causes, retryAfterSeconds=3)))
        with pytest.raises(ApiError, match="no") as caught:
            await client.get(POD, "a", "x")
    assert type(caught.value) is error
    assert (caught.value.status, caught.value.reason, caught.value.details.name) == (code, reason, "a")
    assert [cause.field for cause in caught.value.causes] == ["spec.x"]
    assert caught.value.has_cause("FieldValueInvalid")
    assert caught.value.retry_after == 3


async def test_an_error_that_is_not_a_status_still_says_something() -> None:
    """A gateway's HTML becomes an error that names the request, the code and what came."""
    async with connected() as (client, server):
        server.answer = answering((502, b"<html>bad gateway</html>"))
        with pytest.raises(ApiError, match=r"GET /api/v1/namespaces/x/pods/a answered 502: <html>bad gateway"):
            await client.get(POD, "a", "x")
        server.answer = answering((502, b'{"message":"caf\xe9"}'))
        with pytest.raises(ApiError, match=r'answered 502: {"message":"caf'):
            await client.get(POD, "a", "x")


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"404 page not found\n", id="custom"),
        pytest.param(
            {
                "kind": "Status",
                "code": 404,
                "reason": "NotFound",
                "message": "the server could not find the requested resource",
            },
            id="built in",
        ),
    ],
)
async def test_a_kind_that_is_not_served_is_told_from_an_object_that_is_not_there(body: object) -> None:
    """A CRD that went, or lost a version: the message names the request, says what is missing, and what to do."""
    async with connected() as (client, server):
        server.answer = answering((404, body))
        with pytest.raises(NotFound) as caught:
            await client.get(POD, "a", "x")
    assert str(caught.value) == (
        "GET /api/v1/namespaces/x/pods/a: the API server does not serve this kind, or this part of it, in this "
        "version; install a CustomResourceDefinition that has it, or switch on its API if it is Kubernetes' own"
    )


async def test_to_be_sent_elsewhere_is_to_be_refused() -> None:
    """A gateway that wants a login has bound no pod and watched nothing."""
    async with connected() as (client, server):
        server.answer = answering((302, b""), (302, b""))
        with pytest.raises(ApiError, match="pods/a/binding answered 302"):
            await client.bind("x", "a", None, "n1")
        with pytest.raises(ApiError, match="answered 302"):
            await anext(client.watch(POD))


async def test_an_answer_of_the_wrong_shape_is_named() -> None:
    """What does not decode as the type asked for is shown."""
    async with connected() as (client, server):
        server.answer = answering(
            (200, {"kind": "Pod", "metadata": {"name": "a"}, "spec": {"nodeName": 5}}),
            (200, b"nonsense"),
            (200, {"message": "maintenance"}),
            (200, {"metadata": {"resourceVersion": "9"}, "items": [A_POD, {"spec": {"nodeName": 7}}]}),
        )
        with pytest.raises(UndecodableResponse, match="did not answer with a Pod"):
            await client.get(POD, "a", "x", type=Pod)
        for _ in range(2):
            with pytest.raises(UndecodableResponse, match="did not answer with a list"):
                await client.list(POD)
        with pytest.raises(UndecodableResponse, match=r"does not have the expected shape.*nodeName"):
            await client.list(POD, type=Pod)


@pytest.mark.parametrize(
    "said",
    [
        b"<html>maintenance</html>",
        b'{"message":"maintenance"}',
        b'{"kind":"Pod","metadata":{"name":"b"}}',
        b'{"kind":"\xe9"}',
    ],
)
@pytest.mark.parametrize(
    "ask",
    [
        lambda client: client.get(POD, "a", "x", type=Pod),
        lambda client: client.create(POD, A_POD),
        lambda client: client.replace(POD, A_POD, subresource="status"),
        lambda client: client.apply(POD, A_POD),
        lambda client: client.patch(POD, "a", {}, "x", type=Pod),
        lambda client: client.bind("x", "a", "u1", "n1"),
        lambda client: client.evict("x", "a"),
    ],
    ids=["get", "create", "replace", "apply", "patch", "bind", "evict"],
)
async def test_what_a_gateway_says_is_no_object(ask: Callable[[Client], Awaitable[object]], said: bytes) -> None:
    """A 200 with a page, with JSON that is no object, or with another object, is no answer to what was asked."""
    async with connected() as (client, server):
        server.answer = answering((200, said))
        with pytest.raises(UndecodableResponse, match=r"/pods\S* did not answer with an? \w+"):
            await ask(client)


async def test_a_gateway_has_deleted_nothing() -> None:
    """A deletion is answered with the object or with a Status, and with nothing else."""
    async with connected() as (client, server):
        server.answer = answering((200, DONE), (200, A_POD), (200, b"<html>maintenance</html>"))
        await client.delete(POD, "a", "x")
        await client.delete(POD, "a", "x")
        with pytest.raises(UndecodableResponse, match=r"DELETE .* did not answer with an object"):
            await client.delete(POD, "a", "x")


@pytest.mark.parametrize(
    "write",
    [
        lambda client: client.delete(POD, "a", "x", uid="mine"),
        lambda client: client.evict("x", "a", uid="mine"),
        lambda client: client.patch(POD, "a", {"metadata": {"uid": "mine"}, "status": {}}, "x", subresource="status"),
    ],
    ids=["delete", "evict", "patch"],
)
async def test_only_another_object_of_the_name_is_a_conflict(write: Callable[[Client], Awaitable[object]]) -> None:
    """A write that names a uid and no version is sent again after somebody else wrote the object at the same moment."""
    raced = (409, status_body(409, "Conflict", "raced"))
    mine, other = ((200, {"kind": "Pod", "metadata": {"name": "a", "uid": uid}}) for uid in ("mine", "other"))
    async with connected(RetryPolicy(attempts=3, first_delay=0.0)) as (client, server):
        server.answer = answering(raced, mine, raced, mine, (200, DONE))
        await write(client)
        sent = [(each.method, each.path) for each in server.requests]
        assert sent[1] == ("GET", "/api/v1/namespaces/x/pods/a")
        assert sent == [sent[0], sent[1], sent[0], sent[1], sent[0]]

        server.answer = answering(raced, other)
        with pytest.raises(Conflict):
            await write(client)
        server.answer = answering(raced, (404, status_body(404, "NotFound", "gone")))
        with pytest.raises(NotFound):
            await write(client)
        server.answer = answering(raced, mine, raced, mine, raced, mine)
        with pytest.raises(Contended):
            await write(client)


async def test_a_patch_of_another_object_of_the_name_is_a_conflict_however_the_server_says_it() -> None:
    """API servers call the uid of another object an invalid field; other invalid fields stay what they are."""
    patch = {"metadata": {"uid": "mine"}}
    async with connected() as (client, server):
        for field, error in (("metadata.uid", Conflict), ("spec.nodeName", Invalid)):
            server.answer = answering((422, status_body(422, "Invalid", "no", causes=[{"field": field}])))
            with pytest.raises(error):
                await client.patch(POD, "a", patch, "x")


async def test_a_stale_version_is_a_conflict_at_once() -> None:
    """A write that names a version is for that version only."""
    async with connected(RetryPolicy(first_delay=0.0)) as (client, server):
        server.answer = answering(*[(409, status_body(409, "Conflict", "raced"))] * 2)
        with pytest.raises(Conflict):
            await client.delete(POD, "a", "x", uid="mine", resource_version="5")
        with pytest.raises(Conflict):
            await client.patch(POD, "a", {"metadata": {"uid": "mine", "resourceVersion": "5"}}, "x")
        assert len(server.requests) == 2


async def test_a_watch_yields_typed_events() -> None:
    """Events come as the type asked for; bookmarks are not shown, and the parameters are sent."""
    async with connected() as (client, server):
        lines = [{"type": "ADDED", "object": A_POD}, {"type": "BOOKMARK", "object": {"spec": {"containers": None}}}]
        server.answer = answering((200, b"".join(json.dumps(line).encode() + b"\n" for line in lines)))
        events = [event async for event in client.watch(POD, "x", type=Pod, resource_version="5", timeout_seconds=60)]
        assert [(event.type, event.object.spec.node_name) for event in events] == [("ADDED", "n1")]
        assert dict(server.requests[0].query) == {
            "watch": "true", "allowWatchBookmarks": "true", "resourceVersion": "5", "timeoutSeconds": "60",
        }  # fmt: skip


async def test_a_warning_reaches_the_caller() -> None:
    """A warning the server sends along with an answer is passed on, unquoted."""
    heard: list[str] = []
    async with serving() as server:

        async def warn(_: web.BaseRequest) -> web.StreamResponse:
            return web.json_response(A_POD, headers={"Warning": '299 - "v1alpha1 is \\"old\\""'})

        server.answer = warn
        client = Client(HttpTransport(Endpoint(server.url)), Runtime.virtual(), on_warning=heard.append)
        await client.get(POD, "a", "x")
        await client.close()
    assert heard == ['v1alpha1 is "old"']


def test_several_warnings_are_told_apart() -> None:
    """Warnings that share a header, as repeated headers do once joined, are read one by one."""
    joined = '299 - "one, with a comma", 299 kube-apiserver "two \\\\ three"'
    assert warnings_in({"warning": joined}) == ["one, with a comma", "two \\ three"]
    assert warnings_in({}) == []
