"""``spinney apply`` and ``delete`` write and remove what manifests name, and say exactly what was refused."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from click import ClickException
from click.testing import CliRunner

from spinney.api.apiextensions import CUSTOM_RESOURCE_DEFINITION
from spinney.api.core import CONFIG_MAP
from spinney.cli import main
from spinney.cli.clusters.coming_up import on_one_line, until_ready
from spinney.cli.clusters.connecting import Connection
from spinney.kube.client import Client
from spinney.kube.keys import Key
from spinney.runtime import Runtime
from spinney.runtime.tasks import together
from spinney.sim.embedded.stack import EmbeddedCluster
from spinney.workloads.objects import JOB
from tests.cli.clusters import ServedCluster
from tests.cli.workloads import a_training_job, as_yaml, until_refused
from tests.virtual_time import opening


def test_applying_twice_changes_nothing(served: ServedCluster, tmp_path: Path) -> None:
    """The first apply creates, the second says that nothing changed, a change is configured, delete removes."""
    file = tmp_path / "set.yaml"
    manifest = a_training_job("applied", workers=1)
    file.write_text(as_yaml(manifest))

    assert "PodCliqueSet applied created" in served.spinney("apply", "-f", str(file)).output
    assert "PodCliqueSet applied unchanged" in served.spinney("apply", "-f", str(file)).output
    manifest["metadata"]["labels"] = {"team": "a"}
    file.write_text(as_yaml(manifest))
    assert "PodCliqueSet applied configured" in served.spinney("apply", "-f", str(file)).output
    assert "PodCliqueSet applied deleted" in served.spinney("delete", "-f", str(file)).output


def test_manifests_come_from_standard_input(served: ServedCluster) -> None:
    """A dash reads standard input; a dry run writes nothing."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "piped"}}
    answer = served.spinney("apply", "-f", "-", "--dry-run", input=as_yaml(namespace))

    assert answer.output == "Namespace piped created (dry run)\n"
    answer = served.spinney("delete", "-f", "-", input=as_yaml(namespace))
    assert answer.exit_code == 1
    assert "Namespace piped was not there" in answer.output


def test_a_directory_is_applied_file_by_file(served: ServedCluster, tmp_path: Path) -> None:
    """Every manifest of a directory is applied in order of file names; -n gives the namespace."""
    for name in ("b", "a"):
        config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
        (tmp_path / f"{name}.yaml").write_text(as_yaml(config))
    answer = served.spinney("apply", "-f", str(tmp_path), "-n", "default")

    assert answer.output.splitlines() == ["ConfigMap a created", "ConfigMap b created"]
    assert served.spinney("delete", "-f", str(tmp_path)).exit_code == 0


def test_crds_that_exist_are_left_as_they_are(served: ServedCluster) -> None:
    """``crds --create`` makes what is missing and never changes a CRD that somebody else installed."""
    name = "queues.scheduling.volcano.sh"

    async def replaced(client: Client) -> int:
        crd = await client.get(CUSTOM_RESOURCE_DEFINITION, name)
        crd["metadata"]["labels"] = {"installed-by": "volcano"}
        return int((await client.replace(CUSTOM_RESOURCE_DEFINITION, crd))["metadata"]["resourceVersion"])

    async def version(client: Client) -> int:
        return int((await client.get(CUSTOM_RESOURCE_DEFINITION, name))["metadata"]["resourceVersion"])

    before = served.call(replaced)
    answer = served.spinney("crds", "--of", "volcano", "--create")

    assert f"CustomResourceDefinition {name} exists and is left as it is" in answer.output
    assert served.call(version) == before


def test_an_unknown_kind_says_what_is_served(served: ServedCluster, tmp_path: Path) -> None:
    """A typo in a kind is an error with the place in the file and the kinds there are."""
    file = tmp_path / "typo.yaml"
    file.write_text("\n# a comment\napiVersion: grove.io/v1alpha1\nkind: PodCliqSet\nmetadata: {name: x}\n")
    answer = served.spinney("apply", "-f", str(file))

    assert answer.exit_code == 1
    assert f"{file}:3: PodCliqSet x" in answer.output
    assert "PodCliqueSet" in answer.output


