"""What users may write: defaults, rules, the backend's word, and protection of generated objects."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import ClassVar, Final

import aiohttp
import msgspec
import pytest

from spinney.api import labels as marks
from spinney.api.admission import VALIDATING_WEBHOOK_CONFIGURATION, AdmissionRequest
from spinney.api.core import NAMESPACE
from spinney.api.grove import POD_CLIQUE, POD_CLIQUE_SET, PodCliqueSet
from spinney.api.podgang import PodGang
from spinney.api.rbac import CLUSTER_ROLE
from spinney.api.struct import JSON, convert
from spinney.api.topology_binding import CLUSTER_TOPOLOGY_BINDING
from spinney.backends import (
    Capabilities,
    Catalogue,
    Degradation,
    PodManifest,
    Profile,
    Profiles,
    Rejected,
    SchedulerBackend,
    every_backend,
)
from spinney.kube.client import Client
from spinney.kube.crds import install_crds
from spinney.kube.errors import ApiError, Forbidden, Invalid
from spinney.kube.keys import Key
from spinney.kube.webhooks.certificates import new_certificate
from spinney.kube.webhooks.server import ServicePlace, WebhookServer
from spinney.operator.admission.authorization import WriteAuthorizer
from spinney.operator.admission.rules import AUTHORIZE, DEFAULT_SET, VALIDATE_SET, VALIDATE_TOPOLOGY, Admission
from spinney.operator.admission.webhooks import TIMEOUT_SECONDS, register
from spinney.operator.operator import Operator, Settings
from spinney.runtime import Runtime
from spinney.server import ApiServer
from spinney.sim.embedded.transport import InProcessTransport
from spinney.testing.builders import a_clique, a_pod_clique_set, a_pod_spec, a_topology
from tests.virtual_time import on_virtual_time, opening

KAI_TOO = Profiles(
    (Profile("default-scheduler"), Profile("kai-scheduler"), Profile("spinney-scheduler")),
    "spinney-scheduler",
)
OPERATOR = "system:serviceaccount:grove:operator"


class InProcessCaller:
    """Carries reviews to an operator in this process, and keeps the warnings."""

    admission: Admission

    async def call(self, client: JSON, body: bytes, timeout: float) -> bytes:
        """Hand a review over."""
        return await self.admission.answer(client["service"]["path"], body)

    async def close(self) -> None:
        """Let go of nothing."""


WRONG: Final[Mapping[str, object]] = {"silent": None, "text": "no", "texts": ["no"]}
"""Names of sets, and answers about them that are none."""


class Thinker(SchedulerBackend):
    """A backend that gives sets called ``slow`` no verdict, fails on ``broken`` and refuses ``unwanted`` ones."""

    name: ClassVar[str] = "thinker"

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities()

    def prepare_pod(self, pod: PodManifest, gang: PodGang) -> None:
        pod["spec"]["schedulerName"] = self.name

    async def validate_pod_clique_set(self, pcs: PodCliqueSet, old: PodCliqueSet | None) -> list[Degradation]:
        if pcs.metadata.name == "slow":
            await asyncio.Event().wait()
        if pcs.metadata.name == "broken":
            raise LookupError("no map of the racks")
        if pcs.metadata.name == "cancelled":
            raise asyncio.CancelledError
        if pcs.metadata.name in WRONG:
            return WRONG[pcs.metadata.name]  # type: ignore[return-value]
        if pcs.metadata.name == "unwanted":
            raise Rejected("gangs of this size are not taken")
        return []


@asynccontextmanager
async def a_guarded_cluster(settings: Settings, catalogue: Catalogue | None = None) -> AsyncIterator[Client]:
    """Run an operator whose admission the embedded API server asks."""
    runtime, caller = Runtime.virtual(seed=5), InProcessCaller()
    server = ApiServer(runtime, webhooks=caller)
    client = Client(InProcessTransport(server), runtime)
    async with server.running():
        await client.create(NAMESPACE, {"metadata": {"name": "test"}})
        await install_crds(client)
        operator = Operator(Client(InProcessTransport(server), runtime), settings, catalogue=catalogue)
        caller.admission = operator.admission
        running = asyncio.create_task(operator.run())
        await operator.manager.wait_until_ready()
        await register(
            client, ServicePlace("grove-operator", "grove"), b"", authorizer=settings.operator_user is not None
        )
        yield client
        operator.stop()
        await running


async def refused(pcs: PodCliqueSet, message: str, settings: Settings) -> None:
    """Expect that creating a set is refused with a message."""
    async with a_guarded_cluster(settings) as client:
        with pytest.raises(Invalid, match=message):
            await client.create(POD_CLIQUE_SET, pcs)


@asynccontextmanager
async def with_kai() -> AsyncIterator[Client]:
    """Guard a cluster by an operator that has KAI and our scheduler enabled, too."""
    async with a_guarded_cluster(Settings(profiles=KAI_TOO)) as client:
        yield client


given_kai_too = opening(with_kai)


@given_kai_too
async def test_defaults_are_filled_in(client: Client) -> None:
    """A set written tersely is stored with every default, and pod specs keep what was written."""
    written: JSON = {
        "metadata": {"name": "model", "namespace": "test"},
        "spec": {
            "replicas": 1,
            "template": {
                "cliques": [
                    {
                        "name": "worker",
                        "spec": {"roleName": "worker", "replicas": 3, "podSpec": a_pod_spec(x=1)},
                    }
                ]
            },
        },
    }
    stored: JSON = await client.create(POD_CLIQUE_SET, written)
    template = stored["spec"]["template"]
    assert template["terminationDelay"] == "4h0m0s"
    assert template["cliqueStartupType"] == "CliqueStartupTypeAnyOrder"
    assert template["headlessServiceConfig"] == {"publishNotReadyAddresses": True}
    spec = template["cliques"][0]["spec"]
    assert spec["minAvailable"] == 3
    assert (spec["podSpec"]["restartPolicy"], spec["podSpec"]["x"]) == ("Always", 1)


@pytest.mark.parametrize(
    ("field", "value", "path"),
    [
        ("replicas", "two", "spec.replicas"),
        ("template", None, "spec.template"),
        (
            "template",
            {"cliques": [{"name": "a", "spec": {"replicas": 1}}]},
            "spec.template.cliques\\[0\\].spec.podSpec",
        ),
        ("template", {"cliques": [], "terminationDelay": 5}, "spec.template.terminationDelay"),
    ],
)
@given_kai_too
async def test_a_set_of_the_wrong_shape_is_refused_at_its_path(
    client: Client, field: str, value: object, path: str
) -> None:
    """Defaulting leaves what it cannot read to the schema, whose answer names the field."""
    spec: JSON = {"replicas": 1, "template": {"cliques": []}} | {field: value}
    with pytest.raises(Invalid, match=f"{path}: "):
        await client.create(POD_CLIQUE_SET, {"metadata": {"name": "odd", "namespace": "test"}, "spec": spec})


@pytest.mark.parametrize(
    ("scheduler", "message"),
    [
        ("volcano", "volcano.*enabled are: default-scheduler, kai-scheduler, spinney-scheduler"),
        ("kube-scheduler", "kube-scheduler"),
        ("kai-scheduler", "no queue is named"),
    ],
    ids=["not enabled", "no name in a pod spec", "refused by its backend"],
)
@on_virtual_time
async def test_a_scheduler_that_cannot_run_the_set_is_refused(scheduler: str, message: str) -> None:
    """The refusal names the clique's field and the schedulers that are enabled, or the backend's reason."""
    pcs = a_pod_clique_set("model", [a_clique("worker", pod_spec=a_pod_spec(scheduler=scheduler))])
    await refused(pcs, message, Settings(profiles=KAI_TOO))


@on_virtual_time
async def test_a_required_topology_that_kube_cannot_honour_is_refused() -> None:
    """kube-scheduler without native gangs cannot keep to a required domain, so the set is refused."""
    async with a_guarded_cluster(Settings(profiles=KAI_TOO, topology_enabled=True)) as client:
        await client.create(CLUSTER_TOPOLOGY_BINDING, a_topology("cluster"))
        await client.runtime.clock.sleep(1)
        cliques = [a_clique("worker", pod_spec=a_pod_spec(scheduler="default-scheduler"))]
        pcs = a_pod_clique_set("model", cliques, required="rack", topology="cluster")
        with pytest.raises(Invalid, match="'rack' is required"):
            await client.create(POD_CLIQUE_SET, pcs)


@given_kai_too
async def test_an_update_that_leaves_the_spec_alone_always_passes(client: Client) -> None:
    """A set whose backend is no longer enabled can still be labelled, and deleted."""
    cliques = [a_clique("worker", pod_spec=a_pod_spec(scheduler="kai-scheduler"))]
    await client.create(POD_CLIQUE_SET, a_pod_clique_set("model", cliques, labels={marks.KAI_QUEUE: "q"}))
    unqueued = {"metadata": {"labels": {marks.KAI_QUEUE: None, "team": "one"}}}
    await client.patch(POD_CLIQUE_SET, "model", unqueued, "test")
    await client.delete(POD_CLIQUE_SET, "model", "test")


def idle(runtime: Runtime) -> Operator:
    """Return an operator that never ran: it has no backends to ask, so any look beyond the metadata would fail."""
    return Operator(Client(InProcessTransport(ApiServer(runtime)), runtime), Settings())


def a_review(operation: str, new: JSON, old: JSON | None = None) -> bytes:
    """Write down a request about a set."""
    request: JSON = {
        "uid": "1",
        "kind": {"group": "grove.io", "version": "v1alpha1", "kind": "PodCliqueSet"},
        "resource": {"group": "grove.io", "version": "v1alpha1", "resource": "podcliquesets"},
        "operation": operation,
        "object": new,
        "oldObject": old,
    }
    return json.dumps({"request": request}).encode()


@pytest.mark.parametrize(
    "spec",
    [
        {"replicas": 1, "template": {"cliques": [{"name": "A", "spec": {"podSpec": {"schedulerName": "gone"}}}]}},
        {"replicas": 1, "template": {"cliques": [{"name": "a", "spec": {"podSpec": {}}}]}},
        {"replicas": "many", "template": 5},
        None,
    ],
    ids=["breaks the rules", "was never defaulted", "does not decode", "has no spec"],
)
async def test_metadata_of_any_stored_set_can_change(spec: JSON | None) -> None:
    """Labels and finalizers change whatever is stored, without a word from a backend and without a patch."""
    operator = idle(Runtime.virtual())
    old: JSON = {"metadata": {"name": "model", "namespace": "test", "finalizers": ["grove.io/x"]}, "spec": spec}
    new: JSON = {"metadata": {"name": "model", "namespace": "test", "labels": {"a": "b"}}, "spec": spec}
    for path in (DEFAULT_SET, VALIDATE_SET, VALIDATE_TOPOLOGY):
        answer = json.loads(await operator.admission.answer(path, a_review("UPDATE", new, old)))["response"]
        assert answer == {"uid": "1", "allowed": True}, path


async def test_the_nvlink_group_of_a_set_stays() -> None:
    """Of all metadata only this annotation is fixed, for pods were placed by it."""
    operator = idle(Runtime.virtual())
    old: JSON = {"metadata": {"name": "model", "annotations": {marks.MNNVL_GROUP: "a"}}, "spec": {}}
    new: JSON = {"metadata": {"name": "model"}, "spec": {}}
    answer = json.loads(await operator.admission.answer(VALIDATE_SET, a_review("UPDATE", new, old)))["response"]
    causes = answer["status"]["details"]["causes"]
    assert [cause["field"] for cause in causes] == [f"metadata.annotations[{marks.MNNVL_GROUP}]"]


@pytest.mark.parametrize(
    ("name", "code", "told"),
    [
        ("slow", 504, "no answer within 7 s"),
        ("broken", 500, "LookupError: no map of the racks"),
        ("cancelled", 500, "CancelledError, though nobody cancelled it"),
        ("silent", 500, "InvalidAnswer: returned None, expected a list of Degradation from validate_pod_clique_set"),
        ("text", 500, r"InvalidAnswer: returned 'no' \(str\), expected a list of Degradation"),
        ("texts", 500, r"InvalidAnswer: returned 'no' \(str\) as element 0, expected a list of Degradation"),
    ],
)
@on_virtual_time
async def test_a_backend_that_gives_no_verdict_is_named(name: str, code: int, told: str) -> None:
    """A silent or broken backend costs its own sets a bounded wait and an error with its name; others go on."""
    profiles = Profiles((Profile("thinker"),), "thinker")
    catalogue = Catalogue()
    catalogue.register(Thinker)
    async with a_guarded_cluster(Settings(profiles=profiles), catalogue) as client:
        begun = client.runtime.clock.monotonic()
        with pytest.raises(ApiError, match=f"scheduler backend 'thinker' could not judge .*{name}: {told}") as caught:
            await client.create(POD_CLIQUE_SET, a_pod_clique_set(name))
        assert caught.value.status == code
        assert client.runtime.clock.monotonic() - begun < TIMEOUT_SECONDS
        await client.create(POD_CLIQUE_SET, a_pod_clique_set("model"))


@on_virtual_time
async def test_a_refusal_stands_at_the_field_the_backend_names() -> None:
    """A backend's word against a set is a fault of that field, or of the spec where the backend names none."""
    profiles = Profiles((Profile("thinker"), Profile("kai-scheduler")), "thinker")
    catalogue = every_backend()
    catalogue.register(Thinker)
    async with a_guarded_cluster(Settings(profiles=profiles), catalogue) as client:
        with pytest.raises(Invalid, match="gangs of this size are not taken") as caught:
            await client.create(POD_CLIQUE_SET, a_pod_clique_set("unwanted"))
        assert [(each.field, each.reason) for each in caught.value.causes] == [("spec", "FieldValueInvalid")]
        cliques = [a_clique("worker", pod_spec=a_pod_spec(scheduler="kai-scheduler"))]
        with pytest.raises(Invalid, match="no queue is named") as caught:
            await client.create(POD_CLIQUE_SET, a_pod_clique_set("model", cliques))
        assert [(each.field, each.reason) for each in caught.value.causes] == [("metadata.labels", "FieldValueInvalid")]


