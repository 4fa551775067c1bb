"""The server without sockets: creates, binds, lists and watches per second.

Run with ``python -m benchmarks.server.in_process``. Requests go through ``ApiServer.handle`` as the in-process
transport sends them: bytes in, bytes out, admission and defaults included. The rate per CPU second says what the
server costs where other work shares the machine.
"""

import argparse
import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from benchmarks.server.load import a_pod
from spinney.kube.transport import Request
from spinney.runtime import Runtime
from spinney.server import ApiServer
from spinney.sim.embedded.transport import InProcessTransport

_PODS = "/api/v1/namespaces/default/pods"


class Benchmark:
    """One server, and what is measured on it."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.server = ApiServer(Runtime.system())
        self.transport = InProcessTransport(self.server)

    async def expect(self, status: int, method: str, path: str, body: bytes | None = None, **more: Any) -> bytes:
        answer = await self.transport.request(Request(method, path, body=body, **more))
        if answer.status != status:
            raise SystemExit(f"{method} {path}: {answer.status} {answer.body[:500]!r}")
        return answer.body

    async def create(self) -> None:
        for index in range(self.count):
            await self.expect(201, "POST", _PODS, a_pod(index))

    async def bind(self) -> None:
        for index in range(self.count):
            body = b'{"metadata":{"name":"pod-%d"},"target":{"kind":"Node","name":"node-%d"}}' % (index, index % 1000)
            await self.expect(201, "POST", f"{_PODS}/pod-{index}/binding", body)

    async def run_status(self) -> None:
        ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        patch = json.dumps({"status": ready}).encode()
        headers = {"content-type": "application/strategic-merge-patch+json"}
        for index in range(self.count):
            await self.expect(200, "PATCH", f"{_PODS}/pod-{index}/status", patch, headers=headers)

    async def apply(self, status: str) -> None:
        headers = {"content-type": "application/apply-patch+yaml"}
        conditions = {"conditions": [{"type": "Fit", "status": status}]}
        for index in range(self.count):
            path = f"{_PODS}/pod-{index}/status"
            config = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"pod-{index}"}, "status": conditions}
            body = json.dumps(config).encode()
            await self.expect(200, "PATCH", path, body, headers=headers, query={"fieldManager": "bench"})

    async def list_all(self, query: Mapping[str, str]) -> None:
        await self.expect(200, "GET", "/api/v1/pods", query=query)

    async def fan_out(self, watchers: int) -> None:
        revision = str(self.server.context.store.revision)
        watching = [asyncio.create_task(self._follow(revision)) for _ in range(watchers)]
        await self.bind()
        await asyncio.gather(*watching)

    async def _follow(self, revision: str) -> None:
        seen = 0
        query = {"watch": "true", "resourceVersion": revision}
        async with self.transport.stream(Request("GET", "/api/v1/pods", query=query)) as stream:
            async for chunk in stream:
                seen += chunk.count(b"\n")
                if seen >= self.count:
                    return


async def _timed(what: str, count: int, work: Callable[[], Awaitable[None]]) -> None:
    started, busy = time.perf_counter(), time.process_time()
    await work()
    seconds, busy = time.perf_counter() - started, time.process_time() - busy
    print(f"{what:<44}{count / seconds:>10.0f} /s{count / busy:>10.0f} /CPU s{seconds * 1000:>10.1f} ms")


async def _main(count: int, watchers: int) -> None:
    bench = Benchmark(count)
    async with bench.server.running():
        await _timed("create pods", count, bench.create)
        await _timed("list all pods", count, lambda: bench.list_all({}))
        await _timed("list by label selector", count, lambda: bench.list_all({"labelSelector": "gang=g1"}))
        await _timed("list by field selector", count, lambda: bench.list_all({"fieldSelector": "spec.nodeName="}))
        await _timed("bind pods", count, bench.bind)
        await _timed("patch pod status (strategic)", count, bench.run_status)
        await _timed("first apply of a condition to pod status", count, lambda: bench.apply("True"))
        await _timed("apply another value of that condition", count, lambda: bench.apply("False"))
        await _timed("apply the same again", count, lambda: bench.apply("False"))
    bench = Benchmark(count)
    async with bench.server.running():
        await bench.create()
        await _timed(f"bind pods, {watchers} watchers following", count, lambda: bench.fan_out(watchers))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--watchers", type=int, default=5)
    arguments = parser.parse_args()
    asyncio.run(_main(arguments.pods, arguments.watchers))


if __name__ == "__main__":
    main()
