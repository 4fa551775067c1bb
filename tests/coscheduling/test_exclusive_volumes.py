"""ReadWriteOncePod inside a group: a claim that one pod may use at a time, seen by the quorum and by preemption."""

from typing import Any

import pytest

from spinney.api.core import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, PersistentVolumeClaimVolume, Pod, Volume
from spinney.api.meta import Metadata
from spinney.api.storage import (
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
)
from spinney.cluster.filters.volume_restrictions import IN_USE
from spinney.kube.cache import Change
from spinney.kube.keys import Key

from .bench import NAMESPACE, Bench, a_group, a_node, a_pod

pytestmark = pytest.mark.parametrize("cluster_name", ["embedded"], indirect=True)


def a_mounting_pod(name: str, **more: Any) -> Pod:
    """Return a pod that mounts the one claim there is."""
    return a_pod(
        name,
        volumes=(Volume(name="d", persistent_volume_claim=PersistentVolumeClaimVolume(claim_name="data")),),
        **more,
    )


def put_claim(bench: Bench) -> None:
    """Have a claim that one pod may use, bound to a volume that every node reaches."""
    metadata = Metadata(name="data", namespace=NAMESPACE, annotations={"pv.kubernetes.io/bind-completed": "yes"})
    spec = PersistentVolumeClaimSpec(access_modes=("ReadWriteOncePod",), volume_name="disk")
    volume = PersistentVolume(
        metadata=Metadata(name="disk"), spec=PersistentVolumeSpec(access_modes=("ReadWriteOncePod",))
    )
    bench.intake.constraint(PERSISTENT_VOLUME, Change(Key("", "disk"), None, volume, "1"))
    claim = PersistentVolumeClaim(metadata=metadata, spec=spec)
    bench.intake.constraint(PERSISTENT_VOLUME_CLAIM, Change(Key(NAMESPACE, "data"), None, claim, "1"))


async def test_two_members_of_a_quorum_cannot_share_it(bench: Bench) -> None:
    """A group that needs two pods with the claim is refused as a whole, says why, and holds nothing."""
    put_claim(bench)
    bench.put(a_node("n1"), a_node("n2"), a_group("pair", 2))
    bench.put(*(a_mounting_pod(f"pair-{number}", group="pair") for number in range(2)))
    await bench.run(seconds=60)
    assert bench.binds == {}
    assert bench.waiting() == []
    assert f"0/2 nodes are available: 2 {IN_USE}." in bench.rejected[-1][1]


async def test_one_member_with_it_and_others_without_make_the_quorum(bench: Bench) -> None:
    """Of members that compete for the claim one counts towards the quorum, with those that do not need it."""
    put_claim(bench)
    bench.put(a_node("n1"), a_group("trio", 2))
    bench.put(*(a_mounting_pod(f"trio-{number}", group="trio") for number in range(2)), a_pod("trio-2", group="trio"))
    await bench.run(seconds=60)
    assert sorted(bench.binds) == ["trio-0", "trio-2"]
    assert bench.refused["trio-1"].found is not None
    bench.delete("trio-0")
    await bench.run(seconds=15)
    assert "trio-1" in bench.binds


async def test_its_user_is_preempted_for_a_whole_quorum_only(bench: Bench) -> None:
    """A user of lower priority makes way for a gang that then fits whole, and for no other."""
    put_claim(bench)
    bench.put(a_node("n1", cpu=4), a_mounting_pod("user", node="n1"))
    bench.put(a_group("large", 5), *(a_pod(f"large-{number}", group="large", priority=9) for number in range(4)))
    bench.put(a_mounting_pod("large-4", group="large", priority=9))
    await bench.run(seconds=60)
    assert bench.preempted == []
    bench.delete(*(f"large-{number}" for number in range(5)))

    bench.put(a_group("small", 2, created=5), a_pod("small-0", group="small", priority=9))
    bench.put(a_mounting_pod("small-1", group="small", priority=9))
    await bench.run(seconds=5)
    assert [victim for victim, _ in bench.preempted] == ["user"]
    bench.delete("user")
    await bench.run(seconds=15)
    assert sorted(bench.binds) == ["small-0", "small-1"]
