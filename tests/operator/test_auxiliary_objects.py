"""What a set has beside its pods: the rights of its init containers, services, autoscalers; and what is not its own."""

import asyncio

import msgspec
import pytest
from structlog.testing import capture_logs

from spinney.api import labels as marks
from spinney.api.autoscaling import HORIZONTAL_POD_AUTOSCALER
from spinney.api.core import SECRET, SERVICE, SERVICE_ACCOUNT
from spinney.api.grove import (
    EXPLICIT,
    POD_CLIQUE_SCALING_GROUP,
    POD_CLIQUE_SET,
    AutoScalingConfig,
    PodCliqueSet,
    ResourceClaimTemplateConfig,
    ResourceSharing,
)
from spinney.api.kai import TOPOLOGY
from spinney.api.rbac import ROLE, ROLE_BINDING
from spinney.api.resource import Resource
from spinney.api.resource_claims import RESOURCE_CLAIM
from spinney.api.struct import JSON, encode
from spinney.api.topology_binding import CLUSTER_TOPOLOGY_BINDING, ClusterTopologyBinding, SchedulerTopologyBinding
from spinney.backends.profiles import Profile, Profiles
from spinney.kube.transport import Request, Response
from spinney.operator.operator import Settings
from spinney.operator.status.clustertopologybinding import binding_status
from spinney.server import ApiServer
from spinney.sim.embedded.transport import InProcessTransport
from spinney.testing.builders import a_clique, a_pod_clique_set, a_scaling_group, a_topology
from tests.operator.harness import World, a_world, given_a_world
from tests.virtual_time import on_virtual_time

EVENT = Resource("", "v1", "Event", "events")
CPU: JSON = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}},
}


def ordered() -> PodCliqueSet:
    """Return a set in which one clique starts after another."""
    return a_pod_clique_set("model", [a_clique("a"), a_clique("b", after=["a"])], startup=EXPLICIT)


async def part(world: World, resource: Resource, name: str) -> JSON:
    """Return an object made for the set, after checking that it is labelled and owned as such."""
    found: JSON = await world.client.get(resource, name, world.namespace)
    assert found["metadata"]["labels"][marks.MANAGED_BY] == "grove-operator"
    assert found["metadata"]["labels"][marks.PART_OF] == "model"
    (owner,) = found["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("PodCliqueSet", "model", True)
    return found


@given_a_world
async def test_init_containers_may_watch_the_pods_they_wait_for(world: World) -> None:
    """ServiceAccount, Role, RoleBinding and token are those of the specification; app names have no colon."""
    await world.bring_up(ordered())
    account = await part(world, SERVICE_ACCOUNT, "model")
    assert account["automountServiceAccountToken"] is True
    role = await part(world, ROLE, "grove.io:pcs:model")
    assert role["metadata"]["labels"][marks.APP_NAME] == "grove.io-pcs-model"
    assert role["rules"] == [
        {"apiGroups": [""], "resources": ["pods", "pods/status"], "verbs": ["get", "list", "watch"]}
    ]
    binding = await part(world, ROLE_BINDING, "grove.io:pcs:model")
    assert binding["roleRef"]["name"] == "grove.io:pcs:model"
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "model", "namespace": "test"}]
    secret = await part(world, SECRET, "model-ic-sat")
    assert secret["type"] == "kubernetes.io/service-account-token"
    assert secret["metadata"]["annotations"]["kubernetes.io/service-account.name"] == "model"


