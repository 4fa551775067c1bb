"""What nodes and domains offer to tasks that were not placed: which filters refuse, and which domains come near."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import msgspec
import numpy as np

from spinney.cluster.classes import DeviceShare, RequestClass
from spinney.cluster.devices import DEVICE
from spinney.cluster.filters import SESSION_FILTERS, Candidate, FilterFramework, FilterResult, Refusal, resources_fit
from spinney.cluster.filters.framework import NODE_FILTERS
from spinney.cluster.filters.obstacles import obstacle
from spinney.cluster.fitting import Demand, capacity, fit_later_and_now, pods_held, sharing_pods_per_node
from spinney.cluster.journal import Rows
from spinney.cluster.ledger import Ledger
from spinney.cluster.resources import GPU, Vector
from spinney.cluster.table import Mask, Matrix
from spinney.explain.amounts import amount
from spinney.explain.counting import RESOURCES_FILTER, NodeNames, Room, pod_report
from spinney.explain.domains import DomainTable, domain_reports
from spinney.explain.reasons import DomainReport, PodReport
from spinney.gangs.tree import GroupSet, Member
from spinney.scheduler.cycle.exclusion import Exclusion, tightest_exclusion
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.nodes import NodeInfo
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import PodInfo, by_request
from spinney.scheduler.placement.staying import rows_to_stay_with
from spinney.scheduler.plugins.dynamicresources import DynamicResources
from spinney.scheduler.topology.domains import DomainTree, Level

NO_DEVICES: Final = "cannot allocate all claims"
"""What is said, in kube-scheduler's words, of nodes without free devices for the claims of a pod."""
NEAREST: Final = 5
"""How many domains are looked at closely."""
_ALL_FILTERS: Final = FilterFramework(SESSION_FILTERS)
_NODE_FILTERS: Final = FilterFramework((*NODE_FILTERS, resources_fit.AFTER_RELEASE))


class RoomColumns(msgspec.Struct, frozen=True, eq=False):
    """What nodes have, ``[node, resource]``, with a column for each kind of pods that share devices.

    It says how many of them each node has room for; one of them asks for one. So they are counted like others.
    """

    free: Matrix
    """Once what is terminating is gone."""
    empty: Matrix
    sharing: tuple[RequestClass, ...]
    """The kinds of pods of the last columns."""

    @classmethod
    def of(cls, ledger: Ledger, rows: Rows, requests: Sequence[RequestClass]) -> "RoomColumns":
        """Return the columns for pods of ``requests`` on the nodes of ``rows``."""
        table, sharing = ledger.table, tuple(each for each in requests if each.share is not None)
        free, empty = table.idle, table.allocatable  # neither is written to
        if table.may_release:
            free = free + table.releasing
        for request in sharing:
            later, _ = fit_later_and_now(ledger, request, rows)
            assert request.share is not None
            fits = np.zeros((table.capacity, 2), dtype=np.int64)
            fits[rows, 0] = sharing_pods_per_node(ledger, request.share, rows) * later
            fits[rows, 1] = _when_empty(empty[rows, GPU], table.gpu_memory[rows], request.share)
            free, empty = np.column_stack([free, fits[:, 0]]), np.column_stack([empty, fits[:, 1]])
        return cls(free, empty, sharing)

    def vector(self, request: RequestClass) -> Vector:
        """Return what a pod asks for, in these columns."""
        asked = request.vector(self.free.shape[1])
        if request in self.sharing:
            asked = asked.copy()
            asked[self.sharing.index(request) - len(self.sharing)] = 1
        return asked

    def names(self, known: Sequence[str]) -> list[str]:
        """Return the name of each column; ``known`` are those of resources, which come first."""
        shares = [_named(each.share) for each in self.sharing if each.share is not None]
        return [*known, *[""] * (self.free.shape[1] - len(known) - len(shares)), *shares]

    def never(self, request: RequestClass) -> Mask:
        """Return for each node whether not even one pod would fit if it were empty."""
        column = self.empty[:, self.sharing.index(request) - len(self.sharing)]
        none: Mask = column == 0
        return none


