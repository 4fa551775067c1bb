"""What must hold after every single write, whatever a scenario is about.

The log is replayed in the order of its revisions:

* a pod is created with its gate; the gate goes only once its gang has been Initialized, and while it refers to it;
* a gang becomes Initialized only when it refers to as many living pods as each of its PodCliques asks for;
* a pod is created only while its PodClique has fewer living pods than replicas: there is no surge (a change of replicas
  counts from when the operator has observed it);
* a pod is never bound while gated, never to two nodes, never to a node that was closed or has no room for it;
* at the moments a scenario calls settled, no gang is part-bound: it never got its minimum and yet holds a node.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from spinney.api import labels as marks
from spinney.api.conditions import is_true
from spinney.api.core import Node, Pod
from spinney.api.grove import PodClique
from spinney.api.podgang import INITIALIZED, PodGang
from spinney.api.quantity import milli
from spinney.operator.desired.gates import was_initialized
from tests.e2e.chronicle import Happening


def violations(log: Iterable[Happening], settled: Iterable[int] = ()) -> list[str]:
    """Return what was violated, with the revision at which it was; ``settled`` are revisions of rest."""
    replay = Replay()
    resting = sorted(settled)
    for each in log:
        while resting and resting[0] < each.revision:
            replay.rest(resting.pop(0))
        replay.take(each)
    for revision in resting:
        replay.rest(revision)
    return replay.found


@dataclass
class Replay:
    """The state at one revision, and what was found so far. Mutable."""

    found: list[str] = field(default_factory=list)
    nodes: dict[str, Node] = field(default_factory=dict)
    cliques: dict[str, PodClique] = field(default_factory=dict)
    gangs: dict[str, PodGang] = field(default_factory=dict)
    pods: dict[str, Pod] = field(default_factory=dict)
    observed_replicas: dict[str, int] = field(default_factory=dict)  # of PodCliques, as the operator last acted on
    complete: set[str] = field(default_factory=set)  # gangs that have had their minimum placed

    def take(self, each: Happening) -> None:
        """Judge one write."""
        if each.kind is Pod:
            self._take_pod(each)
        elif each.kind is PodGang:
            self._take_gang(each)
        elif each.kind is PodClique:
            self._take_clique(each)
        elif each.kind is Node:
            _keep(self.nodes, each)

    def rest(self, revision: int) -> None:
        """Judge a moment at which nothing is under way."""
        for name in self.gangs:
            bound = self._bound(name)
            if name not in self.complete and bound:
                self._report(revision, f"gang {name} is part-bound: {dict(bound)}")

    def _take_clique(self, each: Happening) -> None:
        _keep(self.cliques, each)
        clique: PodClique = each.object
        if clique.status.observed_generation in (None, clique.metadata.generation):
            self.observed_replicas[each.name] = clique.spec.replicas or 0

    # -- gangs ---------------------------------------------------------------------------------------------------------

    def _take_gang(self, each: Happening) -> None:
        before = self.gangs.get(each.name)
        _keep(self.gangs, each)
        if each.gone:
            self.complete.discard(each.name)
            return
        gang: PodGang = each.object
        was = before is not None and is_true(before.status.conditions, INITIALIZED)
        now = is_true(gang.status.conditions, INITIALIZED)
        if was and not was_initialized(gang):
            self.complete.discard(each.name)
        if now and not was and not each.inherited:
            self._check_complete(each.revision, gang)

    def _check_complete(self, revision: int, gang: PodGang) -> None:
        for group in gang.spec.pod_groups:
            clique = self.cliques.get(group.name)
            wanted = (clique.spec.replicas or 0) if clique is not None else group.min_replicas
            living = [each.name for each in group.pod_references if _is_active(self.pods.get(each.name))]
            if clique is None or len(living) < wanted:
                text = f"{gang.metadata.name} is Initialized and {group.name} refers to {len(living)} of {wanted} pods"
                self._report(revision, text)

    # -- pods ----------------------------------------------------------------------------------------------------------

    def _take_pod(self, each: Happening) -> None:
        before = self.pods.get(each.name)
        _keep(self.pods, each)
        if each.gone or not _is_managed(each.object):
            return
        pod: Pod = each.object
        if each.inherited:
            self.complete.add(pod.metadata.labels[marks.POD_GANG])  # how it came up was somebody else's story
            return
        if before is None or before.metadata.uid != pod.metadata.uid:
            self._check_creation(each.revision, pod)
        elif _is_held(before) and not _is_held(pod):
            self._check_release(each.revision, pod)
        if pod.spec.node_name and (before is None or before.spec.node_name != pod.spec.node_name):
            self._check_binding(each.revision, pod, before)

    def _check_creation(self, revision: int, pod: Pod) -> None:
        name = pod.metadata.name
        if not _is_held(pod):
            self._report(revision, f"pod {name} was created without its gate")
        clique = self.cliques.get(pod.metadata.labels[marks.POD_CLIQUE])
        if clique is None:
            return
        siblings = [each for each in self.pods.values() if _is_active(each) and _owner(each) == clique.metadata.uid]
        allowed = max(clique.spec.replicas or 0, self.observed_replicas[clique.metadata.name])
        if len(siblings) > allowed:
            self._report(revision, f"pod {name} is number {len(siblings)} of {allowed} in {clique.metadata.name}")

    def _check_release(self, revision: int, pod: Pod) -> None:
        name, gang = pod.metadata.name, self.gangs.get(pod.metadata.labels[marks.POD_GANG])
        if gang is None or not was_initialized(gang):
            self._report(revision, f"pod {name} was released while its gang was not Initialized")
        elif not any(name == each.name for group in gang.spec.pod_groups for each in group.pod_references):
            self._report(revision, f"pod {name} was released and its gang does not refer to it")

    def _check_binding(self, revision: int, pod: Pod, before: Pod | None) -> None:
        name, node = pod.metadata.name, self.nodes.get(pod.spec.node_name)
        if before is not None and before.metadata.uid == pod.metadata.uid and before.spec.node_name:
            self._report(revision, f"pod {name} was moved from {before.spec.node_name} to {pod.spec.node_name}")
        if pod.gated:
            self._report(revision, f"pod {name} was bound while gated")
        if node is None or node.spec.unschedulable:
            self._report(revision, f"pod {name} was bound to {pod.spec.node_name}, which is closed")
            return
        self._check_room(revision, node)
        gang = self.gangs.get(pod.metadata.labels[marks.POD_GANG])
        if gang is not None:
            bound = self._bound(gang.metadata.name)
            if all(bound[group.name] >= group.min_replicas for group in gang.spec.pod_groups):
                self.complete.add(gang.metadata.name)

    def _check_room(self, revision: int, node: Node) -> None:
        used: dict[str, int] = defaultdict(int)
        for pod in self.pods.values():
            if pod.spec.node_name == node.metadata.name and not pod.terminal:
                used["pods"] += 1000
                for container in pod.spec.containers:
                    for resource, amount in {**container.resources.limits, **container.resources.requests}.items():
                        used[resource] += milli(amount)
        for resource, amount in used.items():
            has = milli(node.status.allocatable.get(resource, "0"))
            if amount > has:
                self._report(revision, f"node {node.metadata.name} has {has / 1000} {resource}, used {amount / 1000}")

    def _bound(self, gang: str) -> dict[str, int]:
        """Return how many pods of each group of a gang hold a node."""
        bound: dict[str, int] = defaultdict(int)
        for pod in self.pods.values():
            if pod.metadata.labels.get(marks.POD_GANG) == gang and pod.spec.node_name and not pod.metadata.deleting:
                bound[pod.metadata.labels[marks.POD_CLIQUE]] += 1
        return bound

    def _report(self, revision: int, text: str) -> None:
        self.found.append(f"revision {revision}: {text}")


def _keep(table: dict[str, Any], each: Happening) -> None:
    if each.gone:
        table.pop(each.name, None)
    else:
        table[each.name] = each.object


def _is_managed(pod: Pod) -> bool:
    return pod.metadata.labels.get(marks.MANAGED_BY) == marks.MANAGED_BY_GROVE


def _is_held(pod: Pod) -> bool:
    return any(gate.name == marks.POD_GANG_GATE for gate in pod.spec.scheduling_gates)


def _is_active(pod: Pod | None) -> bool:
    return pod is not None and not pod.metadata.deleting and not pod.terminal


def _owner(pod: Pod) -> str | None:
    return pod.metadata.controller.uid if pod.metadata.controller is not None else None
