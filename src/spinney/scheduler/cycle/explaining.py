"""Why a job was not placed, as data: from the session's masks and ledgers to an :class:`Explanation`.

Asked about a job after its attempt was rolled back, so the ledger is what the attempt saw. Nothing is searched or
simulated: filters are asked once per request class, and domains are summed up in columns. Of many domains only the
nearest misses are looked at closely.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import msgspec
import numpy as np

from spinney.cluster.filters import SESSION_FILTERS, Candidate, FilterFramework, FilterResult, Refusal, resources_fit
from spinney.cluster.filters.framework import NODE_FILTERS
from spinney.cluster.filters.obstacles import obstacle
from spinney.cluster.fitting import Demand, capacity, pods_held
from spinney.cluster.journal import Rows
from spinney.cluster.resources import Vector
from spinney.cluster.table import Mask
from spinney.explain import (
    DomainReport,
    DomainTable,
    Explanation,
    FilterReport,
    NodeNames,
    PodReport,
    QueueReport,
    Room,
    domain_reports,
    pod_report,
)
from spinney.explain.counting import RESOURCES_FILTER
from spinney.gangs.sources import bare, podgang
from spinney.gangs.sources.context import QUEUE_LABEL
from spinney.gangs.tree import GroupSet, Member
from spinney.reporting.pods import SCHEDULER_ERROR
from spinney.scheduler.cycle.shared_gpus import RoomColumns
from spinney.scheduler.fairshare.capacity import OverCapacity
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.nodes import NodeInfo
from spinney.scheduler.framework.results import POD_SCHEDULING_ERRORS, TOPOLOGY_CONSTRAINT, FitError
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import NUMBER, PodInfo, by_request
from spinney.scheduler.topology.domains import DomainTree

NEAREST: Final = 5
"""How many domains are looked at closely."""
_ABOUT_PLACES: Final = frozenset({POD_SCHEDULING_ERRORS, TOPOLOGY_CONSTRAINT, "OverLimit", "NonPreemptibleOverQuota"})
"""Reasons that the explanation says better than their own text."""
_KINDS: Final = {podgang.SOURCE: "PodGang", bare.SOURCE: "Pod"}
_ALL_FILTERS: Final = FilterFramework(SESSION_FILTERS)
_NODE_FILTERS: Final = FilterFramework((*NODE_FILTERS, resources_fit.AFTER_RELEASE))


@dataclass(frozen=True, slots=True)
class _Quote:
    """The words of a plugin about a pod and a node, as part of a reason. ``kind`` is the place of the pod's request."""

    kind: int
    plugin: str
    node: NodeInfo
    text: str


class Explainer:
    """Explains the refused jobs of one session. Mutable: jobs that ask for the same share one look at the nodes.

    What names pods is written anew for each job: plugins are asked for their words about its own.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._known: dict[Hashable, tuple[Explanation, Sequence[_Quote]]] = {}

    def explain(self, job: PodGroupInfo, errors: Sequence[FitError]) -> Explanation:
        """Return why ``job``, refused with ``errors`` in this session, could not be placed."""
        if any(error.reason == SCHEDULER_ERROR for error in errors):
            return _of_failure(job, errors)
        said = tuple((error.reason, "" if error.rewrite else error.message) for error in errors)
        plain = job.plain
        asked = (
            (plain.request.number, len(plain.records))
            if plain is not None
            else tuple(map(NUMBER, job.tasks_to_allocate()))
        )
        wanted = (job.queue, job.root, said, plain is None, asked)
        # What a plugin failed about one job says nothing about another.
        known = self._known.get(wanted) if not self._session.ask.node_rules.have_failed else None
        if known is None:
            known = self._known[wanted] = _explain(self._session, job, errors)
            return known[0]
        found, quotes = known
        firsts = (
            [plain.first_task(job)]
            if plain is not None
            else [alike[0] for alike in by_request(job.tasks_to_allocate()).values()]
        )
        others = (_others(self._session, errors, firsts) or found.others) if found.others else ()
        pods = [msgspec.structs.replace(pod, pod=_name(task)) for pod, task in zip(found.pods, firsts, strict=False)]
        for quote in quotes if pods else ():
            text = _quoted(self._session, quote.plugin, firsts[quote.kind], quote.node)
            pods[quote.kind] = _rephrased(pods[quote.kind], quote.text, text)
        return msgspec.structs.replace(found, subject=_name(job), pods=tuple(pods), others=others)


def _rephrased(report: PodReport, before: str, after: str) -> PodReport:
    """Return a report with one text in its reasons put in another's place."""
    if before == after:
        return report

    def changed(found: FilterReport) -> FilterReport:
        reasons = [msgspec.structs.replace(each, reason=each.reason.replace(before, after)) for each in found.reasons]
        return msgspec.structs.replace(found, reasons=tuple(reasons))

    obstacles = [msgspec.structs.replace(each, text=each.text.replace(before, after)) for each in report.obstacles]
    return msgspec.structs.replace(report, filters=tuple(map(changed, report.filters)), obstacles=tuple(obstacles))


