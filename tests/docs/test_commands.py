"""Every command in the documentation runs, in order, and prints what the page says.

The commands of a page are one session, in a directory of its own that has the examples. Pages about a cluster have one
of eight nodes, on which a set runs and another cannot be placed; the quick start begins with an empty one. ``spinney``
runs in process, everything else in a shell. kubectl is there in the real suite only, where whole pages run again.
"""

import doctest
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
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
from tests.clients.kubectl import kubectl_binary
from tests.docs.blocks import Step, steps

ROOT = Path(__file__).parents[2]
PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    *(str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs").rglob("*.md")) if "reference" not in path.parts),
    *(str(path.relative_to(ROOT)) for path in sorted((ROOT / "examples").rglob("*.md"))),
    *(str(path.relative_to(ROOT)) for path in sorted((ROOT / "deploy").rglob("*.md"))),
]
ELSEWHERE = {
    r"make [a-z0-9 -]+( [A-Z]+=[0-9]+)*": "targets of CI, or of these tests",
    r"bash \.ci/run": "CI itself",
    r"\.venv/bin/pytest .*": "parts of this suite",
    r"(\.venv/bin/)?spinney up\b.*": "runs for the whole page; tests/cli/test_up.py starts it",
    r"python -m benchmarks\..*": "benchmarks, which 'make bench' runs",
    r"pip install .*": "needs a package index; tests/backends/test_third_party_install.py installs it",
    r"spinney (operator|scheduler|coscheduler|grouper) (?!.*--check).*": "runs until stopped; its own tests start it",
    r"kubectl --token .*": "needs a cluster with --authorization RBAC; the tests of access control refuse it",
    r"helm .*": "needs Helm; tests/deploy renders and installs the chart",
    r"(docker|podman) .*": "needs containers",
}
"""What no page's session runs, and why."""
OWN_TESTS = {
    "examples/third_party_backend/README.md": "tests/backends/test_third_party_install.py",
    "docs/backends.md": "tests/backends/test_third_party_install.py",
    "docs/migration.md": "tests/backends/test_migration.py",
}
"""Pages whose sessions need a package of somebody else, or an installation, and the test that plays them."""
_PLAIN = re.compile(r"(NO_COLOR=1 )?(\.venv/bin/)?(kubectl-)?spinney [^|<>;&`$]*")


def _commands(page: str) -> list[Step]:
    return list(steps(ROOT / page, page))


def _elsewhere(step: Step) -> bool:
    return any(re.fullmatch(pattern, step.words) for pattern in ELSEWHERE)


def _needs_kubectl(step: Step) -> bool:
    return bool(re.search(r"\bkubectl (?!-)", step.words))


PLAYED = [
    page
    for page in PAGES
    if page not in OWN_TESTS and any(not _elsewhere(step) and not _needs_kubectl(step) for step in _commands(page))
]
WITH_KUBECTL = [
    page
    for page in PAGES
    if page not in OWN_TESTS and any(_needs_kubectl(step) and not _elsewhere(step) for step in _commands(page))
]


