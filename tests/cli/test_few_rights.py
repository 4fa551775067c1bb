"""Who may read only part of a cluster is told what can be told, what could not be seen, and what to ask for."""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from spinney.api.core import SERVICE_ACCOUNT
from spinney.api.rbac import ROLE, ROLE_BINDING
from spinney.cli import main
from spinney.cli.installing.rights import QUEUED
from spinney.dashboard.rights import FOLLOWED
from spinney.kube.client import Client
from tests.cli.clusters import served_cluster
from tests.cli.workloads import a_training_job, as_yaml, until_refused

SPACE = "team"


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The kubeconfig of somebody who may read pods, gangs and sets of one namespace, where a gang waits."""
    with served_cluster(tmp_path_factory.mktemp("rights"), authorization="RBAC") as cluster:
        token = cluster.call(_a_reader)
        cluster.call(lambda client: until_refused(client, a_training_job("waits", workers=3)))
        written = yaml.safe_load(cluster.kubeconfig.read_text())
        written["users"][0]["user"] = {"token": token}
        written["contexts"][0]["context"]["namespace"] = "default"
        path = cluster.kubeconfig.with_name("reader")
        path.write_text(yaml.safe_dump(written))
        yield path


async def _a_reader(client: Client) -> str:
    """Create a service account with a role for one namespace, and return a token of it."""
    await client.create(SERVICE_ACCOUNT, {"metadata": {"name": "reader", "namespace": "default"}})
    rules = [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]},
        {"apiGroups": ["scheduler.grove.io"], "resources": ["podgangs"], "verbs": ["get", "list"]},
        {"apiGroups": ["grove.io"], "resources": ["podcliquesets"], "verbs": ["get", "list"]},
    ]
    await client.create(ROLE, {"metadata": {"name": "reader", "namespace": "default"}, "rules": rules})
    binding = {
        "metadata": {"name": "reader", "namespace": "default"},
        "roleRef": {"apiGroup": ROLE.group, "kind": "Role", "name": "reader"},
        "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": "default"}],
    }
    await client.create(ROLE_BINDING, binding)
    path = SERVICE_ACCOUNT.path("default", "reader", "token")
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer = await client.raw("POST", path, body=json.dumps(request).encode())
    return str(json.loads(answer.body)["status"]["token"])


def spinney(reader: Path, *arguments: str) -> Result:
    """Run a command as the reader."""
    return CliRunner().invoke(main, [*arguments, "--kubeconfig", str(reader)])


def test_the_answer_has_what_was_recorded_once(reader: Path) -> None:
    """Without nodes nothing is simulated, and what scheduler and gang both say is said once."""
    answer = spinney(reader, "why", "waits")

    assert "nodes may not be listed, so nothing could be simulated" in answer.output
    assert answer.output.count("unschedulable on cluster") == 1


def test_events_that_may_not_be_read_are_named(reader: Path) -> None:
    """They tell of evictions; without them the answer looks as if there had been none."""
    said = spinney(reader, "why", "waits").output.partition("not seen, so the answer may be incomplete:\n")[2]

    assert "events" in said


def test_only_of_a_queue_is_it_said_that_suspended_workloads_were_not_seen(reader: Path) -> None:
    """They wait in queues, so the answer about a gang or a pod lacks nothing."""
    gang, queue = (
        [each["what"] for each in json.loads(spinney(reader, "why", subject, "-o", "json").output)["unseen"]]
        for subject in ("waits", "default-queue")
    )

    assert "jobs.batch" not in gang
    assert "jobs.batch" in queue


def test_the_role_of_the_handbook_has_all_that_is_read() -> None:
    """What commands and the dashboard list, of any scheduler and of Kueue, and what may wait suspended."""
    handbook = (Path(__file__).parents[2] / "docs" / "operate.md").read_text()
    role = yaml.safe_load(handbook.partition("$ cat > advisor.yaml <<'EOT'\n")[2].partition("\nEOT")[0])
    granted = {(group, name) for rule in role["rules"] for group in rule["apiGroups"] for name in rule["resources"]}
    read = {(kind.group, kind.plural) for kind in FOLLOWED}
    read |= {(right.group, name) for rights in QUEUED.values() for right in rights for name in right.resources}

    assert not {each for each in read if each not in granted and (each[0], "*") not in granted}


def test_what_was_not_seen_is_a_few_lines(reader: Path) -> None:
    """However many kinds may not be listed, there is one line for each reason, and where to find a role."""
    said = spinney(reader, "get", "gangs").output.partition("not seen, so the answer may be incomplete:\n")[2]

    assert [line.partition(":")[0].strip() for line in said.splitlines()] == [
        "may not be listed",
        "may not be listed outside namespace default",
        "docs/operate.md has a read-only role that sees all of it",
    ]
    assert "may not be listed outside namespace default: pods, podgangs, podcliquesets" in said


def test_programs_get_the_servers_own_words(reader: Path) -> None:
    """In JSON every kind that was not seen has what the server said."""
    unseen = json.loads(spinney(reader, "why", "waits", "-o", "json").output)["unseen"]

    assert "cannot list resource" in next(each["detail"] for each in unseen if each["what"] == "nodes")


def test_queues_that_may_not_be_listed_are_not_said_to_be_missing(reader: Path) -> None:
    """Not being allowed to see the queues is told apart from there being none."""
    output = spinney(reader, "queues").output

    assert "The Queue objects may not be listed" in output
    assert "has no Queue objects" not in output


@pytest.mark.parametrize("command", [["get", "nodes"], ["simulate"]])
def test_what_needs_nodes_says_so(reader: Path, command: list[str]) -> None:
    """A command that means nothing without nodes fails with the right to ask for."""
    answer = spinney(reader, *command)

    assert answer.exit_code == 1
    assert "ask for get and list on nodes" in answer.output


def test_the_live_picture_ends_with_the_reason(reader: Path) -> None:
    """On a terminal ``top`` does not wait for what it will never be allowed to see."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", "from spinney.cli import main; main()", "top", "--kubeconfig", str(reader)]
    process = subprocess.Popen(command, stdout=theirs, stderr=subprocess.PIPE, env=os.environ, text=True)
    os.close(theirs)
    _, said = process.communicate(timeout=60)
    os.close(ours)

    assert process.returncode == 1
    assert "ask for that right" in said


def test_a_workload_goes_where_the_context_says(reader: Path, tmp_path: Path) -> None:
    """An object without a namespace is simulated in the one that ``-n`` or the context names."""
    cluster = "apiVersion: v1\nkind: Node\nmetadata: {name: n}\nstatus: {capacity: {cpu: 4, nvidia.com/gpu: 8}}\n"
    (tmp_path / "cluster.yaml").write_text(cluster)
    job = a_training_job("fits", workers=1, within=None)
    del job["metadata"]["namespace"]
    (tmp_path / "job.yaml").write_text(as_yaml(job))
    files = [str(tmp_path / "cluster.yaml"), "-f", str(tmp_path / "job.yaml")]

    assert "team/fits-0" in spinney(reader, "simulate", *files, "-n", SPACE).output
    assert "default/fits-0" in spinney(reader, "simulate", *files).output


def test_a_recording_that_could_not_be_replayed_is_not_begun(reader: Path, tmp_path: Path) -> None:
    """Without nodes every snapshot would be left out by ``replay``, which a week later is too late to hear."""
    answer = spinney(reader, "record", str(tmp_path), "--every", "10s", "--for", "1s")

    assert answer.exit_code == 1
    assert "nodes may not be listed, and a recording without them cannot be replayed" in answer.stderr
    assert list(tmp_path.iterdir()) == []
