"""Builders and hypothesis strategies for queues and their books."""

from collections.abc import Mapping, Sequence

from hypothesis import strategies as st

from spinney.scheduler.fairshare import GPU, UNLIMITED, ZERO, Amounts, QueueBooks, QueueInfo, QueueTree, Weights


def gpus(count: float) -> Amounts:
    """Build an amount of devices only."""
    return Amounts(gpu=round(count * GPU))


def a_queue(
    name: str,
    *,
    parent: str | None = None,
    quota: float = 0,
    limit: float = UNLIMITED,
    weight: float = 1,
    priority: int = 100,
    created: float = 0,
) -> QueueInfo:
    """Build a queue of which only the GPU figures matter: CPU and memory are unlimited."""
    return QueueInfo(
        name=name,
        parent=parent,
        quota=Amounts(UNLIMITED, UNLIMITED, _devices(quota)),
        limit=Amounts(UNLIMITED, UNLIMITED, _devices(limit)),
        weight=Weights(gpu=weight),
        priority=priority,
        created=created,
    )


def books_of(
    *queues: QueueInfo,
    total: float,
    requested: Mapping[str, float] | None = None,
    allocated: Mapping[str, float] | None = None,
    non_preemptible: Sequence[str] = (),
) -> QueueBooks:
    """Build books with fair shares divided; what is allocated is also requested."""
    books = QueueBooks(QueueTree(queues), gpus(total))
    for name, count in (requested or {}).items():
        books.request(name, gpus(count))
    for name, count in (allocated or {}).items():
        books.charge(name, gpus(count), preemptible=name not in non_preemptible)
        if name not in (requested or {}):
            books.request(name, gpus(count))
    books.set_fair_shares()
    return books


def _devices(count: float) -> int:
    return UNLIMITED if count < 0 else round(count * GPU)


def amounts(maximum: int = 20) -> st.SearchStrategy[Amounts]:
    """Draw amounts up to ``maximum`` cores, bytes and devices, GPUs in hundredths."""
    return st.builds(
        Amounts,
        st.integers(0, maximum),
        st.integers(0, maximum),
        st.integers(0, maximum * 100).map(lambda hundredths: hundredths * (GPU // 100)),
    )


def bounds(maximum: int = 20) -> st.SearchStrategy[Amounts]:
    """Draw quotas or limits: amounts, each possibly unlimited."""
    one = st.one_of(st.just(UNLIMITED), st.integers(0, maximum))
    return st.builds(Amounts, one, one, one.map(lambda devices: devices * GPU if devices >= 0 else UNLIMITED))


@st.composite
def trees(draw: st.DrawFn, largest: int = 8) -> QueueTree:
    """Draw a tree of any shape: each queue hangs below an earlier one, or at the top."""
    size = draw(st.integers(1, largest))
    queues = []
    for position in range(size):
        above = draw(st.integers(-1, position - 1))
        weight = st.integers(0, 4).map(float)
        queues.append(
            QueueInfo(
                name=f"q{position}",
                parent=None if above < 0 else f"q{above}",
                priority=draw(st.sampled_from([100, 100, 101])),
                quota=draw(bounds(6)),
                limit=draw(bounds()),
                weight=Weights(draw(weight), draw(weight), draw(weight)),
                created=float(draw(st.integers(0, 3))),
            )
        )
    return QueueTree(queues)


@st.composite
def books(draw: st.DrawFn) -> QueueBooks:
    """Draw books in which leaves have requests, with fair shares divided."""
    tree = draw(trees())
    drawn = QueueBooks(tree, draw(amounts(30)))
    for position, queue in enumerate(tree.queues):
        if tree.is_leaf(position):
            drawn.request(queue.name, draw(amounts()))
    drawn.set_fair_shares()
    return drawn


__all__ = ["ZERO", "a_queue", "amounts", "books", "books_of", "bounds", "gpus", "trees"]
