"""Each numbered sentence of the coscheduling design document, quoted by its number.

Where the document does not number its sentences (PostFilter, PostBind, the last sentences of PreFilter and Permit, the
controller), they are counted in order. The last test counts what is quoted here and elsewhere in this room.
"""

import re
from pathlib import Path

import pytest

from spinney.api.core import Pod
from spinney.api.schema.crd import manifests
from spinney.coscheduling.framework import Code, CycleState, QueuedPod
from spinney.coscheduling.framework.profile import POINTS, serves

from .bench import Bench, a_group, a_node, a_pod

pytestmark = pytest.mark.parametrize("cluster_name", ["embedded"], indirect=True)


def queued(bench: Bench, pod: Pod) -> QueuedPod:
    bench.put(pod)
    return QueuedPod(pod=pod, first_queued=0, queued=0)


def in_order(bench: Bench, *pods: Pod) -> list[str]:
    """Return the names of the pods in the order in which they would be tried."""
    entries = [queued(bench, pod) for pod in pods]
    return [each.key.name for each in sorted(entries, key=bench.plugin.sort_key)]


# -- goals ------------------------------------------------------------------------------------------------------------


async def test_goal_1_on_the_scheduling_framework(bench: Bench) -> None:
    """Goal 1: coscheduling is a plugin of the framework, at the extension points that the document names."""
    named = {"queueSort", "preFilter", "postFilter", "permit", "postBind"}
    assert named <= {point for point in POINTS if serves(bench.plugin, point)}


async def test_goal_2_the_pod_group_kind(cluster_name: str) -> None:
    """Goal 2: the PodGroup kind has every field of the document, and columns for what people look for."""
    name = "podgroups.scheduling.x-k8s.io"
    version = next(each for each in manifests() if each["metadata"]["name"] == name)["spec"]["versions"][0]
    properties = version["schema"]["openAPIV3Schema"]["properties"]
    assert set(properties["spec"]["properties"]) == {"minMember", "minResources", "scheduleTimeoutSeconds"}
    counted = {"scheduled", "running", "succeeded", "failed"}
    assert {"phase", "occupiedBy", "scheduleStartTime", *counted} <= set(properties["status"]["properties"])
    columns = [column["name"] for column in version["additionalPrinterColumns"]]
    assert columns == ["Phase", "MinMember", "Scheduled", "Running", "Succeeded", "Failed", "Age"]


# -- QueueSort --------------------------------------------------------------------------------------------------------


async def test_queue_sort_1_priority(bench: Bench) -> None:
    """QueueSort 1: higher priority comes first, whatever else holds."""
    bench.put(a_group("old", 1, created=0))
    assert in_order(bench, a_pod("low", priority=1, created=0), a_pod("high", group="old", priority=2, created=9)) == [
        "high",
        "low",
    ]


async def test_queue_sort_1_priority_of_a_group_is_its_highest(bench: Bench) -> None:
    """QueueSort 1: a group's priority is the highest of its pending members', for all of them."""
    bench.put(a_group("mixed", 2))
    assert in_order(
        bench,
        a_pod("mixed-low", group="mixed", priority=1),
        a_pod("mixed-high", group="mixed", priority=9),
        a_pod("middle", priority=5),
    ) == ["mixed-high", "mixed-low", "middle"]


async def test_queue_sort_2_ungrouped_first(bench: Bench) -> None:
    """QueueSort 2: at equal priority a pod that belongs to no group comes before members of groups."""
    bench.put(a_group("old", 1, created=0))
    assert in_order(bench, a_pod("member", group="old", created=0), a_pod("single", created=9)) == ["single", "member"]


async def test_queue_sort_3_group_creation(bench: Bench) -> None:
    """QueueSort 3: the group that was created first comes first, whenever its pods were."""
    bench.put(a_group("young", 1, created=5), a_group("old", 1, created=1))
    assert in_order(bench, a_pod("y", group="young", created=0), a_pod("o", group="old", created=9)) == ["o", "y"]


async def test_queue_sort_3_groups_never_interleave(bench: Bench) -> None:
    """QueueSort 3: two groups of the same second stay apart, member by member."""
    bench.put(a_group("a", 2), a_group("b", 2))
    pods = [a_pod(f"{number}-{group}", group=group, created=number) for number in range(3) for group in "ba"]
    assert in_order(bench, *pods) == ["0-a", "1-a", "2-a", "0-b", "1-b", "2-b"]


async def test_queue_sort_4_pod_creation(bench: Bench) -> None:
    """QueueSort 4: pods alike in everything else go by creation, then by name."""
    assert in_order(bench, a_pod("c", created=1), a_pod("b", created=2), a_pod("a", created=2)) == ["c", "a", "b"]


