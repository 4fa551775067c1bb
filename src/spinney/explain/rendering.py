"""How reasons read: as text for a terminal, as a condition, as an event.

* :func:`as_text` says everything that is known.
* :func:`condition_message` is one bounded line for a status condition; it begins "unschedulable on cluster".
* :func:`event_message` is the same for an event, within the 1024 bytes an event's note may have.
* :func:`kube_message` is kube-scheduler's sentence about one pod, to the letter, for programs that parse it.

All of them are pure and depend on nothing but their argument, so equal explanations render equally.
"""

from collections import Counter
from typing import Final

from spinney.explain.amounts import amount, counted, listed
from spinney.explain.counting import RESOURCES_FILTER
from spinney.explain.domains import nearest_miss
from spinney.explain.reasons import DomainReport, Explanation, PodReport, QueueReport, Shortage
from spinney.runtime.faults import printable

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


def kube_message(report: PodReport) -> str:
    """Return kube-scheduler's text for a pod that fits nowhere: ``0/5 nodes are available: 5 Insufficient cpu.``."""
    if report.total_nodes == 0:
        return _NO_NODES
    message = f"0/{report.total_nodes} nodes are available:"
    if report.pre_filter is not None:
        message += f" {report.pre_filter}."
    else:
        counts: Counter[str] = Counter()
        for reason in (each for found in report.filters for each in found.reasons):
            counts[reason.reason] += reason.nodes
        if counts:
            message += f" {', '.join(sorted(f'{count} {reason}' for reason, count in counts.items()))}."
    return message


def condition_message(explanation: Explanation) -> str:
    """Return one line for a condition: the rule, domain or filter that decided, in at most ``CONDITION_BYTES``."""
    return bounded(_line(explanation), CONDITION_BYTES)


def event_message(explanation: Explanation) -> str:
    """Return one line for an event, in at most ``EVENT_BYTES``."""
    return bounded(_line(explanation), EVENT_BYTES)


def as_text(explanation: Explanation) -> str:
    """Return the whole explanation for a person at a terminal, several lines."""
    lines = [f"{explanation.kind} {explanation.subject}: {_headline(explanation)}"]
    if explanation.simulated:
        lines.append("  simulated from a snapshot; the scheduler of this workload may have seen something else")
    if explanation.queue is not None:
        lines.append(f"  {_queue(explanation.queue)}")
    lines += [f"  plugin failed: {error}" for error in explanation.plugin_errors]
    lines += [f"  {reason}" for reason in (*explanation.others, explanation.kept_in) if reason]
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
            reasons = "; ".join(count.reason for count in victims.rejected)
            lines.append(f"  {victims.action}: {reasons or _NOBODY[victims.action]}")
            continue
        lines.append(f"  {victims.action}: {counted(victims.candidates, 'pod')} might have {_MAY[victims.action]}, but")
        for count in victims.rejected:
            lines.append(f"    {count.reason}" + (f" ({count.scenarios} attempts)" if count.scenarios > 1 else ""))
    for title, facts in (("what it needs", explanation.needs), ("nearest to fitting", _nearest(explanation))):
        if facts:
            lines.append(f"  {title}:")
            lines += [f"    {fact}" for fact in facts]
    return "\n".join(lines)


def bounded(text: str, limit: int) -> str:
    """Return ``text`` within ``limit`` bytes of UTF-8, marked where it was cut."""
    text = printable(text)
    raw = text.encode()
    if len(raw) <= limit:
        return text
    return raw[: limit - len(_ELLIPSIS)].decode(errors="ignore") + _ELLIPSIS


