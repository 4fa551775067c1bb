"""Answers that are kept and refreshed are the same as answers computed from nothing, whatever happens in between."""

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spinney.api.affinity import Taint
from spinney.api.core import Node
from spinney.cluster.filters import FilterFramework
from spinney.cluster.scores import ScoreFramework
from spinney.coscheduling.feasibility.ranking import candidate_of
from spinney.coscheduling.framework import CycleState
from tests.virtual_time import on_virtual_time

from .bench import Bench, a_node, a_pod

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("node"), st.integers(0, 9), st.integers(1, 6)),
        st.tuples(st.just("cordon"), st.integers(0, 9), st.booleans()),
        st.tuples(st.just("place"), st.integers(0, 19), st.integers(0, 9)),
        st.tuples(st.just("take"), st.integers(0, 19), st.just(0)),
        st.tuples(st.just("soft"), st.integers(0, 9), st.just(0)),
        st.tuples(st.just("ask"), st.integers(0, 2), st.just(0)),
    ),
    min_size=5,
    max_size=60,
)
ASKED = (
    a_pod("small", cpu="500m"),
    a_pod("large", cpu="2"),
    a_pod("picky", cpu="1", node_selector={"parity": "even"}),
)


def a_labelled_node(number: int, cpu: int, **spec: Any) -> Node:
    parity = {"parity": "odd" if number % 2 else "even"}
    return a_node(f"n{number}", cpu=cpu, labels=parity, **spec)


@given(steps=STEPS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@on_virtual_time
async def test_the_best_node_is_the_best_node(steps: list[tuple[str, int, int]]) -> None:
    """After any history of nodes and pods, the remembered best node is the one a fresh computation finds."""
    bench = Bench()
    bench.put(*ASKED)
    for what, which, how in steps:
        if what == "node":
            bench.put(a_labelled_node(which, how))
        elif what == "cordon":
            bench.put(a_labelled_node(which, 3, unschedulable=bool(how)))
        elif what == "soft" and which == 0:
            bench.put(a_labelled_node(which, 3, taints=(Taint(key="old", effect="PreferNoSchedule"),)))
        elif what == "place":
            bench.put(a_pod(f"p{which}", node=f"n{how}", cpu="1"))
        elif what == "take" and bench.cluster.pod(bench.key(f"p{which}")) is not None:
            bench.delete(f"p{which}")
        elif what == "ask":
            record = bench.record(ASKED[which].metadata.name)
            found = bench.ranking.best(CycleState(), record)
            view, candidate = bench.cluster.view, candidate_of(record)
            mask = FilterFramework(bench.profile.filter_rules).feasible(view, candidate).mask
            ranking = ScoreFramework(bench.profile.score_rules).ranking(view, candidate, mask)
            assert found == (int(ranking[0]) if len(ranking) else None)
