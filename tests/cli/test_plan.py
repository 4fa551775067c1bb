"""``spinney plan defrag`` finds the fewest moves that free room, says what they cost, and carries them out if told."""

import json
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from spinney.api.core import NODE, POD
from spinney.api.policy import POD_DISRUPTION_BUDGET as BUDGET
from spinney.api.resource import Resource
from spinney.api.struct import JSON
from spinney.cli import main
from spinney.kube.client import Client
from spinney.workloads.objects import DEPLOYMENT
from tests.cli.clusters import ServedCluster, served_cluster
from tests.cli.workloads import as_yaml


def a_node(name: str) -> JSON:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"rack": name[0]}},
        "status": {"capacity": {"cpu": "64", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": "8"}},
    }


def a_pod(name: str, gpus: int, node: str = "", *, owned: bool = True) -> JSON:
    owner = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": f"rs-{name}", "controller": True}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "uid": name, **({"ownerReferences": owner} if owned else {})},
        "spec": {
            "schedulerName": "spinney-scheduler",
            "containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": gpus}}}],
            **({"nodeName": node} if node else {}),
        },
        **({"status": {"phase": "Running"}} if node else {}),
    }


def planned(tmp_path: Path, *options: str, more: tuple[JSON, ...] = ()) -> Result:
    """Plan on two nodes, one with five GPUs in use by two pods, one with three by one."""
    file = tmp_path / "cluster.yaml"
    pods = (a_pod("large", 4, "a1"), a_pod("small", 1, "a1"), a_pod("medium", 3, "b1"))
    file.write_text(as_yaml(a_node("a1"), a_node("b1"), *pods, *more))
    return CliRunner().invoke(main, ["plan", "defrag", "--from", str(file), *options])


def test_the_cheapest_move_is_proposed(tmp_path: Path) -> None:
    """One pod is moved rather than two, and the drawing shows the node that is free then."""
    result = planned(tmp_path, "--nodes", "1")
    assert result.exit_code == 0, result.output
    assert "Room for 1 whole node on b1: 1 gang moved, 1 pod started anew" in result.output
    assert "aaa....." in result.output
    assert "++++++++" in result.output


def test_room_that_is_there_is_named(tmp_path: Path) -> None:
    """Where nothing has to be moved the nodes are named, one or several."""
    file = tmp_path / "empty.yaml"
    file.write_text(as_yaml(a_node("a1"), a_node("b1")))
    told = [
        CliRunner().invoke(main, ["plan", "defrag", "--from", str(file), "--nodes", nodes]).output.strip()
        for nodes in ("1", "2")
    ]

    assert told[0].endswith(" has room for 1 whole node.")
    assert told[1].endswith(" have room for 2 whole nodes.")


def test_room_for_a_gang_that_waits(tmp_path: Path) -> None:
    """With --for the room is what the gang asks for, and JSON has the whole plan."""
    result = planned(tmp_path, "--for", "big", "-o", "json", more=(a_pod("big", 8),))
    assert result.exit_code == 0, result.output
    plan = json.loads(result.stdout)
    assert (plan["nodes"], plan["restarts"]) == (["b1"], 1)
    assert [(move["gang"], move["pods"][0]["target"]) for move in plan["moves"]] == [("default/medium", "a1")]


def test_it_is_planned_as_the_clusters_scheduler_decides(tmp_path: Path) -> None:
    """With --config a gang that only its scheduler places gets its room: plans were made with the default one."""
    waiting = a_pod("big", 8) | {"spec": a_pod("big", 8)["spec"] | {"schedulerName": "ours"}}
    config = tmp_path / "scheduler.yaml"
    config.write_text("schedulerNames: [ours]")

    result = planned(tmp_path, "--for", "big", "--config", str(config), more=(waiting,))
    assert result.exit_code == 0, result.output
    assert "Room for gang big on b1: 1 gang moved" in result.output


def test_pods_go_only_where_plugins_let_them(tmp_path: Path) -> None:
    """A plugin of --plugin that keeps pods off a node keeps the plan's off it, too."""
    plugin = tmp_path / "policy.py"
    plugin.write_text(
        "from spinney.scheduler import Plugin\n\n\nclass Closed(Plugin):\n    name = 'closed'\n\n"
        "    def on_session_open(self, session):\n"
        "        session.add_predicate_fn(lambda task, job, node: 'closed' if node.name == 'a1' else None)\n"
    )
    result = planned(tmp_path, "--nodes", "1", "--plugin", str(plugin))
    assert "Room for 1 whole node on a1: 2 gangs moved" in result.output, result.output


RULES = """
from spinney.scheduler import Plugin


class Rules(Plugin):
    name = "rules"

    def on_session_open(self, session):
        session.{add}
"""