class SlowToSeeRoles(InProcessTransport):
    """A line to an API server that refuses a binding to a Role which it has not seen for half a second. Mutable."""

    def __init__(self, server: ApiServer) -> None:
        super().__init__(server)
        self._seen: float | None = None

    async def request(self, request: Request) -> Response:
        """Refuse bindings that come too early, as kube-apiserver does."""
        now = asyncio.get_running_loop().time()
        creates = request.method == "POST"
        if creates and request.path.endswith("/rolebindings") and (self._seen is None or now < self._seen + 0.5):
            status = {"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404, "message": "no role"}
            return Response(404, {}, encode(status))
        if creates and request.path.endswith("/roles"):
            self._seen = now
        return await super().request(request)


@on_virtual_time
async def test_a_role_is_bound_once_the_api_server_has_seen_it() -> None:
    """A Role takes a moment to be known to whoever checks its binding; waiting for it is no failed reconcile."""
    with capture_logs() as logs:
        async with a_world(line=SlowToSeeRoles) as world:
            await world.bring_up(ordered())
            await part(world, ROLE_BINDING, "grove.io:pcs:model")
    assert [each for each in logs if each["event"] == "reconcile failed"] == []


@given_a_world
async def test_without_an_order_there_is_no_token(world: World) -> None:
    """Every set has its account and role; a token is only made where a pod carries it."""
    await world.bring_up(a_pod_clique_set("model", replicas=0))
    for resource, name in ((SERVICE_ACCOUNT, "model"), (ROLE, "grove.io:pcs:model")):
        await part(world, resource, name)
    assert await world.names(SECRET) == []


@given_a_world
async def test_somebody_elses_service_account_will_do(world: World) -> None:
    """A ServiceAccount of the set's name that its author made is used as it is, and outlives the set."""
    await world.client.create(SERVICE_ACCOUNT, {"metadata": {"name": "model", "namespace": "test"}})
    before = await world.client.get(SERVICE_ACCOUNT, "model", "test")
    await world.bring_up(ordered())
    assert len(await world.pods()) == 2
    assert await world.client.get(SERVICE_ACCOUNT, "model", "test") == before
    await world.client.delete(POD_CLIQUE_SET, "model", "test")
    await world.settle()
    assert "model" in await world.names(SERVICE_ACCOUNT)


@pytest.mark.parametrize("labels", [{}, {marks.MANAGED_BY: marks.MANAGED_BY_GROVE}], ids=["unlabelled", "labelled"])
@given_a_world
async def test_a_service_of_another_owner_is_not_touched(world: World, labels: dict[str, str]) -> None:
    """A Service in the way is left as it is, and named in an event until it is gone."""
    metadata = {"name": "model-1", "namespace": "test", "labels": labels}
    await world.client.create(SERVICE, {"metadata": metadata, "spec": {"ports": [{"port": 80}]}})
    before = await world.client.get(SERVICE, "model-1", "test")
    await world.bring_up(a_pod_clique_set("model", replicas=2))
    assert await world.client.get(SERVICE, "model-1", "test") == before
    events = [each for each in (await world.client.list(EVENT, "test")).items if each["reason"] == "NameTaken"]
    assert "Service test/model-1 is needed for PodCliqueSet model" in events[0]["message"]
    await world.client.delete(SERVICE, "model-1", "test")
    await asyncio.sleep(300)
    assert await world.names(SERVICE) == ["model-0", "model-1"]


@given_a_world
async def test_an_autoscaler_follows_its_template(world: World) -> None:
    """Bounds and metrics are copied; what the template no longer has goes, and so does the whole autoscaler."""
    scaling = AutoScalingConfig(min_replicas=1, max_replicas=5, metrics=(CPU,))
    pcs = a_pod_clique_set("model", [a_clique("a", 1, autoscaling=scaling)])
    await world.bring_up(pcs)
    hpa = await part(world, HORIZONTAL_POD_AUTOSCALER, "model-0-a")
    target = {"apiVersion": "grove.io/v1alpha1", "kind": "PodClique", "name": "model-0-a"}
    assert hpa["spec"]["scaleTargetRef"] == target
    assert (hpa["spec"]["minReplicas"], hpa["spec"]["maxReplicas"]) == (1, 5)
    assert hpa["spec"]["metrics"] == [CPU]
    for changed in (msgspec.structs.replace(scaling, max_replicas=7, metrics=()), None):
        await world.bring_up(a_pod_clique_set("model", [a_clique("a", 1, autoscaling=changed)]))
        if changed is not None:
            found = (await part(world, HORIZONTAL_POD_AUTOSCALER, "model-0-a"))["spec"]
            assert found["maxReplicas"] == 7
            assert CPU not in found.get("metrics", [])
    assert await world.names(HORIZONTAL_POD_AUTOSCALER) == []


@given_a_world
async def test_an_empty_namespace_is_none(world: World) -> None:
    """A shared template whose namespace is given as empty is the set's own."""
    spec = {"spec": {"devices": {"requests": [{"name": "d", "exactly": {"deviceClassName": "gpu.example"}}]}}}
    sharing = [ResourceSharing(name="t", namespace="", scope="AllReplicas")]
    template = ResourceClaimTemplateConfig(name="t", template_spec=spec)
    cliques = [a_clique("a", 1, sharing=sharing)]
    await world.bring_up(a_pod_clique_set("model", cliques, claim_templates=[template]))
    assert await world.names(RESOURCE_CLAIM) == ["model-0-a-all-t"]
    assert len(await world.pods()) == 1


@given_a_world
async def test_a_scaling_group_has_the_nvlink_group_of_its_set(world: World) -> None:
    """The set's annotation is on its scaling groups, too, unless one has its own."""
    own = msgspec.structs.replace(a_scaling_group("own", ["b"]), annotations={marks.MNNVL_GROUP: "slow"})
    cliques, groups = [a_clique("a"), a_clique("b")], [a_scaling_group("g", ["a"]), own]
    await world.bring_up(a_pod_clique_set("model", cliques, groups, annotations={marks.MNNVL_GROUP: "fast"}))
    listing = await world.client.list(POD_CLIQUE_SCALING_GROUP, "test")
    found = {each["metadata"]["name"]: each["metadata"]["annotations"] for each in listing.items}
    assert found["model-0-g"][marks.MNNVL_GROUP] == "fast"
    assert found["model-0-own"][marks.MNNVL_GROUP] == "slow"


@given_a_world
async def test_a_binding_for_a_scheduler_that_is_gone(world: World) -> None:
    """A binding to a backend that is not enabled any more has a status that says so, and the drift is unknown."""
    gone = SchedulerTopologyBinding(scheduler_name="kai-scheduler", topology_reference="theirs")
    plain = a_topology("cluster")
    spec = msgspec.structs.replace(plain.spec, scheduler_topology_bindings=(gone,))
    await world.client.create(CLUSTER_TOPOLOGY_BINDING, msgspec.structs.replace(plain, spec=spec))
    await world.settle()
    found = await world.client.get(CLUSTER_TOPOLOGY_BINDING, "cluster", type=ClusterTopologyBinding)
    (status,) = found.status.scheduler_topology_statuses
    assert (status.scheduler_name, status.topology_reference, status.in_sync) == (
        "kai-scheduler",
        "theirs",
        False,
    )
    (drift,) = found.status.conditions
    assert (drift.status, drift.reason) == ("Unknown", "TopologyNotFound")
    assert found.status.observed_generation == found.metadata.generation


@on_virtual_time
async def test_a_generation_that_failed_is_not_observed() -> None:
    """While a backend cannot keep its topology, the binding does not say that its generation was seen to."""
    kai = Settings(profiles=Profiles((Profile("default-scheduler"), Profile("kai-scheduler")), "kai-scheduler"))
    async with a_world(kai) as world:
        levels = [{"nodeLabel": "other"}]
        await world.client.create(TOPOLOGY, {"metadata": {"name": "cluster"}, "spec": {"levels": levels}})
        await world.client.create(CLUSTER_TOPOLOGY_BINDING, a_topology("cluster"))
        await world.settle()
        found = await world.client.get(CLUSTER_TOPOLOGY_BINDING, "cluster", type=ClusterTopologyBinding)
        assert found.status.observed_generation is None
        (status,) = found.status.scheduler_topology_statuses
        assert "not managed for ClusterTopologyBinding" in (status.message or "")
        again = binding_status(found, {}, {}, world.runtime.clock.now())
        assert again.observed_generation == found.metadata.generation


@given_a_world
async def test_a_service_that_lost_our_label_gets_it_back(world: World) -> None:
    """What is ours by its owner is not made again, and becomes what it was, selector and all."""
    await world.bring_up(a_pod_clique_set("model"))
    made = await part(world, SERVICE, "model-0")
    stripped = {"metadata": {"labels": None}, "spec": {"selector": {"app": "other"}}}
    await world.client.patch(SERVICE, "model-0", stripped, "test")
    await world.settle()
    found = await part(world, SERVICE, "model-0")
    for field in ("uid", "labels"):
        assert found["metadata"][field] == made["metadata"][field]
    assert found["spec"]["selector"] == made["spec"]["selector"]