# -- PreFilter --------------------------------------------------------------------------------------------------------


async def test_pre_filter_1_ungrouped(bench: Bench) -> None:
    """PreFilter 1: a pod that belongs to no group is allowed."""
    pod = a_pod("single")
    bench.put(pod)
    assert bench.plugin.pre_filter(CycleState(), pod).ok


async def test_pre_filter_2_no_other_group_pending(bench: Bench) -> None:
    """PreFilter 2: without other pending groups a member is allowed when its resource requirement can be met."""
    bench.put(a_node("n1", cpu=2))
    bench.put(a_group("fits", 2, min_resources={"cpu": "2"}), a_group("not", 2, min_resources={"cpu": "3"}))
    for group in ("fits", "not"):
        bench.put(*(a_pod(f"{group}-{number}", group=group) for number in range(2)))

    assert bench.plugin.pre_filter(CycleState(), bench.record("fits-0").pod).ok
    refused = bench.plugin.pre_filter(CycleState(), bench.record("not-0").pod)
    assert refused.code is Code.UNRESOLVABLE
    assert "resource gap" in refused.message
    assert "1 CPU core" in refused.message


async def test_pre_filter_2_own_pods_do_not_count_against_the_group(bench: Bench) -> None:
    """PreFilter 2: what members already hold counts as available to the group."""
    bench.put(a_node("n1", cpu=2), a_group("half", 2, min_resources={"cpu": "2"}))
    bench.put(a_pod("half-0", group="half", node="n1"), a_pod("half-1", group="half"))
    assert bench.plugin.pre_filter(CycleState(), bench.record("half-1").pod).ok


def two_groups(bench: Bench, *, own_priority: int = 0) -> Pod:
    """Return a pod of group ``own`` (1 of 4 placed) beside ``top`` (2 of 3 placed): 1 of 4 cpus is free."""
    bench.put(a_node("n1", cpu=4), a_group("top", 3, created=0), a_group("own", 4, created=1))
    bench.put(*(a_pod(f"top-{number}", group="top", node="n1") for number in range(2)), a_pod("top-2", group="top"))
    bench.put(a_pod("own-0", group="own", node="n1"))
    bench.put(*(a_pod(f"own-{number}", group="own", priority=own_priority) for number in range(1, 4)))
    return bench.record("own-1").pod


async def test_pre_filter_3_closest_is_allowed(bench: Bench) -> None:
    """PreFilter 3: a member of the group closest to its completion is allowed."""
    two_groups(bench)
    assert bench.plugin.pre_filter(CycleState(), bench.record("top-2").pod).ok


async def test_pre_filter_3_bound_members_count_as_progress(bench: Bench) -> None:
    """PreFilter 3: progress is the placed members, waiting or bound, over minMember."""
    two_groups(bench)
    assert bench.group("top").progress == pytest.approx(2 / 3)
    assert bench.group("own").progress == pytest.approx(1 / 4)


async def test_pre_filter_3_allowed_if_the_closest_still_fits(bench: Bench) -> None:
    """PreFilter 3: another pod is allowed if the top-progressed group can still be scheduled beside it."""
    pod = two_groups(bench)
    bench.put(a_node("n2", cpu=1))
    assert bench.plugin.pre_filter(CycleState(), pod).ok


async def test_pre_filter_3_keeps_the_nodes_the_closest_needs(bench: Bench) -> None:
    """PreFilter 3: a pod that is allowed beside the top-progressed group goes where that group can spare it."""
    bench.put(a_node("big", cpu=8), a_node("small", cpu=1))
    bench.put(a_group("top", 3), a_group("own", 4, created=1))
    bench.put(*(a_pod(f"top-{number}", group="top", cpu="3", node="big") for number in range(2)))
    bench.put(a_pod("top-2", group="top", cpu="2"))
    bench.put(*(a_pod(f"own-{number}", group="own") for number in range(4)))
    state = CycleState()
    pod = bench.record("own-0").pod

    assert bench.plugin.pre_filter(state, pod).ok
    row = bench.ranking.best(state, bench.record("own-0"))
    assert row is not None
    assert bench.cluster.table.names[row] == "small"


async def test_pre_filter_3_refused_if_it_takes_what_the_closest_needs(bench: Bench) -> None:
    """PreFilter 3: a pod that would take the last room of the top-progressed group is refused."""
    refused = bench.plugin.pre_filter(CycleState(), two_groups(bench))
    assert refused.code is Code.UNRESOLVABLE
    assert "ns/top is closer to its completion" in refused.message


