"""An upgrade from the previous chart on a real node."""

import pytest

from .machine import CHART, IMAGE, PREVIOUS_CHART, SYSTEM, Machine
from .workloads import an_ordered_set

pytestmark = [pytest.mark.node, pytest.mark.timeout(900)]

LIMITS = {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}}


def test_workloads_do_not_notice_an_upgrade(cluster: Machine) -> None:
    """Pods that ran under the previous chart run on; afterwards sets are made as before."""
    for crd in sorted((CHART / "crds").iterdir()):
        cluster.kubectl("apply", "--server-side", "-f", str(crd))
    cluster.kubectl("delete", "networkpolicy", "deny", "--namespace", SYSTEM)  # the previous chart has none of its own
    resources = dict.fromkeys(("operator", "scheduler"), LIMITS)
    cluster.install(PREVIOUS_CHART, {"image": IMAGE, "resources": resources})
    cluster.apply(an_ordered_set("older"))
    cluster.wait("podclique/older-0-worker", "jsonpath={.status.readyReplicas}=2")
    pods = {each["metadata"]["uid"] for each in cluster.pods("older")}

    cluster.install(CHART, {"image": IMAGE})

    cluster.apply(an_ordered_set("newer"))
    cluster.wait("podclique/newer-0-worker", "jsonpath={.status.readyReplicas}=2")
    assert {each["metadata"]["uid"] for each in cluster.pods("older")} == pods
