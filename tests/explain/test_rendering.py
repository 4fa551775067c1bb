"""How explanations read."""

import json

import msgspec

from spinney.api.struct import encode
from spinney.explain.reasons import (
    DomainReport,
    Explanation,
    FilterReport,
    Obstacle,
    PodReport,
    QueueReport,
    ReasonCount,
    ScenarioCount,
    Shortage,
    VictimReport,
)
from spinney.explain.rendering import as_text, condition_message, event_message, kube_message


def a_report(*counts: tuple[str, int], total: int = 5) -> PodReport:
    """Return a pod refused everywhere, one filter per reason."""
    return PodReport(
        pod="default/p",
        total_nodes=total,
        feasible_nodes=0,
        filters=tuple(
            FilterReport(filter=f"F{index}", nodes=nodes, reasons=(ReasonCount(reason=reason, nodes=nodes),))
            for index, (reason, nodes) in enumerate(counts)
        ),
    )


RACK = DomainReport(
    level="rack",
    domain="r3",
    nodes=4,
    fits=2,
    needed=8,
    shortages=(Shortage(resource="nvidia.com/gpu", amount=6, nodes=3),),
)


def test_kube_message_follows_kube_scheduler_grammar() -> None:
    """Reasons are counted, sorted as strings and joined as kube-scheduler does."""
    report = a_report(("node(s) had untolerated taint(s)", 2), ("Insufficient cpu", 3))
    assert kube_message(report) == ("0/5 nodes are available: 2 node(s) had untolerated taint(s), 3 Insufficient cpu.")


def test_kube_message_sorts_counts_as_text() -> None:
    """Ten comes before two, because kube-scheduler sorts the rendered entries."""
    assert kube_message(a_report(("b", 2), ("a", 10), total=12)) == "0/12 nodes are available: 10 a, 2 b."


def test_kube_message_without_nodes() -> None:
    """An empty cluster has its own sentence."""
    assert kube_message(a_report(total=0)) == "no nodes available to schedule pods"


def test_kube_message_of_a_pre_filter() -> None:
    """A pod refused before nodes were looked at says so instead of counting."""
    report = PodReport(
        pod="default/p", total_nodes=3, feasible_nodes=0, pre_filter='persistentvolumeclaim "x" not found'
    )
    assert kube_message(report) == '0/3 nodes are available: persistentvolumeclaim "x" not found.'


def test_events_fit_into_their_field() -> None:
    """An event is never longer than 1024 bytes, whatever the alphabet, and shows where it was cut."""
    report = a_report(*((f"ünbrauchbar {index:03}", 1) for index in range(200)))
    message = event_message(Explanation(subject="default/g", pods=(report,)))
    assert len(message.encode()) <= 1024
    assert message.endswith(" ...")


def test_condition_speaks_of_cluster_and_nearest_miss() -> None:
    """The condition begins with the cluster, names the nearest miss and what it lacks."""
    message = condition_message(Explanation(subject="default/g", placed=2, needed=8, domains=(RACK,)))
    assert message == (
        "unschedulable on cluster: 2 of 8 pods found room; 2 of 8 pods fit in rack r3; it lacks 6 GPUs on 3 nodes"
    )


def test_a_domain_without_usable_nodes_is_not_called_small() -> None:
    """Where every node is ruled out, room is not what is missing."""
    closed = DomainReport(level="the cluster", domain="", nodes=0, fits=0, needed=1, possible=False)
    message = condition_message(Explanation(subject="default/g", needed=1, domains=(closed,)))
    assert "0 of 1 pods fit in the cluster: no node there may take them" in message


def test_queue_rule_is_named_with_its_figures() -> None:
    """A queue that refuses is named with its bound and its use."""
    queue = QueueReport(queue="team-a", rule="OverLimit", resource="cpu", bound=8000, used=6500, requested=2000)
    message = condition_message(Explanation(subject="default/g", queue=queue))
    assert "queue team-a would exceed its limit of 8 CPU cores: 6.5 CPU cores in use, 2 CPU cores requested" in message


def test_text_tells_everything() -> None:
    """The text lists filters with examples, domains and victims, and says when it was simulated."""
    text = as_text(
        Explanation(
            subject="default/g",
            kind="PodGang",
            placed=2,
            needed=8,
            pods=(a_report(("Insufficient cpu", 5)),),
            domains=(RACK,),
            domain_count=7,
            victims=(
                VictimReport(
                    action="preempt",
                    candidates=4,
                    rejected=(ScenarioCount(reason="would break the budget of web", scenarios=2),),
                ),
            ),
            simulated=True,
        )
    )
    assert text.splitlines() == [
        "PodGang default/g: 2 of 8 pods found room",
        "  simulated from a snapshot; the scheduler of this workload may have seen something else",
        "  default/p: 0 of 5 nodes can take it",
        "    F0: 5 Insufficient cpu, 5 may fit once pods are evicted",
        "  domains (all pods in one rack):",
        "    2 of 8 pods fit in rack r3; it lacks 6 GPUs on 3 nodes",
        "    6 others held no more",
        "  preempt: 4 pods might have been evicted from its queue, but",
        "    would break the budget of web (2 attempts)",
    ]


