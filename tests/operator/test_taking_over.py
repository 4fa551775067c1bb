"""Taking over a Grove installation: the objects Grove left, written by hand from its API, and not a pod restarts."""

from typing import Any

import pytest

from spinney.api import labels as marks
from spinney.api.autoscaling import HORIZONTAL_POD_AUTOSCALER
from spinney.api.conditions import is_true
from spinney.api.core import NODE, POD, SERVICE
from spinney.api.grove import (
    POD_CLIQUE,
    POD_CLIQUE_SCALING_GROUP,
    POD_CLIQUE_SET,
    PodClique,
    PodCliqueScalingGroup,
    PodCliqueSet,
)
from spinney.api.podgang import POD_GANG, PodGang
from spinney.api.resource import Resource
from spinney.api.struct import JSON
from spinney.backends import every_backend
from spinney.kube.client import Client
from spinney.kube.crds import install_crds
from spinney.operator.configuration import check
from spinney.operator.operator import Settings
from spinney.runtime import Runtime
from spinney.server import ApiServer
from spinney.sim.embedded.transport import InProcessTransport
from tests.operator.harness import NAMESPACE, World, a_world, ready_status
from tests.virtual_time import on_virtual_time

GENERATION = "5f7b9d8c6d"
HASHES = {"pc-a": "7c9f8b", "pc-b": "6d5c4b", "pc-c": "84f76c"}
SCHEDULER = "default-scheduler"
CONTAINER = {"name": "main", "image": "registry.example/engine:1", "resources": {"requests": {"memory": "80Mi"}}}
POD_SPEC = {
    "containers": [CONTAINER],
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 5,
    "schedulerName": SCHEDULER,
}
REPLICAS = {"pc-a": 2, "pc-b": 1, "pc-c": 3}


def the_set() -> JSON:
    """Return workload2: pc-a twice, a scaling group of pc-b and pc-c twice, of which one is in the base gang."""
    cliques = [
        {
            "name": name,
            "labels": {"kai.scheduler/queue": "test"},
            "spec": {"roleName": name, "replicas": replicas, "minAvailable": 1, "podSpec": POD_SPEC},
        }
        for name, replicas in REPLICAS.items()
    ]
    group = {"name": "sg-x", "replicas": 2, "minAvailable": 1, "cliqueNames": ["pc-b", "pc-c"]}
    template = {
        "cliques": cliques,
        "cliqueStartupType": "CliqueStartupTypeAnyOrder",
        "terminationDelay": "4h",
        "headlessServiceConfig": {"publishNotReadyAddresses": True},
        "podCliqueScalingGroups": [group],
    }
    return {
        "metadata": {"name": "wl", "namespace": "test", "finalizers": ["grove.io/podcliqueset.grove.io"]},
        "spec": {"replicas": 1, "template": template},
    }


