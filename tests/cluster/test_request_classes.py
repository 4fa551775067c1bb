"""Request classes: which pods are alike."""

import pytest

from spinney.api.affinity import Affinity, PodAffinity, PodAffinityTerm
from spinney.api.core import EphemeralVolume, Pod, Volume
from spinney.cluster.classes import DeviceShare, RequestClasses
from spinney.cluster.devices import DEVICE
from spinney.cluster.resources import ResourceAxis
from tests.cluster.building import a_container, a_pod


def test_pods_that_ask_for_the_same_share_a_class() -> None:
    """Name, labels and environment of a pod play no part."""
    classes = RequestClasses(ResourceAxis())
    left = classes.of(a_pod("a", labels={"index": "1"}, node_selector={"x": "1", "y": "2"}))
    right = classes.of(a_pod("b", labels={"index": "2"}, node_selector={"y": "2", "x": "1"}))

    assert left is right


@pytest.mark.parametrize(
    "other",
    [
        a_pod(containers=(a_container(cpu="2"),)),
        a_pod(node_selector={"zone": "a"}),
        a_pod(annotations={"gpu-fraction": "0.5"}),
        a_pod(annotations={"gpu-memory": "2000"}),
    ],
)
def test_pods_that_ask_for_something_else_do_not(other: Pod) -> None:
    """Amounts, selectors and shares of devices tell classes apart."""
    classes = RequestClasses(ResourceAxis())

    assert classes.of(a_pod()) is not classes.of(other)


def test_labels_count_where_a_pod_looks_at_pods() -> None:
    """A pod with affinity to pods may match itself, so its labels are part of its class."""
    classes = RequestClasses(ResourceAxis())
    affinity = Affinity(
        pod_affinity=PodAffinity(
            required_during_scheduling_ignored_during_execution=(PodAffinityTerm(topology_key="zone"),)
        )
    )
    left = classes.of(a_pod("a", labels={"app": "x"}, affinity=affinity))
    right = classes.of(a_pod("b", labels={"app": "y"}, affinity=affinity))

    assert left is not right
    assert left.constraints.looks_at_pods


@pytest.mark.parametrize(
    ("annotations", "share"),
    [
        ({"gpu-fraction": "0.5"}, DeviceShare(parts=DEVICE // 2, memory=0)),
        ({"gpu-fraction": "0.333", "gpu-fraction-num-devices": "2"}, DeviceShare(parts=3330, memory=0, devices=2)),
        ({"gpu-memory": "2000"}, DeviceShare(parts=0, memory=2000)),
        ({"gpu-fraction": "1"}, None),
        ({"gpu-fraction": "0"}, None),
        ({"gpu-fraction": "half"}, None),
        ({"gpu-memory": "\u00b2"}, None),
        ({"gpu-memory": "9" * 9999}, DeviceShare(parts=0, memory=1 << 30)),
        ({"gpu-fraction": "0.5", "gpu-fraction-num-devices": "9" * 30}, DeviceShare(DEVICE // 2, 0, devices=1 << 30)),
        ({"gpu-memory": "-5"}, None),
    ],
)
def test_shares_of_devices_are_read_from_annotations(annotations: dict[str, str], share: DeviceShare | None) -> None:
    """A fraction lies between 0 and 1, a memory request is a positive number; anything else is no share."""
    assert RequestClasses(ResourceAxis()).of(a_pod(annotations=annotations)).share == share


def test_memory_is_rounded_up_to_a_hundredth_of_the_device() -> None:
    """A request in memory takes whole hundredths of whatever device it lands on."""
    share = DeviceShare(parts=0, memory=333)

    assert share.parts_on(1000) == 34 * DEVICE // 100
    assert share.parts_on(100) == 333 * DEVICE // 100


def test_mig_instances_count_with_their_slices() -> None:
    """A class knows how many compute slices its MIG instances stand for."""
    pod = a_pod(containers=(a_container(**{"nvidia.com/mig-2g.10gb": "3"}),))

    assert RequestClasses(ResourceAxis()).of(pod).mig_slices == 6


def test_ephemeral_volumes_tell_pods_apart() -> None:
    """The claim of such a volume is made for one pod, so whether it is there says nothing about other pods."""
    classes = RequestClasses(ResourceAxis())
    volumes = (Volume(name="scratch", ephemeral=EphemeralVolume()),)

    assert classes.of(a_pod("a", volumes=volumes)) is not classes.of(a_pod("b", volumes=volumes))
    assert classes.of(a_pod("a", volumes=volumes)) is classes.of(a_pod("a", volumes=volumes))
    assert classes.of(a_pod("a", volumes=(Volume(name="cache"),))) is classes.of(a_pod("b"))