def test_json_is_camel_case_and_complete() -> None:
    """The JSON form carries the same facts under the API's spelling."""
    decoded = json.loads(encode(Explanation(subject="default/g", pods=(a_report(("Insufficient cpu", 5)),))))
    assert decoded["pods"][0]["filters"][0]["reasons"] == [{"reason": "Insufficient cpu", "nodes": 5}]
    assert decoded["pods"][0]["totalNodes"] == 5


def nearest(explanation: Explanation) -> list[str]:
    """Return what an explanation says comes nearest to letting the gang in."""
    lines = [line.strip() for line in as_text(explanation).splitlines()]
    return lines[lines.index("nearest to fitting:") + 1 :] if "nearest to fitting:" in lines else []


def an_obstacle(name: str, text: str) -> Obstacle:
    """Return what alone is in the way on one node."""
    return Obstacle(filter=name, text=text, nodes=1, node="n1")


def test_a_gang_is_not_told_of_a_single_node_that_lacks_room() -> None:
    """A domain says what a gang lacks as a whole; what one node lacks for one of its pods is beside the point."""
    full = PodReport(
        pod="default/p", total_nodes=5, feasible_nodes=0, obstacles=(an_obstacle("NodeResourcesFit", "n1 lacks 1 GPU"),)
    )
    assert nearest(Explanation(subject="default/g", needed=8, pods=(full,), domains=(RACK,))) == []
    assert nearest(Explanation(subject="default/p", needed=1, pods=(full,), domains=(RACK,))) == ["n1 lacks 1 GPU"]


def test_what_keeps_pods_off_is_named_where_no_node_may_take_them() -> None:
    """Where a label or taint rules every node out, it is named, although there is no room to speak of."""
    closed = DomainReport(level="the cluster", domain="", nodes=0, fits=0, needed=2, possible=False)
    report = msgspec.structs.replace(a_report(("x", 5)), obstacles=(an_obstacle("NodeAffinity", "n1 lacks a=b"),))
    assert nearest(Explanation(subject="default/g", needed=2, pods=(report,), domains=(closed,))) == ["n1 lacks a=b"]


def test_nodes_that_may_not_be_used_are_counted_beside_a_domain_that_is_too_small() -> None:
    """A rack is too small with the nodes that may take the pods; that others are cordoned or tainted is said."""
    small = DomainReport(level="rack", domain="r1", nodes=3, fits=2, needed=4, possible=False, capacity=3, closed=1)
    message = condition_message(Explanation(subject="default/g", placed=2, needed=4, domains=(small,)))
    assert "too small for the rest even when empty (3 usable nodes; 1 other may not take them)" in message


def test_a_search_without_candidates_says_who_was_looked_for() -> None:
    """Nobody to evict is said in words, not as a count of zero."""
    text = as_text(Explanation(subject="default/g", victims=(VictimReport(action="preempt", candidates=0),)))
    assert "preempt: no pod of lower priority in its queue may be evicted" in text


def test_a_queue_that_refuses_is_the_headline() -> None:
    """Where a queue holds a gang back nothing is said about room, which nobody looked for."""
    queue = QueueReport(
        queue="team-a", rule="NonPreemptibleOverQuota", resource="nvidia.com/gpu", bound=8, used=8, requested=8
    )
    text = as_text(Explanation(subject="default/g", needed=2, queue=queue))
    assert text.splitlines()[0] == "PodGroup default/g: its queue does not let it in"


def test_one_line_begins_with_what_decided() -> None:
    """A list of gangs cuts the line: the queue or the missing object comes before what has been looked at as well."""
    queue = QueueReport(queue="a", rule="OverLimit", resource="nvidia.com/gpu", bound=16, used=0, requested=32)
    refused = condition_message(Explanation(subject="default/g", needed=4, queue=queue))
    assert refused.startswith("unschedulable on cluster: queue a would exceed its limit of 16 GPUs")

    unknown = Explanation(subject="default/g", placed=2, needed=2, others=("queue nope does not exist",))
    line = "unschedulable on cluster: queue nope does not exist; there is room for all 2 pods"
    assert condition_message(unknown) == line