class Session:
    """A reader who types a page's commands. Mutable: what was exported stays."""

    def __init__(self, served: ServedCluster, home: Path, path: str) -> None:
        self._served = served
        (home / ".spinney").mkdir(exist_ok=True)
        shutil.copy(served.kubeconfig, home / ".spinney" / "kubeconfig")
        self._environment = os.environ | {"PATH": path, "HOME": str(home), "KUBECONFIG": str(served.kubeconfig)}

    def run(self, step: Step) -> tuple[int, str]:
        """Run one command; return its exit status and everything it printed."""
        words = step.words
        if words.startswith("export "):
            name, _, value = words.removeprefix("export ").partition("=")
            self._environment[name] = value.replace("~", self._environment["HOME"])
            return 0, ""
        if _PLAIN.fullmatch(words):
            environment = {key: self._environment[key] for key in ("KUBECONFIG", "HOME")}
            arguments = shlex.split(words.partition("spinney ")[2])
            answer = CliRunner().invoke(main, arguments, env=environment)
            code, output = answer.exit_code, answer.output
        else:
            done = subprocess.run(
                ["bash", "-c", words],
                env=self._environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            code, output = done.returncode, done.stdout
        if re.search(r"(spinney|kubectl) apply", words):
            self._served.call(until_created)
            self._served.call(until_decided)
        return code, output


async def until_created(client: Client) -> None:
    """Return when every PodCliqueSet has its gang."""
    wanted = {f"{each['metadata']['name']}-0" for each in (await client.list(POD_CLIQUE_SET)).items}
    if not wanted:
        return
    async for event in client.watch(POD_GANG, type=PodGang):
        wanted.discard(event.object.metadata.name)
        if not wanted:
            return


async def until_decided(client: Client) -> None:
    """Return when the scheduler has decided about every gang there is."""
    undecided = {gang.metadata.name for gang in (await client.list(POD_GANG, type=PodGang)).items}
    if not undecided:
        return
    async for event in client.watch(POD_GANG, type=PodGang):
        condition = find_condition(event.object.status.conditions, SCHEDULED)
        ready = find_condition(event.object.status.conditions, "Ready")
        refused = condition is not None and "unschedulable" in condition.message
        if refused or (ready is not None and ready.status == "True"):
            undecided.discard(event.object.metadata.name)
        if not undecided and event.object.status.conditions:
            return


@pytest.fixture
def eight(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedCluster]:
    """The cluster that ``spinney up --nodes 8x8`` runs."""
    with served_cluster(tmp_path_factory.mktemp("docs"), nodes=8, gpus=8, rack=4, block=16) as cluster:
        yield cluster


def _prepare(page: str, served: ServedCluster) -> None:
    """Have the cluster as a page takes it to be: one set runs, one cannot be placed."""
    if page == "docs/quickstart.md":
        return
    hello = served.spinney("apply", "-f", str(ROOT / "examples" / "first-workload.yaml"))
    assert hello.exit_code == 0, hello.output
    train = a_training_job("train", workers=6)
    del train["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["containers"][0]["resources"]["requests"]
    served.call(lambda client: until_refused(client, train))
    served.call(until_decided)


def _play(
    page: str, served: ServedCluster, directory: Path, monkeypatch: pytest.MonkeyPatch, kubectl: Path | None
) -> None:
    for name in ("examples", "deploy"):
        shutil.copytree(ROOT / name, directory / name)
    monkeypatch.chdir(directory)
    _prepare(page, served)
    programs = [str(Path(sys.executable).parent), os.environ["PATH"]]
    if kubectl is not None:
        programs.insert(0, str(kubectl.parent))
    session = Session(served, directory, ":".join(programs))
    checker = doctest.OutputChecker()
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    for step in _commands(page):
        if _elsewhere(step) or (kubectl is None and _needs_kubectl(step)):
            continue
        code, output = session.run(step)
        assert code == step.code, f"{page}: {step.command}\n{output}"
        if step.output:
            assert checker.check_output(step.output + "\n", output, flags), (
                f"{page}: {step.command}\n{output}\n!=\n{step.output}"
            )


@pytest.mark.parametrize("page", PLAYED)
def test_a_page_does_what_it_says(
    page: str, eight: ServedCluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Every command of a page that needs nothing but Spinney works, and prints what is written below it."""
    _play(page, eight, tmp_path, monkeypatch, None)


@pytest.mark.real
@pytest.mark.parametrize("page", WITH_KUBECTL)
def test_a_page_does_what_it_says_with_kubectl(
    page: str, eight: ServedCluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Pages that also use kubectl work with the real one."""
    _play(page, eight, tmp_path, monkeypatch, kubectl_binary())


def test_every_page_is_accounted_for() -> None:
    """No command is left out without a reason, and no reason is left over."""
    every = [step for page in PAGES for step in _commands(page)]
    unused = [pattern for pattern in ELSEWHERE if not any(re.fullmatch(pattern, step.words) for step in every)]

    assert not unused
    assert set(OWN_TESTS) <= set(PAGES)
    assert not [test for test in OWN_TESTS.values() if not (ROOT / test).exists()]
