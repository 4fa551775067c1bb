"""What is recommended for a gang of a PodCliqueSet is a change of the set, and lasts when it is made on a cluster.

The operator makes PodGangs from their set again, so a patch of a PodGang would be undone.
"""

from collections.abc import Mapping, Sequence

import pytest

from spinney.api.core import POD, Pod
from spinney.api.grove import POD_CLIQUE_SET
from spinney.api.struct import JSON
from spinney.kube.client import Client, PatchKind
from spinney.runtime import run_virtual
from spinney.server.patches.json import apply_json_patch
from spinney.sim.advice.advice import Advisor
from spinney.sim.advice.subjects import find
from spinney.sim.remedies.change import Remedy
from spinney.sim.snapshots.snapshot import take
from tests.sim.waiting_clusters import a_small_cluster

NOTHING: Mapping[str, object] = {}
RACKS: Mapping[str, object] = {"topologyConstraint": {"topologyName": "gpu-topology", "pack": {"required": "rack"}}}
HOST: Mapping[str, object] = {"topologyConstraint": {"topologyName": "gpu-topology", "pack": {"required": "host"}}}


def a_set(pods: int, name: str = "train", template: Mapping[str, object] = NOTHING, scheduler: str = "") -> JSON:
    """Return a set of one gang of pods that take a whole node each; their command must survive every change."""
    container = {"name": "main", "image": "app", "command": ["train"], "resources": {"limits": {"nvidia.com/gpu": "8"}}}
    spec = {"roleName": "w", "replicas": pods, "podSpec": {"containers": [container], "schedulerName": scheduler}}
    cliques = [{"name": "w", "spec": spec}]
    return {
        "metadata": {"name": name, "namespace": "default", "labels": {"kai.scheduler/queue": "research"}},
        "spec": {"replicas": 1, "template": {"cliques": cliques, **template}},
    }


async def carry_out(client: Client, remedy: Remedy) -> None:
    """Make a change at the set, as its patches say."""
    for patch in remedy.patches:
        assert patch.kind == "PodCliqueSet"
        if patch.delete:
            await client.delete(POD_CLIQUE_SET, patch.name, patch.namespace)
            continue
        if patch.merge is not None:
            await client.patch(POD_CLIQUE_SET, patch.name, patch.merge, patch.namespace)
            continue
        if not patch.recreate:
            operations = list(patch.operations)
            await client.patch(POD_CLIQUE_SET, patch.name, operations, patch.namespace, kind=PatchKind.JSON)
            continue
        present = await client.get(POD_CLIQUE_SET, patch.name, patch.namespace)
        await client.delete(POD_CLIQUE_SET, patch.name, patch.namespace)
        await client.runtime.clock.sleep(120)
        changed = apply_json_patch({"metadata": present["metadata"], "spec": present["spec"]}, list(patch.operations))
        metadata = {key: present["metadata"][key] for key in ("name", "namespace", "labels")}
        await client.create(POD_CLIQUE_SET, {**changed, "metadata": metadata})


async def told_and_done(
    pcs: JSON, text: str, *before: JSON, block: int = 4, queues: bool = False, tainted: bool = False
) -> tuple[Remedy, list[Pod]]:
    """Create a set that waits, do what was recommended in these words, and return it with the pods a minute later."""
    async with a_small_cluster(block=block, quota=-1 if queues else None, tainted=tainted) as client:
        runtime = client.runtime
        for each in (*before, pcs):
            await client.create(POD_CLIQUE_SET, each)
            await runtime.clock.sleep(60)
        await runtime.clock.sleep(60)
        snapshot = await take(client)
        answer = Advisor(snapshot, runtime=runtime, best=10).answer(find(snapshot, "podgang/train-0", "default"))
        (remedy,) = [each for each in answer.remedies if each.text == text]
        await carry_out(client, remedy)
        await runtime.clock.sleep(60)
        return remedy, list((await client.list(POD, "default", type=Pod)).items)


ANEW = "; PodCliqueSet train has to be created anew for that"


