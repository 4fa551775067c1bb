"""The checker finds what is wrong with placements, whoever made them."""

from dataclasses import replace

import pytest

from spinney.sim.replay import Ask, History, Job, Outage, Trace
from spinney.sim.replay.checking import left_out, violations
from spinney.sim.replay.history import JobHappening
from tests.sim.replay.building import machines


def a_trace(*asks: Ask, **job: object) -> Trace:
    """Return pods of their own on one machine of two GPUs."""
    jobs = tuple(Job(f"j{number}", 0.0, ask, **job) for number, ask in enumerate(asks))  # type: ignore[arg-type]
    return Trace("test", machines(1, gpus=2, cpu=8000, model="T4"), jobs)


def started(*devices: tuple[int, ...], node: str = "n0") -> History:
    """Return a history in which every job has started on a node, with these devices."""
    return History([JobHappening(0.0, "started", number, (node,), (held,)) for number, held in enumerate(devices)])


def test_what_fits_is_not_complained_about() -> None:
    """Shares within a device and a whole device beside them are fine."""
    trace = a_trace(Ask(gpus=1, milli=400), Ask(gpus=1, milli=600), Ask(gpus=1))

    assert violations(trace, started((0,), (0,), (1,))) == []


@pytest.mark.parametrize(
    ("asks", "history", "complaint"),
    [
        ((Ask(gpus=1, milli=600), Ask(gpus=1, milli=600)), started((0,), (0,)), "gives 1200 thousandths"),
        ((Ask(gpus=1), Ask(gpus=1)), started((0,), (0,)), "gives 2000 thousandths"),
        ((Ask(cpu=5000), Ask(cpu=5000)), started((), ()), "gives 10000 millicores but has 8000"),
        ((Ask(memory=300_000),), started(()), "MiB"),
        ((Ask(gpus=2),), started((0,)), "holds 1 GPUs"),
        ((Ask(gpus=1),), started((7,)), "holds GPU 7"),
        ((Ask(gpus=1, models=frozenset({"A10"})),), started((0,)), "accepts only A10"),
        ((Ask(gpus=1, pool="other"),), started((0,)), "belongs in 'other'"),
        ((Ask(gpus=1),), started((0,), node="n9"), "does not exist"),
        ((Ask(others=(("rdma", 5),)),), started(()), "gives 5 of rdma but has 0"),
    ],
)
def test_each_violation_is_named(asks: tuple[Ask, ...], history: History, complaint: str) -> None:
    """Overcommitted nodes and devices, wrong models, pools and nodes are all found."""
    assert complaint in "; ".join(violations(a_trace(*asks), history))


def test_a_job_on_a_machine_that_is_gone_is_found() -> None:
    """A start on a node that has failed, and is not back yet, is a violation; one after it is back is none."""
    trace = replace(a_trace(Ask(gpus=1)), outages=(Outage("n0", 10, 20),))
    found = {at: violations(trace, History([JobHappening(at, "started", 0, ("n0",), ((0,),))])) for at in (9, 10, 20)}

    assert found == {9: [], 10: ["10 s: job j0: n0 is gone then"], 20: []}


def test_a_job_that_started_on_a_closed_machine_is_found() -> None:
    """A start on a node that takes no pods is a violation; one that ran on it before is none."""
    trace = replace(a_trace(Ask(gpus=1)), closures=(Outage("n0", 10, 20),))
    found = {at: violations(trace, History([JobHappening(at, "started", 0, ("n0",), ((0,),))])) for at in (9, 10, 20)}

    assert found == {9: [], 10: ["10 s: job j0: n0 takes no pods then"], 20: []}


def test_a_gang_that_is_split_or_apart_is_found() -> None:
    """Half a gang, and a gang over two racks where one was asked for, are violations."""
    job = Job("gang", 5.0, Ask(gpus=1), pods=2, topology="rack")
    nodes = [replace(machine, labels={"rack": machine.name}) for machine in machines(2)]
    trace = Trace("test", tuple(nodes), (job,))

    half = violations(trace, History([JobHappening(5.0, "started", 0, ("n0",), ((0,),))]))
    apart = violations(trace, History([JobHappening(1.0, "started", 0, ("n0", "n1"), ((0,), (0,)))]))

    assert any("1 of 2 pods" in each for each in half)
    assert any("2 values of rack" in each for each in apart)
    assert any("before it was submitted" in each for each in apart)


def test_what_ends_makes_room() -> None:
    """A device is free again after its user has ended."""
    trace = a_trace(Ask(gpus=2), Ask(gpus=2))
    first, second = started((0, 1), (0, 1)).events

    assert violations(trace, History([first, JobHappening(1.0, "ended", 0), second])) == []


def test_who_was_left_out_though_there_was_room_is_found() -> None:
    """A pod that was never placed on an empty machine that suits it is named."""
    trace = replace(a_trace(Ask(gpus=1), Ask(gpus=2)), offered_once=True)

    assert left_out(trace, started((0,))) == []
    assert left_out(trace, History()) != []
