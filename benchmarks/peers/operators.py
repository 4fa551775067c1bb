"""Grove's ``scale-test-1000`` with Grove's operator and with ours: from apply to the last gate."""

import asyncio
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from benchmarks.load.measuring import Figures, progress
from benchmarks.load.processes import cpu_seconds, peak_memory
from benchmarks.operator.__main__ import Bench, a_bench
from benchmarks.operator.shape import SIZE, a_set
from spinney.api.grove import POD_CLIQUE_SET
from spinney.testing.peers import GROVE, crds, running

_STARTED_SECONDS, _STARTED_AT_MOST = 2.0, 30.0
_AT_REST = 0.05  # seconds of processor time


async def measure(replicas: int) -> dict[str, Figures]:
    """Bring the set up with both operators, each on a control plane of its own."""
    found = {}
    for name in (str(GROVE), "spinney operator"):
        progress(f"scale test: {name}: {SIZE * replicas} pods")
        async with a_bench(controller_manager=True, crds=crds(GROVE) if name == str(GROVE) else None) as bench:
            found[name] = await _brought_up(bench, _grove(bench) if name == str(GROVE) else _ours(bench), replicas)
    return found


async def _brought_up(bench: Bench, operator: AbstractContextManager[tuple[int, ...]], replicas: int) -> Figures:
    with operator as pids:
        await _until_at_rest(pids)
        cpu, served = sum(map(cpu_seconds, pids)), bench.server_cpu()
        await bench.client.create(POD_CLIQUE_SET, a_set("scale-test", replicas))
        created, released = await bench.onlooker.times(SIZE * replicas)
        return Figures(
            pods=SIZE * replicas,
            bound=SIZE * replicas,
            first=created,
            p50=created,
            p99=released,
            last=released,
            events=0,
            last_event=0.0,
            cpu=sum(map(cpu_seconds, pids)) - cpu,
            server_cpu=bench.server_cpu() - served,
            memory=sum(map(peak_memory, pids)),
            faults=tuple(bench.onlooker.early.values()),
        )


@contextmanager
def _grove(bench: Bench) -> Iterator[tuple[int, ...]]:
    with running(GROVE, bench.plane.kubeconfig, bench.plane.directory) as programs:
        yield programs.pids
        programs.check()


@contextmanager
def _ours(bench: Bench) -> Iterator[tuple[int, ...]]:
    with bench.running() as process:
        yield (process.pid,)


async def _until_at_rest(pids: tuple[int, ...]) -> None:
    """Wait until a process that has started has used next to nothing for a while; one that never rests is taken as is.

    A Go program may have started after a tenth of a second of processor time.
    """
    used, waited = -1.0, 0.0
    while ((now := sum(map(cpu_seconds, pids))) - used > _AT_REST or now < 2 * _AT_REST) and waited < _STARTED_AT_MOST:
        used = now
        await asyncio.sleep(_STARTED_SECONDS)
        waited += _STARTED_SECONDS