@pytest.mark.parametrize(
    "add",
    [
        "add_predicate_fn(lambda task, job, node: 'closed' if job.name == 'big' and node.name == 'b1' else None)",
        "add_predicate_fn(lambda task, job, node: node.labels['rack'] != 'b', per_pod=False)",
        "add_predicate_columns(lambda task, job, nodes: ~nodes.labelled('rack', 'b'))",
        "add_predicate_columns(lambda task, job, nodes: ~nodes.labelled('rack', 'b'), per_job=False)",
        "add_predicate_fn(lambda task, job, node: node.labels['rack'] == 'a' and node.idle_gpus >= 0)",
    ],
)
def test_the_gang_that_waits_gets_room_where_plugins_let_it_go(tmp_path: Path, add: str) -> None:
    """A plugin that keeps it off a node is asked about it: pods were moved for a gang that was refused after that."""
    plugin = tmp_path / "rules.py"
    plugin.write_text(RULES.format(add=add))
    result = planned(tmp_path, "--for", "big", "--plugin", str(plugin), more=(a_pod("big", 8),))
    if "job.name" in add:
        assert "Room for gang big on a1: 2 gangs moved" in result.output, result.output
    else:  # the others are kept off it, too
        assert result.exit_code == 1
        assert "no moves make room for gang big: 3 gangs may be moved" in result.output
        assert "plugin rules refuses 1 node" in result.output


def test_what_is_on_a_node_now_keeps_no_gang_off_it(tmp_path: Path) -> None:
    """A rule about what is on a node may answer otherwise when it has left."""
    plugin = tmp_path / "rules.py"
    plugin.write_text(RULES.format(add="add_predicate_fn(lambda task, job, node: node.idle_gpus > 5)"))
    result = planned(tmp_path, "--for", "big", "--plugin", str(plugin), more=(a_pod("big", 8), a_node("c1")))
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    ("add", "said"),
    [
        (
            "add_predicate_fn(lambda task, job, node: node.nmae)",
            "rules.py:9 in Rules.on_session_open.<locals>.",
        ),
        ("add_predicates_fn(None)", "rules.py:9 in Rules.on_session_open: AttributeError"),
    ],
)
def test_a_plugin_that_fails_ends_it(tmp_path: Path, add: str, said: str) -> None:
    """A plan that was made without it is none of the cluster's; it ended with 0, and `--execute` carried it out."""
    plugin = tmp_path / "rules.py"
    plugin.write_text(RULES.format(add=add))
    result = planned(tmp_path, "--nodes", "1", "--plugin", str(plugin))
    assert result.exit_code == 1, result.output
    assert "plugin rules failed, so what is shown is not what you meant" in result.output
    assert said in result.output


def test_no_room_is_made_for_what_a_plugin_refuses_on_every_node(tmp_path: Path) -> None:
    """The reason stands instead of a plan that would move pods for nothing."""
    plugin = tmp_path / "rules.py"
    plugin.write_text(RULES.format(add="add_pre_predicate_fn(lambda task, job: 'not today')"))
    result = planned(tmp_path, "--for", "big", "--plugin", str(plugin), more=(a_pod("big", 8),))
    assert result.exit_code == 1
    assert "no room would help default/big: " in result.output
    assert "not today" in result.output


@pytest.mark.parametrize("label", ["rack", "none"])
def test_nodes_may_have_to_share_a_label(tmp_path: Path, label: str) -> None:
    """Two whole nodes in one rack cannot be had where each rack has one node."""
    result = planned(tmp_path, "--nodes", "2", "--sharing", label)
    assert result.exit_code == 1
    fewer = {"rack": "1 node", "none": "0 nodes"}[label]
    assert f"2 whole nodes cannot be had: {fewer} of 8 GPUs sharing {label}" in result.output


def test_more_nodes_than_there_are(tmp_path: Path) -> None:
    """Who wants more whole nodes than the cluster has is told so, not that nothing may be moved."""
    result = planned(tmp_path, "--nodes", "99")
    assert result.exit_code == 1
    assert "99 whole nodes cannot be had: 2 nodes of 8 GPUs" in result.output


def test_what_may_not_be_moved_is_named(tmp_path: Path) -> None:
    """A pod that nobody would make anew stays, and the answer says so."""
    result = planned(tmp_path, "--nodes", "2", more=(a_pod("alone", 1, "b1", owned=False),))
    assert result.exit_code == 1
    assert "default/alone: nobody would make its pods anew" in result.output


def test_the_drawing_has_what_stays_too(tmp_path: Path) -> None:
    """A node that others hold in part is drawn with all its GPUs: those of pods that may not be moved were missing."""
    more = (a_node("c1"), a_pod("alone", 5, "c1", owned=False), a_pod("tiny", 1, "a1"))
    drawn = planned(tmp_path, "--nodes", "1", more=more).output
    assert ["c1", "#####...", "#####aaa"] in [line.split() for line in drawn.splitlines()]


@pytest.mark.parametrize(
    "closed", [{"spec": {"unschedulable": True}}, {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}]
)
def test_a_node_that_takes_nothing_is_no_room(closed: JSON, tmp_path: Path) -> None:
    """A free node that is cordoned or not ready has room for nobody: it was said to have the room that was wanted."""
    node = a_node("b2")
    node |= {"spec": closed.get("spec", {}), "status": node["status"] | closed.get("status", {})}
    assert "Room for 1 whole node on b1: 1 gang moved" in planned(tmp_path, "--nodes", "1", more=(node,)).output