def _quoted(session: Session, plugin: str, task: PodInfo, node: NodeInfo) -> str:
    return f"node(s) were refused by plugin {plugin}{session.ask.node_rules.reason_of(plugin, task, node)}"


def _of_failure(job: PodGroupInfo, errors: Sequence[FitError]) -> Explanation:
    """Return that something failed, without looking at the job itself, which may fail once more."""
    return Explanation(
        subject=_name(job),
        kind=_KINDS.get(job.key.source, "PodGroup"),
        needed=max(job.members.pending, 1),
        others=tuple(dict.fromkeys(error.message for error in errors)),
    )


def _explain(session: Session, job: PodGroupInfo, errors: Sequence[FitError]) -> tuple[Explanation, Sequence[_Quote]]:
    """Return why ``job``, refused with ``errors``, could not be placed, and what of it plugins have said."""
    kind = _KINDS.get(job.key.source, "PodGroup")
    queue = next((report for error in errors if (report := _queue_report(error)) is not None), None)
    others = _others(session, errors, ())
    tasks = job.tasks_to_allocate()
    if queue is not None or not tasks:
        return Explanation(subject=_name(job), kind=kind, needed=max(len(tasks), 1), queue=queue, others=others), ()
    places = _Places(session, tasks)
    level = places.required_level(job.root)
    domains, count = places.nearest_domains(level)
    placed = max((report.fits for report in domains), default=0)
    needed = level.ask.count if level is not None else len(tasks)
    reports = places.pod_reports
    absent = any(report.pre_filter is not None for report in reports)
    # What refuses a pod before any node is looked at: a claim, a rule of a plugin.
    ruled_out = not absent and any(map(session.ask.pre_predicate, places.one_of_each))
    if ruled_out:
        placed, others = 0, _others(session, errors, places.one_of_each)
    if ruled_out or (others and placed >= needed):
        reports = ()
    failures = session.ask.node_rules.failures(job.key, places.one_of_each)
    if placed >= needed and not (others or failures or absent):
        others = tuple(
            f"plugin {plugin} keeps its pods on one part of the nodes, and no part has room for all of them"
            for plugin in session.ask.dividers.get(job.key, ())
        )
    found = Explanation(
        subject=_name(job),
        kind=kind,
        placed=placed,
        needed=needed,
        pods=reports,
        domains=domains,
        domain_count=count,
        required_level=_short(level.tree.levels[level.depth].key) if level is not None else None,
        wider=places.wider_domain(level),
        victims=tuple(session.victim_reports.get(job.key, ())),
        plugin_errors=tuple(f"{plugin}: {error}" for plugin, error in sorted(failures.items())),
        others=others,
        beyond_nodes=absent or (ruled_out and any(map(places.beyond_nodes, places.one_of_each))),
        needs=_needs(errors, places.one_of_each),
    )
    if reports and not absent:
        return found, places.quotes
    # Something that is missing altogether is in the way, so what nodes lack is beside the point.
    bare = msgspec.structs.replace(found, domains=(), domain_count=0, required_level=None, wider=None, victims=())
    return bare, places.quotes


def _others(session: Session, errors: Sequence[FitError], ruled_out: Sequence[PodInfo]) -> tuple[str, ...]:
    """Return what is in the way beside places, and what refuses pods before any node is looked at."""
    found = [error.message for error in errors if error.reason not in _ABOUT_PLACES]
    return tuple(dict.fromkeys((*found, *filter(None, map(session.ask.pre_predicate, ruled_out)))))


def _needs(errors: Sequence[FitError], one_of_each: Sequence[PodInfo]) -> tuple[str, ...]:
    """Return what has to be there before anything else can help."""
    needs = []
    if any(error.reason == "QueueDoesNotExist" for error in errors):
        needs.append(f"name a queue that exists in the label {QUEUE_LABEL} ('spinney queues' lists them), or create it")
    for task in one_of_each:
        pod = task.pod
        made = {each.name for each in pod.status.resource_claim_statuses}
        needs += [
            f"see that the ResourceClaimTemplate {claim.resource_claim_template_name} exists in "
            f"the namespace of the pods: the claim {claim.name} is made from it"
            for claim in pod.spec.resource_claims
            if claim.resource_claim_template_name and claim.name not in made
        ]
    return tuple(needs)


@dataclass(frozen=True, eq=False)
class _Ask:
    """What some tasks ask for: their number, and what each kind of them asks for, on all nodes."""

    count: int
    demands: tuple[Demand, ...]

    def at(self, rows: Rows) -> list[Demand]:
        """Return the demands on some of the nodes."""
        return [demand.at(rows) for demand in self.demands]


