"""Backends that say they can judge a set before ``init`` judge it the same afterwards."""

from collections.abc import Sequence

import pytest

from spinney.api import labels as marks
from spinney.api.grove import PodCliqueSet
from spinney.backends import Rejected, SchedulerBackend
from spinney.backends.builtin import BACKENDS, every_backend
from spinney.backends.profiles import Profile
from spinney.cli.manifests.offline_backends import NeedsCluster, judge
from spinney.runtime import Runtime
from spinney.testing.builders import a_clique, a_pod_clique_set, a_scaling_group
from tests.backends.bench import asking
from tests.virtual_time import on_virtual_time

OFFLINE = [backend for backend in BACKENDS if backend.validates_before_init]
GROUP = [a_scaling_group("sg", ["worker"], 2, 1)]
LEADER_AND_WORKER = [a_clique("leader"), a_clique("worker")]
SETS: Sequence[PodCliqueSet] = (
    a_pod_clique_set("plain"),
    a_pod_clique_set("queued", labels={marks.KAI_QUEUE: "research"}),
    a_pod_clique_set("packed", LEADER_AND_WORKER, GROUP, labels={marks.KAI_QUEUE: "q"}, required="rack", topology="t"),
    a_pod_clique_set("preferring", labels={marks.KAI_QUEUE: "q"}, preferred="rack", topology="t"),
)


async def verdict(backend: SchedulerBackend, pcs: PodCliqueSet) -> object:
    """Return what a backend says of a set: its degradations, or its refusal."""
    try:
        return await backend.validate_pod_clique_set(pcs, None)
    except Rejected as rejected:
        return rejected.path, str(rejected)


@pytest.mark.parametrize("kind", OFFLINE, ids=lambda kind: kind.name)
@pytest.mark.parametrize("pcs", SETS, ids=lambda pcs: pcs.metadata.name)
@on_virtual_time
async def test_the_verdict_does_not_depend_on_init(kind: type[SchedulerBackend], pcs: PodCliqueSet) -> None:
    """What is said offline is what admission says, wherever the answer does not need the cluster."""
    config = kind.config_type() if kind.config_type is not None else None
    offline: object
    try:
        offline = await judge(kind, config, pcs, runtime=Runtime.virtual())
    except Rejected as rejected:
        offline = (rejected.path, str(rejected))
    except NeedsCluster:
        return
    async with asking(lambda context: kind(context, config)) as backend:
        assert offline == await verdict(backend, pcs)


@on_virtual_time
async def test_a_backend_that_asks_its_cluster_first_stays_open() -> None:
    """A backend that does not say so is not believed before ``init``, which it cannot run offline."""
    kube = every_backend().get("default-scheduler")
    assert kube is not None
    assert kube.config_type is not None
    config = Profile("default-scheduler", kube.config_type(gang_scheduling=True)).config
    with pytest.raises(NeedsCluster):
        await judge(kube, config, a_pod_clique_set(), runtime=Runtime.virtual())
