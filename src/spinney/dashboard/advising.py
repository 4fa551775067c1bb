"""Questions that take a simulation: why a gang waits and what would help, and what would become of a workload.

Each runs in a worker beside the event loop, one at a time, on a snapshot of what the viewer may read. Nothing is
written anywhere.
"""

from collections.abc import Mapping
from typing import Final

import yaml

from spinney.api import yaml_text
from spinney.api.core import NODE
from spinney.api.struct import JSON, Struct
from spinney.cluster.pods import PodKey
from spinney.dashboard.lacking import DomainNeed, domain_needs
from spinney.dashboard.rows import text_of
from spinney.dashboard.view import View
from spinney.explain.rendering import as_text
from spinney.gangs.tree import GangKey
from spinney.kube.keys import key_of
from spinney.runtime import Executor, Runtime
from spinney.sim.advice.advice import Advisor
from spinney.sim.advice.answer import Answer
from spinney.sim.advice.subjects import AdviceSubject
from spinney.sim.remedies.change import told_anew, without_pods_of
from spinney.sim.snapshots.expanding import ExpansionContext, InvalidWorkload, expand
from spinney.sim.snapshots.files import UnreadableSnapshot
from spinney.sim.snapshots.snapshot import ClusterSnapshot
from spinney.sim.whatif.outcomes import Outcome
from spinney.sim.whatif.simulation import Simulation

PATIENCE: Final = 8.0
"""Seconds after which the search for remedies ends with what it has."""
LARGEST_COUNT: Final = 20_000
"""Pods that a question may be about: more would take the process's memory, not only its time."""


class NoAnswer(ValueError):
    """A question that has no answer; the text says why."""


class Why(Struct, frozen=True, kw_only=True):
    """Why a gang waits: the answer ``spinney why`` gives, with what each domain lacks."""

    answer: Answer
    texts: tuple[str, ...] = ()
    """Its explanations, as ``spinney why`` prints them."""
    domains: tuple[DomainNeed, ...] = ()


class PlacedPod(Struct, frozen=True, kw_only=True):
    """A pod that would be placed."""

    pod: str
    gang: str
    node: str
    gpus: int = 0


class Evicted(Struct, frozen=True, kw_only=True):
    """A pod that would be evicted, and for whom."""

    pod: str
    gang: str
    node: str
    beneficiary: str = ""
    message: str = ""


class Pending(Struct, frozen=True, kw_only=True):
    """A gang that would still wait."""

    gang: str
    pods: int
    message: str


class WhatIf(Struct, frozen=True, kw_only=True):
    """What would become of the cluster with the workload in it."""

    added: tuple[str, ...] = ()
    """The gangs that the manifests come to."""
    placed: tuple[PlacedPod, ...] = ()
    evicted: tuple[Evicted, ...] = ()
    pending: tuple[Pending, ...] = ()
    cycles: int = 0
    settled: bool = True
    note: str = ""
    """That the workload is there already, and simulated as if made anew."""


class Adviser:
    """Answers questions about what a view shows."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    async def why(self, view: View, key: GangKey) -> Why:
        """Return why a gang waits; raises :class:`NoAnswer` for one that is not there."""
        snapshot = view.snapshot()
        if view.board.gang_row(key) is None:
            raise NoAnswer(f"there is no gang {text_of(key)}, or you may not see it")
        domains = domain_needs(view.board, key)
        answer = await self._executor.run(_why, snapshot, key, view.runtime)
        return Why(answer=answer, texts=tuple(map(as_text, answer.explanations)), domains=domains)

    async def what_if(self, view: View, manifests: str, namespace: str) -> WhatIf:
        """Return what would become of a workload; raises :class:`NoAnswer` for one no cluster would take."""
        snapshot = view.snapshot()
        if not snapshot.sees(NODE):
            raise NoAnswer("nodes may not be listed, so nothing could be placed; ask for get, list and watch on nodes")
        return await self._executor.run(_what_if, snapshot, manifests, namespace, view.runtime)


def _why(snapshot: ClusterSnapshot, key: GangKey, runtime: Runtime) -> Answer:
    advisor = Advisor(snapshot, runtime=runtime, patience=PATIENCE)
    word = key.source if key.source in ("podgang", "pod") else "podgroup"
    return advisor.answer(AdviceSubject(word, key.namespace, key.name))


def _what_if(snapshot: ClusterSnapshot, text: str, namespace: str, runtime: Runtime) -> WhatIf:
    surroundings = ExpansionContext.of(snapshot, runtime.clock.now(), namespace=namespace or "default")
    try:
        manifests: list[JSON] = [each for each in yaml_text.load_all(text) if each is not None]
        if not manifests:
            raise NoAnswer("there is no object in the text; paste a manifest, such as examples/first-workload.yaml")
        if odd := next((each for each in manifests if not isinstance(each, dict)), None):
            raise NoAnswer(f"found {type(odd).__name__} where an object with apiVersion and kind is expected")
        if (asked := _count(manifests)) > LARGEST_COUNT:
            raise NoAnswer(f"the workload asks for {asked} pods; at most {LARGEST_COUNT} can be asked about")
        added = expand(manifests, surroundings)
    except (InvalidWorkload, UnreadableSnapshot, yaml.YAMLError, ValueError, KeyError, TypeError) as error:
        raise NoAnswer(" ".join(str(error).split())) from error
    new = {key_of(each) for each in added if each.kind == "Pod"}
    rest = without_pods_of(snapshot, manifests, surroundings.namespace)
    simulation = Simulation(rest.with_objects(added), runtime=runtime)
    outcome = simulation.run()
    gpus = {record.key: record.request.gpus for record in simulation.inventory.cluster.pods()}
    return _told(outcome, new, gpus, told_anew(snapshot, rest, "the manifests", "the cluster"))


_COUNTS: Final = frozenset({"replicas", "parallelism", "completions", "size", "numWorkers"})


def _count(value: object) -> int:
    """Return how many pods manifests may come to: counts below another are multiplied, those beside it are added."""
    if isinstance(value, list):
        return sum(map(_count, value))
    if not isinstance(value, dict):
        return 0
    own = max((each for key, each in value.items() if key in _COUNTS and isinstance(each, int)), default=0)
    inner = sum(map(_count, value.values()))
    return own * max(1, inner) if own else inner


def _told(outcome: Outcome, new: set[PodKey], gpus: Mapping[PodKey, int], note: str) -> WhatIf:
    gangs = {text_of(gang): None for pod, gang in outcome.gangs.items() if pod in new}
    return WhatIf(
        added=tuple(gangs),
        placed=tuple(
            PlacedPod(pod=str(pod), gang=text_of(outcome.gangs[pod]), node=node, gpus=gpus.get(pod, 0))
            for pod, node in outcome.placed.items()
        ),
        evicted=tuple(
            Evicted(
                pod=str(each.pod),
                gang=text_of(each.gang),
                node=each.node,
                beneficiary=text_of(each.beneficiary) if each.beneficiary is not None else "",
                message=each.message,
            )
            for each in outcome.evictions
        ),
        pending=tuple(
            Pending(gang=text_of(each.gang), pods=len(each.pods), message=each.message) for each in outcome.waiting
        ),
        cycles=outcome.cycles,
        settled=outcome.settled,
        note=note,
    )
