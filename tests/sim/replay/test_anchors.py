"""The simple policies that waits are compared with: what each does to a gang that waits."""

import pytest
from benchmarks.traces.anchors import Policy, waits

from tests.sim.replay.building import a_job, a_trace


@pytest.mark.parametrize(
    ("policy", "expected"),
    [("fifo", [0, 99, 108, 107]), ("skip", [0, 201, 0, 0]), ("easy", [0, 99, 108, 0])],
)
def test_who_passes_whom(policy: Policy, expected: list[float]) -> None:
    """Strict order lets nobody pass a gang, skipping lets everybody, EASY those that end before its place is free."""
    trace = a_trace(
        a_job("running", 0, gpus=4, duration=100),
        a_job("gang", 1, gpus=8, pods=2, duration=10),
        a_job("long", 2, gpus=4, duration=200),
        a_job("short", 3, gpus=8, duration=50),
    )
    assert waits(trace, policy) == expected
