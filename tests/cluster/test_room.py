"""What the journal says about room: rows on which pods were only put have no more of it than before."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spinney.api.labels import GPU_FRACTION
from spinney.cluster.classes import RequestClass, RequestClasses
from spinney.cluster.fitting import fit_later_and_now
from spinney.cluster.ledger import Ledger
from spinney.cluster.table import Holding
from tests.cluster.building import a_container, a_node, a_pod

steps = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 3), st.sampled_from(Holding), st.integers(0, 3), st.booleans()),
    max_size=12,
)


@given(steps, st.integers(0, 12))
def test_a_row_without_room_has_none_while_pods_are_only_put(
    taken: list[tuple[int, int, Holding, int, bool]], seen: int
) -> None:
    """Whatever is asked for, whole devices or shares of one, and however pods that were put before hold it."""
    ledger, kinds = _two_nodes()
    held: list[tuple[int, RequestClass, Holding, tuple[str, ...]]] = []
    rows = np.array([0, 1], dtype=np.intp)
    position, before = ledger.table.usage.position, [fit_later_and_now(ledger, kind, rows)[0] for kind in kinds]
    for number, (row, asked, holding, group, leaves) in enumerate(taken):
        if leaves and held:
            ledger.remove(*held.pop())
        else:
            request = kinds[asked]
            groups = (f"g{group}",) if request.share is not None else ()
            held.append((rows.item(row), request, holding, groups))
            ledger.add(*held[-1])
        if number + 1 == seen:
            position = ledger.table.usage.position
            before = [fit_later_and_now(ledger, kind, rows)[0] for kind in kinds]
    if ledger.table.usage.only_taken_since(position):
        for request, had_room in zip(kinds, before, strict=True):
            assert not (fit_later_and_now(ledger, request, rows)[0] & ~had_room).any()


def test_pods_that_leave_may_give_room() -> None:
    """So may a node that is changed, and pods that are taken off several nodes together."""
    ledger, kinds = _two_nodes()
    table, rows = ledger.table, np.array([0, 1], dtype=np.intp)

    def only_taken(position: int = table.usage.position) -> bool:
        return table.usage.only_taken_since(position) and table.usage.fork().only_taken_since(position)

    ledger.add(0, kinds[0], Holding.ACTIVE)
    ledger.add_many(rows, np.array([1, 2]), kinds[0])
    assert only_taken()
    before = table.usage.position
    ledger.add_many(rows, np.array([-1, -2]), kinds[0])
    assert not only_taken(before)
    before = table.usage.position
    ledger.remove(0, kinds[0], Holding.ACTIVE)
    assert not only_taken(before)
    before = table.usage.position
    table.put(a_node("n0", gpus="4"))
    assert not only_taken(before)
    assert only_taken(table.usage.position)


def _two_nodes() -> tuple[Ledger, list[RequestClass]]:
    """Return a ledger over two nodes, and what may be asked for on them."""
    ledger = Ledger()
    for number in range(2):
        ledger.table.put(a_node(f"n{number}", cpu="4", gpus="2"))
    classes = RequestClasses(ledger.table.axis)
    asked = [
        a_pod(containers=(a_container(cpu="1"),)),
        a_pod(containers=(a_container(cpu="1", **{"nvidia.com/gpu": "1"}),)),
        a_pod(containers=(a_container(cpu="1"),), annotations={GPU_FRACTION: "0.3"}),
        a_pod(containers=(a_container(cpu="1"),), annotations={GPU_FRACTION: "0.7"}),
    ]
    return ledger, [classes.of(pod) for pod in asked]
