"""``spinney why`` says why something waits, on a running cluster or a file, and answers mistakes in one sentence."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from spinney.api.core import EVENT, POD
from spinney.api.labels import ADMISSION, GROUPED, KUEUE_QUEUE, POD_CLIQUE, QUEUED, TOP_OWNER
from spinney.api.labels import POD_GANG as GANG_LABEL
from spinney.api.podgang import POD_GANG
from spinney.api.struct import JSON
from spinney.api.time import timestamp
from spinney.cli import main
from spinney.kube.client import Client
from spinney.sim import Cluster
from spinney.sim.advice.subjects import NoSuchSubject, find
from spinney.sim.snapshots.files import write_snapshot
from tests.cli.clusters import ServedCluster
from tests.cli.workloads import a_training_job, as_yaml, until_refused, until_running
from tests.cli.written import NODE, a_pod, a_refusal, why
from tests.grouping.world import JOB


@pytest.fixture(scope="module")
def busy(served: ServedCluster) -> ServedCluster:
    """A cluster where one set runs and one cannot be placed."""
    served.call(lambda client: until_running(client, a_training_job("runs", workers=2), 2))
    served.call(lambda client: until_refused(client, a_training_job("waits", workers=3)))
    return served


def test_a_gang_that_fits_nowhere_is_explained(busy: ServedCluster) -> None:
    """The answer names the level, the nearest domain, what it lacks, and is not called a simulation."""
    answer = busy.spinney("why", "podgang/waits-0")

    assert answer.exit_code == 0, answer.output
    assert "podgang default/waits-0: pending" in answer.output
    assert "2 of 3 pods fit in rack" in answer.output
    assert "simulated" not in answer.output


def test_a_former_job_of_the_same_name_was_evicted_and_not_this_one(busy: ServedCluster) -> None:
    """Its pods were called alike: of a job that was made anew only what happened since is told."""

    async def make(client: Client) -> None:
        pod = {"schedulerName": "nobodys", "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
        job = await client.create(JOB, {"metadata": {"name": "again"}, "spec": {"template": {"spec": pod}}}, "default")
        uid = job["metadata"]["uid"]
        said = f"name: again\nuid: {uid}\ngroup: batch\nversion: v1\nkind: Job\n"
        gang: JSON = {"name": f"pg-again-{uid}", "labels": {GROUPED: "true"}, "annotations": {TOP_OWNER: said}}
        groups = [{"name": "all", "minReplicas": 1}]
        await client.create(POD_GANG, {"metadata": gang, "spec": {"podgroups": groups}}, "default")
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "again", "uid": uid, "controller": True}
        labels = {GANG_LABEL: gang["name"], POD_CLIQUE: "all"}
        metadata = {"name": "again-x", "labels": labels, "ownerReferences": [owner]}
        await client.create(POD, {"metadata": metadata, "spec": pod}, "default")

    async def tell(client: Client, name: str, moment: str) -> None:
        event: JSON = {"metadata": {"name": f"{name}.1"}, "reason": "Preempted", "message": "preempted for default/u"}
        event |= {"involvedObject": {"kind": "Pod", "namespace": "default", "name": name}, "lastTimestamp": moment}
        await client.create(EVENT, event, "default")

    busy.call(make)
    busy.call(lambda client: tell(client, "again-old", "2026-01-01T00:00:00Z"))
    assert "was evicted" not in busy.spinney("why", "job/again").output
    busy.call(lambda client: tell(client, "again-new", timestamp(datetime.now(UTC) + timedelta(seconds=1))))
    assert "Pod again-new was evicted" in busy.spinney("why", "job/again").output


def test_events_tell_of_evictions(busy: ServedCluster) -> None:
    """An eviction that only an event remembers stands in the history; one of a set of that name before it does not."""
    pod = {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "waits-0-worker-gone"}
    event: JSON = {
        "metadata": {"name": "waits-0-worker-gone.1", "namespace": "default"},
        "involvedObject": pod,
        "reason": "Preempted",
        "message": "preempted for default/urgent",
        "type": "Normal",
        "source": {"component": "spinney-coscheduler"},
        "lastTimestamp": timestamp(datetime.now(UTC) + timedelta(seconds=1)),
    }
    former = {**event, "metadata": {"name": "waits-0-worker-old.1", "namespace": "default"}}
    former |= {"message": "reclaimed for default/big", "lastTimestamp": "2026-01-01T00:00:00Z"}
    busy.call(lambda client: client.create(EVENT, event))
    busy.call(lambda client: client.create(EVENT, former))

    assert "earlier eviction" not in busy.spinney("why", "podgang/waits-0").output
    assert "Pod waits-0-worker-gone was evicted" in busy.spinney("why", "podgang/waits-0").output
    assert "by spinney-coscheduler: preempted for default/urgent" in busy.spinney("why", "podgang/waits-0").output


def test_a_refused_binding_is_told(busy: ServedCluster) -> None:
    """Where a policy denies what the scheduler decided, its words stand there, and nobody asks for a scheduler."""
    pod: JSON = {
        "metadata": {"name": "unbound", "namespace": "default"},
        "spec": {"schedulerName": "elsewhere", "containers": [{"name": "main", "image": "x"}]},
    }
    made: JSON = busy.call(lambda client: client.create(POD, pod))
    try:
        assert "elsewhere has said nothing about it yet" in busy.spinney("why", "pod/unbound").output
        about = {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "unbound"}
        event: JSON = {
            "metadata": {"name": "unbound.1", "namespace": "default"},
            "involvedObject": about | {"uid": made["metadata"]["uid"]},
            "reason": "FailedBinding",
            "message": "Failed to bind to n1: denied by policy p",
            "type": "Warning",
            "source": {"component": "elsewhere"},
            "lastTimestamp": "2026-01-01T00:00:00Z",
        }
        busy.call(lambda client: client.create(EVENT, event))
        told = busy.spinney("why", "pod/unbound").output
        assert "default/unbound was not bound" in told
        assert "by elsewhere: Failed to bind to n1: denied by policy p" in told
        assert "has said nothing about it" not in told
    finally:
        busy.call(lambda client: client.delete(POD, "unbound", "default", grace_period_seconds=0))


def test_a_set_is_answered_gang_by_gang(busy: ServedCluster) -> None:
    """A bare name is found among all kinds; each gang of the set has its part."""
    answer = busy.spinney("why", "waits")

    assert "pcs default/waits: pending" in answer.output
    assert "podgang default/waits-0: pending" in answer.output


def test_what_runs_is_said_to_run(busy: ServedCluster) -> None:
    """A set whose pods all run is not explained away."""
    answer = busy.spinney("why", "pcs/runs", "-n", "default")

    assert "pcs default/runs: running" in answer.output
    assert "2 pods: 2 running" in answer.output


def test_a_queue_that_gangs_name_can_be_asked_about(busy: ServedCluster) -> None:
    """Its holdings are shown with the gangs that wait in it, also where it has no object."""
    answer = busy.spinney("why", "queue/default-queue")

    assert "nvidia.com/gpu: 16 in use, 40 requested" in answer.output
    assert "default/waits-0: unschedulable on cluster" in answer.output


def test_verbose_shows_node_sets(busy: ServedCluster) -> None:
    """Developers see which node sets plugins made; others never do."""
    assert "developer detail" not in busy.spinney("why", "waits-0").output
    answer = busy.spinney("why", "waits-0", "--verbose")

    assert answer.output.count("Performing topology logic") == 1, "clusters on which changes are tried say nothing"


def test_json_carries_the_explanation_as_data(busy: ServedCluster) -> None:
    """A program reads the same answer as data."""
    answer = json.loads(busy.spinney("why", "waits-0", "-o", "json").output)

    assert answer["answer"]["state"] == "pending"
    assert answer["answer"]["explanations"][0]["requiredLevel"] == "rack"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["why", "wait-0"], "did you mean waits-0"),
        (["why", "wait"], "did you mean waits or waits-0 or waits-0-worker"),
        (["why", "k"], "'spinney get gangs -A' and"),
        (["why", "pod/runs"], "did you mean runs-0-worker-"),
        (["why", "podd/waits-0"], "did you mean pod"),
        (["why", "/waits"], "'/waits' has no kind before the slash; write waits, or KIND/waits"),
        (["why", "job/"], "'job/' names nothing; write NAME or KIND/NAME, such as job/train"),
        (["why", ""], "'' names nothing; write NAME or KIND/NAME, such as pod/train"),
        (["why", "waits-0", "-n", "elsewhere"], "pass -n default"),
        (["why", "waits-0", "--context", "nowhere"], "'nowhere'"),
    ],
)
def test_mistakes_are_answered_with_what_to_do(busy: ServedCluster, arguments: list[str], expected: str) -> None:
    """A wrong name, kind, namespace or context ends with one sentence and exit status 1."""
    answer = busy.spinney(*arguments)

    assert answer.exit_code == 1
    assert expected in answer.output
    assert len(answer.output.strip().splitlines()) == 1


def test_a_cluster_that_is_not_there_is_said_to_be_so(tmp_path: Path) -> None:
    """No connection is one sentence with the address and the options that choose another."""
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        "{apiVersion: v1, kind: Config, current-context: gone,"
        " contexts: [{name: gone, context: {cluster: gone, user: me}}],"
        " clusters: [{name: gone, cluster: {server: 'https://127.0.0.1:1'}}], users: [{name: me, user: {}}]}"
    )
    answer = CliRunner().invoke(main, ["why", "x", "--kubeconfig", str(kubeconfig)])

    assert answer.exit_code == 1
    assert "127.0.0.1:1" in answer.output
    assert "--context" in answer.output


# -- from files --------------------------------------------------------------------------------------------------------


def test_a_pod_of_kube_scheduler_is_simulated_with_its_rules(tmp_path: Path) -> None:
    """The filters are kube-scheduler's, and the answer says that it is a simulation."""
    output = why(tmp_path, "pod/large", NODE, a_pod("large", cpu="8"))

    assert "pod default/large: pending" in output
    assert "NodeResourcesFit: 1 Insufficient cpu (n1)" in output
    assert "simulated from a snapshot" in output