@pytest.mark.parametrize("path", [VALIDATE_SET, VALIDATE_TOPOLOGY])
async def test_deleting_is_never_refused(path: str) -> None:
    """A set can go whatever it holds, and a topology although sets refer to it."""
    operator = idle(Runtime.virtual())
    answer = json.loads(await operator.admission.answer(path, a_review("DELETE", {}, {"spec": 5})))["response"]
    assert answer == {"uid": "1", "allowed": True}


@on_virtual_time
async def test_degradations_are_warnings() -> None:
    """What the backend will not honour is said in the answer to a request it accepts."""
    runtime = Runtime.virtual(seed=5)
    server = ApiServer(runtime)
    operator = Operator(Client(InProcessTransport(server), runtime), Settings())
    async with server.running():
        await install_crds(operator.manager.client)
        running = asyncio.create_task(operator.run())
        await operator.manager.wait_until_ready()
        review = a_review("CREATE", msgspec.to_builtins(a_pod_clique_set("model")))
        body = await operator.admission.answer(VALIDATE_SET, review)
        answer = json.loads(body)["response"]
        assert answer["allowed"]
        assert "without gang guarantees" in answer["warnings"][0]
        operator.stop()
        await running


@given_kai_too
async def test_topology_bindings_are_checked(client: Client) -> None:
    """Duplicate domains, and bindings for schedulers that keep no topology, are refused."""
    levels = [{"domain": "rack", "key": "a"}, {"domain": "rack", "key": "b"}]
    with pytest.raises(Invalid, match=r"levels\[1\].domain"):
        await client.create(CLUSTER_TOPOLOGY_BINDING, {"metadata": {"name": "x"}, "spec": {"levels": levels}})
    spec = {
        "levels": levels[:1],
        "schedulerTopologyBindings": [{"schedulerName": "default-scheduler", "topologyReference": "t"}],
    }
    with pytest.raises(Invalid, match="default-scheduler"):
        await client.create(CLUSTER_TOPOLOGY_BINDING, {"metadata": {"name": "x"}, "spec": spec})


