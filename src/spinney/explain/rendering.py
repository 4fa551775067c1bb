"""How reasons read: as JSON, as text for a terminal, as a condition, as an event.

* :func:`as_json` and :func:`as_text` say everything that is known.
* :func:`condition_message` is one bounded line for a status condition; it begins "unschedulable on cluster".
* :func:`event_message` is the same for an event, within the 1024 bytes an event's note may have.
* :func:`kube_message` is kube-scheduler's sentence about one pod, to the letter, for those who parse it.

All of them are pure and depend on nothing but their argument, so equal explanations render equally.
"""

from typing import Final

from spinney.api.struct import encode
from spinney.explain.amounts import amount, counted, listed
from spinney.explain.counting import RESOURCES_FILTER
from spinney.explain.domains import nearest_miss
from spinney.explain.reasons import DomainReport, Explanation, PodReport, QueueReport, Shortage

EVENT_BYTES: Final = 1024
CONDITION_BYTES: Final = 2048
PREFIX: Final = "unschedulable on cluster"
_ELLIPSIS: Final = " ..."
_NO_NODES: Final = "no nodes available to schedule pods"
_RULES: Final = {
    "OverLimit": "queue {queue} would exceed its limit of {bound}: {used} in use, {requested} requested",
    "NonPreemptibleOverQuota": (
        "non-preemptible use of queue {queue} would exceed its quota of {bound}: {used} in use, {requested} requested"
    ),
    "OverFairShare": "queue {queue} is at its fair share of {bound}: {used} in use, {requested} requested",
}
_LARGER_NODES: Final = "add nodes that are large enough for such a pod, or ask for less in each"
_NOBODY: Final = {
    "preempt": "no pod of lower priority in its queue may be evicted",
    "reclaim": "no pod of another queue may be evicted",
    "consolidate": "no pod may be moved to make room",
}
_MAY: Final = {
    "preempt": "been evicted from its queue",
    "reclaim": "been evicted from other queues",
    "consolidate": "been moved",
}


def kube_message(report: PodReport, post_filter: str = "") -> str:
    """Return kube-scheduler's text for a pod that fits nowhere: ``0/5 nodes are available: 5 Insufficient cpu.``."""
    if report.total_nodes == 0:
        return _NO_NODES
    message = f"0/{report.total_nodes} nodes are available:"
    if report.pre_filter is not None:
        message += f" {report.pre_filter}."
    else:
        counts: dict[str, int] = {}
        for found in report.filters:
            for reason in found.reasons:
                counts[reason.reason] = counts.get(reason.reason, 0) + reason.nodes
        if counts:
            message += f" {', '.join(sorted(f'{count} {reason}' for reason, count in counts.items()))}."
    return f"{message} {post_filter}" if post_filter else message


def kube_event(report: PodReport, post_filter: str = "") -> str:
    """Return :func:`kube_message`, shortened to what an event may carry."""
    return bounded(kube_message(report, post_filter), EVENT_BYTES)


def condition_message(explanation: Explanation) -> str:
    """Return one line for a condition: the rule, domain or filter that decided, in at most ``CONDITION_BYTES``."""
    return bounded(_line(explanation), CONDITION_BYTES)


def event_message(explanation: Explanation) -> str:
    """Return one line for an event, in at most ``EVENT_BYTES``."""
    return bounded(_line(explanation), EVENT_BYTES)


def as_json(explanation: Explanation) -> bytes:
    """Return the whole explanation as JSON."""
    return encode(explanation)


def as_text(explanation: Explanation) -> str:
    """Return the whole explanation for a person at a terminal, several lines."""
    lines = [f"{explanation.kind} {explanation.subject}: {_headline(explanation)}"]
    if explanation.simulated:
        lines.append("  simulated from a snapshot; the scheduler of this workload may have seen something else")
    if explanation.queue is not None:
        lines.append(f"  {_queue(explanation.queue)}")
    lines += [f"  plugin failed: {error}" for error in explanation.plugin_errors]
    lines += [f"  {reason}" for reason in explanation.others]
    for report in explanation.pods:
        lines += _pod_lines(report)
    if explanation.domains and not explanation.domains[0].domain:
        lines += [f"  {_domain(report)}" for report in explanation.domains]
    elif explanation.domains:
        level = explanation.required_level or explanation.domains[0].level
        lines.append(f"  domains (all pods in one {level}):")
        lines += [f"    {_domain(report)}" for report in explanation.domains]
        unlisted = explanation.domain_count - len(explanation.domains)
        if unlisted > 0:
            lines.append(f"    {counted(unlisted, 'other')} held no more")
    for victims in explanation.victims:
        if not victims.candidates:
            lines.append(f"  {victims.action}: {_NOBODY[victims.action]}")
            continue
        lines.append(f"  {victims.action}: {counted(victims.candidates, 'pod')} might have {_MAY[victims.action]}, but")
        lines += [f"    {count.reason}{_times(count.scenarios)}" for count in victims.rejected]
    helpful = _what_would_help(explanation)
    if helpful:
        lines.append("  what would help:")
        lines += [f"    {change}" for change in helpful]
    return "\n".join(lines)


def bounded(text: str, limit: int) -> str:
    """Return ``text`` within ``limit`` bytes of UTF-8, marked where it was cut."""
    raw = text.encode()
    if len(raw) <= limit:
        return text
    return raw[: limit - len(_ELLIPSIS)].decode(errors="ignore") + _ELLIPSIS


