"""A cluster to try policies on, in a notebook or a test: nodes, gangs, a scheduler and a clock, all in one object.

::

    from spinney.sim import Cluster

    cluster = Cluster("8x8")                                  # 8 nodes of 8 GPUs, 4 to a rack
    cluster.gang("train", pods=6, gpus=8, within="rack")      # or cluster.submit("workload.yaml")
    cluster.step()                                            # one scheduling cycle
    print(cluster.why("train"))

It is the production scheduler over an inventory filled by hand; there is no server, and time passes only in
:meth:`Cluster.run`. Everything is deterministic: the same calls give the same decisions.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

from spinney.api import yaml_text
from spinney.api.core import NODE, Node, Pod
from spinney.api.labels import KAI_QUEUE, POD_CLIQUE, TOPOLOGY_NAME
from spinney.api.labels import POD_GANG as GANG_LABEL
from spinney.api.struct import JSON
from spinney.cluster.devices import gpus_on
from spinney.cluster.pods import PodKey, PodRecord
from spinney.cluster.resources import GPU_NAME
from spinney.cluster.statuses import ACTIVE_ALLOCATED, ALIVE, WAITING
from spinney.explain.rendering import as_text
from spinney.gangs.tree import GangKey
from spinney.kube.keys import key_of
from spinney.nodes import ClusterSpec
from spinney.scheduler.config import SchedulerConfig
from spinney.scheduler.config_files import load_config
from spinney.scheduler.framework.plugin import Plugin
from spinney.sim.advice.advice import Advisor
from spinney.sim.advice.answer import Answer
from spinney.sim.advice.subjects import find
from spinney.sim.embedded import shapes
from spinney.sim.embedded.shapes import BLOCK, HOST, RACK, TOPOLOGY, gpu_cluster, parse_shape, topology_binding
from spinney.sim.engine import EPOCH, Cycled, Engine
from spinney.sim.notebook.drawing import GangPicture, NodePicture, html
from spinney.sim.overview.queue_table import QueueLine, queue_lines
from spinney.sim.policies.faults import PluginFailed, watching
from spinney.sim.policies.files import with_plugins
from spinney.sim.quiet import warnings_only
from spinney.sim.remedies.change import without_pods_of
from spinney.sim.snapshots.expanding import ExpansionContext, expand
from spinney.sim.snapshots.files import read_manifests, read_snapshot
from spinney.sim.snapshots.snapshot import ClusterSnapshot, differing
from spinney.sim.whatif.outcomes import CycleOutcome, Difference, Outcome, Waiting, differences
from spinney.sim.whatif.simulation import Simulation, matching_profile

_LEVELS: Final = {"rack": RACK, "block": BLOCK, "host": HOST}


@dataclass(frozen=True)
class Happening:
    """Something that happened to a pod, and when."""

    at: datetime
    pod: PodKey
    what: str
    """``placed``, ``evicted`` or ``ended``."""
    node: str


class Cluster:
    """A simulated cluster under the session scheduler. Mutable.

    ``nodes`` is a shape such as ``8x8``, a :class:`~spinney.nodes.ClusterSpec`, or a snapshot. ``config`` is a
    configuration or the file of one. ``plugins`` are plugin classes of your own, added after the configured ones; one
    that has the name of a configured plugin replaces it.
    """

    def __init__(
        self,
        nodes: str | ClusterSpec | ClusterSnapshot = "8x8",
        *,
        config: SchedulerConfig | str | Path | None = None,
        plugins: Iterable[type[Plugin]] = (),
        seed: int = 0,
    ) -> None:
        warnings_only()
        snapshot = nodes if isinstance(nodes, ClusterSnapshot) else ClusterSnapshot(source="a cluster of our own")
        settings = load_config(Path(config)) if isinstance(config, str | Path) else config
        settings, registry = with_plugins(settings or matching_profile(snapshot), plugins)
        self._engine = Engine(lambda: self._cycle()[1], start=snapshot.taken or EPOCH, seed=seed)
        self.clock, self.runtime = self._engine.clock, self._engine.runtime
        self.history: list[Happening] = []
        """What has happened to pods, oldest first."""
        self._config = settings
        self._simulation = Simulation(snapshot, settings, runtime=self.runtime, registry=registry)
        self._lasting: dict[PodKey, timedelta] = {}
        self._ends: dict[PodKey, int] = {}
        """The events that end pods."""
        self._last: CycleOutcome | None = None
        self._submitted = 0
        """How many objects were added: what is added later is younger, also while the clock stands."""
        self._loaded = isinstance(nodes, ClusterSnapshot)
        self._workloads: set[tuple[str, str, str]] = set()
        """Namespace, kind and name of what was added."""
        if not isinstance(nodes, ClusterSnapshot):
            self.submit(*_node_manifests(nodes))

    @classmethod
    def load(cls, path: str | Path, **options: Any) -> "Cluster":
        """Return a cluster as it was when a snapshot was taken; any form ``spinney simulate`` reads will do."""
        return cls(read_snapshot(Path(path)), **options)

    # -- what is in it -----------------------------------------------------------------------------------------------

    def submit(self, *what: JSON | str | Path, lasting: timedelta | None = None) -> None:
        """Add objects: manifests, YAML text or files. Pods end ``lasting`` after they were placed; never without it.

        A workload that is there already is made anew, as ``spinney simulate -f`` does: its pods go first.
        """
        manifests: list[JSON] = []
        for each in what:
            if isinstance(each, dict):
                manifests.append(each)
            elif isinstance(each, Path) or "\n" not in each:
                manifests += read_manifests(Path(each))
            else:
                manifests += [found for found in yaml_text.load_all(each) if found is not None]
        self._take_out_before(manifests)
        born = self.clock.now() + timedelta(microseconds=self._submitted)
        self._submitted += len(manifests)
        added = expand(manifests, ExpansionContext.of(self._simulation, born))
        self._simulation.add(added)
        if lasting is not None:
            self._lasting |= {PodKey(*key_of(pod)): lasting for pod in added if isinstance(pod, Pod)}

    def _take_out_before(self, manifests: Sequence[JSON]) -> None:
        """Take out the pods and gangs of workloads that are going to be made anew."""
        named = {
            (str(metadata.get("namespace") or "default"), str(each.get("kind")), str(metadata.get("name")))
            for each in manifests
            if isinstance(metadata := each.get("metadata"), dict)
        }
        if self._loaded or not named.isdisjoint(self._workloads):
            before = self.snapshot()
            rest = without_pods_of(before, manifests, "default")
            self._remove([each.old for each in differing(before, rest) if each.new is None])
        self._workloads |= named

    def _remove(self, gone: Sequence[Any]) -> None:
        self._simulation.remove(gone)
        for pod in (PodKey(*key_of(found)) for found in gone if isinstance(found, Pod)):
            self._lasting.pop(pod, None)
            self._engine.cancel(self._ends.pop(pod, -1))

    def gang(
        self,
        name: str,
        *,
        pods: int = 1,
        minimum: int | None = None,
        gpus: int = 0,
        cpu: str = "1",
        within: str | None = None,
        prefer: str | None = None,
        queue: str | None = None,
        priority_class: str | None = None,
        namespace: str = "default",
        lasting: timedelta | None = None,
    ) -> None:
        """Add a gang of like pods: ``within`` and ``prefer`` name a level (rack, block, host) or a node label."""
        pack = {key: _LEVELS.get(level, level) for key, level in (("required", within), ("preferred", prefer)) if level}
        labels = {KAI_QUEUE: queue} if queue else {}
        manifest: JSON = {
            "apiVersion": "scheduler.grove.io/v1alpha1",
            "kind": "PodGang",
            "metadata": {
                "name": name,
                "namespace": namespace,
                "labels": labels,
                "annotations": {TOPOLOGY_NAME: TOPOLOGY} if pack else {},
            },
            "spec": {
                "podgroups": [{"name": name, "minReplicas": pods if minimum is None else minimum}],
                **({"topologyConstraint": {"packConstraint": pack}} if pack else {}),
                **({"priorityClassName": priority_class} if priority_class else {}),
            },
        }
        resources: JSON = {"requests": {"cpu": cpu}, "limits": {GPU_NAME: str(gpus)} if gpus else {}}
        spec = {"schedulerName": "spinney-scheduler", "containers": [{"name": "main", "resources": resources}]}
        # The pods have an owner, so one that is evicted is made again.
        owner = {"apiVersion": "grove.io/v1alpha1", "kind": "PodClique", "name": name, "uid": name, "controller": True}
        members: list[JSON] = [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": f"{name}-{index}",
                    "namespace": namespace,
                    "labels": {**labels, GANG_LABEL: name, POD_CLIQUE: name},
                    "ownerReferences": [owner],
                },
                "spec": spec,
            }
            for index in range(pods)
        ]
        self.submit(manifest, *members, lasting=lasting)

    def queue(
        self, name: str, *, parent: str | None = None, quota: float = 0, limit: float = -1, weight: float = 1
    ) -> None:
        """Add a queue with its share of the GPUs; cpu and memory are unlimited."""
        manifest = shapes.queue(name, quota, parent=parent, limit=limit, weight=weight)
        self.submit({"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", **manifest})

    def delete(self, name: str, namespace: str = "default") -> None:
        """Delete a gang with its pods, or a single pod."""
        gone = [
            found
            for objects in self.snapshot().objects.values()
            for found in objects
            if found.metadata.namespace == namespace
            and (found.metadata.name == name or found.metadata.labels.get(GANG_LABEL) == name)
        ]
        self._remove(gone)

    # -- letting it run ----------------------------------------------------------------------------------------------

    def step(self) -> CycleOutcome:
        """Run one scheduling cycle and return what it decided; raises ``PluginFailed`` where a plugin did."""
        return self._cycle()[0]

    def _cycle(self) -> tuple[CycleOutcome, Cycled]:
        """Run one scheduling cycle; return what it decided, and what follows: gates may have been opened."""
        with watching() as faults:
            outcome = self._last = self._simulation.cycle()
        if faults:
            raise PluginFailed(list(faults))
        now = self.clock.now()
        for eviction in outcome.evictions:
            self._engine.cancel(self._ends.pop(eviction.pod, -1))
            self.history.append(Happening(now, eviction.pod, "evicted", eviction.node))
        for pod, node in outcome.placed.items():
            self.history.append(Happening(now, pod, "placed", node))
            if pod in self._lasting:
                due = self.clock.monotonic() + self._lasting[pod].total_seconds()
                self._engine.cancel(self._ends.pop(pod, -1))
                self._ends[pod] = self._engine.at(due, partial(self._end, pod))
        released = self._simulation.release_gates()
        return outcome, Cycled(outcome.changed or bool(released), outcome.result.next_moment)

    def run(self, seconds: float | None = None) -> None:
        """Let time pass: cycles run while they change something, pods end when their time is up.

        Without ``seconds``, until nothing more would happen.
        """
        now = self.clock.monotonic()
        self._engine.at(now, lambda: True)
        self._engine.run(now + seconds if seconds is not None else math.inf)

    def _end(self, pod: PodKey) -> bool:
        del self._ends[pod]
        self.history.append(Happening(self.clock.now(), pod, "ended", self.placements.get(pod, "")))
        self._simulation.complete(pod)
        return True

    # -- what came of it ---------------------------------------------------------------------------------------------

    @property
    def placements(self) -> Mapping[PodKey, str]:
        """Return the node of every pod that holds one."""
        return {record.key: record.node for record in self._pods if record.status in ACTIVE_ALLOCATED}

    @property
    def pending(self) -> list[PodKey]:
        """Return the pods that wait."""
        return [record.key for record in self._pods if record.status in WAITING]

    def nodes_of(self, gang: str, namespace: str = "default") -> list[str]:
        """Return the nodes the pods of a gang are on, one entry per pod, in order of name."""
        return sorted(
            record.node
            for record in self._pods
            if record.status in ACTIVE_ALLOCATED
            and record.namespace == namespace
            and self._simulation.gang_of(record).name == gang
        )

    def differences(self, before: "Cluster") -> list[Difference]:
        """Return the gangs that fare differently here than in ``before``, in order of name."""
        return differences(before.outcome(), self.outcome())

    def outcome(self) -> Outcome:
        """Return what has become of every gang so far, as ``spinney simulate`` tells it."""
        records = [each for each in self._pods if each.status in ALIVE]
        waiting: dict[GangKey, list[PodKey]] = {}
        for record in records:
            if record.status in WAITING:
                waiting.setdefault(self._simulation.gang_of(record), []).append(record.key)
        said = {each.gang: each.message for each in self._last.waiting} if self._last is not None else {}
        return Outcome(
            cycles=0,
            settled=self._last is not None and not self._last.changed,
            placed=self.placements,
            evictions=(),
            graces={},
            waiting=tuple(
                Waiting(gang=gang, pods=tuple(pods), message=said.get(gang, "")) for gang, pods in waiting.items()
            ),
            gangs={record.key: self._simulation.gang_of(record) for record in records},
        )

    def queues(self) -> list[QueueLine]:
        """Return every queue with what it is entitled to, holds and asks for."""
        return queue_lines(self._simulation.scheduler)

    def snapshot(self) -> ClusterSnapshot:
        """Return the cluster as it is now."""
        return self._simulation.current()

    def answer(self, subject: str, namespace: str | None = None) -> Answer:
        """Return why something waits, as data; raises ``LookupError`` if there is no such thing."""
        snapshot = self.snapshot()
        advisor = Advisor(snapshot, self._config, runtime=self.runtime, registry=self._simulation.scheduler.registry)
        return advisor.answer(find(snapshot, subject, namespace))

    def why(self, subject: str, namespace: str | None = None) -> str:
        """Return why something waits, as text."""
        answer = self.answer(subject, namespace)
        parts = [answer, *answer.parts]
        lines = [line for part in parts for line in (f"{part.subject}: {part.state}", *part.sentences)]
        return "\n".join([*lines, *(as_text(each) for part in parts for each in part.explanations)])

    def _repr_html_(self) -> str:
        """Return the picture a notebook shows."""
        records = [record for record in self._pods if record.status in ALIVE]
        gangs: dict[str, list[bool]] = {}
        on_node: dict[str, list[str]] = {}
        for record in sorted(records, key=lambda each: each.key):
            gang = self._simulation.gang_of(record).name
            gangs.setdefault(gang, []).append(record.status in ACTIVE_ALLOCATED)
            if record.node:
                on_node.setdefault(record.node, []).extend([gang] * record.request.gpus)
        reasons = {each.gang.name: each.message for each in self._last.waiting} if self._last is not None else {}
        nodes = [
            NodePicture(
                node.metadata.name,
                "/".join(filter(None, (node.metadata.labels.get(key, "") for key in (BLOCK, RACK)))),
                gpus_on(node),
                sorted(on_node.get(node.metadata.name, [])),
            )
            for node in sorted(self._simulation.of(NODE, Node), key=lambda each: each.metadata.name)
        ]
        pictures = [
            GangPicture(name, len(placed), sum(placed), "" if all(placed) else reasons.get(name, ""))
            for name, placed in gangs.items()
        ]
        return html(nodes, pictures, caption=f"{len(nodes)} nodes at {self.clock.now():%Y-%m-%d %H:%M:%S}")

    @property
    def _pods(self) -> Iterable[PodRecord]:
        return self._simulation.inventory.cluster.pods()


def _node_manifests(nodes: str | ClusterSpec) -> list[JSON]:
    """Return nodes as manifests; those of a shape come with the topology of their racks and blocks."""
    spec = gpu_cluster(*parse_shape(nodes)) if isinstance(nodes, str) else nodes
    found = [shapes.node_manifest(node) for node in spec.expanded()]
    if isinstance(nodes, str):
        found.append({"apiVersion": "grove.io/v1alpha1", "kind": "ClusterTopologyBinding", **topology_binding()})
    return found
