"""Workloads that ask to be packed: into a zone, a block, a rack or a host, at each level of a PodCliqueSet."""

from spinney.api.struct import JSON
from tests.e2e.workloads.parts import a_clique, a_constraint, a_group, a_set

ZONE = a_constraint(required="zone")
BLOCK = a_constraint(required="block")
RACK = a_constraint(required="rack")
ON_A_HOST = a_constraint(required="host")


def indep_clq() -> JSON:
    """Return two cliques with constraints of their own: three pods in a rack, four in a block."""
    rack = a_clique("worker-rack", 3, memory="20Mi", constraint=RACK)
    return a_set("tas-indep-clq", [rack, a_clique("worker-block", 4, memory="20Mi", constraint=BLOCK)])


def sl_pcs_only() -> JSON:
    """Return two group replicas and two routers, all in one rack."""
    cliques = [a_clique("worker", 1, memory="40Mi"), a_clique("router", 2, memory="40Mi")]
    return a_set("tas-sl-pcs-only", cliques, [a_group("workers", ["worker"], 2, 2)], topologyConstraint=RACK)


def sl_pcsg_only() -> JSON:
    """Return two group replicas, each in one rack, and two routers anywhere."""
    cliques = [a_clique("worker", 1, memory="40Mi"), a_clique("router", 2, memory="40Mi")]
    return a_set("tas-sl-pcsg-only", cliques, [a_group("workers", ["worker"], 2, 2, constraint=RACK)])


def host_level() -> JSON:
    """Return two pods on one host."""
    return a_set("tas-host-level", [a_clique("worker", 2, memory="40Mi", constraint=ON_A_HOST)])


def pcs_zone() -> JSON:
    """Return four pods in one zone."""
    return a_set("tas-pcs-zone", [a_clique("worker", 4, memory="40Mi")], topologyConstraint=ZONE)


def no_constraint() -> JSON:
    """Return two group replicas of two pods that go anywhere."""
    return a_set("tas-no-constraint", [a_clique("worker", 2, memory="40Mi")], [a_group("workers", ["worker"], 2, 2)])


def hierarchy() -> JSON:
    """Return a block of two racks, each of which has two cliques that share a host each."""
    cliques = [a_clique(name, 2, memory="40Mi", constraint=ON_A_HOST) for name in ("prefill", "decode")]
    group = a_group("inference-group", ["prefill", "decode"], 2, 2, constraint=RACK)
    return a_set("tas-hierarchy", cliques, [group], topologyConstraint=BLOCK)


def pcs_pclq() -> JSON:
    """Return two pods on one host, in a block."""
    return a_set("tas-pcs-pclq", [a_clique("worker", 2, memory="40Mi", constraint=ON_A_HOST)], topologyConstraint=BLOCK)


def pcsg_scale() -> JSON:
    """Return three group replicas, each in one rack, one of them in the base gang, all in one block."""
    group = a_group("workers", ["worker"], 3, 1, constraint=RACK)
    return a_set("tas-pcsg-scale", [a_clique("worker", 2, memory="40Mi")], [group], topologyConstraint=BLOCK)


def pcsg_pclq() -> JSON:
    """Return two group replicas, each in one rack and there on one host."""
    group = a_group("workers", ["worker"], 2, 2, constraint=RACK)
    return a_set("tas-pcsg-pclq", [a_clique("worker", 2, memory="40Mi", constraint=ON_A_HOST)], [group])


def large_scale() -> JSON:
    """Return ten group replicas, three of them in the base gang, each on one host, all in one block."""
    worker = a_clique("worker", 2, memory="20Mi", constraint=ON_A_HOST)
    return a_set("tas-large-scale", [worker], [a_group("workers", ["worker"], 10, 3)], topologyConstraint=BLOCK)


def insuffic() -> JSON:
    """Return ten pods that no node can hold, to be packed into a rack."""
    return a_set("tas-insuffic", [a_clique("worker", 10, memory="500Mi")], topologyConstraint=RACK)


def multirep() -> JSON:
    """Return two replicas of two pods, each replica in a rack."""
    return a_set("tas-multirep", [a_clique("worker", 2, memory="80Mi")], replicas=2, topologyConstraint=RACK)


def multi_pcsg(*, replicas: int = 1, host: bool = False) -> JSON:
    """Return two kinds of groups, each replica in one rack, and two routers, all in one block."""
    pworker = a_clique("pworker", 1, memory="40Mi", constraint=ON_A_HOST if host else None)
    others = [a_clique(name, 1, memory="40Mi") for name in ("dworker", "dleader", "pleader")]
    groups = [
        a_group("decoder", ["dworker", "dleader"], 2, 1, constraint=RACK),
        a_group("prefill", ["pworker", "pleader"], 2, 1, constraint=RACK),
    ]
    name = "tas-multi-replica" if replicas > 1 else "tas-multi-pcsg"
    cliques = [*others, pworker, a_clique("router", 2, memory="40Mi")]
    return a_set(name, cliques, groups, replicas=replicas, topologyConstraint=BLOCK)


def preferred_pack() -> JSON:
    """Return a block that would rather be a rack, with parts that would rather be on a host."""
    host = a_constraint(preferred="host")
    cliques = [a_clique("worker", 1, memory="40Mi"), a_clique("router", 1, memory="40Mi", constraint=host)]
    group = a_group("workers", ["worker"], 2, 1, constraint=host)
    whole = a_constraint(required="block", preferred="rack")
    return a_set("tas-preferred-pack", cliques, [group], topologyConstraint=whole)


def of_topology(name: str, topology: str) -> JSON:
    """Return two pods in one block of some topology."""
    constraint = a_constraint(required="block", topology=topology)
    return a_set(name, [a_clique("worker", 2)], topologyConstraint=constraint)


def topology_condition() -> JSON:
    """Return nothing yet: two pods in a rack of a topology of their own, in no replica."""
    constraint = a_constraint(required="rack", topology="tas20-topology")
    worker = a_clique("worker", 2, memory="10Mi")
    return a_set("tas-topology-condition", [worker], replicas=0, topologyConstraint=constraint)
