"""What each peer calls a gang, and who of ours reads the same objects.

A family is a peer's way to say "these pods together". Ours is started for the peer's own scheduler name and reads the
peer's own groups, so that both get the same load, byte for byte.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import yaml

from benchmarks.load import cluster
from benchmarks.load.contenders import Contender
from benchmarks.load.processes import SPINNEY
from benchmarks.peers.hall import BLOCK, HOST, RACK
from spinney.api import coscheduling, kai, labels, volcano
from spinney.api.core import POD
from spinney.api.resource import Resource
from spinney.api.struct import JSON
from spinney.kube.client import Client
from spinney.testing import peers
from spinney.testing.controlplane import ControlPlane
from spinney.testing.peers import Peer, running
from spinney.testing.peers.peer import Ground, Program
from spinney.testing.peers.recipes import COSCHEDULING_NAME, KAI_PARENT_QUEUE, KAI_QUEUE

TOPOLOGY: Final = "bench"
TIERS: Final = {RACK: 1, BLOCK: 2}
"""The tiers of Volcano's HyperNodes."""
KAI_PROMISED: Final = "promised"
"""A queue of KAI's to which every GPU is promised."""


@dataclass(frozen=True)
class Gang:
    """Pods that are to be placed together, if ``level`` (a node label) is given on nodes that agree in it."""

    name: str
    size: int
    minimum: int
    level: str = ""
    queue: str = ""
    gpus: int = 1
    """Of each pod."""
    preemptible: bool = True
    """Others may be placed at its cost, or it may be moved: of KAI's groups only."""


@dataclass(frozen=True)
class Family:
    """How gangs are written for one peer, and how ours is started to read them."""

    peer: Peer
    scheduler: str
    resource: Resource
    group: Callable[[Gang], JSON]
    mark: Callable[[JSON, Gang], None]
    """Makes a pod a member."""
    command: tuple[str, ...]
    configuration: JSON | None = None
    topology: bool = False
    reclaims: bool = False

    async def prepare(self, client: Client) -> None:
        """Give the cluster what the loads of this family refer to."""
        await peers.install(self.peer, client)
        if self.peer is peers.KAI:
            levels = [{"nodeLabel": label} for label in (BLOCK, RACK, HOST)]
            await client.apply(kai.TOPOLOGY, {"metadata": {"name": TOPOLOGY}, "spec": {"levels": levels}})
            share = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
            resources = dict.fromkeys(("gpu", "cpu", "memory"), share)
            spec = {"parentQueue": KAI_PARENT_QUEUE, "resources": resources}
            await client.apply(kai.QUEUE, {"metadata": {"name": KAI_PROMISED}, "spec": spec})

    async def create(self, client: Client, gangs: list[Gang]) -> None:
        """Create all groups, then all pods."""
        await cluster.for_each(gangs, lambda gang: client.create(self.resource, self.group(gang)))
        await cluster.for_each(self.pods(gangs), lambda pod: client.create(POD, pod))

    def pods(self, gangs: list[Gang]) -> list[JSON]:
        """Return the pods of gangs."""
        pods = []
        for gang in gangs:
            resources = {"requests": {"cpu": "1", "memory": "4Gi"}, "limits": {cluster.GPU: str(gang.gpus)}}
            for number in range(gang.size):
                pod = cluster.a_pod(f"{gang.name}-{number:04d}", self.scheduler, resources)
                pod["metadata"] |= {"labels": {GANG: gang.name}, "annotations": {}}
                self.mark(pod, gang)
                pods.append(pod)
        return pods

    async def clear(self, client: Client) -> None:
        """Remove pods, events and groups, and what a peer leaves beside them."""
        await cluster.clear_pods(client)
        for resource in (self.resource, *((kai.BIND_REQUEST,) if self.peer is peers.KAI else ())):
            await client.delete_collection(resource, cluster.NAMESPACE_NAME)

    def contenders(self, plane: ControlPlane) -> tuple[Contender, Contender]:
        """Return the peer and ours."""
        command = [*SPINNEY, *self.command]
        if self.configuration is not None:
            path = plane.directory / f"ours-{self.peer.name}.yaml"
            path.write_text(yaml.safe_dump(self.configuration))
            command += ["--config", str(path)]
        theirs = PeerContender(str(self.peer), self.scheduler, peer=self.peer)
        return theirs, Contender(f"spinney {self.command[0]}", self.scheduler, (*command, "--kubeconfig"))


