"""Where queues come from, and what silence means there."""

from spinney.api import kai
from spinney.api.struct import JSON, convert
from spinney.scheduler.fairshare import GPU, NO_BOUND, ZERO, Amounts, Weights
from spinney.scheduler.fairshare.sources import queue_of


def an_object(name: str, **spec: object) -> kai.Queue:
    raw: JSON = {"metadata": {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z"}, "spec": spec}
    return convert(kai.Queue, raw)


def test_silence_in_a_queue_object_means_nothing_may_run() -> None:
    """A Queue object that says nothing has quota, weight and limit 0, as KAI means it."""
    queue = queue_of(an_object("team"))
    assert (queue.quota, queue.weight, queue.limit) == (ZERO, Weights(0, 0, 0), ZERO)


def test_queue_objects_count_in_kais_units() -> None:
    """A Queue object counts devices, millicores and megabytes of 10^6 bytes; -1 is unlimited."""
    resources = {
        "gpu": {"quota": 1.5, "limit": -1, "overQuotaWeight": 2},
        "cpu": {"quota": 1500, "limit": -1},
        "memory": {"quota": 2000, "limit": -1},
    }
    queue = queue_of(an_object("team", parentQueue="top", resources=resources, reclaimMinRuntime="90s"))
    assert queue.quota == Amounts(cpu=1500, memory=2_000_000_000, gpu=GPU * 3 // 2)
    assert queue.limit == NO_BOUND
    assert (queue.parent, queue.weight.gpu) == ("top", 2.0)
    assert queue.reclaim_min_runtime is not None
    assert queue.reclaim_min_runtime.total_seconds() == 90


def test_a_quota_beyond_any_number_is_more_than_any_cluster_has() -> None:
    """The API takes every number that JSON has; a queue that may have more than can be counted may have everything."""
    most = {"quota": 1.7e308, "limit": 1.7e308}
    queue = queue_of(an_object("team", resources={"gpu": most, "cpu": most, "memory": most}))
    everything = Amounts(cpu=1 << 60, memory=1 << 60, gpu=1 << 60)
    assert everything.within(queue.quota)
    assert everything.within(queue.limit)
    assert float(sum(queue.quota.astuple())) < float("inf")