def test_a_pod_that_would_fit_is_said_to_fit(tmp_path: Path) -> None:
    """A pod that the rules would place now is called placeable, with the node."""
    output = why(tmp_path, "pod/small", NODE, a_pod("small"))

    assert "placeable" in output
    assert "place the pod now, on n1" in output


def test_a_workload_without_pods_says_where_to_look(tmp_path: Path) -> None:
    """A suspended Job has no gang; the answer is not that Jobs cannot be asked about."""
    file = tmp_path / "cluster.yaml"
    file.write_text(as_yaml(NODE))
    answer = CliRunner().invoke(main, ["why", "jobs/train", "--from", str(file)])

    assert answer.exit_code != 0
    assert "jobs/train has no pods: it does not exist, asks for none, or is suspended" in answer.output


@pytest.mark.parametrize(
    ("subject", "lister"),
    [
        ("queue/nobody", "'queue/nobody' was found; 'spinney queues' lists"),
        ("pod/nobody", "'kubectl get pods -A' lists"),
        ("pclq/nobody", "'kubectl get podcliques -A' lists"),
    ],
)
def test_a_name_that_nothing_has_is_answered_with_what_lists_its_kind(
    served: ServedCluster, subject: str, lister: str
) -> None:
    """Gangs and sets are not where to look for a queue or a pod; a queue is in no namespace."""
    assert lister in served.spinney("why", subject).output


