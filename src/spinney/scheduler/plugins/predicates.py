"""predicates: where a pod may run, by Kubernetes' rules and those of GPUs.

What depends on nothing but the node and what the pod asks for is judged once per request class. What looks at other
pods (host ports, affinity, spreading) or at volumes is judged anew each time, and only for pods it concerns.
"""

from collections.abc import Sequence

import msgspec
import numpy as np

from spinney.cluster.classes import DeviceShare, RequestClass
from spinney.cluster.filters import Candidate, ClusterView, FilterRule
from spinney.cluster.filters.framework import LIVE_FILTERS, NODE_FILTERS
from spinney.cluster.fitting import in_usable_mode
from spinney.cluster.resources import PODS
from spinney.cluster.table import Mask
from spinney.explain.amounts import too_large
from spinney.extensions.arguments import NoArguments
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.nodes import NodeSet
from spinney.scheduler.framework.plugin import Constraint, Plugin
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import PodInfo
from spinney.scheduler.plugins.shared_volumes import divide_by_shared_volumes


class Predicates(Plugin):
    """Filters nodes."""

    name = "predicates"
    arguments_type = NoArguments
    honours = frozenset({Constraint.NODE_RULES})
    treats_alike = True

    def on_session_open(self, session: Session) -> None:
        self._session = session
        self._largest = session.nodes.table.allocatable[session.nodes.all.rows].max(axis=0, initial=0)
        session.add_pre_predicate_fn(self._suits_some_node, per_job=False)
        session.add_pre_predicate_fn(self._suits_pods_somewhere, applies_to=self._looks_at_pods)
        session.add_victim_invariant_pre_predicate_fn(
            lambda task: self._fits_some_node(task, task.job) or self._lacks_volume(task)
        )
        session.add_predicate_columns(self._suits_node, per_job=False, reads_usage=False)
        session.add_predicate_columns(
            self._suits_devices, per_job=False, for_requests=_is_particular_about_devices, few=self._suit_devices
        )
        session.add_predicate_columns(
            self._suits_pods, stateful=True, only_pod_rules=True, applies_to=self._looks_at_pods
        )
        divide_by_shared_volumes(session)

    # -- the pod alone -----------------------------------------------------------------------------------------------

    def _fits_some_node(self, task: PodInfo, job: PodGroupInfo) -> str | None:
        """Refuse a pod that asks for more than any single node offers, or for a share that cannot be read."""
        request = task.request
        if request.misread is not None:
            return request.misread
        if request.legacy_mig:
            return "pods that ask for MIG instances by annotation are not supported"
        asked = zip(request.columns.tolist(), request.amounts.tolist(), strict=True)
        beyond = [(column, amount) for column, amount in asked if self._largest[column] < amount]
        if not beyond:
            return None
        names = self._session.nodes.table.axis.names(request.unoffered)
        return "; ".join(too_large(names[column], amount, int(self._largest[column])) for column, amount in beyond)

    def _suits_some_node(self, task: PodInfo, job: PodGroupInfo) -> str | None:
        """Refuse a pod that no node takes, whatever is on it, as far as can be told before looking at nodes."""
        return self._fits_some_node(task, job) or self._refusal(NODE_FILTERS, task)

    def _suits_pods_somewhere(self, task: PodInfo, job: PodGroupInfo) -> str | None:
        """Refuse a pod that other pods, or its volumes, keep off all nodes."""
        return self._refusal(LIVE_FILTERS, task)

    def _lacks_volume(self, task: PodInfo) -> str | None:
        """Return which claim or volume that a pod names does not exist: nobody who leaves makes it."""
        reason = self._suits_pods_somewhere(task, task.job) if task.request.looks_around else None
        return reason if reason is not None and reason.endswith(" not found") else None

    def _refusal(self, filters: Sequence[FilterRule], task: PodInfo) -> str | None:
        view, candidate = self._view(filters), _candidate(task)
        for rule in filters:
            restriction = rule.restrict(view, candidate) if rule.restrict is not None else None
            if restriction is not None and restriction.reason is not None:
                return restriction.reason
        return None

    # -- the pod and nodes -------------------------------------------------------------------------------------------

    def _suits_node(self, task: PodInfo, job: PodGroupInfo, nodes: NodeSet) -> Mask:
        usable = in_usable_mode(self._session.nodes.table, nodes.rows, task.request)
        return self._passes(NODE_FILTERS, task, nodes) & usable

    def _suits_devices(self, task: PodInfo, job: PodGroupInfo, nodes: NodeSet) -> Mask:
        """Judge MIG nodes that host obsolete pods, and pods that would be the first to share a device."""
        session, request = self._session, task.request
        mask = np.ones(len(nodes), dtype=np.bool_)
        if request.mig_slices:
            mask[:] = [self._suits_instances(row) for row in nodes.rows.tolist()]
        share = request.share
        if share is not None:
            table = session.nodes.table
            slots = table.idle[:, PODS].take(nodes.rows) + table.releasing[:, PODS].take(nodes.rows)
            for position in (slots < 1 + share.devices).nonzero()[0].tolist():
                mask[position] = self._has_slots(share, int(nodes.rows[position]), int(slots[position]))
            if session.devices.are_published:
                mask &= ~session.devices.published(nodes)
        return mask

    def _suit_devices(self, request: RequestClass, rows: Sequence[int]) -> Sequence[bool]:
        """Judge a few nodes in the same way."""
        session, share = self._session, request.share
        found = [not request.mig_slices or self._suits_instances(row) for row in rows]
        if share is not None:
            idle, releasing = session.nodes.table.idle.item, session.nodes.table.releasing.item
            for position, row in enumerate(rows):
                slots = idle(row, PODS) + releasing(row, PODS)
                if slots < 1 + share.devices and not self._has_slots(share, row, slots):
                    found[position] = False
            if session.devices.are_published:
                published = session.devices.published(NodeSet(session.nodes, np.array(rows, dtype=np.intp)))
                found = [fits and not there for fits, there in zip(found, published.tolist(), strict=True)]
        return found

    def _suits_instances(self, row: int) -> bool:
        return not any(record.request.legacy_mig for record in self._session.nodes.records_on(row))

    def _has_slots(self, share: DeviceShare, row: int, slots: int) -> bool:
        """Tell whether there are slots for a pod and those that reserve the devices it would be the first to share."""
        node = self._session.nodes.info(row)
        parts = share.parts_on(node.gpu_memory)
        shared = sum(use.free_later >= parts for use in node.shared_gpus.values())
        return slots >= 1 + max(share.devices - shared, 0)

    def _suits_pods(self, task: PodInfo, job: PodGroupInfo, nodes: NodeSet) -> Mask:
        return self._passes(LIVE_FILTERS, task, nodes)

    def _looks_at_pods(self, task: PodInfo) -> bool:
        return task.request.looks_around or self._session.nodes.have_rules_about((task.record.pod,))

    def _view(self, filters: Sequence[FilterRule]) -> ClusterView:
        nodes = self._session.nodes
        return nodes.surroundings if filters is NODE_FILTERS else nodes.view

    def _passes(self, filters: Sequence[FilterRule], task: PodInfo, nodes: NodeSet) -> Mask:
        view = self._view(filters)
        candidate = _candidate(task)
        mask = view.table.alive.copy()
        for rule in filters:
            restriction = rule.restrict(view, candidate) if rule.restrict is not None else None
            if restriction is not None and restriction.reason is not None:
                return np.zeros(len(nodes), dtype=np.bool_)
            if restriction is not None and restriction.nodes is not None:
                mask &= restriction.nodes
            for refusal in rule.refuse(view, candidate):
                mask &= ~refusal.nodes
        return mask[nodes.rows]


def _candidate(task: PodInfo) -> Candidate:
    pod = task.record.pod
    if pod.spec.node_name:
        # A placed pod is judged as a new one would be: where it is now does not bind it, nor others of its class.
        pod = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=""))
    return Candidate(pod, task.request.requests)


def _is_particular_about_devices(request: RequestClass) -> bool:
    return request.share is not None or request.mig_slices > 0
