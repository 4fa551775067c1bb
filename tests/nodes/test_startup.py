"""Reading the start-up condition from the arguments of its container."""

import pytest

from spinney.nodes.pods import ContainerSpec
from spinney.nodes.startup import InvalidStartup, Parent, parents
from tests.nodes.builders import a_bound_pod

POD = a_bound_pod({"metadata": {"labels": {"grove.io/podgang": "g-0"}}})


@pytest.mark.parametrize(
    "args",
    [
        ("--podcliques=a:1", "--podcliques=b:2"),
        ("--podcliques", "a:1", "-p", "b:2"),
        ("--podcliques=a:1,b:2",),
        ("-p=a:1", "--podcliques=", "-p=b:2"),
    ],
)
def test_every_form_of_the_flag_is_read(args: tuple[str, ...]) -> None:
    """The flag may be repeated, joined, shortened, or empty."""
    container = ContainerSpec(name="grove-initc", args=args)
    assert parents(POD, container) == (Parent(("test", "g-0", "a"), 1), Parent(("test", "g-0", "b"), 2))


@pytest.mark.parametrize("args", [("--podcliques=a",), ("--podcliques=a:0",), ("--podcliques=:2",), ("--wait",)])
def test_arguments_that_state_no_condition_are_refused(args: tuple[str, ...]) -> None:
    """A malformed condition is refused with the text that is wrong."""
    with pytest.raises(InvalidStartup, match="expected"):
        parents(POD, ContainerSpec(name="grove-initc", args=args))


def test_a_pod_outside_any_gang_cannot_wait_for_one() -> None:
    """Without the gang's label there is nobody to count."""
    with pytest.raises(InvalidStartup, match=r"no label grove\.io/podgang"):
        parents(a_bound_pod(), ContainerSpec(name="grove-initc", args=("--podcliques=a:1",)))
