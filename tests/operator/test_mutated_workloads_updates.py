"""Published workloads changed in one place once they exist: what is fixed is refused at its path, all else goes."""

import copy
import re
from collections.abc import Iterator
from typing import Any, Final

import pytest
from structlog.testing import capture_logs

from spinney.api.core import Pod
from spinney.api.grove import POD_CLIQUE_SET, PodCliqueSet
from spinney.api.schema.defaults import default_pod_clique_set
from spinney.api.schema.structural import structural_schema
from spinney.api.struct import JSON, convert, to_json
from spinney.kube.client import Client
from spinney.server.crd.structure import fill_defaults
from tests.conftest import Cluster
from tests.e2e.conftest import cluster, cluster_name, reviews
from tests.e2e.harness import Stage
from tests.e2e.reviewing import Reviews
from tests.operator.mutations import Path, spelled
from tests.operator.test_mutated_workloads import (
    ON_BOTH,
    TRIED,
    Refusal,
    Trial,
    drawn,
    failures,
    guarded,
    offline,
    refusal,
    right,
    workloads,
    wrong,
)
from tests.workloads.test_published_workloads import a_mixed_stage, bring_claim_templates

__all__ = ["cluster", "cluster_name", "offline", "reviews"]

CONFLICT: Final = 409
BROUGHT_UP: Final = max(1, TRIED // 24)
CLIQUE, GROUP = r"spec\.template\.cliques\[\d+\]", r"spec\.template\.podCliqueScalingGroups\[\d+\]"
FIXED: Final = [
    re.compile(f"({pattern})")
    for pattern in (
        r"spec\.template\.(cliqueStartupType|resourceClaimTemplates|resourceSharing|topologyConstraint)",
        rf"{CLIQUE}\.spec\.(roleName|minAvailable|startsAfter|podSpec\.schedulerName)",
        rf"{CLIQUE}\.(resourceSharing|topologyConstraint)",
        rf"{GROUP}\.(cliqueNames|minAvailable|resourceSharing|topologyConstraint)",
    )
]
"""What cannot change once a set exists, by the path a refusal has to name; names are compared as a whole."""


def differences(one: Any, other: Any, path: Path) -> Iterator[Path]:
    """Yield the paths at which two values differ; a map that only one of them has differs at each key."""
    if isinstance(one, dict) and one and other is None:
        other = {}
    if isinstance(other, dict) and other and one is None:
        one = {}
    if isinstance(one, dict) and isinstance(other, dict):
        for key in one.keys() | other.keys():
            yield from differences(one.get(key), other.get(key), (*path, key))
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, (mine, theirs) in enumerate(zip(one, other, strict=True)):
            yield from differences(mine, theirs, (*path, index))
    elif one != other:
        yield path


def refused_at(old: JSON, new: JSON) -> set[str]:
    """Return the paths at which the specification has this change refused."""
    before, after = (to_json(default_pod_clique_set(convert(PodCliqueSet, _as_read(each)))) for each in (old, new))
    found: set[str] = set()
    for kind in ("cliques", "podCliqueScalingGroups"):
        names = [{each["name"] for each in side["spec"]["template"].get(kind, ())} for side in (before, after)]
        if names[0] != names[1]:
            found.add(f"spec.template.{kind}")
    for path in differences(before, after, ()):
        found |= {match[1] for pattern in FIXED if (match := pattern.match(spelled(path)))}
        if path[-1] == "grove.io/mnnvl-group" and "annotations" in path:
            found.add(f"{spelled(path[:-1])}[{path[-1]}]")
    return found


def _as_read(manifest: JSON) -> JSON:
    """Return a manifest as the API server hands it on: without nulls, and a label of null is empty."""
    read = copy.deepcopy(manifest)
    fill_defaults(read, structural_schema(PodCliqueSet))
    for name in ("labels", "annotations"):
        if texts := read["metadata"].get(name):
            read["metadata"][name] = {key: "" if text is None else text for key, text in texts.items()}
    return read


def changes(offline: dict[str, list[JSON]]) -> list[Trial]:
    """Return the variants that are valid on their own, and so may be what somebody makes of an existing set."""
    about = ("spec", "metadata.labels", "metadata.annotations")
    return [
        trial
        for trial in [*wrong(), *right()]
        if offline[str(trial)] == [] and (not trial.variant.path or spelled(trial.variant.path).startswith(about))
    ]


def _within(field: str, path: str) -> bool:
    return field == path or field.startswith(f"{path}.")


async def replacing(client: Client, namespace: str, new: JSON) -> Refusal | None:
    """Say whether a stored set may become this one; the operator, which has just seen it, may be writing to it."""
    while True:
        stored = await client.get(POD_CLIQUE_SET, new["metadata"]["name"], namespace)
        new["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"]
        found = await refusal(client, "PUT", namespace, new)
        if found is None or found.status != CONFLICT:
            return found


@ON_BOTH
async def test_a_change_of_one_thing(cluster: Cluster, reviews: Reviews, offline: dict[str, list[JSON]]) -> None:
    """It is refused at the path of what is fixed, and accepted where nothing of that is touched."""
    wrongly = {}
    async with guarded(cluster, reviews) as client:
        for trial in changes(offline):
            old = copy.deepcopy(workloads()[trial.workload])
            old["spec"]["replicas"] = 0
            old["metadata"]["namespace"] = cluster.namespace
            new = trial.variant.manifest
            if new["metadata"]["name"] != old["metadata"]["name"]:
                continue
            new["spec"]["replicas"] = 0
            await client.create(POD_CLIQUE_SET, old, cluster.namespace)
            with capture_logs() as logs:
                found = await replacing(client, cluster.namespace, new)
            await client.delete(POD_CLIQUE_SET, old["metadata"]["name"], cluster.namespace)
            expected = refused_at(old, new)
            named = {path for path in expected for field in found.fields if _within(field, path)} if found else set()
            if failures(logs) or (found is not None) != bool(expected) or named != expected:
                wrongly[str(trial)] = (expected, found)
    assert wrongly == {}


@pytest.mark.parametrize("trial", drawn(right(), BROUGHT_UP), ids=str)
async def test_a_valid_form_comes_up_and_is_updated(cluster: Cluster, reviews: Reviews, trial: Trial) -> None:
    """Its pods run or say why not, before and after each clique gets another image, and no controller fails."""
    with capture_logs() as logs:
        async with a_mixed_stage(cluster, reviews) as stage:
            await bring_claim_templates(stage, trial.workload)
            pcs = await stage.apply(trial.variant.manifest)
            await stage.settle()
            expect_told(stage, pcs)
            await stage.change(pcs.metadata.name, *(clique.name for clique in pcs.spec.template.cliques))
            await stage.settle()
            expect_told(stage, pcs)
    assert failures(logs) == []


def expect_told(stage: Stage, pcs: PodCliqueSet) -> None:
    """Check that a set has pods unless it wants none, and that each is ready or says what it waits for."""
    assert bool(stage.pods()) == bool(pcs.spec.replicas)
    silent = [pod.metadata.name for pod in stage.pods() if not (pod.is_true("Ready") or _says_why(pod))]
    assert silent == []
    assert stage.pod_clique_set(pcs.metadata.name).status.last_errors == ()


def _says_why(pod: Pod) -> bool:
    condition = pod.condition("PodScheduled")
    return condition is not None and condition.status == "False" and bool(condition.message or pod.gated)