def test_a_refused_object_names_the_fields(served: ServedCluster, tmp_path: Path) -> None:
    """What the server refuses is shown field by field."""
    file = tmp_path / "bad.yaml"
    file.write_text(as_yaml({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": []}}))
    answer = served.spinney("apply", "-f", str(file))

    assert answer.exit_code == 1
    assert "spec.containers" in answer.output


def test_what_comes_after_a_refused_object_is_applied(served: ServedCluster, tmp_path: Path) -> None:
    """One object's failure stays its own, as with kubectl: the others are written, and each refusal is told."""
    bad = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": []}}
    unknown = {"apiVersion": "v1", "kind": "Pot", "metadata": {"name": "p"}}
    good = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "after"}}
    file = tmp_path / "list.yaml"
    file.write_text(as_yaml(bad, unknown, good))
    answer = served.spinney("apply", "--wait", "-f", str(file))

    assert answer.exit_code == 1
    assert "ConfigMap after created" in answer.output
    assert "spec.containers" in answer.output
    assert "does not serve v1 Pot" in answer.output
    assert "everything is ready" not in answer.output


def test_unknown_fields_have_their_line_and_the_nearest_word(served: ServedCluster, tmp_path: Path) -> None:
    """What does not fit the kind is told as validate tells it, a line for each fault."""
    file = tmp_path / "typo.yaml"
    file.write_text(as_yaml(a_training_job("typo", workers=1)).replace("replicas: 1", "replica: 1", 1))
    answer = served.spinney("apply", "-f", str(file))

    line = next(number for number, text in enumerate(file.read_text().splitlines(), 1) if "replica: 1" in text)
    assert answer.exit_code == 1
    assert f"{file}:{line}: " in answer.output
    assert "replica: unknown key; did you mean 'replicas'?" in answer.output


def test_a_conflict_says_how_to_take_over(served: ServedCluster) -> None:
    """A field that somebody else manages is not overwritten unless that is asked for."""
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs"}, "data": {"key": "a"}}
    served.call(lambda client: client.apply(CONFIG_MAP, config, "default", field_manager="somebody"))
    ours = as_yaml(config | {"data": {"key": "b"}})
    answer = served.spinney("apply", "-f", "-", input=ours)

    assert answer.exit_code == 1
    assert "somebody" in answer.output
    assert "--force-conflicts" in answer.output
    assert "configured" in served.spinney("apply", "-f", "-", "--force-conflicts", input=ours).output


def test_the_namespace_of_the_file_wins_or_is_questioned(served: ServedCluster) -> None:
    """A file that names another namespace than -n is refused instead of being moved."""
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "default"}}
    answer = served.spinney("apply", "-f", "-", "-n", "kube-system", input=as_yaml(config))

    assert answer.exit_code == 1
    assert "is in namespace default, and -n says kube-system" in answer.output


def test_delete_takes_an_object_by_its_name_and_nothing_else(served: ServedCluster) -> None:
    """A manifest without a name, or of another namespace than -n, deletes nothing: not what stands beside it either."""
    kept = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept", "namespace": "default"}}
    assert served.spinney("apply", "-f", "-", input=as_yaml(kept)).exit_code == 0
    nameless = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "made-"}}
    answer = served.spinney("delete", "-f", "-", input=f"{as_yaml(nameless)}---\n{as_yaml(kept)}")
    assert answer.exit_code == 1
    assert "metadata.name is missing; an object is deleted by its name" in answer.output
    elsewhere = {**kept, "metadata": {"name": "other", "namespace": "kube-system"}}
    answer = served.spinney("delete", "-n", "default", "-f", "-", input=f"{as_yaml(elsewhere)}---\n{as_yaml(kept)}")
    assert answer.exit_code == 1
    assert "is in namespace kube-system, and -n says default" in answer.output
    assert served.call(lambda client: client.find(CONFIG_MAP, "kept", "default")) is not None


