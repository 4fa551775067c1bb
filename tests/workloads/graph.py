"""The objects made for a workload, checked one by one: names, labels, owners, references (specification 2 and 3)."""

from spinney.api import kai
from spinney.api import labels as marks
from spinney.api.autoscaling import HORIZONTAL_POD_AUTOSCALER
from spinney.api.core import POD, SECRET, SERVICE, SERVICE_ACCOUNT, Pod
from spinney.api.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from spinney.api.podgang import PodGang
from spinney.api.rbac import ROLE, ROLE_BINDING
from spinney.api.resource import Resource
from spinney.api.struct import JSON
from tests.e2e.harness import Stage
from tests.workloads.expectations import Expected


async def expect_graph(stage: Stage, pcs: PodCliqueSet, expected: Expected, *, scheduler: str) -> None:
    """Check everything that was made for a PodCliqueSet."""
    _expect_cliques(stage, pcs, expected)
    _expect_groups(stage, pcs, expected)
    _expect_gangs(stage, pcs, expected, scheduler=scheduler)
    _expect_pods(stage, pcs, expected)
    await _expect_auxiliaries(stage, pcs, expected)
    if scheduler == "kai-scheduler":
        await _expect_pod_groups(stage, expected)


def _expect_cliques(stage: Stage, pcs: PodCliqueSet, expected: Expected) -> None:
    cliques = stage.chronicle.all(PodClique)
    assert set(cliques) == set(expected.cliques)
    for gang, groups in expected.gangs.items():
        for name, (pods, minimum) in groups.items():
            clique = cliques[name]
            assert (clique.spec.replicas, clique.spec.min_available) == (pods, minimum)
            assert clique.spec.starts_after == expected.starts_after.get(name, ())
            assert clique.metadata.labels[marks.POD_GANG] == gang
            assert clique.metadata.labels[marks.PART_OF] == pcs.metadata.name
            base = _base(pcs, gang)
            assert clique.metadata.labels.get(marks.BASE_POD_GANG) == (base if base != gang else None)
            group = clique.metadata.labels.get(marks.SCALING_GROUP)
            kind, owner = ("PodCliqueSet", pcs.metadata.name) if group is None else ("PodCliqueScalingGroup", group)
            controller = clique.metadata.controller
            assert controller is not None
            assert (controller.kind, controller.name) == (kind, owner)
            assert group is None or group in expected.groups


def _expect_groups(stage: Stage, pcs: PodCliqueSet, expected: Expected) -> None:
    groups = stage.chronicle.all(PodCliqueScalingGroup)
    assert set(groups) == set(expected.groups)
    for group in groups.values():
        assert group.metadata.controller is not None
        assert group.metadata.controller.uid == pcs.metadata.uid


def _expect_gangs(stage: Stage, pcs: PodCliqueSet, expected: Expected, *, scheduler: str) -> None:
    gangs = stage.chronicle.all(PodGang)
    assert set(gangs) == set(expected.gangs)
    for name, groups in expected.gangs.items():
        gang = gangs[name]
        assert gang.metadata.controller is not None
        assert gang.metadata.controller.uid == pcs.metadata.uid
        assert gang.metadata.labels[marks.SCHEDULER_NAME] == scheduler
        assert gang.metadata.labels[marks.PART_OF] == pcs.metadata.name
        assert [(group.name, group.min_replicas) for group in gang.spec.pod_groups] == [
            (group, minimum) for group, (_, minimum) in groups.items()
        ]
        for group in gang.spec.pod_groups:
            references = [reference.name for reference in group.pod_references]
            assert references == sorted(pod.metadata.name for pod in stage.pods(group.name))
            assert len(references) == groups[group.name][0]
        conditions = {each.type: each.status for each in gang.status.conditions}
        assert conditions["Initialized"] == "True"
        assert conditions["Scheduled"] == ("True" if expected.end == "ready" else "False")


def _expect_pods(stage: Stage, pcs: PodCliqueSet, expected: Expected) -> None:
    assert len(stage.pods()) == expected.pods
    for gang, groups in expected.gangs.items():
        for name, (count, _) in groups.items():
            pods = stage.pods(name)
            clique = stage.clique(name)
            assert sorted(int(pod.metadata.labels[marks.POD_INDEX]) for pod in pods) == list(range(count))
            for pod in pods:
                _expect_pod(pod, clique, gang, pcs)


def _expect_pod(pod: Pod, clique: PodClique, gang: str, pcs: PodCliqueSet) -> None:
    labels, i = pod.metadata.labels, clique.metadata.labels[marks.REPLICA_INDEX]
    assert clique.metadata.labels.items() <= labels.items()
    assert labels[marks.MANAGED_BY] == "grove-operator"
    assert labels[marks.POD_GANG] == gang
    assert pod.spec.hostname == f"{clique.metadata.name}-{labels[marks.POD_INDEX]}"
    assert pod.spec.subdomain == f"{pcs.metadata.name}-{i}"
    assert pod.metadata.name.startswith(f"{clique.metadata.name}-")
    assert pod.metadata.controller is not None
    assert pod.metadata.controller.uid == clique.metadata.uid
    assert not pod.gated


async def _expect_auxiliaries(stage: Stage, pcs: PodCliqueSet, expected: Expected) -> None:
    name = pcs.metadata.name
    services = [f"{name}-{i}" for i in range(pcs.spec.replicas or 0)]
    assert await _names(stage, SERVICE, name) == sorted(services)
    assert await _names(stage, HORIZONTAL_POD_AUTOSCALER, name) == sorted(expected.autoscalers)
    assert await _names(stage, SERVICE_ACCOUNT, name) == [name]
    assert await _names(stage, ROLE, name) == [f"grove.io:pcs:{name}"]
    assert await _names(stage, ROLE_BINDING, name) == [f"grove.io:pcs:{name}"]
    assert await _names(stage, SECRET, name) == ([f"{name}-ic-sat"] if expected.ordered else [])


async def _expect_pod_groups(stage: Stage, expected: Expected) -> None:
    listing = await stage.client.list(kai.POD_GROUP, stage.namespace, type=kai.PodGroup)
    groups = {group.metadata.name: group for group in listing.items}
    assert set(groups) == set(expected.gangs)
    for name, members in expected.gangs.items():
        group = groups[name]
        assert group.spec.queue == "test"
        assert group.spec.min_member == sum(minimum for _, minimum in members.values())
        assert members.keys() <= {each.name for each in group.spec.sub_groups}
        assert group.metadata.controller is not None
        assert (group.metadata.controller.kind, group.metadata.controller.name) == ("PodGang", name)


async def environment_of(stage: Stage, pod: Pod) -> dict[str, JSON]:
    """Return the environment of a pod's first container, by name."""
    found = await stage.client.get(POD, pod.metadata.name, stage.namespace)
    return {each["name"]: each for each in found["spec"]["containers"][0]["env"]}


async def _names(stage: Stage, resource: Resource, pcs: str) -> list[str]:
    listing = await stage.client.list(resource, stage.namespace, label_selector=f"{marks.PART_OF}={pcs}")
    return sorted(found["metadata"]["name"] for found in listing.items)


def _base(pcs: PodCliqueSet, gang: str) -> str:
    """Return the base gang of the replica a gang belongs to."""
    return f"{pcs.metadata.name}-{gang.removeprefix(f'{pcs.metadata.name}-').split('-')[0]}"
