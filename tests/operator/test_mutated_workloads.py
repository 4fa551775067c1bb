"""Published workloads with one thing changed: whatever is tried gets a right and clear answer, everywhere the same.

A sample is drawn by a seed; ``SPINNEY_MUTATIONS=20000 pytest tests/operator/test_mutated_workloads.py`` tries more, up
to all there are (``-m real`` on a real API server), and ``SPINNEY_MUTATIONS_FROM=7`` draws by another seed.
"""

import asyncio
import json
import os
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from structlog.testing import capture_logs
from structlog.typing import EventDict

from spinney.api.compute_domains import compute_domain_crd
from spinney.api.documents import steps
from spinney.api.grove import POD_CLIQUE_SET
from spinney.api.struct import JSON
from spinney.api.topology_binding import CLUSTER_TOPOLOGY_BINDING
from spinney.backends.builtin import every_backend
from spinney.cli import main
from spinney.kube.client import Client
from spinney.kube.crds import install_crds
from spinney.kube.errors import ApiError
from spinney.operator.configuration import check
from spinney.operator.operator import Operator, Settings
from spinney.sim.snapshots.expanding import UNKNOWN_TOPOLOGY
from tests.conftest import Cluster
from tests.e2e.conftest import cluster, cluster_name, reviews
from tests.e2e.floor import a_binding
from tests.e2e.reviewing import Reviews
from tests.operator.mutations import Variant, mistakes, spelled, variations
from tests.workloads.expectations import EXPECTED, NOT_WORKLOADS
from tests.workloads.files import files, pod_clique_set
from tests.workloads.test_invalid_variants import called, until_asked
from tests.workloads.test_published_workloads import CONFIGURATION, adapted

__all__ = ["cluster", "cluster_name", "reviews"]

SEED = int(os.environ.get("SPINNEY_MUTATIONS_FROM", "1"))
TRIED = int(os.environ.get("SPINNEY_MUTATIONS", "24"))
TOPOLOGIES = ("grove-topology", "tas20-topology")
ON_BOTH = pytest.mark.parametrize(
    "cluster_name", ["embedded", pytest.param("real", marks=pytest.mark.real)], indirect=True
)
SAID_ELSEWHERE = ("apiVersion", "kind", "metadata.namespace")
"""What decides where a request goes, so that a server is asked something else than the command."""


@dataclass(frozen=True)
class Trial:
    """A variant of a published workload."""

    workload: str
    variant: Variant

    def __str__(self) -> str:
        return f"{self.workload}: {self.variant.name}"


@dataclass(frozen=True)
class Refusal:
    """Why an API server does not take something."""

    status: int
    text: str
    fields: tuple[str, ...]


@cache
def workloads() -> dict[str, JSON]:
    """Return the published workloads, small and for the default scheduler where they name one that is not here."""
    found = {}
    for name, path in files().items():
        if name not in NOT_WORKLOADS:
            found[name], _ = adapted(pod_clique_set(path), EXPECTED[name], "test")
    return found


def drawn(every: list[Trial], count: int) -> list[Trial]:
    """Return so many trials, drawn by the seed, in their order."""
    if count >= len(every):
        return every
    chosen = set(random.Random(SEED).sample(range(len(every)), count))
    return [trial for number, trial in enumerate(every) if number in chosen]


@cache
def wrong() -> list[Trial]:
    """Return workloads with a mistake, most of them invalid."""
    every = [
        Trial(name, variant)
        for name, manifest in workloads().items()
        for variant in mistakes(manifest)
        if not variant.name.startswith(SAID_ELSEWHERE)
    ]
    return drawn(every, TRIED)