def test_a_missing_file_is_named() -> None:
    """A file that does not exist is a usage error that names it."""
    answer = CliRunner().invoke(main, ["apply", "-f", "/no/such/file.yaml"])
    assert answer.exit_code == 2
    assert "/no/such/file.yaml" in answer.output


def test_waiting_ends_when_every_gang_is_ready(served: ServedCluster, tmp_path: Path) -> None:
    """With --wait the command ends when the pods are ready, and not before."""
    file = tmp_path / "set.yaml"
    file.write_text(as_yaml(a_training_job("awaited", workers=2)))
    answer = served.spinney("apply", "-f", str(file), "--wait")
    listed = served.spinney("get", "gangs", "awaited-0").output
    served.spinney("delete", "-f", str(file))

    assert (answer.exit_code, answer.output.splitlines()[-1]) == (0, "everything is ready")
    assert "2/2" in listed


def test_waiting_says_what_for(served: ServedCluster, tmp_path: Path) -> None:
    """When the time is over the error names the gang, how far it has come, what it waits for, and whom to ask."""
    never = a_training_job("never", workers=3)
    file = tmp_path / "set.yaml"
    file.write_text(as_yaml(never))
    served.call(lambda client: until_refused(client, never))
    answer = served.spinney("apply", "-f", str(file), "--wait", "--timeout", "1s", "--force-conflicts")
    served.spinney("delete", "-f", str(file))

    assert answer.exit_code == 1, answer.output
    assert "never-0 pending, 0 of 3 pods ready: " in answer.output
    assert "'spinney why never-0' says more" in answer.output


def test_while_waiting_a_few_gangs_are_named_and_the_others_counted() -> None:
    """What is being waited for stays one line, however many gangs there are."""
    assert on_one_line(["a pending", "b pending"]) == "a pending; b pending"
    assert on_one_line([f"{name} pending" for name in "abcde"]) == "a pending; b pending; c pending; and 2 more"


@asynccontextmanager
async def a_job_alone() -> AsyncIterator[Connection]:
    """Serve a Job in a cluster where nothing changes but by the test: no pod comes, and nobody writes its status."""
    cluster = EmbeddedCluster(Runtime.virtual())
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "pause"}]}}
    async with cluster.server.running():
        await cluster.client.create(JOB, {"metadata": {"name": "train"}, "spec": {"template": template}}, "default")
        yield Connection(cluster.client, "test", "default")


async def waited_for_the_job(connection: Connection, *, ready_after: float, timeout: timedelta) -> float:
    """Wait for the Job, whose status says that it is ready after a while; return how many seconds that took."""
    client = connection.client
    began = client.runtime.clock.monotonic()

    async def gets_ready() -> None:
        await client.runtime.clock.sleep(ready_after)
        await client.patch(JOB, "train", {"status": {"ready": 1}}, "default", subresource="status")

    await together(until_ready(connection, [(JOB, Key("default", "train"))], timeout=timeout), gets_ready())
    return client.runtime.clock.monotonic() - began


@opening(a_job_alone)
async def test_waiting_ends_soon_after_a_job_is_ready_although_no_pod_changed(connection: Connection) -> None:
    """The status of a Job comes after that of its pods; it is seen within seconds, and not when the time is over."""
    assert 60 <= await waited_for_the_job(connection, ready_after=60, timeout=timedelta(minutes=5)) < 63


@opening(a_job_alone)
async def test_what_is_ready_when_the_time_is_over_is_no_error(connection: Connection) -> None:
    """A Job that got ready since the last look is seen before the command says that it is not ready."""
    await waited_for_the_job(connection, ready_after=9.99, timeout=timedelta(seconds=10))


@opening(a_job_alone)
async def test_a_job_that_is_not_ready_in_time_is_named(connection: Connection) -> None:
    """The look when the time is over does not hide what is still missing."""
    with pytest.raises(ClickException, match="Job train: 0 of 1 pod ready\n'spinney why job/train' says more"):
        await until_ready(connection, [(JOB, Key("default", "train"))], timeout=timedelta(seconds=10))