def test_a_suspended_job_is_answered_as_the_gang_it_would_be(busy: ServedCluster) -> None:
    """It has no pods: what it waits for is said, and what would let its gang start; one for Kueue is left to Kueue."""
    limits = {"limits": {"nvidia.com/gpu": "8"}}
    containers = [{"name": "c", "image": "i", "resources": limits}]
    pods = {"schedulerName": "spinney-scheduler", "restartPolicy": "Never", "containers": containers}
    spec = {"suspend": True, "parallelism": 9, "completions": 9, "template": {"spec": pods}}

    async def create(client: Client) -> None:
        for name, labels in (("queued", {ADMISSION: QUEUED}), ("held", {}), ("kueues", {KUEUE_QUEUE: "team"})):
            metadata = {"name": name, "labels": labels, "annotations": {"kai.scheduler/batch-min-member": "9"}}
            await client.create(JOB, {"metadata": metadata, "spec": spec}, "default")

    busy.call(create)
    queued, held = busy.spinney("why", "job/queued"), busy.spinney("why", "jobs/held", "-o", "json")

    assert queued.exit_code == 0, queued.output
    assert "9 pods: 9 pending" in queued.output
    assert "is resumed when the gang that it would be, this one, can start" in queued.output
    assert "of 9 pods" in queued.output.partition("9 pods: 9 pending")[2]
    assert "until it is resumed" in json.loads(held.stdout)["answer"]["sentences"][0]
    assert "job/kueues has no pods" in busy.spinney("why", "job/kueues").output
    assert "9 pods: 9 pending" in busy.spinney("why", "queued").output