async def test_pre_filter_3_higher_priority_overrides(bench: Bench) -> None:
    """PreFilter 3: a pod of higher priority is allowed, and the top-progressed group gets rejected."""
    assert bench.plugin.pre_filter(CycleState(), two_groups(bench, own_priority=5)).ok
    assert [group for group, _ in bench.rejected] == ["top"]
    assert bench.groups.is_resting(bench.group("top"))


async def test_pre_filter_3_a_group_that_cannot_complete_is_not_protected(bench: Bench) -> None:
    """PreFilter 3: nothing is kept for a group whose missing members fit nowhere anyway."""
    bench.put(a_node("n1", cpu=4), a_group("top", 3), a_group("own", 2, created=1))
    bench.put(*(a_pod(f"top-{number}", group="top", node="n1") for number in range(2)))
    bench.put(a_pod("top-2", group="top", cpu="9"))
    bench.put(*(a_pod(f"own-{number}", group="own") for number in range(2)))
    assert bench.plugin.pre_filter(CycleState(), bench.record("own-0").pod).ok


async def test_pre_filter_3_can_be_switched_off(bench: Bench) -> None:
    """PreFilter 3: with the argument off, progress is not compared."""
    other = Bench(preferClosestToCompletion=False)
    assert other.plugin.pre_filter(CycleState(), two_groups(other)).ok


async def test_pre_filter_rejected_groups_back_off(bench: Bench) -> None:
    """PreFilter, last sentence: the group of a rejected pod is on the back-off list and is retried after its time."""
    pod = two_groups(bench)
    assert not bench.plugin.pre_filter(CycleState(), pod).ok
    assert bench.groups.is_resting(bench.group("own"))
    assert "failed recently" in bench.plugin.pre_filter(CycleState(), pod).message

    bench.put(a_node("n2", cpu=4))
    await bench.run(seconds=9)
    assert not [name for name in bench.binds if name.startswith("own")]
    await bench.run(seconds=2)
    assert sorted(name for name in bench.binds if name.startswith("own")) == ["own-1", "own-2", "own-3"]


async def test_pre_filter_a_group_backing_off_is_not_top_progressed(bench: Bench) -> None:
    """PreFilter: a backed-off group no longer counts as top-progressed."""
    pod = two_groups(bench)
    bench.plugin.reject(bench.group("top"), "for the test")
    assert bench.plugin.pre_filter(CycleState(), pod).ok


# -- PostFilter -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("percentage", "placed", "rejected"),
    [(10, 9, False), (10, 8, True), (0, 9, True), (100, 0, False), (50, 6, False), (50, 4, True)],
)
async def test_post_filter_1_gap_to_the_quorum(cluster_name: str, percentage: int, placed: int, rejected: bool) -> None:
    """PostFilter 1: a group is rejected whole if the gap to its quorum is above the percentage, 10 by default."""
    bench = Bench(podGroupRejectPercentage=percentage)
    bench.put(a_node("n1", cpu=100))
    bench.put(a_group("ten", 10))
    bench.put(*(a_pod(f"ten-{number}", group="ten", node="n1") for number in range(placed)))
    bench.put(*(a_pod(f"ten-{number}", group="ten") for number in range(placed, 10)))

    bench.plugin.post_filter(CycleState(), bench.record("ten-9").pod)
    assert bool(bench.rejected) is rejected
    assert bench.groups.is_resting(bench.group("ten")) is rejected


async def test_post_filter_1_rejects_the_members_that_wait(bench: Bench) -> None:
    """PostFilter 1: rejecting a group sends back its members that wait at Permit, and frees what they held."""
    bench.put(a_node("n1", cpu=2))
    bench.gang("three", 3)
    await bench.run()
    assert bench.binds == {}
    assert bench.waiting() == []
    assert bench.group("three").assigned == 0
    assert [group for group, _ in bench.rejected] == ["three"]
    assert "gets rejected due to Pod three-2" in bench.refused["three-0"].status.message


async def test_post_filter_1_says_nothing_about_other_pods(bench: Bench) -> None:
    """PostFilter 1: pods without a group, and surplus members of a satisfied group, reject nobody."""
    bench.put(a_node("n1", cpu=2))
    bench.gang("two", 3, minimum=2)
    bench.put(a_pod("single", cpu="3"))
    await bench.run()
    assert sorted(bench.binds) == ["two-0", "two-1"]
    assert bench.rejected == []


# -- Permit -----------------------------------------------------------------------------------------------------------


