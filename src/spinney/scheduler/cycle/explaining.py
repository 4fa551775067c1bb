"""Why a job was not placed, as data: from the session's masks and ledgers to an :class:`Explanation`.

Asked about a job after its attempt was rolled back, so the ledger is what the attempt saw. Nothing is searched or
simulated: filters are asked once per request class, and domains are summed up in columns. Of many domains only the
nearest misses are looked at closely.
"""

from collections.abc import Hashable, Sequence
from typing import Final

import msgspec

from spinney.cluster.statuses import ACTIVE_ALLOCATED
from spinney.explain.reasons import Explanation, FilterReport, PodReport
from spinney.gangs.sources import bare, podgang
from spinney.reporting.pods import SCHEDULER_ERROR
from spinney.scheduler.cycle.diagnosis import Diagnosis, PluginQuote, domains_kept_in, quoted
from spinney.scheduler.cycle.needs import needs_of
from spinney.scheduler.fairshare.capacity import OverCapacity
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.results import POD_SCHEDULING_ERRORS, TOPOLOGY_CONSTRAINT, FitError
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import NUMBER, PodInfo, one_of_each

_ABOUT_PLACES: Final = frozenset({POD_SCHEDULING_ERRORS, TOPOLOGY_CONSTRAINT, "OverLimit", "NonPreemptibleOverQuota"})
"""Reasons that the explanation says better than their own text."""
_KINDS: Final = {podgang.SOURCE: "PodGang", bare.SOURCE: "Pod"}


class Explainer:
    """Explains the refused jobs of one session. Mutable: jobs that ask for the same share one look at the nodes.

    What names pods is written anew for each job: plugins are asked for their words about its own. So is what the search
    for victims found, which depends on its priority. Where placed pods have rules about its pods, only jobs with the
    same labels share a look; each pod with claims has its own.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._known: dict[Hashable, tuple[Explanation, Sequence[PluginQuote]]] = {}

    def explain(self, job: PodGroupInfo, errors: Sequence[FitError]) -> Explanation:
        """Return why ``job``, refused with ``errors`` in this session, could not be placed."""
        if any(error.reason == SCHEDULER_ERROR for error in errors):
            return _of_failure(job, errors)
        said = tuple((error.reason, "" if error.rewrite else error.message) for error in errors)
        plain = job.plain
        if plain is not None:
            asked: tuple[int, ...] = (plain.request.number, len(plain.records))
            firsts = [plain.first_task(job)]
        else:
            asked = tuple(map(NUMBER, job.tasks_to_allocate()))
            firsts = one_of_each(job.tasks_to_allocate())
        wanted = (
            job.queue,
            job.root,
            said,
            plain is None,
            asked,
            domains_kept_in(self._session, job),
            self._told_apart(firsts),
        )
        # What a plugin failed about one job says nothing about another, nor do the claims of one pod.
        shared = not self._session.ask.node_rules.have_failed and not any(map(_uses_claims, firsts))
        known = self._known.get(wanted) if shared else None
        if known is None:
            known = self._known[wanted] = _explain(self._session, job, errors)
            return known[0]
        found, quotes = known
        others = (_others(self._session, errors, firsts) or found.others) if found.others else ()
        pods = [msgspec.structs.replace(pod, pod=str(task.key)) for pod, task in zip(found.pods, firsts, strict=False)]
        for quote in quotes if pods else ():
            text = quoted(self._session, quote.plugin, firsts[quote.kind], quote.node)
            pods[quote.kind] = _rephrased(pods[quote.kind], quote.text, text)
        victims = tuple(self._session.victim_reports.get(job.key, ())) if _is_about_nodes(found.pods) else ()
        return msgspec.structs.replace(
            found, subject=str(job.key), begun=_has_begun(job), pods=tuple(pods), others=others, victims=victims
        )

    def _told_apart(self, firsts: Sequence[PodInfo]) -> tuple[Hashable, ...]:
        """Return what rules of placed pods go by, for pods that they are about; mostly there is none."""
        if not self._session.nodes.have_rules_about(task.record.pod for task in firsts):
            return ()
        return tuple((task.namespace, frozenset(task.labels.items())) for task in firsts)


def _has_begun(job: PodGroupInfo) -> bool:
    """Tell whether pods of a job have nodes already."""
    placed = job.count_in(ACTIVE_ALLOCATED)
    return job.plain is None and any(map(placed, job.gang.pod_sets.values()))


def _uses_claims(task: PodInfo) -> bool:
    return bool(task.request.constraints.claims)


def _is_about_nodes(reports: Sequence[PodReport]) -> bool:
    """Tell whether what nodes lack matters, for nothing is missing altogether."""
    return bool(reports) and all(report.pre_filter is None for report in reports)


def _rephrased(report: PodReport, before: str, after: str) -> PodReport:
    """Return a report with one text in its reasons put in another's place."""
    if before == after:
        return report

    def changed(found: FilterReport) -> FilterReport:
        reasons = [msgspec.structs.replace(each, reason=each.reason.replace(before, after)) for each in found.reasons]
        return msgspec.structs.replace(found, reasons=tuple(reasons))

    obstacles = [msgspec.structs.replace(each, text=each.text.replace(before, after)) for each in report.obstacles]
    return msgspec.structs.replace(report, filters=tuple(map(changed, report.filters)), obstacles=tuple(obstacles))