GANG: Final = "bench/gang"
"""The label of a pod that says to which gang it belongs, whatever the family."""


@dataclass(frozen=True, kw_only=True)
class PeerContender(Contender):
    """A peer, with all its programs."""

    peer: Peer

    @property
    def in_plane(self) -> bool:
        """Tell that it is none of the plane's."""
        return False

    @contextmanager
    def running(self, plane: ControlPlane, kubeconfig: Path) -> Iterator[tuple[int, ...]]:
        """Run its programs for the time of the block; one that ends meanwhile makes the run worthless."""
        with running(self.peer, kubeconfig, plane.directory) as programs:
            yield programs.pids
            programs.check()


# -- KAI --------------------------------------------------------------------------------------------------------------


def _kai_group(gang: Gang) -> JSON:
    spec: JSON = {"minMember": gang.minimum, "queue": gang.queue or KAI_QUEUE}
    if gang.level:
        spec["topologyConstraint"] = {"topology": TOPOLOGY, "requiredTopologyLevel": gang.level}
    if not gang.preemptible:
        spec["preemptibility"] = kai.NON_PREEMPTIBLE
    return _named(gang, spec)


def _kai_pod(pod: JSON, gang: Gang) -> None:
    pod["metadata"]["annotations"][labels.KAI_POD_GROUP] = gang.name
    pod["metadata"]["labels"][labels.KAI_QUEUE] = gang.queue or KAI_QUEUE


# -- Volcano ----------------------------------------------------------------------------------------------------------


def _volcano_group(gang: Gang) -> JSON:
    spec: JSON = {"minMember": gang.minimum, "queue": volcano.DEFAULT_QUEUE}
    if gang.level:
        spec["networkTopology"] = {"mode": "hard", "highestTierAllowed": TIERS[gang.level]}
    return _named(gang, spec)


def _volcano_pod(pod: JSON, gang: Gang) -> None:
    pod["metadata"]["annotations"][labels.LEGACY_GROUP] = gang.name


def with_plugin(family: Family, plugin: JSON) -> Family:
    """Return Volcano with one more plugin, which is not among those that its scheduler starts with."""
    scheduler, *others = family.peer.programs

    def arguments(ground: Ground) -> list[str]:
        given = scheduler.arguments(ground)
        configuration = yaml.safe_load((ground.directory / "scheduler.conf").read_text())
        configuration["tiers"][-1]["plugins"].append(plugin)
        ground.write("scheduler.conf", yaml.safe_dump(configuration))
        return given

    programs = (Program(scheduler.name, arguments), *others)
    return replace(family, peer=replace(family.peer, programs=programs))


# -- scheduler-plugins ------------------------------------------------------------------------------------------------


def _plugins_group(gang: Gang) -> JSON:
    return _named(gang, {"minMember": gang.minimum, "scheduleTimeoutSeconds": 60})


def _plugins_pod(pod: JSON, gang: Gang) -> None:
    pod["metadata"]["labels"][labels.COSCHEDULING_GROUP] = gang.name


def _named(gang: Gang, spec: JSON) -> JSON:
    return {"metadata": {"name": gang.name, "namespace": cluster.NAMESPACE_NAME}, "spec": spec}


FAMILIES: Final = (
    Family(
        peers.KAI,
        "kai-scheduler",
        kai.POD_GROUP,
        _kai_group,
        _kai_pod,
        ("scheduler", "--scheduler-name", "kai-scheduler"),
        topology=True,
        reclaims=True,
    ),
    Family(
        peers.VOLCANO,
        "volcano",
        volcano.POD_GROUP,
        _volcano_group,
        _volcano_pod,
        ("scheduler", "--scheduler-name", "volcano"),
    ),
    Family(
        peers.COSCHEDULING,
        COSCHEDULING_NAME,
        coscheduling.POD_GROUP,
        _plugins_group,
        _plugins_pod,
        ("coscheduler",),
        configuration={
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"schedulerName": COSCHEDULING_NAME}],
        },
    ),
)
