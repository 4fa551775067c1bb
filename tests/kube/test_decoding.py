"""Caches of one process are given the same objects, decoded once."""

import asyncio

import pytest

from spinney.api.core import POD, Pod
from spinney.kube.cache import WatchCache, kept_up
from spinney.kube.client import Client
from spinney.kube.decoding import CommonDecoders
from spinney.kube.errors import Expired
from spinney.kube.keys import Key
from spinney.kube.watching import WatchEvent
from spinney.nodes.pods import BoundPod
from spinney.runtime import Runtime
from spinney.server import ApiServer
from spinney.sim.embedded.transport import InProcessTransport
from tests.kube.model import status_body


def a_line(name: str) -> bytes:
    return b'{"type":"ADDED","object":{"metadata":{"name":"%b"}}}' % name.encode()


def test_a_line_is_decoded_once_for_all_of_a_type() -> None:
    """Who asks second is given the very same object; another type has its own."""
    decoders = CommonDecoders()
    first, second = decoders.of(Pod).decode(a_line("a")), decoders.of(Pod).decode(bytes(bytearray(a_line("a"))))
    assert isinstance(first, WatchEvent)
    assert first is second
    assert isinstance(other := decoders.of(BoundPod).decode(a_line("a")), WatchEvent)
    assert (type(other.object), other.object.metadata.name) == (BoundPod, "a")


def test_what_is_remembered_is_bounded() -> None:
    """A line that came too long ago is decoded again, to an equal object."""
    decoder = CommonDecoders(remembered_bytes=3 * len(a_line("0"))).of(Pod)
    first = decoder.decode(a_line("0"))
    for number in range(1, 4):
        decoder.decode(a_line(str(number)))
    again = decoder.decode(a_line("0"))
    assert again is not first
    assert again == first


def test_an_error_is_raised_to_each() -> None:
    """The end of a watch is told to every cache that is sent it."""
    decoder = CommonDecoders().of(Pod)
    for _ in range(2):
        with pytest.raises(Expired):
            decoder.decode(b'{"type":"ERROR","object":%b}' % status_body(410, "Expired", "too old"))


async def test_caches_that_watch_the_same_hold_the_same() -> None:
    """Two clients with decoders in common hold one body of each pod, and both are told of it."""
    runtime = Runtime.system()
    server, decoders = ApiServer(runtime), CommonDecoders()
    clients = [Client(InProcessTransport(server), runtime, decoder_for=decoders.of) for _ in range(2)]
    caches = [WatchCache(client, POD, Pod, runtime=runtime) for client in clients]
    told: list[Key] = []
    both = asyncio.Event()

    def tell(key: Key) -> None:
        told.append(key)
        if len(told) == len(caches):
            both.set()

    for cache in caches:
        cache.subscribe(lambda change: tell(change.key))
    pod = {"metadata": {"name": "p", "namespace": "default"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    async with server.running(), kept_up(*caches):
        await clients[0].create(POD, pod)
        await both.wait()
        key = Key("default", "p")
        assert told == [key, key]
        assert caches[0].get(key) is caches[1].get(key)