@on_virtual_time
async def test_generated_objects_are_protected() -> None:
    """Somebody else may not change a PodClique, unless its set lifts the protection."""
    async with a_guarded_cluster(Settings(operator_user=OPERATOR)) as client:
        await client.create(POD_CLIQUE_SET, a_pod_clique_set("model", replicas=0))
        await client.runtime.clock.sleep(1)
        labels = {marks.MANAGED_BY: marks.MANAGED_BY_GROVE, marks.PART_OF: "model"}
        spec = {"roleName": "x", "podSpec": {}}
        stray: JSON = {"metadata": {"name": "stray", "namespace": "test", "labels": labels}, "spec": spec}
        with pytest.raises(Forbidden, match="only system:serviceaccount:grove:operator may change it"):
            await client.create(POD_CLIQUE, stray)
        lifted = {"metadata": {"annotations": {marks.DISABLE_PROTECTION: "true"}}}
        await client.patch(POD_CLIQUE_SET, "model", lifted, "test")
        await client.runtime.clock.sleep(1)
        await client.create(POD_CLIQUE, stray)


MANAGED = {marks.PART_OF: "model"}


@pytest.mark.parametrize(
    ("asked", "allowed", "warned"),
    [
        ({"operation": "CREATE", "object": MANAGED}, False, False),
        ({"operation": "UPDATE", "object": {}, "oldObject": MANAGED}, False, False),
        ({"operation": "UPDATE", "object": MANAGED, "oldObject": {}}, True, True),
        ({"operation": "DELETE", "oldObject": MANAGED}, False, False),
        ({"operation": "DELETE", "oldObject": MANAGED, "resource": "pods"}, True, False),
        ({"operation": "UPDATE", "oldObject": MANAGED, "resource": "pods"}, False, False),
        ({"operation": "CONNECT", "object": MANAGED}, True, False),
        ({"operation": "DELETE", "oldObject": {}}, True, True),
        ({"operation": "DELETE", "oldObject": {marks.PART_OF: "gone"}}, True, True),
        ({"operation": "DELETE", "oldObject": {marks.PART_OF: "open"}}, True, False),
        ({"operation": "DELETE", "oldObject": MANAGED, "user": OPERATOR}, True, False),
        ({"operation": "DELETE", "oldObject": MANAGED, "user": "trusted"}, True, False),
        (
            {
                "operation": "UPDATE",
                "oldObject": MANAGED,
                "resource": "secrets",
                "user": "system:kube-controller-manager",
            },
            True,
            False,
        ),
    ],
)
def test_who_may_touch_managed_objects(asked: JSON, allowed: bool, warned: bool) -> None:
    """The operator, the exempt and the filler of token Secrets may, others only what no set keeps protected."""
    lifted = {marks.DISABLE_PROTECTION: "true"}
    sets = {
        Key("test", "model"): a_pod_clique_set("model"),
        Key("test", "open"): a_pod_clique_set("open", annotations=lifted),
    }
    review: JSON = {
        "uid": "1",
        "kind": {"version": "v1", "kind": "X"},
        "resource": {"version": "v1", "resource": asked.get("resource", "podcliques")},
        "operation": asked["operation"],
        "namespace": "test",
        "name": "x",
        "userInfo": {"username": asked.get("user", "somebody")},
    }
    for each in ("object", "oldObject"):
        if each in asked:
            review[each] = {"metadata": {"labels": asked[each]}}
    judge = WriteAuthorizer(sets.get, operator=OPERATOR, exempt=("trusted",)).judge
    refusal, warnings = judge(convert(AdmissionRequest, review))
    assert (refusal is None, bool(warnings)) == (allowed, warned)