def _line(explanation: Explanation) -> str:
    parts = [f"{PREFIX}: {_headline(explanation)}"]
    if explanation.queue is not None:
        parts.append(_queue(explanation.queue))
    parts += [f"plugin {error}" for error in explanation.plugin_errors]
    parts += explanation.others
    miss = nearest_miss(explanation.domains)
    if miss is not None:
        parts.append(_domain(miss))
        rest = max(explanation.domain_count, len(explanation.domains)) - 1
        if rest:
            parts.append(f"{counted(rest, f'other {miss.level}')} held no more")
    parts += [_pod_line(report) for report in explanation.pods if report.feasible_nodes == 0]
    helpful = _what_would_help(explanation)
    if helpful:
        parts.append(f"it would help to {helpful[0]}")
    return "; ".join(parts)


def _headline(explanation: Explanation) -> str:
    if explanation.queue is not None:
        return "its queue does not let it in"
    if 0 < explanation.needed <= explanation.placed:
        what = "the pod" if explanation.needed == 1 else f"all {explanation.needed} pods"
        return f"there is room for {what}, so something else is in the way"
    if explanation.needed == 1:
        return "the pod found no room"
    return f"{explanation.placed} of {explanation.needed} pods found room"


def _queue(report: QueueReport) -> str:
    return _RULES[report.rule].format(
        queue=report.queue,
        bound=amount(report.resource, report.bound),
        used=amount(report.resource, report.used),
        requested=amount(report.resource, report.requested),
    )


def _domain(report: DomainReport) -> str:
    where = _where(report)
    placed = f"{report.fits} of {report.needed} pods fit in {where}"
    if report.fits >= report.needed:
        return placed
    if not report.nodes:
        return f"{placed}: no node there may take them"
    if not report.possible:
        return f"{placed}, which is too small for the rest even when empty ({counted(report.nodes, 'node')})"
    return f"{placed}; it lacks {_shortages(report.shortages)}" if report.shortages else placed


def _where(report: DomainReport) -> str:
    return f"{report.level} {report.domain}".rstrip()


def _shortages(shortages: tuple[Shortage, ...]) -> str:
    return listed([f"{amount(s.resource, s.amount)} on {counted(s.nodes, 'node')}" for s in shortages])


def _times(scenarios: int) -> str:
    return f" ({scenarios} attempts)" if scenarios > 1 else ""


def _pod_line(report: PodReport) -> str:
    return f"{report.pod}: {kube_message(report).rstrip('.')}"


def _pod_lines(report: PodReport) -> list[str]:
    others = f" (and {counted(report.alike - 1, 'pod')} like it)" if report.alike > 1 else ""
    lines = [f"  {report.pod}{others}: {report.feasible_nodes} of {counted(report.total_nodes, 'node')} would do"]
    if report.pre_filter is not None:
        lines.append(f"    {report.pre_filter}")
    for found in report.filters:
        for reason in found.reasons:
            more = ", ..." if reason.nodes > len(reason.examples) else ""
            examples = f" ({', '.join(reason.examples)}{more})" if reason.examples else ""
            evictable = reason.nodes - reason.unresolvable
            hint = f", {evictable} could be made to fit by evicting" if evictable else ""
            lines.append(f"    {found.filter}: {reason.nodes} {reason.reason}{examples}{hint}")
    return lines


def _what_would_help(explanation: Explanation) -> list[str]:
    miss = nearest_miss(explanation.domains)
    refused = [report for report in explanation.pods if report.feasible_nodes == 0]
    remedies = [remedy for report in refused for remedy in report.remedies]
    room = [remedy.text for remedy in remedies if remedy.filter == RESOURCES_FILTER]
    changes = list(explanation.changes)
    if miss is None or (explanation.needed == 1 and room):
        changes += room  # names the node, which sums over a domain do not
    elif miss.possible and miss.shortages:
        changes.append(f"free {_shortages(miss.shortages)} in {_where(miss)}")
    if explanation.wider is not None:
        wider = explanation.wider
        changes.append(f"require a {wider.level} instead: {_where(wider)} has room for all {wider.needed} pods")
    if explanation.queue is not None and explanation.queue.rule != "OverFairShare":
        queue = explanation.queue
        word = "limit" if queue.rule == "OverLimit" else "quota"
        over = max(queue.used + queue.requested - queue.bound, 0)
        changes.append(f"raise the {word} of queue {queue.queue} by {amount(queue.resource, over)}")
        if queue.rule == "NonPreemptibleOverQuota":
            changes.append("let it be preempted: a preemptible workload may go beyond the quota while there is room")
    changes += [remedy.text for remedy in remedies if remedy.filter != RESOURCES_FILTER]
    if miss is not None and miss.nodes and miss.capacity < miss.needed and not miss.possible:
        changes.append(_too_small(miss))
    if miss is None and any(map(_is_too_large, refused)):
        changes.append(_LARGER_NODES)
    return list(dict.fromkeys(changes))


def _is_too_large(report: PodReport) -> bool:
    """Tell whether a pod asks for more than any node has, and nothing else is in its way."""
    return bool(report.filters) and all(
        found.filter == RESOURCES_FILTER and all(reason.unresolvable == reason.nodes for reason in found.reasons)
        for found in report.filters
    )


def _too_small(miss: DomainReport) -> str:
    if not miss.capacity:
        return _LARGER_NODES
    more = counted(miss.needed - miss.capacity, "more pod")
    return f"add nodes for {more} to {_where(miss)}, or ask for {miss.capacity} pods at most"
