"""Two standalone pods and a scaling group of 1 + 3 in two replicas: ten pods, with various minimums and orders."""

from typing import Any

from spinney.api.struct import JSON
from tests.e2e.workloads.parts import a_clique, a_group, a_set

IN_ORDER = "CliqueStartupTypeInOrder"
EXPLICIT = "CliqueStartupTypeExplicit"

ALL = (2, 1, 3, 2)
"""Minimums of pc-a, pc-b, pc-c and sg-x that put all ten pods into the base gang."""
FEW = (1, 1, 1, 1)
"""Minimums that put three pods into the base gang and two into that of each further replica of sg-x."""


def ten_pods(
    name: str, minimums: tuple[int, int, int, int], *, after: dict[str, str] | None = None, **template: Any
) -> JSON:
    """Return the shape all these workloads share; ``after`` says whom a clique starts after."""
    a, b, c, group = minimums
    order = {clique: [parent] for clique, parent in (after or {}).items()}
    cliques = [
        a_clique(clique, replicas, minimum, after=order.get(clique, ()))
        for clique, replicas, minimum in (("pc-a", 2, a), ("pc-b", 1, b), ("pc-c", 3, c))
    ]
    return a_set(name, cliques, [a_group("sg-x", ["pc-b", "pc-c"], 2, group)], **template)


def workload1() -> JSON:
    """Return ten pods in one gang."""
    return ten_pods("workload1", ALL)


def workload2() -> JSON:
    """Return a base gang that needs three pods, and a scaled gang that needs two."""
    return ten_pods("workload2", FEW)


def workload3() -> JSON:
    """Return ten pods in one gang, started clique by clique."""
    return ten_pods("workload3", ALL, cliqueStartupType=IN_ORDER)


def workload4() -> JSON:
    """Return two gangs, each started clique by clique."""
    return ten_pods("workload4", FEW, cliqueStartupType=IN_ORDER)


def workload5() -> JSON:
    """Return ten pods in one gang: pc-c after pc-a, pc-b after pc-c."""
    return ten_pods("workload5", ALL, after={"pc-c": "pc-a", "pc-b": "pc-c"}, cliqueStartupType=EXPLICIT)


def workload6() -> JSON:
    """Return two gangs: pc-b after pc-a, pc-c after pc-b."""
    return ten_pods("workload6", FEW, after={"pc-b": "pc-a", "pc-c": "pc-b"}, cliqueStartupType=EXPLICIT)


def workload1_gt() -> JSON:
    """Return workload 1, recycled ten seconds after it lost its minimum."""
    return ten_pods("workload1-gt", ALL, terminationDelay="10s")


def workload2_gt() -> JSON:
    """Return workload 2, recycled ten seconds after it lost its minimum."""
    return ten_pods("workload2-gt", FEW, terminationDelay="10s")


def workload5_gt() -> JSON:
    """Return a scaling group one replica of which is enough, but needs all its pc-c."""
    return ten_pods("workload5-gt", (1, 1, 3, 1), terminationDelay="10s")


def workload_ondelete() -> JSON:
    """Return ten pods that are only replaced when somebody deletes them."""
    manifest = ten_pods("workload-ondelete", (1, 1, 3, 2))
    manifest["spec"]["updateStrategy"] = {"type": "OnDelete"}
    return manifest
