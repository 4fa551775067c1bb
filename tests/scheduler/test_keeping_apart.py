"""Pods that refuse to share a node, and pods that such pods refuse: quick ways give what asking each time gives."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spinney.api.affinity import Affinity, PodAffinity, PodAffinityTerm
from spinney.api.labels import HOSTNAME
from spinney.api.selectors import LabelSelector
from spinney.cluster.table import Mask
from spinney.gangs.tree import TopologyConstraintInfo
from spinney.scheduler import NodeSet, Plugin, PodGroupInfo, PodInfo, Session
from spinney.scheduler.framework.nodes import Nodes
from spinney.scheduler.placement import filling
from spinney.scheduler.topology.levels import TopologyLevels
from tests.scheduler.building import RACK, a_gang, a_node, a_pod, a_scheduler, an_inventory, put_gang


def away_from(app: str, key: str = HOSTNAME) -> Affinity:
    """Return the affinity of a pod that will not be near pods of ``app``."""
    term = PodAffinityTerm(topology_key=key, label_selector=LabelSelector(match_labels={"app": app}))
    return Affinity(pod_anti_affinity=PodAffinity(required_during_scheduling_ignored_during_execution=(term,)))


def outcome(nodes: list[int], work: list[tuple[int, str, str, str]]) -> dict[str, tuple[str, str]]:
    """Return where pods end up: gangs of so many pods, of this app, that refuse pods of that app by that label."""
    inventory = an_inventory(
        *(
            a_node(f"n{i}", gpus=gpus, labels={HOSTNAME: f"n{i // 2 if gpus == 5 else i}", RACK: f"r{i % 2}"})
            for i, gpus in enumerate(nodes)
        )
    )
    inventory.put_topology(TopologyLevels("t", (RACK,)))
    for number, (count, app, avoided, key) in enumerate(work):
        constraint = TopologyConstraintInfo("t", preferred=RACK) if number % 2 else None
        affinity = away_from(avoided, key) if avoided else None
        put_gang(
            inventory,
            a_gang(f"job{number}", minimum=max(count - 1, 1), topology=constraint),
            (
                a_pod(f"j{number}-{i}", gang=f"job{number}", gpus=1, labels={"app": app}, affinity=affinity)
                for i in range(count)
            ),
        )
    scheduler = a_scheduler(inventory)
    session = scheduler.open_session()
    scheduler.run_actions(session)
    return {task.name: (task.status.value, task.node_name) for job in session.jobs for task in job.tasks}


apps = st.sampled_from(["a", "b"])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=6),
    st.lists(
        st.tuples(
            st.integers(1, 6), apps, st.sampled_from(["", "a", "b"]), st.sampled_from([HOSTNAME, HOSTNAME, RACK])
        ),
        min_size=1,
        max_size=5,
    ),
)
def test_pods_apart_go_where_they_would_one_by_one(nodes: list[int], work: list[tuple[int, str, str, str]]) -> None:
    """Placing one on each of the best nodes, and asking only pods about pods that mean them, changes no outcome."""
    quick = outcome(nodes, work)

    def slowly(*_: object) -> bool:
        return False

    def always(self: Nodes, _: object) -> bool:
        return self.rule_carriers > 0

    with patch.object(filling, "_are_only_apart", slowly), patch.object(Nodes, "have_rules_about", always):
        assert outcome(nodes, work) == quick


def test_replicas_that_refuse_each_other_find_a_node_each() -> None:
    """A gang whose pods may not share a node lands in a rack that has enough nodes, not just enough GPUs."""
    inventory = an_inventory(
        *(a_node(f"n{i}", gpus=8, labels={HOSTNAME: f"n{i}", RACK: "small" if i < 2 else "large"}) for i in range(6))
    )
    inventory.put_topology(TopologyLevels("t", (RACK,)))
    put_gang(
        inventory,
        a_gang("g", minimum=3, topology=TopologyConstraintInfo("t", required=RACK)),
        (a_pod(f"p{i}", gang="g", gpus=1, labels={"app": "a"}, affinity=away_from("a")) for i in range(3)),
    )
    result = a_scheduler(inventory).run_cycle()
    assert sorted(bind.node for bind in result.binds) == ["n2", "n3", "n4"]


class NearOthers(Plugin):
    """A rule of a third party about pods near other pods; counts how often it is asked."""

    name = "near-others"
    promises = True
    asked = 0

    def on_session_open(self, session: Session) -> None:
        """Register a predicate that looks at all nodes."""
        session.add_predicate_columns(self._anywhere, stateful=True, only_pod_rules=self.promises)

    def _anywhere(self, task: PodInfo, job: PodGroupInfo, nodes: NodeSet) -> Mask:
        NearOthers.asked += 1
        return np.ones(len(nodes), dtype=np.bool_)


@pytest.mark.parametrize(("promises", "asked"), [(True, 1), (False, 4)])
def test_a_promise_keeps_pods_apart_in_one_pass(promises: bool, asked: int) -> None:
    """A rule that promises to follow what pods say about each other is asked once for all that only keep apart."""
    inventory = an_inventory(*(a_node(f"n{number}", labels={HOSTNAME: f"n{number}"}) for number in range(5)))
    pods = [
        a_pod(f"p{number}", gang="job", gpus=1, labels={"app": "a"}, affinity=away_from("a")) for number in range(4)
    ]
    put_gang(inventory, a_gang("job", minimum=4), pods)
    NearOthers.promises, NearOthers.asked = promises, 0
    binds = a_scheduler(inventory, NearOthers).run_cycle().binds
    assert sorted((bind.pod.name, bind.node) for bind in binds) == [(f"p{number}", f"n{number}") for number in range(4)]
    assert NearOthers.asked == asked
