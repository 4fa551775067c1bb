"""``spinney top`` draws the nodes of any cluster with the gangs on them."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import msgspec
from click.testing import CliRunner

from spinney.api.affinity import Taint
from spinney.api.core import NodeSpec
from spinney.cli import main
from spinney.cli.bodies.top import Memberships
from spinney.cli.pictures.picture import summary
from spinney.cli.screens.content import Content
from spinney.cli.screens.pages import listing, screen
from spinney.cli.screens.view import ScreenView, keys_in, pressed
from spinney.sim import Cluster
from spinney.sim.overview.gang_table import gang_lines
from spinney.sim.snapshots.files import write_snapshot
from spinney.sim.whatif.loading import inventory_of
from tests.cli.clusters import ServedCluster
from tests.cli.workloads import a_training_job, until_running


def test_without_a_terminal_one_picture_is_printed(served: ServedCluster) -> None:
    """Racks, nodes and free GPUs of the cluster are drawn once."""
    answer = served.spinney("top")

    assert answer.exit_code == 0, answer.output
    assert "gpu-000 ········" in answer.output
    assert "rack-0" in answer.output


def top(cluster: Cluster, directory: Path, *options: str) -> str:
    """Return what is shown of a cluster after a scheduling cycle."""
    cluster.step()
    file = directory / "snapshot.json.gz"
    write_snapshot(cluster.snapshot(), file)
    return CliRunner().invoke(main, ["top", "--from", str(file), *options]).output


def test_gangs_of_any_family_are_drawn(tmp_path: Path) -> None:
    """A gang's pods fill the cells of their nodes, and the gang is listed below."""
    cluster = Cluster("2x4")
    cluster.gang("train", pods=2, gpus=4)
    output = top(cluster, tmp_path)
    assert "gpu-001 AAAA" in output
    assert "A train" in output


def test_nodes_that_take_no_pods_are_counted_by_what_is_wrong(tmp_path: Path) -> None:
    """A cordoned node is ready all the same; one that is not ready is so, cordoned or not."""
    nodes = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name},
            "spec": {"unschedulable": cordoned},
            "status": {"conditions": [{"type": "Ready", "status": str(ready)}]},
        }
        for name, cordoned, ready in (("a", False, True), ("b", True, True), ("c", True, False), ("d", False, False))
    ]
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": nodes}))

    assert "4 nodes (1 cordoned, 2 not ready)" in CliRunner().invoke(main, ["top", "--from", str(file)]).output
    listed = CliRunner().invoke(main, ["get", "nodes", "--from", str(file)]).output
    assert [line.split()[:2] for line in listed.splitlines()[2:4]] == [["b", "cordoned"], ["c", "not"]]


def test_gangs_of_one_name_in_two_namespaces_are_two() -> None:
    """A gang is told apart by its namespace where gangs of several are shown."""
    cluster = Cluster("2x4")
    for namespace in ("blue", "green"):
        cluster.gang("train", pods=1, gpus=4, namespace=namespace)
    cluster.step()
    snapshot = cluster.snapshot()

    assert list(summary(Memberships().scene(snapshot.nodes, snapshot.pods))) == ["blue/train", "green/train"]


def test_gangs_of_other_namespaces_are_not_counted(tmp_path: Path) -> None:
    """The line above the picture is about the gangs that are drawn."""
    cluster = Cluster("2x4")
    for namespace in ("blue", "green"):
        cluster.gang("train", pods=1, gpus=4, namespace=namespace)

    assert "1 gang, 0 waiting · 1 pod" in top(cluster, tmp_path, "-n", "blue")


def test_what_other_namespaces_hold_is_not_free(tmp_path: Path) -> None:
    """Nodes and queues are everybody's: GPUs of a gang that is not listed are in use, and its queue holds them."""
    cluster = Cluster("2x4")
    cluster.queue("team", quota=8)
    for namespace in ("blue", "green"):
        cluster.gang("train", pods=1, gpus=4, namespace=namespace, queue="team")
    shown = top(cluster, tmp_path, "-n", "blue")

    assert "8 of 8 GPUs in use · 1 gang" in shown
    assert {"gpu-000 AAAA", "gpu-001 ■■■■"} <= set(re.findall(r"gpu-00. \S+", shown))
    assert re.search(r"team +\S+ +8 +8 ", shown)
    assert "green" not in shown


def test_a_cluster_without_gpus_shows_its_cpu(tmp_path: Path) -> None:
    """Where no node has GPUs a cell is an eighth of a node's CPU."""
    cluster = Cluster("2x0")
    cluster.gang("web", pods=1, cpu="48")
    output = top(cluster, tmp_path)
    assert "node-000 AAAA····" in output
    assert "node-001 ········" in output


def a_busy_cluster() -> Content:
    """Four nodes, a gang that runs in queue team, and thirty that wait."""
    cluster = Cluster("4x8")
    cluster.queue("team", quota=16)
    cluster.gang("runs", pods=2, gpus=8, queue="team")
    cluster.step()
    for number in range(30):
        cluster.gang(f"waits-{number:02d}", pods=4, gpus=8)
    cluster.step()
    snapshot = cluster.snapshot()
    inventory = inventory_of(snapshot)
    return Content(snapshot, gang_lines(snapshot, singles=True), inventory)


def text(view: ScreenView, content: Content, height: int = 12) -> str:
    """Return a screen of 100 columns."""
    lines = [line.plain for line in screen(view, content, 100, height)]
    assert len(lines) == height
    assert max(map(len, lines)) <= 100
    return "\n".join(lines)


