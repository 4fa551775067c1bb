"""Where queues come from, and what silence means in each source."""

import pytest

from spinney.api import kai
from spinney.api.struct import JSON, convert
from spinney.scheduler.fairshare import GPU, NO_BOUND, UNLIMITED, ZERO, Amounts, QueueTree, Weights
from spinney.scheduler.fairshare.sources import InvalidQueues, queues_from_config, queues_from_objects


def an_object(name: str, **spec: object) -> kai.Queue:
    raw: JSON = {"metadata": {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z"}, "spec": spec}
    return convert(kai.Queue, raw)


def test_silence_in_configuration_means_equal_surplus_and_no_limit() -> None:
    """A configured queue that says nothing has no quota, weight 1 and no limit."""
    (queue,) = queues_from_config([{"name": "team"}])
    assert (queue.quota, queue.weight, queue.limit, queue.priority) == (ZERO, Weights(1, 1, 1), NO_BOUND, 100)


def test_configured_amounts_are_kubernetes_quantities() -> None:
    """CPU is written in cores, memory in bytes, GPUs in devices, each as a quantity or as unlimited."""
    (queue,) = queues_from_config(
        [
            {
                "name": "team",
                "gpu": {"quota": 1.5, "limit": 4},
                "cpu": {"quota": "1500m"},
                "memory": {"quota": "unlimited"},
            }
        ]
    )
    assert queue.quota == Amounts(cpu=1500, memory=UNLIMITED, gpu=GPU * 3 // 2)
    assert queue.limit == Amounts(UNLIMITED, UNLIMITED, 4 * GPU)


@pytest.mark.parametrize(
    ("raw", "complaint"),
    [
        ([{"name": "a", "quota": 1}], "unknown field `quota`"),
        ([{"name": "a"}, {"name": "a"}], r"queues\[1\].name: 'a' is the name of an earlier queue"),
        ([{"name": "a", "parent": "b"}], r"queues\[0\].parent: no queue is named 'b'"),
        ([{"name": "a", "gpu": {"quota": "many"}}], r"queues\[0\] \(a\): 'many' is not a quantity"),
        ([{"name": "a", "gpu": {"weight": -1}}], r"gpu\.weight"),
    ],
)
def test_bad_configuration_names_the_queue(raw: list[JSON], complaint: str) -> None:
    """A configuration that makes no sense is refused, naming the queue and the field."""
    with pytest.raises(InvalidQueues, match=complaint):
        queues_from_config(raw)


def test_silence_in_a_queue_object_means_nothing_may_run() -> None:
    """A Queue object that says nothing has quota, weight and limit 0, as KAI means it."""
    (queue,) = queues_from_objects([an_object("team")])
    assert (queue.quota, queue.weight, queue.limit) == (ZERO, Weights(0, 0, 0), ZERO)


def test_queue_objects_count_in_kais_units() -> None:
    """A Queue object counts devices, millicores and megabytes of 10^6 bytes; -1 is unlimited."""
    resources = {
        "gpu": {"quota": 1.5, "limit": -1, "overQuotaWeight": 2},
        "cpu": {"quota": 1500, "limit": -1},
        "memory": {"quota": 2000, "limit": -1},
    }
    (queue,) = queues_from_objects([an_object("team", parentQueue="top", resources=resources, reclaimMinRuntime="90s")])
    assert queue.quota == Amounts(cpu=1500, memory=2_000_000_000, gpu=GPU * 3 // 2)
    assert queue.limit == NO_BOUND
    assert (queue.parent, queue.weight.gpu) == ("top", 2.0)
    assert queue.reclaim_min_runtime is not None
    assert queue.reclaim_min_runtime.total_seconds() == 90


def test_without_hierarchy_leaves_stand_side_by_side() -> None:
    """Without full hierarchy every leaf hangs below one unlimited queue."""
    queues = queues_from_objects(
        [an_object("top"), an_object("a", parentQueue="top"), an_object("b", parentQueue="top")], full_hierarchy=False
    )
    tree = QueueTree(queues)
    assert [(queue.name, queue.parent) for queue in tree.queues] == [
        ("default", None),
        ("a", "default"),
        ("b", "default"),
    ]
