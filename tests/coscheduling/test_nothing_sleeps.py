"""Nothing is left sleeping that could be placed: after random events what waits is tried anew, and does not fit.

The queue wakes a pod only for events that may help it. A hint that is missing is found here: the second scheduler knows
nothing of the past and finds room that the first one was not told about.
"""

import os
import random
from collections.abc import Callable

import msgspec
import pytest

from spinney.api.affinity import Affinity, PodAffinity, PodAffinityTerm, Taint, TopologySpreadConstraint
from spinney.api.core import Container, ContainerPort, Node, Pod, ResourceRequirements
from spinney.api.coscheduling import PodGroup
from spinney.api.selectors import LabelSelector
from spinney.kube.cache import Change
from spinney.kube.keys import Key, key_of
from spinney.runtime import run_virtual

from .bench import NAMESPACE, Bench, a_group, a_node, a_pod
from .test_composite_preemption import Tree, a_random_tree, put_tree
from .test_native_gangs import RACK

BLOCK = "example.com/block"
HISTORIES = int(os.environ.get("SPINNEY_HISTORIES", "20"))
"""How many random histories are lived through; more find what is rare."""
APPS = ("x", "y")


class History:
    """A scheduler to which things happen at random. Mutable."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.bench = Bench(podGroupBackoffSeconds=self.chance.choice([0, 2, 10]))
        self.groups: dict[str, PodGroup] = {}
        self.trees: list[Tree] = []
        self.number = 0
        self.told: list[str] = []

    # -- what happens ------------------------------------------------------------------------------------------------

    async def live(self) -> None:
        """Have things happen, and let everything come to rest."""
        happenings: list[Callable[[], str]] = [
            self.a_node,
            self.a_node,
            self.another_node,
            self.a_lost_node,
            self.a_single,
            self.a_single,
            self.a_gang,
            self.a_gang,
            self.a_tree,
            self.an_end,
            self.an_end,
            self.another_label,
            self.another_size,
            self.another_minimum,
            self.a_lost_group,
            self.a_refused_bind,
        ]
        for _ in range(self.chance.randint(8, 24)):
            self.told.append(self.chance.choice(happenings)())
            if self.chance.random() < 0.6:
                await self.pass_time(self.chance.choice([0.0, 0.0, 0.3, 2.0, 12.0]))
        self.bench.refuse_binds.clear()
        await self.pass_time(60)

    async def pass_time(self, seconds: float) -> None:
        """Let the scheduler work, and victims go."""
        self.told.append(f"{seconds} s")
        await self.bench.run(seconds)
        while self.bench.services.leaving:
            for key in list(self.bench.services.leaving):
                self.bench.delete(key.name)
            await self.bench.run(seconds)

    def _name(self, kind: str) -> str:
        self.number += 1
        return f"{kind}{self.number}"

    def a_node(self) -> str:
        node = a_node(
            self._name("n"),
            self.chance.randint(1, 3),
            labels={RACK: self.chance.choice(["r1", "r2"]), BLOCK: self.chance.choice("ab")},
            taints=(Taint(key="kept", value="", effect="NoSchedule"),) if self.chance.random() < 0.2 else (),
        )
        self.bench.put(node)
        return f"node {node.metadata.name} with {node.status.allocatable['cpu']} {node.metadata.labels} {node.spec}"

    def another_node(self) -> str:
        """Change a node: cordon it, taint it, give it another rack or size."""
        node = self._some_node()
        if node is None:
            return "nothing"
        other = a_node(
            node.metadata.name,
            self.chance.randint(1, 4),
            labels={RACK: self.chance.choice(["r1", "r2"]), BLOCK: self.chance.choice("ab")},
            taints=(Taint(key="kept", value="", effect="NoSchedule"),) if self.chance.random() < 0.3 else (),
            unschedulable=self.chance.random() < 0.3,
        )
        self.bench.put(other)
        return f"node {other.metadata.name} now {other.status.allocatable['cpu']} {other.metadata.labels} {other.spec}"

    def a_lost_node(self) -> str:
        node = self._some_node()
        if node is None or self.chance.random() < 0.5:
            return "nothing"
        self.bench.intake.node(Change(key_of(node), node, None, "1"))
        for record in [each for each in self.bench.cluster.pods() if each.pod.spec.node_name == node.metadata.name]:
            self.bench.delete(record.name)
        return f"node {node.metadata.name} gone"

    def a_single(self) -> str:
        name, app = self._name("s"), self.chance.choice(APPS)
        selector = LabelSelector(match_labels={"app": self.chance.choice(APPS)})
        term = PodAffinityTerm(label_selector=selector, topology_key=RACK)
        others = PodAffinity(required_during_scheduling_ignored_during_execution=(term,))
        rules: list[dict[str, object]] = [
            {},
            {"affinity": Affinity(pod_anti_affinity=others)},
            {"affinity": Affinity(pod_affinity=others)},
            {
                "spread": (
                    TopologySpreadConstraint(
                        max_skew=1, topology_key=RACK, when_unsatisfiable="DoNotSchedule", label_selector=selector
                    ),
                )
            },
        ]
        rule = self.chance.choice(rules)
        pod = a_pod(name, cpu=self._cpu(), priority=self._priority(), labels={"app": app}, **rule)  # type: ignore[arg-type]
        if self.chance.random() < 0.2:
            pod = with_container(pod, ports=(ContainerPort(host_port=80),))
        self.bench.put(pod)
        return f"pod {name} {app} {pod.spec.priority} {pod.spec.containers[0].resources.requests} {rule}"

    def a_gang(self) -> str:
        name, size = self._name("g"), self.chance.randint(1, 4)
        self._put_group(name, self.chance.randint(1, size))
        priority = self._priority()
        cpus = [self._cpu() for _ in range(size)]
        gates = ("later",) if self.chance.random() < 0.1 else ()
        self.bench.put(
            *(a_pod(f"{name}-{n}", group=name, cpu=cpu, priority=priority, gates=gates) for n, cpu in enumerate(cpus))
        )
        return f"gang {name} {self.groups[name].spec} {cpus} {priority} {gates}"

    def a_tree(self) -> str:
        """Have a composite appear, once: names of its groups are fixed."""
        if self.trees:
            return "nothing"
        self.trees.append(a_random_tree(self.chance))
        put_tree(self.bench, self.trees[0])
        return f"tree {self.trees[0]}"

    def an_end(self) -> str:
        """Delete a pod, or have one that runs succeed."""
        found = sorted(self.bench.cluster.pods(), key=lambda each: each.name)
        if not found:
            return "nothing"
        record = self.chance.choice(found)
        if record.pod.spec.node_name and self.chance.random() < 0.3:
            self.bench.put(
                msgspec.structs.replace(
                    record.pod, status=msgspec.structs.replace(record.pod.status, phase="Succeeded")
                )
            )
            return f"{record.name} succeeded"
        self.bench.delete(record.name)
        return f"{record.name} deleted"

    def another_label(self) -> str:
        """Give a pod another label, which affinity and spreading look at, or take its gates away."""
        pod = self._some_pod()
        if pod is None:
            return "nothing"
        labels = {**pod.metadata.labels, "app": self.chance.choice(APPS)}
        spec = msgspec.structs.replace(pod.spec, scheduling_gates=())
        self.bench.put(
            msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, labels=labels), spec=spec)
        )
        return f"{pod.metadata.name} now {labels}"

    def another_size(self) -> str:
        """Resize a pod that runs, in place."""
        pod = self._some_pod()
        if pod is None or not pod.spec.node_name:
            return "nothing"
        self.bench.put(with_container(pod, resources=ResourceRequirements(requests={"cpu": "500m"})))
        return f"{pod.metadata.name} resized"

    def another_minimum(self) -> str:
        if not self.groups:
            return "nothing"
        name = self.chance.choice(sorted(self.groups))
        self._put_group(name, self.chance.randint(1, 4))
        return f"group {name} now {self.groups[name].spec}"

    def a_lost_group(self) -> str:
        """Delete a group's object; it comes back with its next minimum."""
        if not self.groups:
            return "nothing"
        name = self.chance.choice(sorted(self.groups))
        group = self.groups[name]
        self.bench.intake.take_in(Change(Key(NAMESPACE, name), group, None, "1"))
        if self.chance.random() < 0.5:
            self._put_group(name, group.spec.min_member)
        else:
            del self.groups[name]
        return f"group {name} deleted" + (", and back" if name in self.groups else "")

    def a_refused_bind(self) -> str:
        pod = self._some_pod()
        if pod is None:
            return "nothing"
        self.bench.refuse_binds ^= {pod.metadata.name}
        return f"binds of {sorted(self.bench.refuse_binds)} refused"

    def _put_group(self, name: str, minimum: int) -> None:
        resources = {"cpu": str(self.chance.randint(1, 4))} if self.chance.random() < 0.2 else {}
        self.groups[name] = a_group(name, minimum, min_resources=resources)
        self.bench.put(self.groups[name])

    def _some_node(self) -> Node | None:
        found = [node for node in self.bench.cluster.table.nodes if node is not None]
        return self.chance.choice(found) if found else None

    def _some_pod(self) -> Pod | None:
        found = sorted(self.bench.cluster.pods(), key=lambda each: each.name)
        return self.chance.choice(found).pod if found else None

    def _cpu(self) -> str:
        return self.chance.choice(["500m", "1", "1", "2"])

    def _priority(self) -> int:
        return self.chance.choice([0, 0, 0, 10])

    # -- looking -----------------------------------------------------------------------------------------------------

    async def tried_from_scratch(self) -> Bench:
        """Return a scheduler that has tried everything that waits, without knowing what happened before."""
        other = Bench()
        other.put(*(node for node in self.bench.cluster.table.nodes if node is not None))
        for tree in self.trees:
            put_tree(other, tree, with_pods=False)
        other.put(*self.groups.values())
        other.put(*(record.pod for record in sorted(self.bench.cluster.pods(), key=lambda each: each.name)))
        await other.run(60)
        return other


def with_container(pod: Pod, **changes: object) -> Pod:
    """Return a pod with another container."""
    container: Container = msgspec.structs.replace(pod.spec.containers[0], **changes)
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, containers=(container,)))


async def go_through(seed: int) -> None:
    """Live through a history, and see whether anything was left that could be placed."""
    history = History(seed)
    await history.live()
    waiting = sorted(record.name for record in history.bench.cluster.pods() if not record.pod.spec.node_name)
    other = await history.tried_from_scratch()
    story = f"seed {seed}, {history.bench.plugin.arguments.pod_group_backoff_seconds}: " + "\n".join(history.told)
    assert not other.binds, f"{other.binds} of {waiting} fit: {story}"
    assert not other.preempted, f"{other.preempted} would have helped: {story}"


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_what_waits_does_not_fit(seed: int) -> None:
    """Whatever happened, a scheduler that starts now finds no room for what the running one left waiting."""
    run_virtual(go_through(seed))