@pytest.mark.parametrize(
    ("pcs", "block", "text", "placed"),
    [
        (a_set(6), 4, "let it start with 4 of 6 pods", 4),
        (a_set(3, template=RACKS), 4, "require one block instead of one rack", 3),
        (a_set(3, template=RACKS), 2, "do not require one rack", 3),
        (a_set(6, scheduler="kai-scheduler"), 4, "let it start with 4 of 6 pods", 4),
        (a_set(2, template=HOST), 4, "require one rack instead of one host", 2),
        (a_set(2, template=HOST, scheduler="kai-scheduler"), 4, "require one rack instead of one hostname", 2),
        (a_set(3, template=RACKS, scheduler="kai-scheduler"), 4, "require one block instead of one rack", 3),
        (a_set(6, scheduler="coscheduling"), 4, "let it start with 4 of 6 pods", 4),
        (a_set(6, scheduler="default-scheduler"), 4, "let it start with 4 of 6 pods", 4),
    ],
)
def test_what_may_not_change_is_created_anew(pcs: JSON, block: int, text: str, placed: int) -> None:
    """A minimum and a level are changed by creating the set anew, and everything else in it stays as it is."""
    remedy, pods = run_virtual(told_and_done(pcs, f"{text}{ANEW}", block=block))

    assert sum(bool(pod.spec.node_name) for pod in pods) == placed
    (command,) = [change.command for change in remedy.changes]
    assert command.startswith(
        "kubectl get podcliqueset.v1alpha1.grove.io train -n default -o json | kubectl patch --local -f - "
    )
    assert command.endswith(" -o json | kubectl replace --force -f -")


def test_a_set_is_moved_to_another_queue_by_its_label() -> None:
    """The label of the set names the queue of its gangs, and may change while they wait."""
    remedy, pods = run_virtual(told_and_done(a_set(2), "submit it to queue team", queues=True))

    assert all(pod.spec.node_name for pod in pods)
    assert [change.command for change in remedy.changes] == [
        "kubectl patch podcliqueset.v1alpha1.grove.io train -n default --type merge -p "
        """'{"metadata":{"labels":{"kai.scheduler/queue":"team"}}}'"""
    ]


@pytest.mark.parametrize("present", [(), ({"key": "spot", "operator": "Exists"},)])
def test_a_taint_is_tolerated_in_the_template_of_the_set(present: Sequence[JSON]) -> None:
    """Pods that are made later tolerate it too, and what they tolerated before."""
    pcs = a_set(4)
    if present:
        pcs["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["tolerations"] = list(present)
    text = "tolerate the taint team=a:NoSchedule in the pods"

    remedy, pods = run_virtual(told_and_done(pcs, text, tainted=True))

    assert [bool(pod.spec.node_name) for pod in pods] == [True] * 4
    assert {len([each for each in pod.spec.tolerations if each.key in ("team", "spot")]) for pod in pods} == {
        1 + len(present)
    }
    (command,) = [change.command for change in remedy.changes]
    assert command.startswith("kubectl patch podcliqueset.v1alpha1.grove.io train -n default --type json -p ")


def test_a_workload_that_is_ended_does_not_come_back() -> None:
    """The set that holds the nodes is deleted, with all its gangs: the operator would make their pods again."""
    old = a_set(2, "old")
    old["spec"]["replicas"] = 2
    remedy, pods = run_virtual(told_and_done(a_set(4), "end default/old (32 GPUs)", old))

    assert [bool(pod.spec.node_name) for pod in pods] == [True] * 4
    assert [change.command for change in remedy.changes] == [
        "kubectl delete podcliqueset.v1alpha1.grove.io old -n default"
    ]


def test_a_set_is_not_ended_for_a_gang_of_its_own() -> None:
    """Of a set with two gangs one has all the nodes: to end the set would end the one that waits, too."""

    async def told() -> Sequence[str]:
        async with a_small_cluster() as client:
            pcs = a_set(4)
            pcs["spec"]["replicas"] = 2
            await client.create(POD_CLIQUE_SET, pcs)
            await client.runtime.clock.sleep(30)
            snapshot = await take(client)
            answer = Advisor(snapshot, runtime=client.runtime, best=10).answer(find(snapshot, "pcs/train", "default"))
            return [remedy.text for part in answer.parts for remedy in part.remedies]

    texts = run_virtual(told())

    assert "add 4 nodes like gpu-000 (8 GPUs each)" in texts
    assert not [each for each in texts if "end default/train" in each]