def after(view: ScreenView, keys: str | list[str], content: Content) -> ScreenView | None:
    """Return a view after some keys."""
    for key in keys:
        following = pressed(view, key, [row.key for row in listing(view, content).rows], 7)
        if following is None:
            return None
        view = following
    return view


def test_waiting_gangs_come_first_under_the_totals() -> None:
    """However many gangs wait, the screen begins with the totals and with them; the one that runs is last."""
    content = a_busy_cluster()
    shown = text(ScreenView(), content)

    assert "16 of 32 GPUs in use" in shown
    assert "31 gangs, 30 waiting for 960 GPUs" in shown
    assert shown.splitlines()[4].startswith("default/waits-00")
    last = after(ScreenView(), ["end"], content)
    assert last is not None
    assert "default/runs" in text(last, content)


def test_a_queue_holds_what_its_gangs_hold() -> None:
    """What a queue holds is counted by gang: pods need not be labelled with it."""
    assert [(share.name, share.held) for share in a_busy_cluster().queues if share.held] == [("team", 16)]


def test_rows_are_searched_sorted_and_opened() -> None:
    """A search leaves the rows that have the word, s changes the order, enter shows the pods, q ends it."""
    content = a_busy_cluster()
    searched = after(ScreenView(), ["/", *"runs", "enter"], content)
    assert searched is not None
    assert [row.key for row in listing(searched, content).rows] == ["podgang/default/runs"]
    opened = after(searched, ["enter"], content)
    assert opened is not None
    assert "podgang default/runs: running, 2 of 2 pods ready, at least 2 together" in text(opened, content)
    assert "queue team, scheduler spinney-scheduler, 16 of 16 GPUs" in text(opened, content)
    assert "default/runs-" in text(replace(opened, search=""), content)
    sorted_by_name = after(ScreenView(), ["s"], content)
    assert sorted_by_name is not None
    assert listing(sorted_by_name, content).rows[0].key == "podgang/default/runs"
    assert after(ScreenView(), "q", content) is None


def test_only_the_page_of_a_gang_that_waits_says_what_would_help() -> None:
    """It says what it waits for, and how to ask; a gang that runs has no reason to."""
    content = a_busy_cluster()
    waits = text(ScreenView(page="gangs", opened="podgang/default/waits-00"), content)
    assert "waits for: spinney-scheduler has said nothing about it yet" in waits
    assert "'spinney why waits-00 -n default' says what would help" in waits
    runs = text(ScreenView(page="gangs", opened="podgang/default/runs"), content)
    assert "waits for:" not in runs
    assert "spinney why" not in runs
    assert "podgang/default/gone is gone" in text(ScreenView(page="gangs", opened="podgang/default/gone"), content)


def test_a_node_has_a_page() -> None:
    """The page of a node lists its pods with the gangs they are in, and says where it is and what keeps pods off it."""
    content = a_busy_cluster()
    last = content.snapshot.nodes[-1]
    closed = msgspec.structs.replace(last, spec=NodeSpec(taints=(Taint(key="repair", effect="NoSchedule"),)))
    snapshot = content.snapshot.without_objects([last]).with_objects([closed])
    content = Content(snapshot, content.gangs, inventory_of(snapshot))
    used, idle = text(ScreenView(page="nodes", opened="gpu-000"), content), ScreenView(page="nodes", opened="gpu-003")

    assert "node gpu-000: ready, 8 of 8 GPUs in use, 1 pod\n" in used
    assert "taints: none; block block-0, rack rack-0" in used
    assert "default/runs" in used
    assert "taints: repair:NoSchedule" in text(idle, content)
    assert "default/runs" not in text(idle, content)
    assert "gone is gone" in text(ScreenView(page="nodes", opened="gone"), content)


def test_keys_are_told_apart() -> None:
    """Arrows and page keys arrive as sequences, alone or several at once; unknown ones are left out."""
    assert keys_in("\x1b[Aj\x1b[6~\r\x1b[15~q\x1b") == ["up", "j", "pgdn", "enter", "q", "esc"]


@contextmanager
def followed(served: ServedCluster, *options: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Run it on a terminal for the time of the block, which is given the process and our end of the terminal."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", "from spinney.cli import main; main()", "top", *options, "--kubeconfig"]
    process = subprocess.Popen(
        [*command, str(served.kubeconfig)], stdin=theirs, stdout=theirs, stderr=theirs, env=os.environ
    )
    os.close(theirs)
    try:
        yield process, ours
    finally:
        process.kill()
        process.wait(timeout=60)
        os.close(ours)


def until_shown(terminal: int, wanted: bytes) -> None:
    """Read what a terminal is sent until something is there."""
    shown = b""
    while wanted not in shown:
        shown += os.read(terminal, 65536)


def test_on_a_terminal_it_follows_and_takes_keys(served: ServedCluster) -> None:
    """The first page appears, a key shows the racks, and Ctrl-C ends it with the exit status shells expect."""
    with followed(served) as (process, terminal):
        until_shown(terminal, b"4 nodes")
        os.write(terminal, b"4")
        until_shown(terminal, b"rack-1")
        process.send_signal(signal.SIGINT)

        assert process.wait(timeout=60) == 130


def test_on_a_terminal_nodes_are_everybodys_too(served: ServedCluster) -> None:
    """In a namespace without gangs the GPUs that those of another hold are in use."""
    served.call(lambda client: until_running(client, a_training_job("runs", workers=2), 2))
    with followed(served, "-n", "kube-system") as (_, terminal):
        until_shown(terminal, "16 of 32 GPUs in use · 0 gangs".encode())