@cache
def right() -> list[Trial]:
    """Return workloads in other valid forms."""
    every = [Trial(name, variant) for name, manifest in workloads().items() for variant in variations(manifest)]
    return drawn(every, TRIED // 4)


@pytest.fixture(scope="module")
def offline(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[JSON]]:
    """Return what ``spinney validate`` finds in each trial."""
    directory = tmp_path_factory.mktemp("workloads")
    trials = [*wrong(), *right()]
    for number, trial in enumerate(trials):
        (directory / f"{number:06}.json").write_text(json.dumps(trial.variant.manifest), encoding="utf-8")
    bindings, config = directory / "topologies", directory / "config"
    bindings.write_text(yaml.safe_dump_all([_a_topology(name) for name in TOPOLOGIES]), encoding="utf-8")
    config.write_text(CONFIGURATION, encoding="utf-8")
    arguments = ["validate", "-f", str(directory), "-f", str(bindings), "--config", str(config), "-o", "json"]
    answer = CliRunner().invoke(main, arguments)
    assert answer.exception is None or isinstance(answer.exception, SystemExit), answer.exception
    verdicts = json.loads(answer.output)
    return {str(trial): verdict["problems"] for trial, verdict in zip(trials, verdicts, strict=False)}


def _a_topology(name: str) -> JSON:
    kind = CLUSTER_TOPOLOGY_BINDING
    return {"apiVersion": kind.api_version, "kind": kind.kind, **a_binding(name)}


@asynccontextmanager
async def guarded(cluster: Cluster, reviews: Reviews) -> AsyncIterator[Client]:
    """Run an operator whose admission the cluster asks; a real one does so over TLS."""
    client = cluster.client
    await install_crds(client)
    await install_crds(client, [compute_domain_crd()])
    operator = Operator(cluster.connect("spinney-operator"), Settings.of(check(CONFIGURATION, every_backend())))
    running = asyncio.create_task(operator.run())
    async with cluster.server.running() if cluster.server is not None else called(client, operator.admission):
        await operator.manager.wait_until_ready()
        if cluster.embedded:
            await reviews.connect(operator.admission, client)
        for name in TOPOLOGIES:
            await client.create(CLUSTER_TOPOLOGY_BINDING, a_binding(name))
        await until_asked(client, cluster.namespace)
        await _until_known(client, cluster.namespace)
        try:
            yield client
        finally:
            for name in TOPOLOGIES:
                await client.delete(CLUSTER_TOPOLOGY_BINDING, name)
            operator.stop()
            await running


async def _until_known(client: Client, namespace: str) -> None:
    """Wait until the operator knows the topologies."""
    async with asyncio.timeout(60):
        while await refusal(client, "POST", namespace, workloads()["tas-hierarchy"]) is not None:  # noqa: ASYNC110 - it does not say
            await asyncio.sleep(0.1)


async def refusal(client: Client, method: str, namespace: str, manifest: JSON) -> Refusal | None:
    """Have a manifest created or changed as ``kubectl`` does, strictly, and nothing stored; ``None`` if it is taken."""
    path = POD_CLIQUE_SET.path(namespace, manifest["metadata"]["name"] if method == "PUT" else None)
    placed = manifest
    if isinstance(manifest.get("metadata"), dict) and "namespace" in manifest["metadata"]:
        placed = {**manifest, "metadata": {**manifest["metadata"], "namespace": namespace}}
    query = {"fieldValidation": "Strict", "dryRun": "All"}
    try:
        await client.raw(method, path, query=query, body=json.dumps(placed).encode())
    except ApiError as error:
        return Refusal(error.status, str(error), tuple(cause.field for cause in error.causes))
    return None


def failures(logs: list[EventDict]) -> list[EventDict]:
    """Return what was logged as an error."""
    return [entry for entry in logs if entry["log_level"] in {"error", "critical"}]


def disagreement(trial: Trial, found: Refusal | None, problems: list[JSON], warnings: list[str]) -> str | None:
    """Return how the answers of a server and of the command to one manifest differ, if they do."""
    if found is None:
        strangers = [problem for problem in problems if "unknown key" not in problem["message"]]
        if strangers:
            return f"accepted, and the command says {strangers}"
        # In what is Kubernetes' own a newer release may have a field: admission warns of it.
        unwarned = [each["path"] for each in problems if not any(w.startswith(each["path"]) for w in warnings)]
        return f"accepted without a warning about {unwarned}" if unwarned else None
    if UNKNOWN_TOPOLOGY in found.text:
        return None  # only a cluster knows its topologies
    if found.status not in {400, 422}:
        return f"refused with {found.status}: {found.text}"
    if not problems:
        return f"refused, and the command finds nothing: {found.text}"
    if "ObjectMeta" in found.text and problems[0]["path"].startswith("metadata"):
        return None  # Kubernetes decodes metadata into a Go struct, and speaks of that
    if not any(_around(problem["path"]) in found.text for problem in problems):
        return f"refused elsewhere than {[problem['path'] for problem in problems]}: {found.text}"
    return None


def _around(path: str) -> str:
    """Return the path of what a field is in: a server decodes labels, and items of a list, as one."""
    return path.rpartition("[")[0] if path.endswith("]") else path.rpartition(".")[0] or path


@ON_BOTH
async def test_command_and_cluster_agree(cluster: Cluster, reviews: Reviews, offline: dict[str, list[JSON]]) -> None:
    """Each variant is taken by both or refused by both, at the same field, and nothing fails."""
    wrongly = {}
    async with guarded(cluster, reviews):
        for trial in [*wrong(), *right()]:
            client = cluster.connect()  # each its own: a client tells a warning once
            with capture_logs() as logs:
                found = await refusal(client, "POST", cluster.namespace, trial.variant.manifest)
            warnings = [entry["warning"] for entry in logs if "warning" in entry]
            difference = disagreement(trial, found, offline[str(trial)], warnings)
            if difference or failures(logs):
                wrongly[str(trial)] = (difference, failures(logs))
    assert wrongly == {}


def test_every_refusal_says_where_and_what(offline: dict[str, list[JSON]]) -> None:
    """A problem has the path of a field that is there, or whose surroundings are, and words that go on after it."""
    vague = []
    for trial in wrong():
        for problem in offline[str(trial)]:
            both = (trial.variant.manifest, workloads()[trial.workload])
            below = problem["path"].startswith(spelled(trial.variant.path))
            known = below or any(_has(manifest, _around(problem["path"])) for manifest in both)
            if not known or len(problem["message"].split()) < 3:
                vague.append((str(trial), problem))
    assert vague == []


def _has(manifest: JSON, path: str) -> bool:
    found: Any = manifest
    for step in steps(path):
        try:
            found = found[step]
        except (LookupError, TypeError):
            return False
    return True


def test_valid_forms_are_valid(offline: dict[str, list[JSON]]) -> None:
    """Workloads made bigger, smaller or odder in ways that are allowed are found valid."""
    assert {str(trial): offline[str(trial)] for trial in right() if offline[str(trial)]} == {}