def test_cordoned_nodes_are_named_where_no_plan_is_found(tmp_path: Path) -> None:
    """A plan that was killed leaves nodes cordoned: whoever starts it again is told which, and what opens them."""
    more = (a_node("b2") | {"spec": {"unschedulable": True}}, a_pod("big", 8), a_pod("alone", 8, "b1", owned=False))
    for options in (("--for", "big"), ("--nodes", "3")):
        result = planned(tmp_path, *options, more=more)
        assert result.exit_code == 1
        assert "; 1 node is cordoned, which 'kubectl uncordon' opens: b2" in result.output


def test_opening_a_node_is_told_beside_adding_nodes(tmp_path: Path) -> None:
    """`why` names a node that a killed plan left cordoned: adding nodes, of one kind or another, took every line."""
    file = tmp_path / "cluster.yaml"
    nodes = (a_node("a1"), a_node("c1"), a_node("b1") | {"spec": {"unschedulable": True}})
    pods = (a_pod("large", 4, "a1"), a_pod("small", 1, "a1"), a_pod("medium", 3, "b1"), a_pod("d", 5, "c1"))
    file.write_text(as_yaml(*nodes, *pods, a_pod("big", 8)))

    told = CliRunner().invoke(main, ["why", "big", "--from", str(file)]).output
    assert "uncordon b1 (evicts 1 pod: default/medium)" in told
    assert told.count("add 1 node like") == 1


def test_mistakes_are_answered(tmp_path: Path) -> None:
    """What is wanted has to be said once, and a file cannot be changed."""
    assert "either --for GANG or --nodes N" in planned(tmp_path).output
    assert "a file cannot be changed" in planned(tmp_path, "--nodes", "1", "--execute").output
    assert "no gang nobody waits" in planned(tmp_path, "--for", "nobody").output


def a_deployment(name: str) -> JSON:
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {
            "schedulerName": "spinney-scheduler",
            "containers": [{"name": "main", "image": "busybox", "resources": {"limits": {"nvidia.com/gpu": "4"}}}],
        },
    }
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


async def nodes_of_pods(client: Client) -> dict[str, str]:
    """Return the node of each deployment's pod that runs and is not going."""
    pods: list[dict[str, Any]] = list((await client.list(POD, "default")).items)
    return {
        pod["metadata"]["labels"]["app"]: pod["spec"]["nodeName"]
        for pod in pods
        if pod.get("status", {}).get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]
    }


def until_running(served: ServedCluster, *names: str) -> dict[str, str]:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        found = served.call(nodes_of_pods)
        if set(names) <= set(found):
            return found
        time.sleep(0.2)
    raise AssertionError(f"not running within two minutes: {names}")


def a_budget(app: str) -> JSON:
    spec = {"selector": {"matchLabels": {"app": app}}, "minAvailable": 1}
    metadata = {"name": app, "namespace": "default"}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec}


async def make(client: Client, resource: Resource, found: JSON) -> None:
    await client.create(resource, found)


async def forget(client: Client, resource: Resource, name: str) -> None:
    await client.delete(resource, name, "default")


async def close_nodes(client: Client, closed: set[str]) -> None:
    for node in (await client.list(NODE)).items:
        name = node["metadata"]["name"]
        await client.patch(NODE, name, {"spec": {"unschedulable": True if name in closed else None}})


@pytest.fixture
def busy(tmp_path: Path) -> Iterator[ServedCluster]:
    """An embedded cluster of two nodes where Deployments become pods."""
    with served_cluster(tmp_path, nodes=2, workloads=True) as cluster:
        yield cluster


def test_a_plan_is_carried_out_within_budgets(busy: ServedCluster) -> None:
    """Pods on two nodes end up on one, and every node is open again; a budget that forbids it stops the plan."""
    names = [node["metadata"]["name"] for node in busy.call(lambda client: client.list(NODE)).items]
    for app, home in (("left", names[0]), ("right", names[-1])):
        busy.call(partial(close_nodes, closed=set(names) - {home}))
        busy.call(partial(make, resource=DEPLOYMENT, found=a_deployment(app)))
        assert until_running(busy, app)[app] == home
        busy.call(partial(make, resource=BUDGET, found=a_budget(app)))
    busy.call(partial(close_nodes, closed=set()))
    wanted = ("plan", "defrag", "--nodes", str(len(names) - 1), "--execute")

    refused = busy.spinney(*wanted)
    assert refused.exit_code == 1
    assert set(busy.call(nodes_of_pods).values()) == {names[0], names[-1]}

    for app in ("left", "right"):
        busy.call(partial(forget, resource=BUDGET, name=app))
    done = busy.spinney(*wanted)
    assert done.exit_code == 0, done.output
    assert len(set(until_running(busy, "left", "right").values())) == 1
    assert not any(node["spec"].get("unschedulable") for node in busy.call(lambda client: client.list(NODE)).items)