def _when_empty(gpus: Vector, memory: Vector, share: DeviceShare) -> Vector:
    """Return how many pods nodes with so many GPUs would hold if they were empty, ``[node]``."""
    each: Vector = (DEVICE // np.maximum(share.parts_on_each(memory), 1)) * gpus // share.devices
    return each * (gpus >= share.devices)


def _named(share: DeviceShare) -> str:
    """Return a part of GPUs in words."""
    part = f"{share.parts / DEVICE:g} GPU" if share.parts else f"{amount('memory', share.memory << 20)} of a GPU"
    return f"share of {part}" if share.devices == 1 else f"share of {share.devices} x {part}"


class PluginQuote(msgspec.Struct, frozen=True):
    """The words of a plugin about a pod and a node, as part of a reason. ``kind`` is the place of the pod's request."""

    kind: int
    plugin: str
    node: NodeInfo
    text: str


def quoted(session: Session, plugin: str, task: PodInfo, node: NodeInfo) -> str:
    """Return the reason why a plugin refuses a node, in its own words."""
    if plugin == DynamicResources.name:
        return NO_DEVICES
    return f"node(s) were refused by plugin {plugin}{session.ask.node_rules.reason_of(plugin, task, node)}"


class _Ask(msgspec.Struct, frozen=True, eq=False):
    """What some tasks ask for: their number, and what each kind of them asks for, on all nodes."""

    count: int
    demands: tuple[Demand, ...]

    def at(self, rows: Rows) -> list[Demand]:
        """Return the demands on some of the nodes."""
        return [demand.at(rows) for demand in self.demands]


class UnmetLevel(msgspec.Struct, frozen=True, eq=False):
    """A required level that no domain meets, how many pods each of its domains holds, and what must share one."""

    tree: DomainTree
    depth: int
    held: Vector
    """Nothing in a domain where its other pods are not."""
    ask: _Ask
    stays: Rows
    """The rows of its other pods, which it must stay with."""

    @property
    def called(self) -> str:
        """Return what people call the level."""
        return self.tree.topology.called(self.tree.levels[self.depth].key)

    @property
    def kept_in(self) -> str:
        """Return in words where its other pods keep it; empty if it has none."""
        if not len(self.stays):
            return ""
        domains = self.tree.levels[self.depth]
        level = self.called
        names = [domains.names[each] for each in _domains_at(domains, self.stays)]
        if not names:
            return f"its other pods are on nodes that are in no {level}, and it has to be in one {level} with them"
        return f"it has to stay in {level} {' or '.join(names)}, where its other pods are"


class Diagnosis:
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
        self.quotes: list[PluginQuote] = []
        results = [(group, self._diagnose(kind, group[0])) for kind, group in enumerate(alike.values())]
        self.pod_reports = tuple(self._pod_report(group, result) for group, result in results)
        self._usable_by = [(group[0].request, _usable(self._table.alive, result)) for group, result in results]
        self._open_to = [(alike, result.mask) for alike, result in results]
        unoffered = dict.fromkeys(name for group, _ in results for name in group[0].request.unoffered)
        self._resources = self._room.names(self._table.axis.names(tuple(unoffered)))
        self._usable = np.logical_or.reduce([usable for _, usable in self._usable_by])

    def beyond_nodes(self, task: PodInfo) -> bool:
        """Tell whether a task is refused for another reason than asking for more than any node has."""
        if self._session.ask.pre_predicates.refusal(task) is None:
            return False
        largest: Vector = self._table.allocatable[self._names.ordered].max(axis=0, initial=0)
        return bool((task.request.vector(len(largest)) <= largest).all()) and not task.request.unoffered

    def required_level(self, job: PodGroupInfo) -> UnmetLevel | None:
        """Return the outermost required level that no domain can meet, if that is what is in the way."""
        for member, tasks in self._concerned(job.root):
            found = self._session.topologies.required(member.topology)
            if found is None:
                continue
            topology, depth = found
            tree = self._session.snapshot.domain_trees.tree(topology, self._table)
            ask = self._ask(tasks)
            stays = rows_to_stay_with(self._session, job, member)
            held = self._held(tree, depth, ask)
            if len(stays):
                held = held * _are_at(tree.levels[depth], stays)
            if held.max(initial=0) < ask.count:
                return UnmetLevel(tree, depth, held, ask, stays)
        return None

    def exclusion(self) -> Exclusion | None:
        """Return the rule that keeps most of the tasks away from each other, if there is one."""
        pods = [
            (Candidate(task.record.pod, task.request.requests), nodes)
            for alike, nodes in self._open_to
            for task in alike
        ]
        return tightest_exclusion(self._session.nodes.view, pods)

    def nearest_domains(self, level: UnmetLevel | None) -> tuple[tuple[DomainReport, ...], int]:
        """Return the domains that miss by least, nearest first, and how many there are; the cluster if no level.

        What is lacking is worked out for the nearest only.
        """
        if level is None:
            return (self._report("the cluster", "", self._names.ordered, self._ask(self._tasks)),), 0
        domains = level.tree.levels[level.depth]
        fits, ask = level.held, level.ask
        nearest = np.lexsort((np.arange(len(fits)), -fits))
        count = len(domains)
        if len(level.stays):
            nearest = nearest[_are_at(domains, level.stays)[nearest]]
            count = len(nearest)
        reports: list[DomainReport] = []
        for domain in nearest[:NEAREST].tolist():
            members = domains.members(domain)
            rows = members[self._usable[members]]
            if not reports:
                reports.append(self._report(level.called, domains.names[domain], members, ask))
                continue
            reports.append(
                DomainReport(
                    level=level.called,
                    domain=domains.names[domain],
                    nodes=len(rows),
                    fits=min(int(fits[domain]), ask.count),
                    needed=ask.count,
                    possible=(empty := capacity(self._room.empty[rows], ask.at(rows))) >= ask.count,
                    capacity=empty,
                    closed=len(members) - len(rows),
                )
            )
        return tuple(reports), count

    def wider_domain(self, level: UnmetLevel | None) -> DomainReport | None:
        """Return the tightest domain of a wider level that would hold the tasks beside its other pods, if any."""
        if level is None:
            return None
        for depth in range(level.depth - 1, -1, -1):
            fits = self._held(level.tree, depth, level.ask)
            if len(level.stays):
                fits = fits * _are_at(level.tree.levels[depth], level.stays)
            roomy = np.flatnonzero(fits >= level.ask.count)
            if len(roomy):
                domains = level.tree.levels[depth]
                chosen = int(roomy[np.argmin(fits[roomy])])
                return DomainReport(
                    level=level.tree.topology.called(domains.key),
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

    def _concerned(self, root: GroupSet) -> Iterator[tuple[Member, list[PodInfo]]]:
        """Yield the parts of the tree that have tasks to place, from the root down."""
        for part in root.parts():
            inside = {pod_set.name for pod_set in part.pod_sets()}
            if tasks := [task for task in self._tasks if task.pod_set.name in inside]:
                yield part, tasks

    # -- single pods -------------------------------------------------------------------------------------------------

    def _diagnose(self, kind: int, task: PodInfo) -> FilterResult:
        """Ask every filter and every plugin about every node."""
        nodes = self._session.nodes
        candidate = Candidate(task.record.pod, task.request.requests)
        if task.request.looks_around or nodes.have_rules_about((task.record.pod,)):
            result = _ALL_FILTERS.feasible(nodes.view, candidate, thorough=True)
        else:
            # Where no pod has rules about others, what was placed in this session need not be counted first.
            result = _NODE_FILTERS.feasible(nodes.surroundings, candidate, thorough=True)
        refusals = [*result.refusals, *self._unshared(task), *self._refused_by_plugins(kind, task)]
        return FilterResult(result.mask, tuple(refusals), result.pre_filter)

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
                text = quoted(self._session, plugin, task, first)
                self.quotes.append(PluginQuote(kind, plugin, first, text))
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
            str(first.key),
            self._names,
            result.refusals,
            pre_filter=result.pre_filter,
            room=room,
            alike=len(alike),
            describe=partial(obstacle, self._table, first.record.pod),
        )


def domains_kept_in(session: Session, job: PodGroupInfo) -> tuple[tuple[int, ...], ...]:
    """Return, for each part of a job that requires a level, the domains that its placed pods keep it in."""
    if job.plain is not None and job.gang.anchor is None:
        return ()
    kept: list[tuple[int, ...]] = []
    for part in job.root.parts():
        found = session.topologies.required(part.topology)
        if found is not None:
            topology, depth = found
            level = session.snapshot.domain_trees.tree(topology, session.nodes.table).levels[depth]
            kept.append(tuple(np.unique(level.of_row[rows_to_stay_with(session, job, part)]).tolist()))
    return tuple(kept)


def _domains_at(level: Level, rows: Rows) -> list[int]:
    """Return the domains that rows are in, in the order of their names."""
    found: list[int] = np.unique(level.of_row[rows]).tolist()
    return [domain for domain in found if domain >= 0]


def _are_at(level: Level, rows: Rows) -> Mask:
    """Return which domains of a level have one of ``rows``, ``[domain]``."""
    mask = np.zeros(len(level), dtype=np.bool_)
    mask[_domains_at(level, rows)] = True
    return mask


def _usable(alive: Mask, result: FilterResult) -> Mask:
    """Return the nodes where nothing but room can be in the way, ``[node]``."""
    usable = alive.copy()
    if result.pre_filter is not None:
        usable[:] = False
    for refusal in result.refusals:
        if refusal.filter != RESOURCES_FILTER:
            usable &= ~refusal.nodes
    return usable
