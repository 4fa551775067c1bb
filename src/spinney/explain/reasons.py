"""Why something is pending, as data.

A scheduler that could not place a gang describes what it saw in these values and hands them to
:mod:`spinney.explain.rendering`. They name nodes, domains, queues and pods, which users know, and never node sets or
other inner parts of a scheduler. All of them are frozen, ordered deterministically when they are built, and encode
to JSON with the API's camelCase.
"""

from typing import Literal

from spinney.api.struct import Struct


class Shortage(Struct, frozen=True, kw_only=True):
    """How much of one resource is missing, over how many nodes."""

    resource: str
    amount: int  # in the units of the cluster's columns: millicores, bytes, devices
    nodes: int = 1


class ReasonCount(Struct, frozen=True, kw_only=True):
    """On how many nodes a filter gave this reason, and the first few of them by name."""

    reason: str
    nodes: int
    examples: tuple[str, ...] = ()
    unresolvable: int = 0  # of these nodes, how many no eviction would help


class FilterReport(Struct, frozen=True, kw_only=True):
    """What one filter refused. ``nodes`` is not the sum of the reasons: a node may lack several resources."""

    filter: str
    nodes: int
    reasons: tuple[ReasonCount, ...]


class Obstacle(Struct, frozen=True, kw_only=True):
    """The only thing in a pod's way on some node, as a fact: what to do about it is tried before it is advised."""

    filter: str  # the only filter in the way; empty if something is in the way on all nodes
    text: str
    nodes: int  # on how many nodes this filter alone is in the way
    node: str  # the node where the least is missing
    shortages: tuple[Shortage, ...] = ()


class PodReport(Struct, frozen=True, kw_only=True):
    """Why one pod fits nowhere, or how many nodes it fits.

    Each node counts once, for the first filter that refused it, as kube-scheduler counts.
    """

    pod: str  # "namespace/name"
    total_nodes: int
    feasible_nodes: int
    filters: tuple[FilterReport, ...] = ()
    pre_filter: str | None = None  # set when the pod was refused before any node was looked at
    obstacles: tuple[Obstacle, ...] = ()
    alike: int = 1  # how many pods of the gang this report stands for


class DomainReport(Struct, frozen=True, kw_only=True):
    """How much of a gang one topology domain holds, and what it lacked for the rest."""

    level: str  # what users call the level: "rack", "zone"; "the cluster" for all nodes together
    domain: str  # empty for all nodes together
    nodes: int
    fits: int
    needed: int
    shortages: tuple[Shortage, ...] = ()
    possible: bool = True  # False: the domain is too small for the gang even when empty
    capacity: int = 0  # how many of the pods it would hold when empty, at most
    closed: int = 0  # nodes of the domain beside ``nodes`` that something other than room keeps the pods off


QueueRule = Literal["OverLimit", "NonPreemptibleOverQuota", "OverFairShare"]


class QueueReport(Struct, frozen=True, kw_only=True):
    """Which rule of which queue keeps the gang out; ``bound`` is the limit, quota or share of that rule."""

    queue: str
    rule: QueueRule
    resource: str
    bound: int
    used: int
    requested: int


class ScenarioCount(Struct, frozen=True, kw_only=True):
    """How many sets of victims were considered and dropped for this reason."""

    reason: str
    scenarios: int


class VictimReport(Struct, frozen=True, kw_only=True):
    """What the search for victims found: how many pods could be taken, and why no scenario held."""

    action: Literal["preempt", "reclaim", "consolidate"]
    candidates: int
    rejected: tuple[ScenarioCount, ...] = ()


class Explanation(Struct, frozen=True, kw_only=True):
    """Everything known about why a gang, or a single pod, is pending."""

    subject: str  # "namespace/name"
    kind: str = "PodGroup"
    placed: int = 0  # pods that found room in the best attempt
    needed: int = 1
    begun: bool = False  # True: other pods of it have nodes already, and this is about more of them
    pods: tuple[PodReport, ...] = ()
    domains: tuple[DomainReport, ...] = ()  # the nearest misses, nearest first
    domain_count: int = 0  # how many domains there are at that level; 0: just those listed
    required_level: str | None = None
    kept_in: str = ""  # where its other pods keep it, as a sentence
    wider: DomainReport | None = None  # a domain of a wider level that would hold the gang
    others: tuple[str, ...] = ()  # reasons that are not about nodes, domains or queues, each a sentence
    beyond_nodes: bool = False  # True: something is in the way that no node takes away, however many are added
    queue: QueueReport | None = None
    victims: tuple[VictimReport, ...] = ()
    plugin_errors: tuple[str, ...] = ()  # "name: message" of a plugin that failed and therefore refused
    needs: tuple[str, ...] = ()  # what has to be there before anything else can help, each an imperative
    simulated: bool = False  # True: another scheduler decides here, and this is what ours would have seen
