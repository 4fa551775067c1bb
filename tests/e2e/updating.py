"""How an update of workload 1 went: what was in flight at any moment, and what was replaced more than once."""

from collections import Counter, defaultdict
from collections.abc import Iterable

from spinney.api import labels as marks
from spinney.api.core import Pod
from spinney.api.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from tests.e2e.chronicle import pods_over_time
from tests.e2e.harness import Stage
from tests.e2e.workloads.functional import workload1

PODS_OF_A_GROUP_REPLICA = 4


async def deployed(stage: Stage, *, replicas: int = 1, groups: int = 2, standalone: int = 2) -> None:
    """Bring workload 1 up, in so many replicas, with scaling groups and standalone cliques of that size."""
    await stage.deploy(workload1())
    await stage.until_ready(10)
    if replicas > 1:
        await stage.scale(PodCliqueSet, "workload1", replicas)
        await stage.until_ready(10 * replicas)
    for i in range(replicas):
        if groups != 2:
            await stage.scale(PodCliqueScalingGroup, f"workload1-{i}-sg-x", groups)
        if standalone != 2:
            await stage.scale(PodClique, f"workload1-{i}-pc-a", standalone)
    await stage.until_ready(replicas * (PODS_OF_A_GROUP_REPLICA * groups + standalone))
    await stage.settle()


def is_updating(stage: Stage) -> bool:
    """Say whether an update of the set is under way."""
    progress = stage.pod_clique_set("workload1").status.update_progress
    return progress is not None and progress.update_ended_at is None


async def turn_of(stage: Stage, i: int) -> None:
    """Wait until it is the turn of a replica of the set and the first of its pods is going."""

    def is_turn() -> bool:
        progress = stage.pod_clique_set("workload1").status.update_progress
        current = progress.currently_updating if progress is not None else ()
        leaving = [pod for pod in stage.chronicle.all(Pod).values() if pod.metadata.deleting]
        return any(each.replica_index == i for each in current) and any(_replica(pod) == i for pod in leaving)

    await stage.until(is_turn)


async def template_reached(stage: Stage, i: int) -> None:
    """Wait until the standalone clique of a replica has the template that replica 0, whose turn it is, has."""

    def template(replica: int) -> str:
        return stage.clique(f"workload1-{replica}-pc-a").metadata.labels[marks.POD_TEMPLATE_HASH]

    await stage.until(lambda: template(i) == template(0))


async def updated(stage: Stage, count: int) -> None:
    """Wait until the update is over, and every pod is there, ready and of its clique's present template."""

    def is_over() -> bool:
        pcs = stage.pod_clique_set("workload1")
        begun = pcs.status.observed_generation == pcs.metadata.generation and pcs.status.update_progress is not None
        there = len(stage.ready()) == len(stage.pods()) == count and all(
            _is_present(stage, pod) for pod in stage.pods()
        )
        whole = pcs.status.updated_replicas == pcs.status.available_replicas == pcs.status.replicas
        return begun and there and whole and not is_updating(stage)

    await stage.until(is_over)
    await stage.settle()
    while not is_over():  # a scheduler that was resting is at work again
        await stage.until(is_over)
        await stage.settle()
    progress = stage.pod_clique_set("workload1").status.update_progress
    assert progress is not None
    assert not progress.currently_updating


def _is_present(stage: Stage, pod: Pod) -> bool:
    """Say whether a pod is of its clique's present template, and the clique says so."""
    clique = stage.chronicle.all(PodClique).get(pod.metadata.labels[marks.POD_CLIQUE])
    if clique is None:
        return False
    present = clique.metadata.labels[marks.POD_TEMPLATE_HASH]
    return pod.metadata.labels[marks.POD_TEMPLATE_HASH] == present == clique.status.current_pod_template_hash


def expect_one_at_a_time(stage: Stage, since: int, *, replicas: int = 1, groups: int = 2, standalone: int = 2) -> None:
    """Check after every write since a revision how much was serving.

    At most one pod of a standalone clique, one replica of a scaling group and one replica of the set were ever missing
    from what is given here.
    """
    whole = {f"workload1-{i}-pc-a": standalone for i in range(replicas)}
    whole |= {f"workload1-{i}-sg-x": groups for i in range(replicas)}
    for revision, pods in pods_over_time(stage.chronicle.log()):
        if revision <= since:
            continue
        serving = _serving(pods.values())
        short = {name: wanted - serving[name] for name, wanted in whole.items() if serving[name] < wanted}
        assert all(missing == 1 for missing in short.values()), f"revision {revision}: missing {short}"
        disturbed = {name.split("-")[1] for name in short}
        assert len(disturbed) <= 1, f"revision {revision}: missing {short}, in several replicas"


def expect_updated_once(stage: Stage, since: int) -> None:
    """Check that no pod made since a revision was deleted again."""
    made: set[str | None] = set()
    for each in stage.chronicle.log(since=since):
        if each.kind is Pod:
            pod: Pod = each.object
            if pod.metadata.deleting or each.gone:
                assert pod.metadata.uid not in made, f"{pod.metadata.name} was new, and replaced again"
            elif not pod.spec.node_name:
                made.add(pod.metadata.uid)


def deleted_since(stage: Stage, since: int) -> set[str]:
    """Return the names of the pods whose deletion was asked for since a revision."""
    log = stage.chronicle.log(since=since)
    return {each.name for each in log if each.kind is Pod and (each.gone or each.object.metadata.deleting)}


def _serving(pods: Iterable[Pod]) -> Counter[str]:
    """Return how many pods of each standalone clique, and whole replicas of each scaling group, are serving."""
    ready = [pod.metadata.labels for pod in pods if pod.is_true("Ready") and not pod.metadata.deleting]
    serving = Counter(labels[marks.POD_CLIQUE] for labels in ready if marks.SCALING_GROUP not in labels)
    replicas: dict[tuple[str, str], int] = defaultdict(int)
    for labels in ready:
        if marks.SCALING_GROUP in labels:
            replicas[labels[marks.SCALING_GROUP], labels[marks.SCALING_GROUP_REPLICA_INDEX]] += 1
    serving.update(name for (name, _), count in replicas.items() if count == PODS_OF_A_GROUP_REPLICA)
    return serving


def _replica(pod: Pod) -> int:
    return int(pod.metadata.labels[marks.REPLICA_INDEX])