def _line(explanation: Explanation) -> str:
    named = [f"plugin {error}" for error in explanation.plugin_errors] + list(explanation.others)
    if explanation.queue is not None:  # lists cut such lines short: what decided comes first
        parts = [_queue(explanation.queue), *named]
    elif _has_room(explanation) and named:
        parts = [*named, f"there is room for {_whole(explanation)}"]
    else:
        parts = [_headline(explanation), *named]
    if explanation.kept_in:
        parts.append(explanation.kept_in)
    miss = nearest_miss(explanation.domains)
    if miss is not None:
        parts.append(_domain(miss))
        rest = max(explanation.domain_count, len(explanation.domains)) - 1
        if rest and miss.fits == max(report.fits for report in explanation.domains):
            parts.append(f"{counted(rest, f'other {miss.level}')} held no more")
    parts += [_pod_line(report) for report in explanation.pods if report.feasible_nodes == 0]
    parts += [*explanation.needs, *_nearest(explanation)][:1]
    return f"{PREFIX}: {'; '.join(parts)}"


def _headline(explanation: Explanation) -> str:
    if explanation.queue is not None:
        return "its queue does not let it in"
    if _has_room(explanation):
        named = explanation.others or explanation.plugin_errors
        rest = "it waits for something else" if named else "what it waits for is not known"
        return f"there is room for {_whole(explanation)}; {rest}"
    if explanation.needed == 1:
        return f"{_the_pod(explanation)} found no room"
    return f"{explanation.placed} of {explanation.needed} {_pods(explanation)} found room"


def _has_room(explanation: Explanation) -> bool:
    return 0 < explanation.needed <= explanation.placed


def _whole(explanation: Explanation) -> str:
    return _the_pod(explanation) if explanation.needed == 1 else f"all {explanation.needed} {_pods(explanation)}"


def _the_pod(explanation: Explanation) -> str:
    return "one more pod" if explanation.begun else "the pod"


def _pods(explanation: Explanation) -> str:
    return "more pods" if explanation.begun else "pods"


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
        closed = f"; {counted(report.closed, 'other')} may not take them" if report.closed else ""
        usable = counted(report.nodes, "usable node")
        return f"{placed}, which is too small for the rest even when empty ({usable}{closed})"
    return f"{placed}; it lacks {_shortages(report.shortages)}" if report.shortages else placed


def _where(report: DomainReport) -> str:
    return f"{report.level} {report.domain}".rstrip()


def _shortages(shortages: tuple[Shortage, ...]) -> str:
    return listed([f"{amount(s.resource, s.amount)} on {counted(s.nodes, 'node')}" for s in shortages])


def _pod_line(report: PodReport) -> str:
    return f"{report.pod}: {kube_message(report).rstrip('.')}"


def _pod_lines(report: PodReport) -> list[str]:
    others = f" (and {counted(report.alike - 1, 'pod')} like it)" if report.alike > 1 else ""
    lines = [f"  {report.pod}{others}: {report.feasible_nodes} of {counted(report.total_nodes, 'node')} can take it"]
    if report.pre_filter is not None:
        lines.append(f"    {report.pre_filter}")
    for found in report.filters:
        for reason in found.reasons:
            more = ", ..." if reason.nodes > len(reason.examples) else ""
            examples = f" ({', '.join(reason.examples)}{more})" if reason.examples else ""
            evictable = reason.nodes - reason.unresolvable
            hint = f", {evictable} may fit once pods are evicted" if evictable else ""
            lines.append(f"    {found.filter}: {reason.nodes} {reason.reason}{examples}{hint}")
    return lines


def _nearest(explanation: Explanation) -> list[str]:
    """Return what comes nearest to letting the gang in, as facts: a wider domain, single nodes."""
    facts = []
    if explanation.wider is not None:
        wider = explanation.wider
        facts.append(f"{_where(wider)} has room for {'the pod' if wider.needed == 1 else f'all {wider.needed} pods'}")
    miss = nearest_miss(explanation.domains)
    for report in explanation.pods:
        if report.feasible_nodes == 0:
            # A gang's domain says what it lacks as a whole; for a single pod the node is named.
            facts += [
                found.text
                for found in report.obstacles
                if found.filter != RESOURCES_FILTER or miss is None or explanation.needed == 1
            ]
    return list(dict.fromkeys(facts))
