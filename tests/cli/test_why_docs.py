"""Every command in the advisor's documentation runs, in order, and prints what the page says.

A page's ``console`` blocks are one session on a cluster of eight nodes. ``...`` stands for anything. A command that is
meant to fail says so in a comment. ``spinney`` runs in process; everything else in a shell, as a reader would.
"""

import doctest
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from spinney.api.conditions import find_condition
from spinney.api.grove import POD_CLIQUE_SET
from spinney.api.podgang import POD_GANG, SCHEDULED, PodGang
from spinney.cli import main
from spinney.kube.client import Client
from tests.cli.clusters import ServedCluster, served_cluster
from tests.cli.workloads import a_training_job, until_refused

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
FAILS = re.compile(r"\s+# exits with (\d+)$")


@dataclass(frozen=True)
class Step:
    """A command of a page, and what it prints according to the page."""

    command: str
    output: str


def steps(page: Path) -> Iterator[Step]:
    """Yield the commands of a page; a here-document belongs to its command."""
    for block in BLOCK.findall(page.read_text()):
        lines = block.splitlines()
        while lines:
            command = lines.pop(0).removeprefix("$ ")
            if command.endswith("<<'EOT'"):
                end = lines.index("EOT") + 1
                command, lines = "\n".join([command, *lines[:end]]), lines[end:]
            output = []
            while lines and not lines[0].startswith("$ "):
                output.append(lines.pop(0))
            yield Step(command, "\n".join(output))


async def until_decided(client: Client) -> None:
    """Return when the scheduler has decided about every gang there is."""
    undecided = {gang.metadata.name for gang in (await client.list(POD_GANG, type=PodGang)).items}
    async for event in client.watch(POD_GANG, type=PodGang):
        condition = find_condition(event.object.status.conditions, SCHEDULED)
        ready = find_condition(event.object.status.conditions, "Ready")
        refused = condition is not None and "unschedulable" in condition.message
        if refused or (ready is not None and ready.status == "True"):
            undecided.discard(event.object.metadata.name)
        if not undecided and event.object.status.conditions:
            return


def run(step: Step, served: ServedCluster) -> tuple[int, str]:
    """Run one command; return its exit status and everything it printed."""
    words = FAILS.sub("", step.command)
    if re.match(r"(NO_COLOR=1 )?(kubectl-)?spinney ", words):
        arguments = shlex.split(words.partition("spinney ")[2])
        if arguments[0] == "up":
            return 0, ""  # it runs already, for all pages
        answer = CliRunner().invoke(main, arguments, env={"KUBECONFIG": str(served.kubeconfig)})
        if arguments[0] == "apply":
            served.call(until_created)
            served.call(until_decided)
        return answer.exit_code, answer.output
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", words], env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


async def until_created(client: Client) -> None:
    """Return when every PodCliqueSet has its gang."""
    wanted = {f"{each['metadata']['name']}-0" for each in (await client.list(POD_CLIQUE_SET)).items}
    async for event in client.watch(POD_GANG, type=PodGang):
        wanted.discard(event.object.metadata.name)
        if not wanted:
            return


@pytest.fixture(scope="module")
def eight(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedCluster]:
    """The cluster that ``spinney up --nodes 8x8`` runs."""
    with served_cluster(tmp_path_factory.mktemp("docs"), nodes=8, gpus=8, rack=4, block=16) as cluster:
        yield cluster


def play(page: str, served: ServedCluster, monkeypatch: pytest.MonkeyPatch, directory: Path) -> None:
    """Run a page's commands in ``directory`` and compare what they print."""
    shutil.copytree(ROOT / "examples", directory / "examples", ignore=shutil.ignore_patterns("third_party*"))
    monkeypatch.chdir(directory)
    checker = doctest.OutputChecker()
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    found = list(steps(ROOT / "docs" / page))
    assert found
    for step in found:
        code, output = run(step, served)
        fails = FAILS.search(step.command)
        assert code == (int(fails[1]) if fails else 0), f"{step.command}\n{output}"
        if step.output:
            assert checker.check_output(step.output + "\n", output, flags), (
                f"{step.command}\n{output}\n!=\n{step.output}"
            )


def test_the_quick_start(eight: ServedCluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The quick start works as it is written, from an empty cluster."""
    play("quickstart.md", eight, monkeypatch, tmp_path)


@pytest.mark.parametrize("page", ["why.md", "simulate.md", "cli.md"])
def test_the_other_pages(page: str, eight: ServedCluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The other pages work on a cluster where one set runs and one cannot be placed."""
    hello = CliRunner().invoke(
        main, ["apply", "-f", str(ROOT / "examples" / "first-workload.yaml"), "--kubeconfig", str(eight.kubeconfig)]
    )
    assert hello.exit_code == 0, hello.output
    train = a_training_job("train", workers=6)
    del train["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["containers"][0]["resources"]["requests"]
    eight.call(lambda client: until_refused(client, train))
    play(page, eight, monkeypatch, tmp_path)