def test_a_queue_says_how_many_suspended_workloads_wait_in_it(served: ServedCluster) -> None:
    """They have no pods, so no gang shows them; a queue that only they name can be asked about, too."""
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}

    async def create(client: Client) -> None:
        for number, labels in enumerate(({"kai.scheduler/queue": "quiet"}, {"project": "quiet"}, {KUEUE_QUEUE: "k"})):
            metadata = {"name": f"quiet-{number}", "labels": {ADMISSION: QUEUED, **labels}}
            await client.create(JOB, {"metadata": metadata, "spec": {"suspend": True, "template": template}}, "default")

    served.call(create)
    answer, table = served.spinney("why", "queue/quiet").output, served.spinney("queues").output
    data = json.loads(served.spinney("queues", "-o", "json").stdout)

    assert "queue quiet: pending" in answer
    assert "2 suspended workloads of it wait, without pods" in answer
    assert "quiet: 2 suspended workloads of it wait, without pods" in table
    assert (data["suspended"]["quiet"], "k" in data["suspended"]) == (2, False)


def test_a_suspended_job_that_cannot_wait_in_a_queue_is_said_to_stay_suspended(served: ServedCluster) -> None:
    """Its pods are another scheduler's, so nothing resumes it; nobody is asked after for pods that do not exist."""
    pods = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    metadata = {"name": "other", "labels": {ADMISSION: QUEUED}}
    job = {"metadata": metadata, "spec": {"suspend": True, "template": {"spec": pods}}}
    served.call(lambda client: client.create(JOB, job, "default"))

    answer = served.spinney("why", "job/other").output

    assert "the Job is suspended, and stays so: its pods ask for the scheduler default-scheduler; name one of" in answer
    assert "is resumed when" not in answer
    assert "does a scheduler of that name run?" not in answer
    assert "kubectl describe pod" not in answer


def test_a_pod_that_the_grouper_refused_says_what_it_said(served: ServedCluster) -> None:
    """The grouper's event has the field and what was expected there; nobody need look for a scheduler."""
    said = "annotation kai.scheduler/min-member: found 'two', expected a whole number"

    async def refuse(client: Client) -> None:
        await client.create(POD, a_pod("lone", schedulerName="nobodys"), "default")
        await client.create(EVENT, a_refusal("lone", said))

    served.call(refuse)
    answer = served.spinney("why", "pod/lone").output

    assert f"it waits for the grouper, which says: {said}" in answer
    assert "does a scheduler of that name run?" not in answer
    assert "was evicted" not in answer


def test_a_pod_that_the_grouper_refused_is_not_judged_on_its_own(served: ServedCluster) -> None:
    """No scheduler looks at it before it is in its gang: what is in its way alone is no reason."""
    said = "annotation kai.scheduler/min-member: found 'two', expected a whole number"
    pod = a_pod("huge", schedulerName="nobodys")
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "9999"}}

    async def refuse(client: Client) -> None:
        await client.create(POD, pod, "default")
        await client.create(EVENT, a_refusal("huge", said))

    served.call(refuse)
    answer = served.spinney("why", "pod/huge").output

    assert "pod default/huge: pending" in answer
    assert f"it waits for the grouper, which says: {said}" in answer
    assert "cpu" not in answer
    assert "what would let it start" not in answer


def test_plugins_of_the_coscheduler_are_not_asked_for(tmp_path: Path) -> None:
    """They cannot be given to the simulation, so no option is recommended that would refuse them."""
    pod = a_pod("p")
    said = {"type": "PodScheduled", "status": "False", "reason": "SchedulerError"}
    pod["status"] = {"phase": "Pending", "conditions": [{**said, "message": "plugin Night failed at filter: raised X"}]}

    output = why(tmp_path, "p", NODE, pod)

    assert "the scheduler has the plugin Night, and this simulation has not" in output
    assert "--plugin" not in output
    assert "--config" not in output


