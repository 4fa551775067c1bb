"""When pods were bound and where, seen by a process of its own.

The watch asks for pods that have a node, as a table: a form no scheduler asks for, so that what it costs the API server
is the same whoever schedules.

    python -m benchmarks.load.bindings KUBECONFIG COUNT [--limit SECONDS] [--name NAME]

prints "ready", then, when so many are bound or the time is over, one JSON object of pod -> [time, node], in the order
of the watch. How far it has come is said on standard error.
"""

import argparse
import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.load.cluster import NAMESPACE_NAME
from spinney.api.core import POD
from spinney.kube.config import load_kubeconfig
from spinney.kube.transport import Request, Transport
from spinney.kube.watching import lines
from spinney.runtime import Runtime

_TOLD = 10.0
"""Seconds between two words on how far it has come."""
_TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"


class _Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    resource_version: str = ""


class _Object(msgspec.Struct):
    metadata: _Meta


class _Column(msgspec.Struct):
    name: str


class _Row(msgspec.Struct):
    cells: list[Any]
    object: _Object


class _Table(msgspec.Struct, rename="camel"):
    column_definitions: list[_Column] | None = None
    """Only in the first of a watch."""
    rows: list[_Row] = []


class _Event(msgspec.Struct):
    type: str
    object: _Table


class Bindings:
    """When pods were seen to be bound, in seconds of the system-wide monotonic clock, and where, by name. Mutable."""

    def __init__(self, transport: Transport) -> None:
        self.seen: dict[str, tuple[float, str]] = {}
        self._node = 0  # the position of the column
        self._transport = transport
        self._version = ""
        self._decoder = msgspec.json.Decoder(_Event)

    async def follow(self, count: int) -> None:
        """Watch until ``count`` pods were seen; a watch that the server ends is resumed."""
        while len(self.seen) < count:
            await self._watch(count)

    async def _watch(self, count: int) -> None:
        query = {"watch": "true", "fieldSelector": "spec.nodeName!=", "timeoutSeconds": "3600"}
        if self._version:
            query["resourceVersion"] = self._version
        async with self._transport.stream(
            Request("GET", POD.path(NAMESPACE_NAME), query=query, headers={"accept": _TABLE})
        ) as answer:
            print("ready", flush=True)
            async for batch in lines(aiter(answer)):
                self._note([self._decoder.decode(line) for line in batch], time.monotonic())
                if len(self.seen) >= count:
                    return

    def _note(self, events: list[_Event], now: float) -> None:
        for event in events:
            if event.type == "ERROR":
                raise RuntimeError(f"the watch failed when {len(self.seen)} pods were bound")
            if columns := event.object.column_definitions:
                self._node = [column.name for column in columns].index("Node")
            for row in event.object.rows:
                self._version = row.object.metadata.resource_version
                if event.type == "ADDED":
                    self.seen.setdefault(row.object.metadata.name, (now, row.cells[self._node]))


async def main(options: argparse.Namespace) -> None:
    """Follow and print."""
    transport = load_kubeconfig(options.kubeconfig, runtime=Runtime.system())
    bindings = Bindings(transport)
    telling = asyncio.create_task(_tell(bindings, options))
    try:
        async with asyncio.timeout(options.limit):
            await bindings.follow(options.count)
    except TimeoutError:
        print(f"{options.name}: stopped after {options.limit:.0f} s", file=sys.stderr, flush=True)
    finally:
        telling.cancel()
        await transport.close()
    print(json.dumps(bindings.seen), flush=True)


async def _tell(bindings: Bindings, options: argparse.Namespace) -> None:
    start = time.monotonic()
    while True:
        await asyncio.sleep(_TOLD)
        passed = time.monotonic() - start
        text = f"{options.name}: {len(bindings.seen)} of {options.count} pods bound after {passed:.0f} s"
        print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kubeconfig", type=Path)
    parser.add_argument("count", type=int)
    parser.add_argument("--limit", type=float, help="seconds after which to stop")
    parser.add_argument("--name", default="bindings", help="whose binds they are, for standard error")
    asyncio.run(main(parser.parse_args()))
