"""Stand-ins for pod lists that one does not have: drawn from the same pods, in the proportions that the name says."""

import pytest
from benchmarks.traces.proportions import experiment, in_proportion

from spinney.sim.replay.trace import Ask
from tests.sim.replay.building import machines

PODS = [
    *[Ask(cpu=8000)] * 100,
    *[Ask(cpu=4000, gpus=1, milli=500)] * 300,
    *[Ask(cpu=8000, gpus=1)] * 300,
    *[Ask(cpu=64_000, gpus=8)] * 10,
]
CHOOSY = [*PODS[:150], *[Ask(cpu=4000, gpus=1, milli=500, models=frozenset({"T4"}))] * 50, *PODS[200:]]


def _part(some: list[int], everything: list[int]) -> float:
    return sum(some) / sum(everything)


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("cpu050", 0.05),
        ("cpu250", 0.25),
        ("gpushare60", 0.6),
        ("gpushare100", 1.0),
        ("gpuspec33", 0.33),
        ("multigpu50", 0.5),
    ],
)
def test_a_list_is_drawn_in_the_proportion_of_its_name(name: str, part: float) -> None:
    """Pods without GPUs, shares, accepted models and several GPUs are as frequent as wanted; no other pods appear."""
    drawn = in_proportion(name, part, PODS, CHOOSY)
    asked = [ask.gpu_milli for ask in drawn]
    found = {
        "cpu": _part([not ask.gpus for ask in drawn], [1] * len(drawn)),
        "gpushare": _part([ask.gpu_milli for ask in drawn if ask.milli < 1000], asked),
        "gpuspec": _part([bool(ask.models) for ask in drawn], [ask.gpus > 0 for ask in drawn]),
        "multigpu": _part([ask.gpu_milli for ask in drawn if ask.gpus > 1], asked),
    }
    assert found[name.rstrip("0123456789")] == pytest.approx(part, abs=0.02)
    assert {(ask.cpu, ask.gpus, ask.milli) for ask in drawn} <= {(ask.cpu, ask.gpus, ask.milli) for ask in PODS}


@pytest.mark.parametrize("nodes", [30, 90])
def test_a_stand_in_asks_for_130_per_cent(nodes: int) -> None:
    """Where a list asks for less than 130 % of the GPUs clones are added, where it asks for more pods are left out."""
    trace = experiment("small", machines(nodes), PODS, 42)
    assert sum(job.ask.gpu_milli for job in trace.jobs) / (8000 * nodes) == pytest.approx(1.3, abs=0.04)
    assert (len(trace.jobs) > len(PODS)) == (nodes == 90)