class Grove:
    """Writes what Grove's operator would have written, and keeps the uids. Mutable."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.pods: dict[str, str] = {}

    async def leaves(self) -> None:
        """Write every object of the set, its pods running."""
        pcs = await self.client.create(POD_CLIQUE_SET, the_set())
        owner = self.owner(POD_CLIQUE_SET, pcs)
        meta = self.meta("wl-0", "pcs-headless-service", owner, {marks.REPLICA_INDEX: "0"})
        selector = {k: v for k, v in meta["labels"].items() if k.endswith(("managed-by", "part-of", "replica-index"))}
        service = {"clusterIP": "None", "selector": selector, "publishNotReadyAddresses": True}
        await self.client.create(SERVICE, {"metadata": meta, "spec": service})
        await self.clique("wl-0-pc-a", "pc-a", owner, component="pcs-podclique", gang="wl-0")
        meta = self.meta("wl-0-sg-x", "pcs-podcliquescalinggroup", owner, {marks.REPLICA_INDEX: "0"})
        meta["finalizers"] = ["grove.io/podcliquescalinggroup.grove.io"]
        spec: JSON = {"replicas": 2, "minAvailable": 1, "cliqueNames": ["pc-b", "pc-c"]}
        group = await self.client.create(POD_CLIQUE_SCALING_GROUP, {"metadata": meta, "spec": spec})
        for j in range(2):
            for name in ("pc-b", "pc-c"):
                more = {marks.SCALING_GROUP: "wl-0-sg-x", marks.SCALING_GROUP_REPLICA_INDEX: str(j)}
                gang = "wl-0" if j == 0 else "wl-0-sg-x-0"
                base = {} if j == 0 else {marks.BASE_POD_GANG: "wl-0"}
                its = self.owner(POD_CLIQUE_SCALING_GROUP, group)
                await self.clique(
                    f"wl-0-sg-x-{j}-{name}", name, its, component="pcsg-podclique", gang=gang, labels=more | base
                )
        await self.gang("wl-0", owner, ["wl-0-pc-a", "wl-0-sg-x-0-pc-b", "wl-0-sg-x-0-pc-c"])
        await self.gang("wl-0-sg-x-0", owner, ["wl-0-sg-x-1-pc-b", "wl-0-sg-x-1-pc-c"])
        status = {
            "observedGeneration": group["metadata"]["generation"],
            "replicas": 2,
            "scheduledReplicas": 2,
            "availableReplicas": 2,
            "updatedReplicas": 2,
            "currentPodCliqueSetGenerationHash": GENERATION,
        }
        await self.status(POD_CLIQUE_SCALING_GROUP, "wl-0-sg-x", status)
        generation = {"currentGenerationHash": GENERATION, "observedGeneration": pcs["metadata"]["generation"]}
        counts = {"replicas": 1, "availableReplicas": 1, "updatedReplicas": 1}
        await self.status(POD_CLIQUE_SET, "wl", generation | counts)

    async def clique(self, name: str, template: str, owner: JSON, *, component: str, gang: str, **more: Any) -> None:
        """Write a PodClique and its running pods."""
        extra = {marks.POD_GANG: gang, marks.REPLICA_INDEX: "0", marks.POD_TEMPLATE_HASH: HASHES[template]}
        meta = self.meta(name, component, owner, {"kai.scheduler/queue": "test"} | extra | more.get("labels", {}))
        meta["finalizers"] = ["grove.io/podclique.grove.io"]
        pod_spec = self.with_env(POD_SPEC, self.member_env() if "labels" in more else [])
        spec = {"roleName": template, "replicas": REPLICAS[template], "minAvailable": 1, "podSpec": pod_spec}
        clique = await self.client.create(POD_CLIQUE, {"metadata": meta, "spec": spec})
        for k in range(REPLICAS[template]):
            await self.pod(clique, pod_spec, k)
        count = REPLICAS[template]
        status = {
            "observedGeneration": clique["metadata"]["generation"],
            "replicas": count,
            "readyReplicas": count,
            "scheduledReplicas": count,
            "updatedReplicas": count,
            "currentPodTemplateHash": HASHES[template],
            "currentPodCliqueSetGenerationHash": GENERATION,
            "conditions": [
                self.condition("MinAvailableBreached", "False", "SufficientReadyPods"),
                self.condition("PodCliqueScheduled", "True", "SufficientScheduledPods"),
            ],
        }
        await self.status(POD_CLIQUE, name, status)

    async def pod(self, clique: JSON, pod_spec: JSON, k: int) -> None:
        """Write a pod that was released, bound and became ready."""
        name = clique["metadata"]["name"]
        labels = clique["metadata"]["labels"] | {marks.POD_CLIQUE: name, marks.POD_INDEX: str(k)}
        env = [
            {"name": "GROVE_PCS_NAME", "value": "wl"},
            {"name": "GROVE_PCS_INDEX", "value": "0"},
            {"name": "GROVE_PCLQ_NAME", "value": name},
            {"name": "GROVE_HEADLESS_SERVICE", "value": "wl-0.test.svc.cluster.local"},
            self.downward("GROVE_PCLQ_POD_INDEX", marks.POD_INDEX),
        ]
        spec = self.with_env(pod_spec, env) | {"hostname": f"{name}-{k}", "subdomain": "wl-0", "nodeName": "node-1"}
        meta = {"generateName": f"{name}-", "namespace": "test", "labels": labels}
        meta["ownerReferences"] = [self.owner(POD_CLIQUE, clique)]
        pod = await self.client.create(POD, {"metadata": meta, "spec": spec})
        self.pods[pod["metadata"]["uid"]] = pod["metadata"]["name"]
        await self.client.patch(POD, pod["metadata"]["name"], ready_status(), "test", subresource="status")

    async def gang(self, name: str, owner: JSON, cliques: list[str]) -> None:
        """Write a PodGang; of its status Grove writes the phase and Initialized only."""
        groups = [
            {
                "name": clique,
                "minReplicas": 1,
                "podReferences": [
                    {"namespace": "test", "name": pod}
                    for pod in sorted(self.pods.values())
                    if pod.rpartition("-")[0] == clique
                ],
            }
            for clique in cliques
        ]
        meta = self.meta(name, "podgang", owner, {marks.SCHEDULER_NAME: SCHEDULER})
        await self.client.create(POD_GANG, {"metadata": meta, "spec": {"podgroups": groups}})
        condition = self.condition("Initialized", "True", "PodGangPodsCreated")
        await self.status(POD_GANG, name, {"phase": "Pending", "conditions": [condition]})

    async def status(self, resource: Resource, name: str, status: JSON) -> None:
        await self.client.patch(resource, name, {"status": status}, "test", subresource="status")

    def meta(self, name: str, component: str, owner: JSON, labels: dict[str, str]) -> JSON:
        """Return metadata with the labels every managed object has."""
        standard = {
            "app.kubernetes.io/managed-by": "grove-operator",
            "app.kubernetes.io/part-of": "wl",
            "app.kubernetes.io/name": name,
            "app.kubernetes.io/component": component,
        }
        return {"name": name, "namespace": "test", "labels": standard | labels, "ownerReferences": [owner]}

    def owner(self, resource: Resource, found: JSON) -> JSON:
        """Return a controller reference."""
        who = {"apiVersion": resource.api_version, "kind": resource.kind, "name": found["metadata"]["name"]}
        return who | {"uid": found["metadata"]["uid"], "controller": True, "blockOwnerDeletion": True}

    def member_env(self) -> list[JSON]:
        """Return what the members of a scaling group find in their environment."""
        return [
            self.downward("GROVE_PCSG_NAME", marks.SCALING_GROUP),
            {"name": "GROVE_PCSG_TEMPLATE_NUM_PODS", "value": "4"},
            self.downward("GROVE_PCSG_INDEX", marks.SCALING_GROUP_REPLICA_INDEX),
        ]

    def downward(self, name: str, label: str) -> JSON:
        """Return a variable that takes its value from a label."""
        return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{label}']"}}}

    def with_env(self, spec: JSON, env: list[JSON]) -> JSON:
        """Return a pod spec with variables before those of its container."""
        (container,) = spec["containers"]
        return spec | {"containers": [container | {"env": [*env, *container.get("env", ())]}]}

    def condition(self, kind: str, status: str, reason: str) -> JSON:
        """Return a condition of an hour ago."""
        when = {"lastTransitionTime": "2026-01-01T00:00:00Z", "message": ""}
        return {"type": kind, "status": status, "reason": reason, **when}


async def a_grove_installation() -> tuple[ApiServer, Grove]:
    """Return a server on which Grove's operator ran, and has gone."""
    runtime = Runtime.virtual(seed=3)
    server = ApiServer(runtime)
    client = Client(InProcessTransport(server), runtime)
    grove = Grove(client)
    async with server.running():
        await client.create(NAMESPACE, {"metadata": {"name": "test"}})
        await install_crds(client)
        await client.create(NODE, {"metadata": {"name": "node-1"}, "status": {}})
        await grove.leaves()
    return server, grove