def _of_failure(job: PodGroupInfo, errors: Sequence[FitError]) -> Explanation:
    """Return that something failed, without looking at the job itself, which may fail once more."""
    return Explanation(
        subject=str(job.key),
        kind=_KINDS.get(job.key.source, "PodGroup"),
        needed=max(job.members.pending, 1),
        others=tuple(dict.fromkeys(error.message for error in errors)),
    )


def _explain(
    session: Session, job: PodGroupInfo, errors: Sequence[FitError]
) -> tuple[Explanation, Sequence[PluginQuote]]:
    """Return why ``job``, refused with ``errors``, could not be placed, and what of it plugins have said."""
    kind = _KINDS.get(job.key.source, "PodGroup")
    queue = next((error.details.report for error in errors if isinstance(error.details, OverCapacity)), None)
    others = _others(session, errors, ())
    tasks = job.tasks_to_allocate()
    if queue is not None or not tasks:
        needed = max(len(tasks), 1)
        begun = _has_begun(job)
        found = Explanation(subject=str(job.key), kind=kind, needed=needed, begun=begun, queue=queue, others=others)
        return found, ()
    diagnosis = Diagnosis(session, tasks)
    level = diagnosis.required_level(job)
    domains, count = diagnosis.nearest_domains(level)
    placed = max((report.fits for report in domains), default=0)
    needed = level.ask.count if level is not None else len(tasks)
    reports = diagnosis.pod_reports
    absent = any(report.pre_filter is not None for report in reports)
    # What refuses a pod before any node is looked at: a claim, a rule of a plugin.
    ruled_out = not absent and any(map(session.ask.pre_predicates.refusal, diagnosis.one_of_each))
    if ruled_out:
        placed, others = 0, _others(session, errors, diagnosis.one_of_each)
    if ruled_out or (others and placed >= needed):
        reports = ()
    failures = session.ask.node_rules.failures(job.key, diagnosis.one_of_each)
    if placed >= needed and not (others or failures or absent):
        others = tuple(
            f"plugin {plugin} keeps its pods on one part of the nodes, and no part has room for all of them"
            for plugin in session.ask.dividers.get(job.key, ())
        )
        exclusion = None if others else diagnosis.exclusion()
        if exclusion is not None:
            placed, others, reports = needed - exclusion.beyond, (str(exclusion),), ()
    kept_in = level.kept_in if level is not None and _is_about_nodes(reports) else ""
    found = Explanation(
        subject=str(job.key),
        kind=kind,
        placed=placed,
        needed=needed,
        begun=_has_begun(job),
        pods=reports,
        domains=domains,
        domain_count=count,
        required_level=level.called if level is not None else None,
        wider=diagnosis.wider_domain(level),
        victims=tuple(session.victim_reports.get(job.key, ())),
        plugin_errors=tuple(f"{plugin}: {error}" for plugin, error in sorted(failures.items())),
        kept_in=kept_in,
        others=others,
        beyond_nodes=absent or (ruled_out and any(map(diagnosis.beyond_nodes, diagnosis.one_of_each))),
        needs=needs_of(session, job, errors, diagnosis.one_of_each),
    )
    if _is_about_nodes(reports):
        return found, diagnosis.quotes
    # Something that is missing altogether is in the way, so what nodes lack is beside the point.
    bare = msgspec.structs.replace(found, domains=(), domain_count=0, required_level=None, wider=None, victims=())
    return bare, diagnosis.quotes


def _others(session: Session, errors: Sequence[FitError], ruled_out: Sequence[PodInfo]) -> tuple[str, ...]:
    """Return what is in the way beside places, and what refuses pods before any node is looked at."""
    found = [error.message for error in errors if error.reason not in _ABOUT_PLACES]
    return tuple(dict.fromkeys((*found, *filter(None, map(session.ask.pre_predicates.refusal, ruled_out)))))
