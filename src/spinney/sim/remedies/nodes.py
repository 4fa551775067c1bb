"""Levers that change nodes: uncordon, repair, untaint, label, add."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from spinney.api.affinity import Taint
from spinney.api.core import Node, Pod
from spinney.api.labels import HOSTNAME
from spinney.api.pod_requests import Amounts, amounts_of
from spinney.api.struct import changed
from spinney.cluster.devices import gpus_on
from spinney.cluster.filters.obstacles import OF_THE_NODE
from spinney.cluster.requests import requested
from spinney.explain.amounts import counted, first_few
from spinney.sim.remedies.change import SHOWN, Lever, RemedyPrice
from spinney.sim.remedies.node_groups import AddableNodes
from spinney.sim.remedies.situation import Situation, is_ready, taint_word
from spinney.sim.snapshots.snapshot import ClusterSnapshot

_OF_MACHINES: Final = (
    *("kubernetes.io", "k8s.io"),
    *("nvidia.com", "amd.com", "intel.com"),
    *("cloud.google.com", "amazonaws.com", "azure.com", "karpenter.sh", "k8s.aws"),
)
"""Domains of labels that say what a node is: its name, zone, devices and pool. To write another makes them untrue."""
_GIVEN: Final = ("node-role.kubernetes.io", "node-restriction.kubernetes.io")
"""Domains of labels below these that people give."""
_KINDS: Final = 3
"""How many kinds of nodes are tried to be added."""


def node_levers(situation: Situation) -> Iterator[Lever[Any]]:
    """Yield the levers over nodes that could matter to the gang."""
    yield from _over_nodes(
        situation,
        "uncordon",
        lambda node: node.spec.unschedulable,
        _uncordoned,
        text=lambda names: f"uncordon {first_few(names, SHOWN)}",
        command=lambda names: f"kubectl uncordon {' '.join(names)}",
    )
    yield from _over_nodes(
        situation,
        "repair",
        lambda node: not is_ready(node),
        _repaired,
        text=lambda names: f"repair {first_few(names, SHOWN)} (not ready)",
    )
    for taint in situation.untolerated_taints:
        yield from _untaint(situation, taint)
    yield from _label(situation)


def added_node_levers(situation: Situation) -> Iterator[Lever[Any]]:
    """Yield a lever for each kind of node that could be added, smallest first: where the gang nearly fits, or anew.

    The kinds are those of ``--node-groups``, else those of nodes that are there.
    """
    for group in situation.node_groups:
        yield from _adding_here_or_anew(situation, group.like, group)
    if not situation.node_groups:
        for like in _node_kinds(situation)[:_KINDS]:
            yield from _adding_here_or_anew(situation, like, None)


def _adding_here_or_anew(situation: Situation, like: Node, group: AddableNodes | None) -> Iterator[Lever[Any]]:
    if situation.nearest is not None:
        yield _adding(situation, like, situation.nearest, group)
    yield _adding(situation, like, None, group)


def _uncordoned(node: Node) -> Node:
    taints = tuple(taint for taint in node.spec.taints if taint.key != f"{OF_THE_NODE}unschedulable")
    return changed(node, spec={"unschedulable": False, "taints": taints})


def _repaired(node: Node) -> Node:
    conditions = tuple(
        msgspec.structs.replace(each, status="True" if each.type == "Ready" else "False")
        for each in node.status.conditions
    )
    taints = tuple(
        taint
        for taint in node.spec.taints
        if not taint.key.startswith(OF_THE_NODE) or taint.key == f"{OF_THE_NODE}unschedulable"
    )
    return changed(node, spec={"taints": taints}, status={"conditions": conditions})


def _untaint(situation: Situation, taint: Taint) -> Iterator[Lever[Any]]:
    yield from _over_nodes(
        situation,
        "untaint",
        lambda node: taint in node.spec.taints,
        lambda node: changed(node, spec={"taints": tuple(each for each in node.spec.taints if each != taint)}),
        text=lambda names: f"remove the taint {taint_word(taint)} from {first_few(names, SHOWN)}",
        command=lambda names: f"kubectl taint nodes {' '.join(names)} {taint.key}:{taint.effect}-",
    )


def _label(situation: Situation) -> Iterator[Lever[Any]]:
    wanted: dict[str, str] = {}
    for pod in situation.kinds_of_pods:
        wanted |= {key: text for key, text in pod.spec.node_selector.items() if _is_given(key, situation.level_keys)}
    words = [f"{key}={text}" for key, text in wanted.items()]

    def labelled(node: Node) -> Node:
        return changed(node, metadata={"labels": {**node.metadata.labels, **wanted}})

    yield from _over_nodes(
        situation,
        "label",
        lambda node: any(node.metadata.labels.get(key) != text for key, text in wanted.items()),
        labelled,
        text=lambda names: (
            f"label {first_few(names, SHOWN)} with {', '.join(words)}, or drop that from the pods' node selector"
        ),
        command=lambda names: f"kubectl label --overwrite nodes {' '.join(names)} {' '.join(words)}",
    )


def _is_given(label: str, levels: Collection[str]) -> bool:
    """Tell whether people choose which nodes have a label; what a node is, and where it stands, is not chosen."""
    domain = label.rpartition("/")[0]
    given = not domain.endswith(_OF_MACHINES) or domain.endswith(_GIVEN)
    return given and label not in levels


def _adding(
    situation: Situation, like: Node, near: Mapping[str, str] | None, group: AddableNodes | None = None
) -> Lever[Any]:
    """Return the lever that adds nodes like ``like``: with the topology labels ``near``, or in a new domain.

    Of a ``group`` there are no more than it has.
    """
    labels = {key: text for key, text in like.metadata.labels.items() if key not in (HOSTNAME, *situation.level_keys)}
    domain = dict(near) if near is not None else dict.fromkeys(situation.level_keys, "new")
    gpus = gpus_on(like)
    where = ""
    if situation.required_key is not None:  # otherwise it does not matter where they are
        level = situation.level_name(situation.required_key)
        where = f" in {level} {situation.domain_name(near)}" if near is not None else f" in a new {level}"

    word = f"of kind {group.kind}" if group is not None else f"like {like.metadata.name}"

    def node(number: int) -> Node:
        name = f"new-{like.metadata.name}-{number}"
        taints = tuple(taint for taint in like.spec.taints if not taint.key.startswith(OF_THE_NODE))
        return changed(
            like,
            metadata={
                "name": name,
                "uid": name,
                "resource_version": None,  # what is created may have none
                "labels": {**labels, **domain, HOSTNAME: name},
            },
            spec={"unschedulable": False, "taints": taints},
        )

    amount = f" ({counted(gpus, 'GPU')} each)" if gpus else ""
    per_node = _per_node(situation, like)
    needed = situation.explanation.needed if situation.explanation is not None else situation.pending
    # A domain of its own has to hold the whole gang; elsewhere the new nodes hold what found no room.
    anew = near is None and situation.required_key is not None
    missing = needed if anew or situation.short_of is None else situation.short_of
    return Lever(
        name="nodes",
        elements=range(min(-(-situation.pending // per_node), group.most if group is not None else situation.pending)),
        apply=lambda snapshot, picked: snapshot.with_objects(map(node, picked)),
        text=lambda picked: f"add {counted(len(picked), 'node')} {word}{amount}{where}",
        price=lambda picked: RemedyPrice(nodes=len(picked), gpus=gpus * len(picked)),
        ordered=True,
        likely=-(-missing // per_node),
    )


def _per_node(situation: Situation, like: Node) -> int:
    """Return how many pods of the gang an empty node like ``like`` holds at least, whichever of its kinds they are."""
    if any(_keeps_apart(pod) for pod in situation.kinds_of_pods):
        return 1
    offered = amounts_of(like.status.allocatable)
    held = [
        offered.get(name, 0) // amount
        for pod in situation.kinds_of_pods
        for name, amount in requested(pod).items()
        if amount
    ]
    return max(min(held, default=1), 1)


def _keeps_apart(pod: Pod) -> bool:
    """Tell whether something besides room may keep two pods off one node."""
    affinity = pod.spec.affinity
    return (
        bool(pod.spec.topology_spread_constraints or pod.spec.resource_claims)
        or (affinity is not None and affinity.pod_anti_affinity is not None)
        or any(port.host_port for container in pod.spec.containers for port in container.ports)
    )


def _node_kinds(situation: Situation) -> list[Node]:
    """Return a node of each kind that could hold some pod of the gang, those with fewest GPUs first."""
    ignored = {HOSTNAME, *situation.level_keys}
    kinds: dict[Any, Node] = {}
    requests = [requested(pod) for pod in situation.kinds_of_pods]
    for node in situation.snapshot.nodes:
        if not is_ready(node) or not any(_is_large_enough(node, wanted) for wanted in requests):
            continue
        labels = frozenset((key, text) for key, text in node.metadata.labels.items() if key not in ignored)
        taints = frozenset(taint_word(each) for each in node.spec.taints if not each.key.startswith(OF_THE_NODE))
        kinds.setdefault((frozenset(node.status.allocatable.items()), labels, taints), node)
    return sorted(kinds.values(), key=lambda node: (gpus_on(node), node.metadata.name))


def _is_large_enough(node: Node, wanted: Amounts) -> bool:
    offered = amounts_of(node.status.allocatable)
    return all(offered.get(name, 0) >= amount for name, amount in wanted.items())


def _over_nodes(
    situation: Situation,
    name: str,
    concerns: Callable[[Node], bool],
    change: Callable[[Node], Node],
    *,
    text: Callable[[Sequence[str]], str],
    command: Callable[[Sequence[str]], str] = lambda _: "",
) -> Iterator[Lever[Any]]:
    """Yield a lever over the names of the nodes that it concerns, if there are some; each is changed by ``change``."""
    nodes = situation.nearest_first(node for node in situation.snapshot.nodes if concerns(node))

    def apply(snapshot: ClusterSnapshot, picked: Sequence[str]) -> ClusterSnapshot:
        names = set(picked)
        return snapshot.with_objects(change(node) for node in snapshot.nodes if node.metadata.name in names)

    if nodes:
        names = [node.metadata.name for node in nodes]
        yield Lever(name=name, elements=names, apply=apply, text=text, command=command)