def settings() -> Settings:
    """Return the settings of an operator whose default is kube-scheduler, as Grove's is."""
    return Settings(profiles=check("", every_backend()).profiles)


async def uids(world: World) -> dict[str, str]:
    """Return the pods that exist, by uid."""
    return {pod.metadata.uid or "": pod.metadata.name for pod in await world.pods()}


@on_virtual_time
async def test_no_pod_restarts_and_every_status_is_true() -> None:
    """After hours under the new operator every pod is still the one Grove made."""
    server, grove = await a_grove_installation()
    async with a_world(settings(), server=server) as world:
        cliques = {name: await _uid(world, POD_CLIQUE, name) for name in await world.names(POD_CLIQUE)}
        await world.settle(4 * 3600 + 600)

        assert await uids(world) == grove.pods
        assert {name: await _uid(world, POD_CLIQUE, name) for name in await world.names(POD_CLIQUE)} == cliques
        assert not any(controller.repairs for controller in world.operator.controllers)
        for name in ("wl-0", "wl-0-sg-x-0"):
            gang = await world.client.get(POD_GANG, name, "test", type=PodGang)
            assert gang.status.phase == "Running"
            assert all(is_true(gang.status.conditions, each) for each in ("Initialized", "BackendReady", "Ready"))
        pcs = await world.client.get(POD_CLIQUE_SET, "wl", "test", type=PodCliqueSet)
        assert pcs.status.current_generation_hash == GENERATION
        assert (pcs.status.available_replicas, pcs.status.updated_replicas) == (1, 1)
        assert pcs.status.update_progress is None
        assert await world.names(HORIZONTAL_POD_AUTOSCALER) == []