async def test_permit_1_waits_below_the_minimum(bench: Bench) -> None:
    """Permit 1: with fewer placed pods than minMember the status is Wait, for the group's own time."""
    bench.put(a_node("n1", cpu=9), a_group("slow", 10, schedule_timeout_seconds=7))
    bench.put(*(a_pod(f"slow-{number}", group="slow") for number in range(10)))
    bench.cluster.assume(bench.key("slow-0"), "n1")
    status, seconds = bench.plugin.permit(CycleState(), bench.record("slow-0").pod, "n1")
    assert (status.code, seconds) == (Code.WAIT, 7)


async def test_permit_1_waits_as_configured_where_the_group_says_nothing(bench: Bench) -> None:
    """Permit 1: a group without a time of its own waits for the plugin's argument, 60 seconds by default."""
    bench.put(a_node("n1"), a_group("pair", 2))
    bench.put(*(a_pod(f"pair-{number}", group="pair") for number in range(2)))
    bench.cluster.assume(bench.key("pair-0"), "n1")
    assert bench.plugin.permit(CycleState(), bench.record("pair-0").pod, "n1")[1] == 60


async def test_permit_2_releases_all_at_the_minimum(bench: Bench) -> None:
    """Permit 2: when as many pods as minMember are placed, all that wait are permitted."""
    bench.put(a_node("n1"))
    bench.gang("trio", 3)
    await bench.run()
    assert sorted(bench.binds) == ["trio-0", "trio-1", "trio-2"]
    assert bench.waiting() == []


async def test_permit_2_bound_members_count(bench: Bench) -> None:
    """Permit 2: members that are bound count towards minMember; those that have ended do not."""
    bench.put(a_node("n1"), a_group("mixed", 2))
    bench.put(a_pod("mixed-0", group="mixed", node="n1"), a_pod("mixed-1", group="mixed"))
    await bench.run()
    assert list(bench.binds) == ["mixed-1"]

    bench.put(a_group("ended", 2))
    bench.put(a_pod("ended-0", group="ended", node="n1", phase="Succeeded"), a_pod("ended-1", group="ended"))
    await bench.run()
    assert list(bench.binds) == ["mixed-1"]


async def test_permit_3_a_time_out_rejects_the_whole_group(bench: Bench) -> None:
    """Permit 3: if any pod times out, the whole group is rejected."""
    bench.put(a_node("n1", cpu=9), a_group("ten", 10, schedule_timeout_seconds=7))
    bench.put(*(a_pod(f"ten-{number}", group="ten") for number in range(10)))
    await bench.run()
    assert len(bench.waiting()) == 9
    await bench.run(seconds=8)
    assert bench.waiting() == []
    assert bench.group("ten").assigned == 0
    assert bench.groups.is_resting(bench.group("ten"))


async def test_permit_ungrouped_pods_do_not_wait(bench: Bench) -> None:
    """Permit: a pod without a group is bound at once; one whose group is not there is refused."""
    bench.put(a_node("n1"), a_pod("single"), a_pod("orphan", group="nowhere"))
    assert bench.plugin.permit(CycleState(), bench.record("single").pod, "n1")[0].ok
    status, _ = bench.plugin.permit(CycleState(), bench.record("orphan").pod, "n1")
    assert status.message == "pod group ns/nowhere not found"


# -- PostBind ---------------------------------------------------------------------------------------------------------


async def test_post_bind_1_records_the_status(bench: Bench) -> None:
    """PostBind 1: when a pod is bound, the status of its group is brought up to date."""
    bench.put(a_node("n1"), a_pod("single"))
    bench.gang("pair", 2)
    await bench.run()
    assert bench.counted == ["pair", "pair"]


async def test_schedule_start_is_noted_at_the_first_permit(bench: Bench) -> None:
    """The start of scheduling is noted when the first member reaches Permit."""
    bench.put(a_node("n1"))
    bench.gang("pair", 2)
    await bench.run()
    assert bench.started[0] == "pair"


# -- the document as a whole ------------------------------------------------------------------------------------------

SENTENCES = {
    "Goal": 2,
    "QueueSort": 4,
    "PreFilter": 3,
    "PostFilter": 2,
    "Permit": 3,
    "PostBind": 1,
    "Controller": 3,
    "Limitation": 1,
}


def test_every_sentence_is_quoted(cluster_name: str) -> None:
    """Every sentence of the document has a test that quotes its number, and no test quotes one that is not there."""
    quoted: dict[str, set[int]] = {}
    for path in Path(__file__).parent.glob("test_*.py"):
        for heading, numbers in re.findall(r'"""(\w+) (\d(?: and \d)*): ', path.read_text()):
            quoted.setdefault(heading, set()).update(int(number) for number in numbers.split(" and "))
    assert quoted == {heading: set(range(1, count + 1)) for heading, count in SENTENCES.items()}