async def test_a_warning_of_the_authorizer_reaches_who_asks() -> None:
    """An object of a set that is not there may be written, and its writer hears that nothing protects it."""
    runtime = Runtime.virtual()
    client = Client(InProcessTransport(ApiServer(runtime)), runtime)
    operator = Operator(client, Settings(operator_user=OPERATOR))
    body = a_review("CREATE", {"metadata": {"name": "x", "labels": MANAGED}})
    response = json.loads(await operator.admission.answer(AUTHORIZE, body))["response"]
    assert response["allowed"]
    assert response["warnings"] == ["PodCliqueSet 'model' does not exist; the object is not protected"]


@pytest.mark.parametrize("path", [VALIDATE_SET, VALIDATE_TOPOLOGY])
async def test_an_object_of_another_shape_is_a_mistake_of_who_sent_it(path: str) -> None:
    """The API server's schema lets no such object through; where it has none, the answer says what does not fit."""
    body = a_review("CREATE", {"metadata": {"name": "x"}, "spec": 5})
    response = json.loads(await idle(Runtime.virtual()).admission.answer(path, body))["response"]
    assert not response["allowed"]
    assert response["status"]["code"] == 400
    assert (
        "does not have the expected shape: Expected `object`, got `int` - at `$.spec`" in response["status"]["message"]
    )