def test_a_cluster_of_kai_is_simulated_with_its_queues(tmp_path: Path) -> None:
    """A PodGroup of KAI over its queue's limit is told which rule refused it and by how much."""
    amounts = {"quota": -1, "limit": -1}
    resources = {"gpu": {"quota": 0, "limit": -1}, "cpu": {"quota": 1000, "limit": 2000}, "memory": amounts}
    queue: JSON = {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": "team"},
        "spec": {"resources": resources},
    }
    group: JSON = {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "big"},
        "spec": {"minMember": 3, "queue": "team"},
    }
    pods = [a_pod(f"p{i}", schedulerName="kai-scheduler") for i in range(3)]
    for pod in pods:
        pod["metadata"]["annotations"] = {"pod-group-name": "big"}
    output = why(tmp_path, "big", NODE, queue, group, *pods)

    assert "podgroup default/big: pending" in output
    assert "queue team would exceed its limit" in output
    assert "simulated from a snapshot" in output
    assert "1 gang of the queue would still wait" in why(tmp_path, "queue/team", NODE, queue, group, *pods)


def test_a_parent_queue_answers_for_those_below_it(tmp_path: Path) -> None:
    """What its children hold and wait for counts against it, so it is neither unused nor without anything waiting."""
    cluster = Cluster("2x4")
    cluster.queue("org", quota=8)
    cluster.queue("team", parent="org", quota=4, limit=4)
    cluster.queue("empty", parent="org", quota=4)
    cluster.gang("runs", pods=1, gpus=4, queue="team")
    cluster.step()
    running = cluster.why("queue/org")
    cluster.gang("waits", pods=1, gpus=4, queue="team")
    waiting = cluster.why("queue/org")

    assert "queue/org: running" in running
    assert "0 gangs of the queue and those below it would still wait" in running
    assert "queue/org: pending" in waiting
    assert "1 gang of the queue and those below it would still wait" in waiting
    assert "default/waits: unschedulable on cluster: queue team would exceed its limit of 4 GPUs" in waiting
    assert "queue/empty: empty" in cluster.why("queue/empty")


def test_a_misspelt_queue_is_answered_with_one_that_exists() -> None:
    """Queues are in no namespace, so that of the context leaves none of them out; nor does a queue need an object."""
    cluster = Cluster("1x4")
    cluster.queue("team", quota=4)

    with pytest.raises(NoSuchSubject, match="did you mean team or teams"):
        find(cluster.snapshot(), "queue/tem", "default", queues=["team", "teams"])


def test_an_ambiguous_name_lists_the_candidates(tmp_path: Path) -> None:
    """A name that a pod and a queue share is answered with both, as they would be written."""
    queue = {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": "x"}, "spec": {}}
    file = tmp_path / "cluster.yaml"
    file.write_text(as_yaml(NODE, a_pod("x"), queue))
    answer = CliRunner().invoke(main, ["why", "x", "--from", str(file)])

    assert answer.exit_code == 1
    assert "pod/x in namespace default" in answer.output
    assert "queue/x" in answer.output


def test_what_has_room_says_that_something_else_is_in_the_way(tmp_path: Path) -> None:
    """A pod that would fit but names a queue that does not exist is not said to have found room."""
    cluster = Cluster("2x4")
    cluster.queue("real", quota=8)
    cluster.gang("lost", pods=1, gpus=1, queue="nosuch")
    file = tmp_path / "snapshot.json.gz"
    write_snapshot(cluster.snapshot(), file)
    output = CliRunner().invoke(main, ["why", "lost", "--from", str(file)]).output

    assert "there is room for the pod; it waits for something else" in output
    assert "queue nosuch does not exist" in output


def test_that_nothing_can_be_tried_is_said(tmp_path: Path) -> None:
    """A pod that is larger than every kind of node is not left without a word about remedies."""
    output = why(tmp_path, "p", NODE, a_pod("p", cpu="1000"))

    assert "there is no change to try that could let it start" in output


def test_a_label_that_pods_are_spread_by_and_no_node_has_is_named(tmp_path: Path) -> None:
    """Nothing is spread unevenly: there is nothing to spread by."""
    constraint = {"maxSkew": 1, "topologyKey": "shelf", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}

    output = why(tmp_path, "p", NODE, a_pod("p", topologySpreadConstraints=[constraint]))

    assert "n1 lacks the label shelf that pods are spread by" in output
    assert "too unevenly" not in output


def test_an_affinity_that_matches_nothing_is_said_to(tmp_path: Path) -> None:
    """An empty term matches no node, which few people know."""
    required: JSON = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{}]}}

    output = why(tmp_path, "p", NODE, a_pod("p", affinity={"nodeAffinity": required}))

    assert "n1 does not match the pod's node affinity: an empty term matches no node" in output