@on_virtual_time
async def test_life_goes_on() -> None:
    """What Grove made is scaled, replaced and updated like our own: pods of both share a PodClique until the update."""
    server, grove = await a_grove_installation()
    async with a_world(settings(), server=server) as world:
        await world.settle(30)
        await world.client.patch(POD_CLIQUE, "wl-0-pc-a", {"spec": {"replicas": 3}}, "test")
        await world.client.patch(POD_CLIQUE_SCALING_GROUP, "wl-0-sg-x", {"spec": {"replicas": 3}}, "test")
        await world.settle(30)
        grown = await uids(world)
        assert grove.pods.items() <= grown.items()
        assert len(grown) == len(grove.pods) + 1 + 4
        hashes = {pod.metadata.labels[marks.POD_TEMPLATE_HASH] for pod in await world.pods()}
        assert hashes == set(HASHES.values())

        changed = the_set()
        changed["spec"]["template"]["cliques"][0]["spec"]["podSpec"] = POD_SPEC | {
            "containers": [CONTAINER | {"image": "registry.example/engine:2"}]
        }
        patch = {"spec": changed["spec"]}
        await world.client.patch(POD_CLIQUE_SET, "wl", patch, "test")
        await world.settle(60)
        rolled = {uid: name for uid, name in grown.items() if name.startswith("wl-0-pc-a-")}
        now = await uids(world)
        assert not rolled.keys() & now.keys()
        assert len(now) == len(grown)
        clique = await world.client.get(POD_CLIQUE, "wl-0-pc-a", "test", type=PodClique)
        assert (clique.status.updated_replicas, clique.status.ready_replicas) == (3, 3)
        group = await world.client.get(POD_CLIQUE_SCALING_GROUP, "wl-0-sg-x", "test", type=PodCliqueScalingGroup)
        assert group.status.updated_replicas == 3


@pytest.mark.parametrize("resource", [POD_CLIQUE_SET, POD_CLIQUE, POD_CLIQUE_SCALING_GROUP, POD_GANG, POD, SERVICE])
@on_virtual_time
async def test_deletion_leaves_nothing(resource: Resource) -> None:
    """Grove's finalizers are taken off when their objects go."""
    server, _ = await a_grove_installation()
    async with a_world(settings(), server=server) as world:
        await world.settle(10)
        await world.client.delete(POD_CLIQUE_SET, "wl", "test")
        await world.settle(60)
        assert await world.names(resource) == []


async def _uid(world: World, resource: Resource, name: str) -> str:
    found: JSON = await world.client.get(resource, name, "test")
    uid: str = found["metadata"]["uid"]
    return uid
