"""The typed, asynchronous API client: one method per verb, over any transport.

Every verb takes a :class:`~spinney.api.resource.Resource` and, optionally, the ``type`` its answer is decoded as; by
default that is plain JSON with nothing lost. A typed object that was decoded must not be written back whole (unknown
fields were dropped): write with :meth:`Client.apply` or :meth:`Client.patch`.
"""

# ruff: noqa: A002 - "type" is the word for what an answer is decoded as

import asyncio
import builtins
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from enum import Enum
from typing import Any, Literal, Unpack

import msgspec

from spinney.api.resource import Resource
from spinney.api.struct import JSON, Struct, encode, to_json
from spinney.kube.answers import check_object, undecodable
from spinney.kube.decoding import DecoderFor, ObjectDecoder
from spinney.kube.errors import (
    Conflict,
    Contended,
    Expired,
    Invalid,
    KubeError,
    NotFound,
    error_from_response,
)
from spinney.kube.keys import Identified
from spinney.kube.pages import ListHead, Listing, Page, T, decode_page, refuse
from spinney.kube.parameters import (
    PropagationPolicy,
    Reading,
    Selecting,
    Watching,
    delete_options,
    manifest_of,
    namespace_in,
    query_of,
    selecting,
)
from spinney.kube.request_metrics import RequestMetrics, code_of
from spinney.kube.retrying import SAFE_METHODS, RetryPolicy
from spinney.kube.transport import Request, Response, Transport
from spinney.kube.warning_headers import WarningLog, warnings_in
from spinney.kube.watching import Bookmark, EventDecoder, Undecodable, WatchEvent, lines
from spinney.kube.writes import note_write
from spinney.runtime import Runtime

FieldValidation = Literal["Ignore", "Warn", "Strict"]

PAGE_SIZE = 500

# Typed as Any so that a generic parameter can have it as its default.
_JSON: Any = JSON

_POD = Resource(group="", version="v1", kind="Pod", plural="pods")


