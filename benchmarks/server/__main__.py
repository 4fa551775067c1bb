"""The embedded server beside kube-apiserver and etcd, in one run.

Run with ``python -m benchmarks.server``. Each server runs in processes of its own and is asked the same over TLS, with
a bearer token and strict validation, one after the other. Printed are requests per second, the server's CPU
milliseconds for each (which other work on the machine hardly changes), and the ratio of both to the real one. The
client is Python and takes a core of its own: a rate is as much its as the server's. ``python -m
benchmarks.server.in_process`` measures the server without sockets, as tests use it.
"""

import argparse
import asyncio
from contextlib import AbstractAsyncContextManager

from benchmarks.server.contenders import Contender, embedded, kubernetes
from benchmarks.server.load import Measured, Size, connected


async def _measured(running: AbstractAsyncContextManager[Contender], size: Size) -> tuple[str, list[Measured], float]:
    async with running as contender:
        async with connected(contender, size) as load:
            measured = await load.run()
        return contender.name, measured, contender.memory()


async def _main(size: Size, minor: str, *, alone: bool) -> None:
    runs = [await _measured(embedded(keeping=False), size), await _measured(embedded(keeping=True), size)]
    if not alone:
        runs.append(await _measured(kubernetes(minor), size))
    reference = runs[-1] if not alone else None
    for name, measured, memory in runs:
        print(f"\n{name}: at most {memory:.0f} MiB")
        for index, each in enumerate(measured):
            line = f"  {each.what:<24}{each.rate:>9.0f} /s{each.cost:>10.3f} CPU ms"
            if reference is not None and reference[0] != name:
                real = reference[1][index]
                line += f"   {each.rate / real.rate:>6.2f} x its rate,{real.cost / each.cost:>6.2f} x less CPU"
            print(line)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, default=2000)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--lists", type=int, default=20)
    parser.add_argument("--watchers", type=int, default=20)
    parser.add_argument("--minor", default="1.37")
    parser.add_argument("--alone", action="store_true", help="leave kube-apiserver out")
    given = parser.parse_args()
    size = Size(pods=given.pods, connections=given.connections, lists=given.lists, watchers=given.watchers)
    asyncio.run(_main(size, given.minor, alone=given.alone))


if __name__ == "__main__":
    main()