@on_virtual_time
async def test_an_authorizer_that_is_switched_off_is_not_left_registered() -> None:
    """Without it nothing is refused on behalf of a judge who does not answer; what is registered goes with the role."""
    async with a_guarded_cluster(Settings(profiles=KAI_TOO, operator_user=OPERATOR)) as client:
        role = await client.create(CLUSTER_ROLE, {"metadata": {"name": "grove-operator"}, "rules": []})
        place = ServicePlace("grove-operator", "grove")
        before = {each["metadata"]["name"] for each in (await client.list(VALIDATING_WEBHOOK_CONFIGURATION)).items}
        for _ in range(2):
            await register(client, place, b"", authorizer=False)
        found = (await client.list(VALIDATING_WEBHOOK_CONFIGURATION)).items
        assert before - {each["metadata"]["name"] for each in found} == {"authorizer-webhook"}
        owners = {each["metadata"]["ownerReferences"][0]["uid"] for each in found}
        assert owners == {role["metadata"]["uid"]}


async def test_reviews_are_answered_over_tls() -> None:
    """The answer comes over HTTPS, with a certificate its authority vouches for; a process that leaves hangs up."""
    runtime = Runtime.system()
    certificate = new_certificate(("localhost",), datetime.now(UTC))
    context = ssl.create_default_context(cadata=certificate.authority.decode())
    left: list[bool] = []
    server = WebhookServer(idle(runtime).admission, certificate, host="localhost", leaving=lambda: bool(left))
    asked = {"uid": "7", "kind": {"version": "v1", "kind": "Pod"}, "resource": {"version": "v1", "resource": "pods"}}
    review = {"request": {**asked, "operation": "DELETE"}}
    async with server.serving() as port, aiohttp.ClientSession() as session:
        url = f"https://localhost:{port}/webhooks/authorizer-webhook"
        async with session.post(url, data=b"nonsense", ssl=context) as answer:
            assert answer.status == 400
        async with session.post(url, json=review, ssl=context) as answer:
            assert (await answer.json())["response"] == {"uid": "7", "allowed": True}
            assert answer.headers.get("connection", "").lower() != "close"
        left.append(True)
        async with session.post(url, json=review, ssl=context) as answer:
            assert answer.status == 200
            assert answer.headers["connection"].lower() == "close"
    runtime.executor.close()