class PatchKind(Enum):
    """The patch formats of the API; the value is the media type."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"

    @property
    def header(self) -> Mapping[str, str]:
        """Return the header by which a request says what its body is."""
        return {"content-type": self.value}


class Client:
    """A connection to one API server, on behalf of one field manager.

    Failed requests are repeated only where that is safe (:mod:`spinney.kube.retrying`); all other errors are raised as
    :mod:`spinney.kube.errors`. Warnings of the server go to ``on_warning``, by default to the log, once each.
    """

    def __init__(
        self,
        transport: Transport,
        runtime: Runtime,
        *,
        field_manager: str = "spinney",
        retry: RetryPolicy = RetryPolicy(),  # noqa: B008 - a frozen value
        timeout: float | None = 30.0,
        on_warning: Callable[[str], None] | None = None,
        field_validation: FieldValidation | None = None,
        metrics: RequestMetrics | None = None,
        decoder_for: DecoderFor = ObjectDecoder,
    ) -> None:
        self.transport = transport
        self.runtime = runtime
        self.field_manager = field_manager
        self._field_validation = field_validation
        self._retry = retry
        self._timeout = timeout
        self._on_warning = on_warning or WarningLog()
        self._metrics = metrics
        self.decoder_for = decoder_for

    # ------------------------------------------------------------------------------------------------ reading

    async def get(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        subresource: str | None = None,
        type: type[T] = _JSON,
    ) -> T:
        """Return one object."""
        return await self._object("GET", resource.path(namespace, name, subresource), type, name=name)

    async def find(
        self, resource: Resource, name: str, namespace: str | None = None, *, type: type[T] = _JSON
    ) -> T | None:
        """Return one object, or ``None`` if there is none of that name."""
        try:
            return await self.get(resource, name, namespace, type=type)
        except NotFound:
            return None

    async def list(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        type: type[T] = _JSON,
        **wanted: Unpack[Reading],
    ) -> Listing[T]:
        """Return a whole collection as of one resource version, read page by page.

        If the server forgets the version between two pages, the collection is read again in one piece.
        """
        items: builtins.list[T] = []
        version = ""
        try:
            async for page in self.pages(resource, namespace, type=type, **wanted):
                refuse(page.undecodable, resource)
                items += page.items
                version = page.resource_version
        except Expired:
            if wanted.get("limit") == 0:
                raise
            wanted["limit"] = 0
            return await self.list(resource, namespace, type=type, **wanted)
        return Listing(tuple(items), version)

    async def pages(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        type: type[T] = _JSON,
        **wanted: Unpack[Reading],
    ) -> AsyncIterator[Page[T]]:
        """Yield a collection page by page, all as of one resource version; raises ``Expired`` if that is forgotten.

        While a page is being read, the server is already asked for the next.
        """
        wanted.setdefault("limit", PAGE_SIZE)
        query = selecting(Reading, wanted)
        path = resource.path(namespace)
        response = await self.raw("GET", path, query=query)
        while True:
            page = decode_page(response.body, type, request=f"GET {path}")
            if not page.token:
                yield page
                return
            following = asyncio.create_task(self.raw("GET", path, query={**query, "continue": page.token}))
            try:
                await asyncio.sleep(0)  # the request goes out before the reader gets to work
                yield page
                response = await following
            finally:
                if not following.cancel() and not following.cancelled():
                    following.exception()  # the caller has left and does not read it

    async def version(self, resource: Resource, namespace: str | None = None) -> str:
        """Return the resource version that the API server has come to."""
        head = await self._typed(resource.path(namespace), ListHead, query={"limit": "1"})
        return head.metadata.resource_version

    async def watch(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        type: type[T] = _JSON,
        **wanted: Unpack[Watching],
    ) -> AsyncIterator[WatchEvent[T]]:
        """Yield events after ``resource_version`` until the server ends the watch; one connection, no resume.

        :class:`~spinney.kube.cache.WatchCache` is the thing that lists, resumes and recovers.
        """
        decoder = EventDecoder(type)
        async for batch in self.watch_lines(resource, namespace, **wanted):
            for line in batch:
                event = decoder.decode(line)
                if isinstance(event, Undecodable):
                    refuse((event,), resource)
                elif not isinstance(event, Bookmark):
                    yield event

    async def watch_lines(
        self,
        resource: Resource,
        namespace: str | None = None,
        **wanted: Unpack[Watching],
    ) -> AsyncGenerator[Sequence[bytes], None]:
        """Yield the undecoded lines of one watch, as many at a time as have arrived together."""
        query = {"watch": "true", "allowWatchBookmarks": "true"} | selecting(Watching, wanted)
        path = resource.path(namespace)
        began = self.runtime.clock.monotonic()
        async with self.transport.stream(Request("GET", path, query, timeout=self._timeout)) as response:
            if self._metrics is not None:
                took = self.runtime.clock.monotonic() - began
                self._metrics.answered("GET", path, str(response.status), took, watch=True)
            if not _is_done(response.status):
                body = await response.body()
                raise error_from_response(response.status, body, response.headers, request=f"GET {path}?watch=true")
            async for batch in lines(aiter(response)):
                yield batch

    # ------------------------------------------------------------------------------------------------ writing

    async def create(
        self,
        resource: Resource,
        obj: JSON | Struct,
        namespace: str | None = None,
        *,
        subresource: str | None = None,
        name: str | None = None,
        type: type[T] = _JSON,
        dry_run: bool = False,
    ) -> T:
        """Create an object, or with ``subresource`` and ``name`` post to a subresource; returns what was stored."""
        body = manifest_of(resource, obj) if subresource is None else to_json(obj)
        path = resource.path(namespace or namespace_in(resource, body), name, subresource)
        stored = "" if subresource else body["metadata"].get("name", "")
        return await self._object("POST", path, type, name=stored, query=self._writing(dry_run), body=body)

    async def replace(
        self,
        resource: Resource,
        obj: JSON | Struct,
        namespace: str | None = None,
        *,
        subresource: str | None = None,
        type: type[T] = _JSON,
        dry_run: bool = False,
    ) -> T:
        """Replace an object whole; with a resource version in it, only if nobody wrote since (else ``Conflict``)."""
        body = manifest_of(resource, obj)
        name = body["metadata"]["name"]
        path = resource.path(namespace or namespace_in(resource, body), name, subresource)
        return await self._object("PUT", path, type, name=name, query=self._writing(dry_run), body=body)

    async def apply(
        self,
        resource: Resource,
        obj: JSON | Struct,
        namespace: str | None = None,
        *,
        field_manager: str | None = None,
        force: bool = True,
        subresource: str | None = None,
        type: type[T] = _JSON,
        dry_run: bool = False,
    ) -> T:
        """Own exactly the fields in ``obj`` (server-side apply); creates the object if it is not there."""
        body = manifest_of(resource, obj)
        body["metadata"].pop("managedFields", None)
        name = body["metadata"]["name"]
        path = resource.path(namespace or namespace_in(resource, body), name, subresource)
        query = self._writing(dry_run, field_manager) | {"force": "true" if force else "false"}
        headers = PatchKind.APPLY.header
        return await self._object("PATCH", path, type, name=name, query=query, body=body, headers=headers)

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: JSON | Sequence[JSON],
        namespace: str | None = None,
        *,
        kind: PatchKind = PatchKind.MERGE,
        subresource: str | None = None,
        type: type[T] = _JSON,
        dry_run: bool = False,
        field_manager: str | None = None,
    ) -> T:
        """Change parts of an object; a merge patch that names a stale ``resourceVersion`` fails with ``Conflict``.

        So does one that names the ``uid`` of another object, and no version.
        """
        path = resource.path(namespace, name, subresource)
        query = self._writing(dry_run, field_manager)
        metadata = patch.get("metadata") or {} if isinstance(patch, dict) else {}
        return await self._exactly(
            None if "resourceVersion" in metadata else metadata.get("uid"),
            resource.path(namespace, name),
            lambda: self._object("PATCH", path, type, name=name, query=query, body=patch, headers=kind.header),
        )

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str | None = None,
        *,
        grace_period_seconds: int | None = None,
        propagation_policy: PropagationPolicy | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
        dry_run: bool = False,
    ) -> None:
        """Delete one object; ``uid`` and ``resource_version`` are preconditions (else ``Conflict``)."""
        if not name:
            raise ValueError(f"{resource}: no name; without one the whole collection would be deleted")
        body = encode(delete_options(grace_period_seconds, propagation_policy, uid, resource_version, dry_run))
        path = resource.path(namespace, name)
        precise = None if resource_version else uid
        await self._exactly(precise, path, lambda: self.raw("DELETE", path, body=body))

    async def delete_collection(
        self,
        resource: Resource,
        namespace: str | None = None,
        *,
        grace_period_seconds: int | None = None,
        **wanted: Unpack[Selecting],
    ) -> None:
        """Delete every object of a collection that the selectors match."""
        body = delete_options(grace_period_seconds, None, None, None, dry_run=False)
        await self.raw("DELETE", resource.path(namespace), query=selecting(Selecting, wanted), body=encode(body))

    async def bind(
        self, namespace: str, pod: str, uid: str | None, node: str, *, annotations: Mapping[str, str] = {}
    ) -> None:
        """Bind a pod to a node; with ``uid`` only that incarnation of the pod (else ``Conflict``).

        The answer is a ``Status``: of one that is none, nobody knows what became of the pod.
        """
        metadata: JSON = {"name": pod, "namespace": namespace}
        if uid:
            metadata["uid"] = uid
        if annotations:
            metadata["annotations"] = dict(annotations)
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
        path = _POD.path(namespace, pod, "binding")
        await self._ordered(path, self._writing(dry_run=False), encode(binding))

    async def evict(
        self,
        namespace: str,
        pod: str,
        *,
        uid: str | None = None,
        grace_period_seconds: int | None = None,
        dry_run: bool = False,
    ) -> None:
        """Ask for a pod's eviction; a disruption budget that forbids it raises ``TooManyRequests``.

        With ``uid`` only that incarnation of the pod (else ``Conflict``).
        """
        eviction: JSON = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod, "namespace": namespace},
        }
        if options := delete_options(grace_period_seconds, None, uid, None, dry_run):
            eviction["deleteOptions"] = options
        path, query, body = _POD.path(namespace, pod, "eviction"), self._writing(dry_run), encode(eviction)
        await self._exactly(uid, _POD.path(namespace, pod), lambda: self._ordered(path, query, body))

    # ------------------------------------------------------------------------------------------------ raw

    async def read(self, path: str, type: type[T], *, headers: Mapping[str, str] = {}) -> T:
        """Return what a path answers that is no object, such as what the server serves."""
        return await self._typed(path, type, headers=headers)

    async def raw(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] = {},
        body: bytes | None = None,
        headers: Mapping[str, str] = {},
    ) -> Response:
        """Send any request and return its answer; one that does not say that it was done raises.

        A write is answered with an object, be it a ``Status``.
        """
        response = await self._answer(method, path, query=query, body=body, headers=headers)
        if method not in SAFE_METHODS:
            check_object(response.body, f"{method} {path}")
        return response

    async def _answer(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str],
        body: bytes | None = None,
        headers: Mapping[str, str] = {},
    ) -> Response:
        sent = {"accept": "application/json"} | {name.lower(): value for name, value in headers.items()}
        if body is not None:
            sent.setdefault("content-type", "application/json")
        request = Request(method, path, query, sent, body, self._timeout)
        attempt = 0
        while True:
            attempt += 1
            try:
                response = await self._sent(request)
                if not _is_done(response.status):
                    raise error_from_response(response.status, response.body, response.headers, request=str(request))
            except KubeError as error:
                delay = self._retry.delay(method, attempt, error, self.runtime.random)
                if delay is None:
                    raise
                if self._metrics is not None:
                    self._metrics.again(method, path, error)
                await self.runtime.clock.sleep(delay)
            else:
                if method not in SAFE_METHODS:
                    note_write()
                for warning in warnings_in(response.headers):
                    self._on_warning(warning)
                return response

    async def _exactly(self, uid: str | None, path: str, send: Callable[[], Awaitable[T]]) -> T:
        """Send a write that is for the object with this ``uid``, in whatever version it is.

        ``Conflict`` means that another has its name, and nothing else. An API server answers so, too, where another
        client wrote the object at the same moment: who has the name is read then, and the write sent again. Of a patch
        for another object it says instead that ``metadata.uid`` is invalid.
        """
        if not uid:
            return await send()
        attempt = 0
        while True:
            attempt += 1
            try:
                return await send()
            except Invalid as error:
                if [cause.field for cause in error.causes] != ["metadata.uid"]:
                    raise
                raise Conflict(error.status, error.reason, error.message, error.details) from error
            except Conflict as error:
                if (await self._object("GET", path, Identified)).metadata.uid != uid:
                    raise
                if attempt >= self._retry.attempts:
                    raise Contended(error.status, error.reason, error.message, error.details) from error
            await self.runtime.clock.sleep(self._retry.backoff(attempt, self.runtime.random))

    async def _sent(self, request: Request) -> Response:
        """Send a request once, and count it with its answer."""
        if self._metrics is None:
            return await self.transport.request(request)
        began = self.runtime.clock.monotonic()
        code = "failed"
        try:
            response = await self.transport.request(request)
            code = str(response.status)
        except KubeError as error:
            code = code_of(error)
            raise
        finally:
            self._metrics.answered(request.method, request.path, code, self.runtime.clock.monotonic() - began)
        return response

    def over(self, transport: Transport) -> "Client":
        """Return a client with the same settings over another transport."""
        return self._like(transport, self._field_validation)

    def measured(self, metrics: RequestMetrics) -> "Client":
        """Return a client, over the same transport, whose requests are counted."""
        return self._like(self.transport, self._field_validation, metrics)

    def trusting(self) -> "Client":
        """Return a client, over the same transport, that does not have its writes searched for unknown fields.

        For what was encoded from our own types, and cannot have any: it spares the server a second reading.
        """
        return self._like(self.transport, "Ignore")

    def _like(
        self, transport: Transport, field_validation: FieldValidation | None, metrics: RequestMetrics | None = None
    ) -> "Client":
        return Client(
            transport,
            self.runtime,
            field_manager=self.field_manager,
            retry=self._retry,
            timeout=self._timeout,
            on_warning=self._on_warning,
            field_validation=field_validation,
            metrics=metrics or self._metrics,
            decoder_for=self.decoder_for,
        )

    async def close(self) -> None:
        """Close the transport."""
        await self.transport.close()

    async def _typed(
        self, path: str, type: type[T], *, query: Mapping[str, str] = {}, headers: Mapping[str, str] = {}
    ) -> T:
        response = await self.raw("GET", path, query=query, headers=headers)
        return _decoded(response.body, type, f"GET {path}")

    async def _object(
        self,
        method: str,
        path: str,
        type: type[T],
        *,
        name: str = "",
        query: Mapping[str, str] = {},
        body: JSON | Sequence[JSON] | None = None,
        headers: Mapping[str, str] = {},
    ) -> T:
        """Return the object that a request is answered with, which has this name."""
        encoded = None if body is None else encode(body)
        response = await self._answer(method, path, query=query, body=encoded, headers=headers)
        check_object(response.body, f"{method} {path}", name=name)
        return _decoded(response.body, type, f"{method} {path}")

    async def _ordered(self, path: str, query: Mapping[str, str], body: bytes) -> None:
        """Have a server do something with an object; it answers whether it was done."""
        response = await self._answer("POST", path, query=query, body=body)
        check_object(response.body, f"POST {path}", kind="Status")

    def _writing(self, dry_run: bool, field_manager: str | None = None) -> dict[str, str]:
        return query_of(
            fieldManager=field_manager or self.field_manager,
            dryRun="All" if dry_run else None,
            fieldValidation=self._field_validation,
        )


def _decoded(body: bytes, type: type[T], request: str) -> T:
    try:
        return msgspec.json.decode(body, type=type)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        expected = getattr(type, "__name__", str(type)).lstrip("_")
        raise undecodable(body, request, f"a {expected}", problem) from problem


def _is_done(status: int) -> bool:
    """Tell whether the server did what was asked; a gateway that sends us elsewhere, to log in, did not."""
    return 200 <= status < 300