def test_a_pod_on_a_node_that_is_gone_is_said_to_be_there(tmp_path: Path) -> None:
    """It would start for ever; a pod on a node that exists is only starting."""
    assert "the node n9 does not exist" in why(tmp_path, "p", NODE, a_pod("p", nodeName="n9"))
    assert "does not exist" not in why(tmp_path, "p", NODE, a_pod("p", nodeName="n1"))


def test_a_file_without_nodes_is_no_lack_of_rights(tmp_path: Path) -> None:
    """Nothing was refused: whoever wrote the file left nodes out."""
    assert "what was read has no nodes, so nothing could be simulated" in why(tmp_path, "p", a_pod("p"))


def test_a_scheduler_that_nobody_runs_is_asked_after(tmp_path: Path) -> None:
    """A pod with room that no scheduler has spoken of may name one that does not run."""
    output = why(tmp_path, "p", NODE, a_pod("p", schedulerName="my-scheduler"))

    assert "a scheduling cycle would place the pod now, on n1" in output
    assert "my-scheduler has said nothing about it yet: does a scheduler of that name run?" in output
    misspelt = why(tmp_path, "p", NODE, a_pod("p", schedulerName="spiney-scheduler"))
    assert "does a scheduler of that name run, or did you mean spinney-scheduler?" in misspelt


@pytest.mark.parametrize("grouped", [False, True])
def test_a_pod_that_waits_for_the_grouper_says_where_to_look(tmp_path: Path, grouped: bool) -> None:
    """There is room for the pod of a Job, and nobody places it: the grouper may have refused its rule."""
    pod = a_pod("work-0")
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "work", "uid": "u", "controller": True}
    pod["metadata"] |= {"ownerReferences": [owner], "labels": {"spinney.dev/grouped": "alone"} if grouped else {}}

    output = why(tmp_path, "job/work", NODE, pod)

    assert ("'kubectl describe pod work-0' shows what the grouper says (GroupingRefused)" in output) is not grouped


def test_a_clique_is_explained_with_its_gang(served: ServedCluster) -> None:
    """Asked about a PodClique, the answer is about its pods, and names the gang that decides."""
    served.call(lambda client: until_refused(client, a_training_job("cliquey", workers=3)))
    output = served.spinney("why", "podclique/cliquey-0-worker").output

    assert "pclq default/cliquey-0-worker: pending" in output
    assert "its pods belong to the podgang cliquey-0" in output
    assert "2 of 3 pods found room" in output


@pytest.mark.parametrize(
    ("annotation", "value", "remedy"),
    [
        ("gpu-fraction", "abc", "0.5"),
        ("gpu-fraction", "1", "0.5"),
        ("gpu-fraction", "0.00000001", "0.5"),
        ("gpu-memory", "4Gi", "4096"),
        ("gpu-fraction-num-devices", "0", "2"),
    ],
)
def test_a_share_that_cannot_be_read_is_told(tmp_path: Path, annotation: str, value: str, remedy: str) -> None:
    """A pod whose annotation asks for nothing that can be read waits, and is placed when it says what is advised."""

    def answer(text: str) -> str:
        pod = a_pod("sharer", schedulerName="spinney-scheduler")
        pod["metadata"]["annotations"] = {"gpu-fraction": "0.25", annotation: text}
        return why(tmp_path, "sharer", node, pod)

    node = NODE | {"status": {"capacity": NODE["status"]["capacity"] | {"nvidia.com/gpu": "8"}}}
    node["metadata"] = node["metadata"] | {"labels": {"nvidia.com/gpu.memory": "16384"}}

    assert f"annotation {annotation}: '{value}' is no " in answer(value)
    assert f"like {remedy}" in answer(value)
    assert "would place the pod now, on n1" in answer(remedy)
