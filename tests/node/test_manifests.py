"""The printed manifests on a real node: installed, used, removed by their label."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from spinney.cli import main

from .machine import IMAGE, SYSTEM, TEAM, Machine
from .workloads import an_ordered_set

pytestmark = [pytest.mark.node, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What ``spinney manifests`` prints."""
    answer = CliRunner().invoke(main, ["manifests", "--image", f"{IMAGE['repository']}:{IMAGE['tag']}"])
    assert answer.exit_code == 0, answer.output
    file = tmp_path_factory.mktemp("manifests") / "spinney.yaml"
    file.write_text(answer.output)
    return file


@pytest.fixture(scope="module")
def installed(cluster: Machine, printed: Path) -> Machine:
    """An installation of them."""
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(printed))
    cluster.rolled_out()
    cluster.reviewed()
    return cluster


def test_containers_start_in_order(installed: Machine) -> None:
    """A set with a start-up order runs."""
    installed.apply(an_ordered_set("ordered"))
    installed.wait("podclique/ordered-0-worker", "jsonpath={.status.readyReplicas}=2")


def test_a_second_application_changes_nothing(installed: Machine, printed: Path) -> None:
    """Applied again, nothing is rolled and nothing is refused."""
    pods = {each["metadata"]["uid"] for each in installed.get("pods", "--namespace", SYSTEM)["items"]}
    installed.kubectl("apply", "--server-side", "-f", str(printed))
    installed.rolled_out()
    assert {each["metadata"]["uid"] for each in installed.get("pods", "--namespace", SYSTEM)["items"]} == pods


def test_removal_by_label_takes_no_object_of_users(installed: Machine, printed: Path) -> None:
    """Processes, rights and webhooks go; CRDs, namespaces and sets stay, and sets can still be written."""
    crds = installed.names("customresourcedefinitions")
    installed.kubectl("delete", "-f", str(printed), "--selector", "app.kubernetes.io/part-of=spinney", "--wait")
    for kind in ("validating", "mutating"):
        for name in installed.kubectl("get", f"{kind}webhookconfigurations", "--output", "name").split():
            installed.kubectl("wait", name, "--for=delete", "--timeout=60s")
    assert installed.names("customresourcedefinitions") == crds
    assert installed.names("deployments", "clusterroles").isdisjoint(
        {f"Deployment/{SYSTEM}/grove-operator", "ClusterRole//grove-operator"}
    )
    installed.kubectl("label", "podcliqueset", "ordered", "still=here", "--namespace", TEAM)
    installed.kubectl("apply", "--server-side", "-f", str(printed))
    installed.rolled_out()
    installed.kubectl("delete", "podcliqueset", "ordered", "--namespace", TEAM, "--timeout=120s")
