"""The witness sees what it claims to see: each invariant, broken on purpose, is reported."""

from typing import Any

import msgspec
import pytest

from spinney.api import labels as marks
from spinney.api.core import Node, Pod
from spinney.api.grove import PodClique
from spinney.api.podgang import PodGang
from spinney.api.struct import JSON
from tests.e2e.chronicle import Happening
from tests.e2e.invariants import violations


class Log:
    """A log that is written by hand. Mutable."""

    def __init__(self) -> None:
        self.entries: list[Happening] = []
        for name in ("node-1", "node-2"):
            self.write(
                Node, {"metadata": {"name": name}, "status": {"allocatable": {"memory": "150Mi", "pods": "110"}}}
            )
        spec = {"roleName": "w", "replicas": 2, "minAvailable": 2, "podSpec": {}}
        self.write(PodClique, {"metadata": {"name": "x-0-w", "uid": "clique"}, "spec": spec})

    def write(self, kind: type[Any], manifest: JSON, *, gone: bool = False) -> None:
        found = msgspec.convert(manifest, kind)
        self.entries.append(Happening(len(self.entries) + 1, kind, gone=gone, object=found))

    def gang(self, *references: str, initialized: bool) -> None:
        """Write the gang, with these references."""
        group = {
            "name": "x-0-w",
            "minReplicas": 2,
            "podReferences": [{"namespace": "test", "name": name} for name in references],
        }
        condition = {"type": "Initialized", "status": str(initialized), "reason": "R", "message": ""}
        status = {"conditions": [condition]}
        self.write(PodGang, {"metadata": {"name": "x-0"}, "spec": {"podgroups": [group]}, "status": status})

    def pod(self, name: str, *, gated: bool = False, node: str = "", memory: str = "80Mi") -> None:
        owner = {
            "apiVersion": "grove.io/v1alpha1",
            "kind": "PodClique",
            "name": "x-0-w",
            "uid": "clique",
            "controller": True,
        }
        labels = {marks.MANAGED_BY: "grove-operator", marks.POD_CLIQUE: "x-0-w", marks.POD_GANG: "x-0"}
        gates = [{"name": marks.POD_GANG_GATE}] if gated else []
        container = {"name": "main", "resources": {"requests": {"memory": memory}}}
        self.write(
            Pod,
            {
                "metadata": {"name": name, "uid": name, "labels": labels, "ownerReferences": [owner]},
                "spec": {"nodeName": node, "schedulingGates": gates, "containers": [container]},
            },
        )

    def complete(self) -> "Log":
        """Write a gang of two pods up to the moment they are released."""
        self.pod("a", gated=True)
        self.pod("b", gated=True)
        self.gang("a", "b", initialized=True)
        self.pod("a")
        self.pod("b")
        return self


def broken(log: Log, **more: Any) -> str:
    """Return the one violation of a log."""
    (found,) = violations(log.entries, **more)
    return found


def test_a_good_life_is_not_reported() -> None:
    """A gang that is completed, released and bound as a whole violates nothing."""
    log = Log().complete()
    log.pod("a", node="node-1")
    log.pod("b", node="node-2")
    assert violations(log.entries, settled=[len(log.entries)]) == []


def test_a_pod_without_its_gate() -> None:
    """A pod that is created without its gate is reported."""
    log = Log()
    log.pod("a")
    assert "created without its gate" in broken(log)


def test_a_gate_opened_too_early() -> None:
    """A pod released while its gang is not Initialized is reported."""
    log = Log()
    log.pod("a", gated=True)
    log.gang("a", initialized=False)
    log.pod("a")
    assert "not Initialized" in broken(log)


def test_a_gate_of_a_pod_nobody_refers_to() -> None:
    """A pod released without a reference to it is reported."""
    log = Log()
    log.pod("a", gated=True)
    log.pod("b", gated=True)
    log.gang("a", "b", initialized=True)
    log.gang("b", initialized=True)
    log.pod("a")
    assert "does not refer to it" in broken(log)


@pytest.mark.parametrize("references", [("a",), ("a", "never-made")])
def test_an_incomplete_gang_called_initialized(references: tuple[str, ...]) -> None:
    """A gang that becomes Initialized with a reference missing, or to a pod that does not exist, is reported."""
    log = Log()
    log.pod("a", gated=True)
    log.pod("b", gated=True)
    log.gang(*references, initialized=True)
    assert "refers to 1 of 2 pods" in broken(log)


def test_a_pod_too_many() -> None:
    """A pod beyond the replicas of its clique is reported."""
    log = Log()
    for name in ("a", "b", "c"):
        log.pod(name, gated=True)
    assert "number 3 of 2" in broken(log)


def test_a_node_promised_twice() -> None:
    """Two pods of 80Mi on a node of 150Mi are reported."""
    log = Log().complete()
    log.pod("a", node="node-1")
    log.pod("b", node="node-1")
    assert "memory" in broken(log)


def test_a_closed_node() -> None:
    """A pod bound to a cordoned node is reported."""
    log = Log().complete()
    log.write(Node, {"metadata": {"name": "node-1"}, "spec": {"unschedulable": True}})
    log.pod("a", node="node-1")
    assert "which is closed" in broken(log)


def test_a_pod_that_moves() -> None:
    """A pod whose node changes is reported."""
    log = Log().complete()
    log.pod("a", node="node-1")
    log.pod("a", node="node-2")
    assert "moved" in broken(log)


def test_a_gang_left_part_bound() -> None:
    """One of two pods bound is fine on the way, and reported once things are settled."""
    log = Log().complete()
    log.pod("a", node="node-1")
    assert violations(log.entries) == []
    assert "part-bound" in broken(log, settled=[len(log.entries)])
