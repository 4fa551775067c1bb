"""The pod to be placed, with its constraints resolved once: what every filter and score reads."""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import msgspec

from spinney.api.affinity import Affinity, NodeSelector, PodAffinity, PodAffinityTerm, Toleration
from spinney.api.core import ContainerPort, Pod, ResourceList
from spinney.api.pod_requests import amount_of
from spinney.cluster.classes import host_ports
from spinney.cluster.filters.pod_selectors import AffinityRule, Labels
from spinney.cluster.requests import pod_requests
from spinney.cluster.resources import CPU_NAME, MEMORY_NAME, ResourceAxis, Vector

# A container that requests nothing still weighs something when nodes are compared; never when they are filtered.
_DEFAULT_CPU: Final = 100
_DEFAULT_MEMORY: Final = 200 * 1024 * 1024

_encode = msgspec.json.Encoder(order="deterministic").encode


@dataclass(frozen=True, eq=False)
class Candidate:
    """A pod and what it asks for. Compared by identity; pods of one gang that are alike may share one."""

    pod: Pod
    requests: Vector

    @classmethod
    def of(cls, pod: Pod, axis: ResourceAxis) -> "Candidate":
        """Return ``pod`` as a candidate, its requests in the columns of ``axis``."""
        return cls(pod, pod_requests(pod, axis))

    @property
    def namespace(self) -> str:
        return self.pod.metadata.namespace or ""

    @property
    def labels(self) -> Labels:
        return self.pod.metadata.labels

    @property
    def tolerations(self) -> tuple[Toleration, ...]:
        """Return what taints the pod tolerates."""
        return self.pod.spec.tolerations

    @property
    def affinity(self) -> Affinity:
        """Return the pod's affinities, empty ones if it has none."""
        return self.pod.spec.affinity or _NO_AFFINITY

    @cached_property
    def tolerations_key(self) -> bytes:
        """Return what stands for the tolerations in a cache."""
        return _encode(self.tolerations)

    @cached_property
    def node_affinity_key(self) -> bytes:
        """Return what stands for node selector and required node affinity in a cache."""
        return _encode((self.pod.spec.node_selector, self.required_node_affinity))

    @property
    def required_node_affinity(self) -> NodeSelector | None:
        """Return the terms of which a node must match one, if there are any."""
        node_affinity = self.affinity.node_affinity
        return node_affinity.required_during_scheduling_ignored_during_execution if node_affinity else None

    @cached_property
    def host_ports(self) -> tuple[ContainerPort, ...]:
        """Return the host ports the pod holds while it runs: its containers' and its sidecars'."""
        return host_ports(self.pod)

    @cached_property
    def required_affinity(self) -> tuple[AffinityRule, ...]:
        """Return the pods this one must be with."""
        return self._required(self.affinity.pod_affinity)

    @cached_property
    def required_anti_affinity(self) -> tuple[AffinityRule, ...]:
        """Return the pods this one must be away from."""
        return self._required(self.affinity.pod_anti_affinity)

    @cached_property
    def preferred_affinity(self) -> tuple[tuple[int, AffinityRule], ...]:
        """Return weighted rules about pods to be with (positive) and away from (negative)."""
        return tuple(
            (sign * weighted.weight, self._rule(weighted.pod_affinity_term))
            for sign, terms in ((1, self.affinity.pod_affinity), (-1, self.affinity.pod_anti_affinity))
            for weighted in (terms.preferred_during_scheduling_ignored_during_execution if terms else ())
        )

    @cached_property
    def nonzero_requests(self) -> tuple[int, int]:
        """Return cpu and memory for scoring, where a container that asks for nothing counts as small, not as zero."""
        return nonzero_requests(self.pod)

    def _required(self, terms: PodAffinity | None) -> tuple[AffinityRule, ...]:
        return tuple(map(self._rule, terms.required_during_scheduling_ignored_during_execution if terms else ()))

    def _rule(self, term: PodAffinityTerm) -> AffinityRule:
        return AffinityRule.of(term, self.namespace, self.labels)


_NO_AFFINITY: Final = Affinity()


def nonzero_requests(pod: Pod) -> tuple[int, int]:
    """Return the cpu (millicores) and memory (bytes) ``pod`` weighs in scores."""
    running_cpu = running_memory = peak_cpu = peak_memory = 0
    for container in pod.spec.init_containers:
        cpu, memory = _weight(container.resources.requests)
        peak_cpu, peak_memory = max(peak_cpu, running_cpu + cpu), max(peak_memory, running_memory + memory)
        if container.restart_policy == "Always":
            running_cpu, running_memory = running_cpu + cpu, running_memory + memory
    for container in pod.spec.containers:
        cpu, memory = _weight(container.resources.requests)
        running_cpu, running_memory = running_cpu + cpu, running_memory + memory
    cpu, memory = max(running_cpu, peak_cpu), max(running_memory, peak_memory)
    if pod.spec.resources is not None:
        cpu, memory = _weight(pod.spec.resources.requests, cpu, memory)
    extra_cpu, extra_memory = _weight(pod.spec.overhead, 0, 0)
    return cpu + extra_cpu, memory + extra_memory


def _weight(requests: ResourceList, cpu: int = _DEFAULT_CPU, memory: int = _DEFAULT_MEMORY) -> tuple[int, int]:
    """Return cpu and memory of ``requests``, or the given ones where it names none."""
    return (
        amount_of(CPU_NAME, requests[CPU_NAME]) if CPU_NAME in requests else cpu,
        amount_of(MEMORY_NAME, requests[MEMORY_NAME]) if MEMORY_NAME in requests else memory,
    )
