"""What annotations make a pod do."""

from datetime import timedelta
from random import Random

import pytest

from spinney.nodes.behaviour import InvalidAnnotation, PodTimings, behaviour_of
from spinney.nodes.spec import PodTimes

IMMEDIATE = PodTimes()


def drawn(times: PodTimes = IMMEDIATE, /, **annotations: str) -> PodTimings:
    """Draw the behaviour of a pod with annotations ``spinney.dev/<name>``."""
    named = {f"spinney.dev/{name.replace('_', '-')}": text for name, text in annotations.items()}
    return behaviour_of(named, times, Random(1))


def test_by_default_a_pod_runs_for_ever_at_once() -> None:
    """Without annotations and latencies everything is immediate and nothing ends."""
    behaviour = drawn()
    assert (behaviour.start, behaviour.ready, behaviour.runs_for) == (timedelta(), timedelta(), None)


def test_an_annotation_overrides_the_cluster() -> None:
    """A pod's own latency stands instead of the cluster's."""
    assert drawn(PodTimes(ready="5s"), ready_after="1s").ready == timedelta(seconds=1)
    assert drawn(PodTimes(ready="5s")).ready == timedelta(seconds=5)


@pytest.mark.parametrize(
    ("annotations", "seconds", "code"),
    [
        ({"complete_after": "5s"}, 5, 0),
        ({"fail_after": "5s"}, 5, 1),
        ({"fail_after": "5s", "exit_code": "137"}, 5, 137),
        ({"complete_after": "5s", "fail_after": "3s"}, 3, 1),
        ({"complete_after": "2s", "fail_after": "3s"}, 2, 0),
    ],
)
def test_a_pod_ends_as_annotated(annotations: dict[str, str], seconds: int, code: int) -> None:
    """The earlier of completion and failure ends the pod, with its code."""
    behaviour = drawn(**annotations)
    assert (behaviour.runs_for, behaviour.exit_code) == (timedelta(seconds=seconds), code)


def test_never_means_never() -> None:
    """A pod may be told never to start, or never to get ready."""
    assert drawn(never_start="true").start is None
    assert drawn(never_ready="true").ready is None


@pytest.mark.parametrize(
    ("annotations", "message"),
    [
        ({"complete_after": "5 seconds"}, r"annotation spinney\.dev/complete-after: '5 seconds' is not a latency"),
        ({"exit_code": "300"}, r"annotation spinney\.dev/exit-code: found '300', expected a number from 0 to 255"),
        ({"never_ready": "yes"}, r"annotation spinney\.dev/never-ready: found 'yes'"),
    ],
)
def test_a_bad_annotation_is_named(annotations: dict[str, str], message: str) -> None:
    """An annotation that cannot be understood is named, with what was expected."""
    with pytest.raises(InvalidAnnotation, match=message):
        drawn(**annotations)
