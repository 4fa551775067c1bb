"""Checks the placements of a replay against the trace alone: it knows nothing of the scheduler, nor of its ledgers.

Every job that starts is put on its machines, everything that ends is taken off, and at each start everything must fit:
CPU, memory, pods and further resources within the machine, shares within each GPU, whole GPUs shared with nobody, only
accepted models and pools, all pods of a job or none, one rack where one was asked for, nobody before submission, nobody
on a machine that is gone or closed. What runs when a trace begins is where it is.

Of a recorded cluster its rules of nodes and topology are looked at (:mod:`~spinney.sim.replay.recorded_rules`), devices
and volumes of claims (:mod:`~spinney.sim.replay.claim_rules`, :mod:`~spinney.sim.replay.volume_rules`), and evictions,
which disruption budgets may forbid (:mod:`~spinney.sim.replay.budget_rules`).
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from spinney.sim.replay.budget_rules import BudgetRules
from spinney.sim.replay.claim_rules import ClaimRules
from spinney.sim.replay.fragmentation import FreeSpace
from spinney.sim.replay.history import History, JobHappening
from spinney.sim.replay.recorded_rules import CORDONED, RecordedRules, tolerates
from spinney.sim.replay.trace import WHOLE, Ask, Job, Machine, Trace
from spinney.sim.replay.volume_rules import VolumeRules


@dataclass
class _Load:
    """What is on a machine. Mutable."""

    cpu: int = 0
    memory: int = 0
    others: Counter[str] = field(default_factory=Counter)
    gpus: Counter[int] = field(default_factory=Counter)
    """Thousandths in use by device."""
    applications: Counter[str] = field(default_factory=Counter)


def problems_of(trace: Trace, history: History) -> list[str]:
    """Return everything that is wrong with a replay; empty if nothing is."""
    return violations(trace, history) + (left_out(trace, history) if trace.offered_once else [])


def violations(trace: Trace, history: History) -> list[str]:
    """Return what is wrong with the placements of a replay, oldest first; empty if nothing is."""
    return list(_violations(trace, history.events))


def _violations(trace: Trace, events: Sequence[JobHappening]) -> Iterator[str]:
    machines = {machine.name: machine for machine in trace.machines}
    loads: dict[str, _Load] = {name: _Load() for name in machines}
    held: dict[int, JobHappening] = {}
    started: set[int] = set()
    rules, budgets = RecordedRules(trace.changes), BudgetRules(trace)
    claims, volumes = ClaimRules(trace.changes), VolumeRules(trace.changes)
    for event in events:
        job = trace.jobs[event.job]
        wrong = (*budgets.problems(event), *volumes.problems(job, event))
        yield from (f"{event.at:g} s: job {job.name}: {problem}" for problem in wrong)
        claims.see(job, event)
        if event.what == "started":
            where = f"{event.at:g} s: job {job.name}"
            if event.job in held:
                yield f"{where}: started twice"
            if event.at < job.submitted:
                yield f"{where}: started before it was submitted at {job.submitted:g} s"
            if len(event.nodes) != job.pods:
                yield f"{where}: {len(event.nodes)} of {job.pods} pods were placed"
            yield from (f"{where}: {problem}" for problem in _apart(job, event, machines))
            gone = {each.machine for each in trace.outages if each.covers(event.at)}
            yield from (f"{where}: {node} is gone then" for node in event.nodes if node in gone)
            there_before = event.job not in started and _ran_there(job, event)
            if not there_before:
                closed = {each.machine for each in trace.closures if each.covers(event.at)}
                pods = enumerate(event.nodes)
                kept_out = [node for place, node in pods if node in closed and not _goes_anywhere(job, place)]
                yield from (f"{where}: {node} takes no pods then" for node in kept_out)
                rules.move_to(event.at)
                yield from (f"{where}: {problem}" for problem in rules.problems(job, event.nodes))
            claimed = claims.started(job, event, there_before=there_before)
            yield from (f"{where}: {problem}" for problem in claimed)
            started.add(event.job)
            for node, ask, devices in zip(event.nodes, job.asks, event.devices, strict=False):
                if node not in machines:
                    yield f"{where}: node {node} does not exist"
                    continue
                _put(loads[node], job, ask, devices, 1)
                yield from (f"{where}: {problem}" for problem in _wrong(machines[node], loads[node], job, ask, devices))
            held[event.job] = event
        elif event.what in {"ended", "evicted", "failed"} and event.job in held:
            before = held.pop(event.job)
            claims.left(job, before)
            for node, ask, devices in zip(before.nodes, job.asks, before.devices, strict=False):
                if node in loads:
                    _put(loads[node], job, ask, devices, -1)


def _ran_there(job: Job, event: JobHappening) -> bool:
    """Tell whether a job started where it ran when its cluster was first seen."""
    return job.recorded is not None and event.nodes == tuple(each.node for each in job.recorded.pods)


def _goes_anywhere(job: Job, place: int) -> bool:
    """Tell whether a pod of a job puts up with nodes that are closed."""
    return job.recorded is not None and tolerates(job.recorded.pods[place].pod, CORDONED)


def _put(load: _Load, job: Job, ask: Ask, devices: Sequence[int], sign: int) -> None:
    load.cpu += sign * ask.cpu
    load.memory += sign * ask.memory
    for name, amount in ask.others:
        load.others[name] += sign * amount
    for device in devices:
        load.gpus[device] += sign * ask.milli
    if job.application:
        load.applications[job.application] += sign


def _wrong(machine: Machine, load: _Load, job: Job, ask: Ask, devices: Sequence[int]) -> Iterator[str]:
    if load.cpu > machine.cpu:
        yield f"{machine.name} gives {load.cpu} millicores but has {machine.cpu}"
    if load.memory > machine.memory:
        yield f"{machine.name} gives {load.memory} MiB but has {machine.memory}"
    for name, _ in ask.others:
        if (amount := load.others[name]) > machine.others.get(name, 0):
            yield f"{machine.name} gives {amount} of {name} but has {machine.others.get(name, 0)}"
    if len(set(devices)) != ask.gpus:
        yield f"holds {len(set(devices))} GPUs of {machine.name} but asked for {ask.gpus}"
    for device in devices:
        if not 0 <= device < machine.gpus:
            yield f"holds GPU {device} of {machine.name}, which has {machine.gpus}"
        if load.gpus[device] > WHOLE:
            yield f"GPU {device} of {machine.name} gives {load.gpus[device]} thousandths"
    if ask.gpus and ask.models and machine.model not in ask.models:
        yield f"is on a {machine.model} but accepts only {', '.join(sorted(ask.models))}"
    if ask.pool and machine.pool != ask.pool:
        yield f"is in pool {machine.pool!r} but belongs in {ask.pool!r}"
    if ask.most_per_node and load.applications[job.application] > ask.most_per_node:
        yield f"{machine.name} has more than {ask.most_per_node} of application {job.application}"


def _apart(job: Job, event: JobHappening, machines: dict[str, Machine]) -> Iterator[str]:
    if job.topology:
        domains = {machines[node].labels.get(job.topology) for node in event.nodes if node in machines}
        if len(domains) != 1 or None in domains:
            yield f"its pods are in {len(domains)} values of {job.topology}"


def left_out(trace: Trace, history: History) -> list[str]:
    """Return the jobs that were forgotten though a machine had room for them when they came.

    For traces whose jobs are offered once, one pod each, and never end: each comes when all before it are in place.
    """
    started = {event.job: event for event in history.events if event.what == "started"}
    machines = trace.machines
    place = {machine.name: number for number, machine in enumerate(machines)}
    space = FreeSpace.empty(machines)
    memory = np.array([machine.memory for machine in machines])
    models = np.array([machine.model for machine in machines])
    found = []
    for number, job in enumerate(trace.jobs):
        ask, event = job.ask, started.get(number)
        if event is not None:
            space.take(place[event.nodes[0]], ask, event.devices[0])
            memory[place[event.nodes[0]]] -= ask.memory
            continue
        room = (space.cpu >= ask.cpu) & (memory >= ask.memory)
        if ask.gpus:
            room &= (space.gpus >= ask.milli).sum(axis=1) >= ask.gpus
        if ask.models:
            room &= np.isin(models, sorted(ask.models))
        if room.any():
            found.append(f"{job.name} was left out though {machines[int(room.argmax())].name} had room")
    return found