@dataclass(frozen=True, eq=False)
class _Level:
    """A required level that no domain meets, how many pods each of its domains holds, and what must share one."""

    tree: DomainTree
    depth: int
    held: Vector
    ask: _Ask


class _Places:
    """What nodes and domains offer to some tasks of a session."""

    def __init__(self, session: Session, tasks: Sequence[PodInfo]) -> None:
        self._session = session
        self._tasks = tasks
        self._table = session.nodes.table
        self._names = NodeNames(self._table.names, session.nodes.all.rows)
        alike = by_request(tasks)
        self.one_of_each = [group[0] for group in alike.values()]
        requests = [task.request for task in self.one_of_each]
        self._room = RoomColumns.of(session.nodes.ledger, self._names.ordered, requests)
        self.quotes: list[_Quote] = []
        results = [(group, self._diagnose(kind, group[0])) for kind, group in enumerate(alike.values())]
        self.pod_reports = tuple(self._pod_report(group, result) for group, result in results)
        self._usable_by = [(group[0].request, _usable(self._table.alive, result)) for group, result in results]
        unoffered = dict.fromkeys(name for group, _ in results for name in group[0].request.unoffered)
        self._resources = self._room.names(self._table.axis.names(tuple(unoffered)))
        self._usable = np.logical_or.reduce([usable for _, usable in self._usable_by])

    def beyond_nodes(self, task: PodInfo) -> bool:
        """Tell whether a task is refused for another reason than asking for more than any node has."""
        if self._session.ask.pre_predicate(task) is None:
            return False
        largest: Vector = self._table.allocatable[self._names.ordered].max(axis=0, initial=0)
        return bool((task.request.vector(len(largest)) <= largest).all()) and not task.request.unoffered

    def required_level(self, root: GroupSet) -> _Level | None:
        """Return the outermost required level that no domain can meet, if that is what is in the way."""
        for member, tasks in self._constrained(root):
            found = self._session.topologies.required(member.topology)
            if found is None:
                continue
            topology, depth = found
            tree = self._session.snapshot.domain_trees.tree(topology, self._table)
            ask = self._ask(tasks)
            held = self._held(tree, depth, ask)
            if held.max(initial=0) < ask.count:
                return _Level(tree, depth, held, ask)
        return None

    def nearest_domains(self, level: _Level | None) -> tuple[tuple[DomainReport, ...], int]:
        """Return the domains that miss by least, nearest first, and how many there are; the cluster if no level.

        What is lacking is worked out for the nearest only.
        """
        if level is None:
            return (self._report("the cluster", "", self._names.ordered, self._ask(self._tasks)),), 0
        domains = level.tree.levels[level.depth]
        fits, ask = level.held, level.ask
        nearest = np.lexsort((np.arange(len(fits)), -fits))[:NEAREST]
        reports: list[DomainReport] = []
        for domain in nearest.tolist():
            members = domains.members(domain)
            rows = members[self._usable[members]]
            if not reports:
                reports.append(self._report(_short(domains.key), domains.names[domain], members, ask))
                continue
            reports.append(
                DomainReport(
                    level=_short(domains.key),
                    domain=domains.names[domain],
                    nodes=len(rows),
                    fits=min(int(fits[domain]), ask.count),
                    needed=ask.count,
                    possible=(empty := capacity(self._room.empty[rows], ask.at(rows))) >= ask.count,
                    capacity=empty,
                    closed=len(members) - len(rows),
                )
            )
        return tuple(reports), len(domains)

    def wider_domain(self, level: _Level | None) -> DomainReport | None:
        """Return the tightest domain of a wider level that would hold the tasks, if there is one."""
        if level is None:
            return None
        for depth in range(level.depth - 1, -1, -1):
            fits = self._held(level.tree, depth, level.ask)
            roomy = np.flatnonzero(fits >= level.ask.count)
            if len(roomy):
                domains = level.tree.levels[depth]
                chosen = int(roomy[np.argmin(fits[roomy])])
                return DomainReport(
                    level=_short(domains.key),
                    domain=domains.names[chosen],
                    nodes=len(domains.members(chosen)),
                    fits=level.ask.count,
                    needed=level.ask.count,
                )
        return None

    # -- sums over nodes ---------------------------------------------------------------------------------------------

    def _held(self, tree: DomainTree, depth: int, ask: _Ask) -> Vector:
        """Return how many of the tasks each domain of a level has room for, ``[domain]``."""
        domains = tree.levels[depth]
        rows = tree.rows[self._usable[tree.rows]]
        return pods_held(domains.of_row[rows], len(domains), self._room.free[rows], ask.at(rows))

    def _report(self, level: str, name: str, members: Rows, ask: _Ask) -> DomainReport:
        """Report one domain, whose nodes are ``members``."""
        rows = members[self._usable[members]]
        where = np.zeros(len(rows), dtype=np.int32)
        table = DomainTable(level, [name], where, self._room.free[rows], self._room.empty[rows])
        (report,) = domain_reports(table, ask.at(rows), self._resources)
        return msgspec.structs.replace(report, closed=len(members) - len(rows))

    def _ask(self, tasks: Sequence[PodInfo]) -> _Ask:
        """Return what ``tasks`` ask for; a kind of pods that some usable node is closed to says where it may be."""
        kinds = by_request(tasks)
        demands = (
            Demand(
                self._room.vector(request),
                len(kinds[request]),
                None if np.array_equal(usable, self._usable) else usable,
            )
            for request, usable in self._usable_by
            if request in kinds
        )
        return _Ask(len(tasks), tuple(demands))

    def _constrained(self, member: Member) -> Iterator[tuple[Member, list[PodInfo]]]:
        """Yield the parts of the tree that have tasks to place, from the root down."""
        inside = {pod_set.name for pod_set in member.pod_sets()}
        tasks = [task for task in self._tasks if task.pod_set.name in inside]
        if not tasks:
            return
        yield member, tasks
        if isinstance(member, GroupSet):
            for child in member.members:
                yield from self._constrained(child)

    # -- single pods -------------------------------------------------------------------------------------------------

    def _diagnose(self, kind: int, task: PodInfo) -> FilterResult:
        """Ask every filter and every plugin about every node."""
        nodes = self._session.nodes
        candidate = Candidate(task.pod, task.request.requests)
        if task.request.looks_around or nodes.has_rules_about(task.pod):
            result = _ALL_FILTERS.diagnose(nodes.view, candidate)
        else:
            # Where no pod has a say about others, what was placed in this session need not be counted first.
            result = _NODE_FILTERS.diagnose(nodes.surroundings, candidate)
        refusals = [*result.refusals, *self._unshared(task), *self._refused_by_plugins(kind, task)]
        return FilterResult(result.mask, tuple(refusals), result.pre_filter, result.pre_filter_unresolvable)

    def _unshared(self, task: PodInfo) -> Iterator[Refusal]:
        """Yield the nodes whose GPUs have no part left of the size a sharing pod asks for."""
        if task.request.share is not None:
            later, _ = self._session.nodes.resource_fit(task.request, self._names.ordered)
            refused = self._mask(~later)
            never = refused & self._room.never(task.request)
            yield Refusal(RESOURCES_FILTER, "Insufficient share of a GPU", refused, never)

    def _refused_by_plugins(self, kind: int, task: PodInfo) -> Iterator[Refusal]:
        """Yield the nodes plugins refuse, with the reason each gives for the first of them."""
        nodes, judge = self._session.nodes.all, self._session.ask.node_rules
        # The filters of the plugin predicates have spoken.
        for plugin, refused in judge.refused_by(task, nodes, besides="predicates"):
            if refused.any():
                first = nodes.where(refused)[0]
                text = _quoted(self._session, plugin, task, first)
                self.quotes.append(_Quote(kind, plugin, first, text))
                yield Refusal.final(plugin, text, self._mask(refused))

    def _mask(self, of_all: Mask) -> Mask:
        """Return verdicts over all nodes in name order as a mask over rows."""
        mask = np.zeros(self._table.capacity, dtype=np.bool_)
        mask[self._session.nodes.all.rows] = of_all
        return mask

    def _pod_report(self, alike: Sequence[PodInfo], result: FilterResult) -> PodReport:
        first = alike[0]
        names = self._room.names(self._table.axis.names(first.request.unoffered))
        room = Room(self._room.free, self._room.vector(first.request), names)
        return pod_report(
            _name(first),
            self._names,
            result.refusals,
            pre_filter=result.pre_filter,
            room=room,
            alike=len(alike),
            describe=partial(obstacle, self._table, first.pod),
        )


def _usable(alive: Mask, result: FilterResult) -> Mask:
    """Return the nodes where nothing but room can be in the way, ``[node]``."""
    usable = alive.copy()
    if result.pre_filter is not None:
        usable[:] = False
    for refusal in result.refusals:
        if refusal.filter != RESOURCES_FILTER:
            usable &= ~refusal.nodes
    return usable


def _queue_report(error: FitError) -> QueueReport | None:
    return error.details.report if isinstance(error.details, OverCapacity) else None


def _name(of: PodGroupInfo | PodInfo) -> str:
    return f"{of.namespace}/{of.name}"


def _short(key: str) -> str:
    """Return what people call a level: the last part of its label key."""
    return key.rpartition("/")[2]
