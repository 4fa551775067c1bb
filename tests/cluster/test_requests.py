"""What a pod requests, by Kubernetes' rules."""

from spinney.api.core import ContainerStatus, Pod, PodStatus, ResourceRequirements
from spinney.api.pod_requests import LARGEST_AMOUNT
from spinney.cluster.requests import pod_requests
from spinney.cluster.resources import CPU, GPU, MEMORY, PODS, UNOFFERED, ResourceAxis
from tests.cluster.building import a_container, a_pod


def requests_of(pod: Pod) -> tuple[int, int]:
    """Return cpu and memory of a pod."""
    vector = pod_requests(pod, ResourceAxis())
    return int(vector[CPU]), int(vector[MEMORY])


def test_containers_add_up() -> None:
    """Containers run together, so their requests are summed; every pod takes one slot."""
    pod = a_pod(containers=(a_container("a", cpu="500m", memory="1Ki"), a_container("b", cpu="1", memory="1Ki")))
    vector = pod_requests(pod, ResourceAxis())

    assert (vector[CPU], vector[MEMORY], vector[PODS]) == (1500, 2048, 1)


def test_an_init_container_only_matters_where_it_needs_more() -> None:
    """Init containers run alone, so each resource is the larger of theirs and the containers' sum."""
    pod = a_pod(
        containers=(a_container(cpu="1", memory="100"),),
        init_containers=(a_container("i", cpu="3", memory="10"),),
    )
    assert requests_of(pod) == (3000, 100)


def test_sidecars_run_beside_everything_that_starts_after_them() -> None:
    """A restartable init container adds to the containers and to the init containers behind it."""
    pod = a_pod(
        containers=(a_container(cpu="1"),),
        init_containers=(
            a_container("before", cpu="2"),
            a_container("sidecar", cpu="1", restart_policy="Always"),
            a_container("after", cpu="4"),
        ),
    )
    assert requests_of(pod)[0] == 5000


def test_pod_level_requests_replace_the_aggregate() -> None:
    """What the pod as a whole requests counts instead of the sum, for the resources it names."""
    pod = a_pod(containers=(a_container(cpu="1", memory="100"),), resources=ResourceRequirements(requests={"cpu": "7"}))
    assert requests_of(pod) == (7000, 100)


def test_overhead_comes_on_top() -> None:
    """The overhead of a runtime class is added last."""
    pod = a_pod(containers=(a_container(cpu="1"),), overhead={"cpu": "250m", "memory": "10"})
    assert requests_of(pod) == (1250, 10)


def test_a_resize_counts_with_the_larger_size() -> None:
    """While a container is being resized, the most of asked, set aside and in force counts."""
    pod = a_pod(containers=(a_container("main", cpu="2"),))
    status = ContainerStatus(name="main", allocated_resources={"cpu": "3"})
    resizing = Pod(metadata=pod.metadata, spec=pod.spec, status=PodStatus(container_statuses=(status,)))
    refused = Pod(
        metadata=pod.metadata,
        spec=a_pod(containers=(a_container("main", cpu="9"),)).spec,
        status=PodStatus(container_statuses=(status,), resize="Infeasible"),
    )

    assert requests_of(resizing)[0] == 3000
    assert requests_of(refused)[0] == 3000


def test_what_a_node_offers_has_a_column() -> None:
    """Devices that a node offers are counted for themselves; what no node offers is counted together."""
    axis = ResourceAxis()
    axis.offer(["example.com/fpga"])
    wanted = {"nvidia.com/gpu": "2", "example.com/fpga": "1", "example.com/a": "1", "example.com/b": "3"}
    vector = pod_requests(a_pod(containers=(a_container(**wanted),)), axis)

    assert vector[GPU] == 2
    assert axis.amounts(vector) == {"pods": 1, "nvidia.com/gpu": 2, "example.com/fpga": 1, axis.name(UNOFFERED): 4}


def test_amounts_beyond_any_node_do_not_overflow() -> None:
    """A pod may ask for more than 64 bits hold: it is counted as more than any node has."""
    huge = {"cpu": "9e18", "memory": "900E", "example.com/a": "9223372036854775807", "example.com/b": "9e18"}
    vector = pod_requests(a_pod(containers=(a_container(**huge), a_container("second", **huge))), ResourceAxis())

    assert vector[[CPU, MEMORY, UNOFFERED]].tolist() == [LARGEST_AMOUNT] * 3
