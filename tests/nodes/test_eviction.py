"""How long pods put up with a failed node."""

from datetime import datetime
from typing import Any

import pytest

from spinney.api.affinity import Taint
from spinney.nodes.pods import evicted_at
from tests.nodes.builders import NOON, a_bound_pod, after

UNREACHABLE = Taint(key="node.kubernetes.io/unreachable", effect="NoExecute")


def tolerating(seconds: int | None = None, *, key: str = UNREACHABLE.key) -> dict[str, Any]:
    """Return a toleration of the taint, for ever or for some seconds."""
    toleration = {"key": key, "operator": "Exists", "effect": "NoExecute"}
    return toleration if seconds is None else {**toleration, "tolerationSeconds": seconds}


@pytest.mark.parametrize(
    ("tolerations", "leaves"),
    [
        ([], NOON),
        ([tolerating(key="other")], NOON),
        ([tolerating()], None),
        ([tolerating(300)], after(300)),
        ([tolerating(300), tolerating(60)], after(60)),
        ([tolerating(), tolerating(60)], after(60)),
        ([tolerating(-5)], NOON),
        ([{"operator": "Exists"}], None),
    ],
)
def test_a_pod_stays_as_long_as_it_tolerates_the_failure(tolerations: list[Any], leaves: datetime | None) -> None:
    """Without a toleration a pod leaves at once; of several the shortest counts; without a time it stays."""
    assert evicted_at(a_bound_pod(tolerations=tolerations), UNREACHABLE, since=NOON) == leaves
