"""Gangs that need one rack: how many find one while single pods fill the cluster around them.

The nodes of openb with eight GPUs stand in racks of 16, in order of name. Pods of the list arrive in the published
order, and after every 40th a gang of 8, 16, 32 or 64 GPUs in turn, in pods of 8 GPUs with 64 CPUs each, which must
share a rack. Everybody is offered once.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from benchmarks.traces.openb import KAI, PACKING
from benchmarks.traces.replaying import replayed
from benchmarks.traces.tables import Table
from spinney.scheduler.config import PluginOption, SchedulerConfig
from spinney.sim.replay import Ask, Job, Trace
from spinney.sim.replay.checking import violations
from spinney.sim.replay.formats.openb import read_openb

RACK = "replay.spinney.dev/rack"
PER_RACK, BETWEEN, SIZES = 16, 40, (8, 16, 32, 64)
SPREAD = SchedulerConfig(
    plugins=tuple(
        PluginOption("nodeplacement", {"gpu": "spread", "cpu": "spread"}) if each.name == "packing" else each
        for each in SchedulerConfig().plugins
    )
)


def measure(directory: Path, seeds: list[int]) -> Iterator[Table]:
    """Count the gangs that find a rack."""
    table = Table(
        "racks",
        "Gangs of 8, 16, 32 and 64 GPUs that must share a rack, among the pods of openb default until 130 % were asked "
        "for ([packing.md](../packing.md) defines it): how many of each size find one, mean over "
        f"{len(seeds)} seeds, and the GPUs given out in the end.",
        ["configuration", "offered, each size", "8", "16", "32", "64", "GPUs given out %"],
    )
    path = next(directory.glob("openb_pods_default.csv*"))
    traces = [with_gangs(read_openb(path, None, seed)) for seed in seeds]
    for name, config in (("packing", PACKING), ("KAI's rules", KAI), ("spread", SPREAD)):
        counts, given = dict.fromkeys(SIZES, 0), 0.0
        for trace in traces:
            for event in replayed(trace, config, check=violations).events:
                if event.what == "started":
                    job = trace.jobs[event.job]
                    given += job.gpu_milli / 10 / trace.gpus / len(traces)
                    if job.topology:
                        counts[job.gpu_milli // 1000] += 1
        offered = sum(bool(job.topology) for job in traces[0].jobs) // len(SIZES)
        table.add(name, offered, *(f"{count / len(traces):.1f}" for count in counts.values()), f"{given:.2f}")
    yield table


def with_gangs(trace: Trace) -> Trace:
    """Return openb's nodes of eight GPUs in racks, with gangs between its pods until 130 % were asked for."""
    large = sorted((each for each in trace.machines if each.gpus == 8), key=lambda each: each.name)
    machines = tuple(
        replace(machine, labels={RACK: f"rack-{place // PER_RACK:02d}"}) for place, machine in enumerate(large)
    )
    wanted, asked = 1.3 * 1000 * sum(machine.gpus for machine in machines), 0
    jobs: list[Job] = []
    gangs = 0
    for place, job in enumerate(trace.jobs):
        found = [job]
        if (place + 1) % BETWEEN == 0:
            size = SIZES[gangs % len(SIZES)]
            ask = Ask(cpu=64_000, memory=65_536, gpus=8)
            found.append(Job(f"gang-{gangs:03d}", 0.0, ask, pods=size // 8, kind=f"gang of {size}", topology=RACK))
            gangs += 1
        for each in found:
            jobs.append(replace(each, submitted=float(len(jobs) // 1024)))
            asked += each.gpu_milli
        if asked >= wanted:
            break
    return Trace("openb with gangs", machines, tuple(jobs), offered_once=True, levels=(RACK,), demand=trace.demand)
