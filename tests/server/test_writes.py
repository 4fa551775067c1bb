"""Creating and replacing objects: metadata, generations, conflicts, dry runs."""

from typing import Any

import pytest

from tests.server.api import CONFIG_MAPS, NODES, PODS, Api, a_config_map, a_pod, an_api

_LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


async def test_the_server_owns_metadata(api: Api) -> None:
    """A created object gets a uid, a creation time, a revision, and keeps its uid whatever an update says."""
    created = await api.create(CONFIG_MAPS, a_config_map("a"))
    metadata = created["metadata"]
    assert metadata["uid"]
    assert metadata["creationTimestamp"].endswith("Z")
    assert int(metadata["resourceVersion"]) > 1
    changed = await api.patch(f"{CONFIG_MAPS}/a", {"metadata": {"creationTimestamp": "1999-01-01T00:00:00Z"}})
    assert changed["metadata"] == metadata


async def test_generated_names_are_unique(api: Api) -> None:
    """GenerateName gives each object a free name with the prefix."""
    pod = {**a_pod(), "metadata": {"generateName": "worker-"}}
    names = {(await api.create(PODS, pod))["metadata"]["name"] for _ in range(50)}
    assert len(names) == 50
    assert all(name.startswith("worker-") and len(name) == len("worker-") + 5 for name in names)


async def test_a_name_is_taken_once(api: Api) -> None:
    """A second create of a name is refused as AlreadyExists."""
    await api.create(CONFIG_MAPS, a_config_map("a"))
    answer = await api.send("POST", CONFIG_MAPS, a_config_map("a"))
    assert (answer.status, answer.body["reason"]) == (409, "AlreadyExists")
    assert answer.body["details"] == {"name": "a", "kind": "configmaps"}


async def test_a_stale_replace_conflicts(api: Api) -> None:
    """A replace with an old resourceVersion is refused; without one it wins, where the kind allows that."""
    old = await api.create(CONFIG_MAPS, a_config_map("a", v="1"))
    await api.replace(f"{CONFIG_MAPS}/a", {**old, "data": {"v": "2"}})
    answer = await api.send("PUT", f"{CONFIG_MAPS}/a", {**old, "data": {"v": "3"}})
    assert (answer.status, answer.body["reason"]) == (409, "Conflict")
    assert (await api.replace(f"{CONFIG_MAPS}/a", a_config_map("a", v="4")))["data"] == {"v": "4"}


async def test_leases_need_a_revision(api: Api) -> None:
    """A Lease cannot be replaced blindly, or two leaders could both win."""
    lease = {"metadata": {"name": "l"}, "spec": {"holderIdentity": "a"}}
    await api.create(_LEASES, lease)
    answer = await api.send("PUT", f"{_LEASES}/l", lease)
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")


async def test_a_write_that_changes_nothing_writes_nothing(api: Api) -> None:
    """Patching a value to what it is keeps the revision, so that nobody is woken."""
    created = await api.create(CONFIG_MAPS, a_config_map("a", v="1"))
    same = await api.patch(f"{CONFIG_MAPS}/a", {"data": {"v": "1"}})
    assert same["metadata"]["resourceVersion"] == created["metadata"]["resourceVersion"]


async def test_generation_follows_the_spec(api: Api) -> None:
    """The generation rises with the spec and not with labels or status."""
    await api.create(PODS, a_pod("p"))
    labelled = await api.patch(f"{PODS}/p", {"metadata": {"labels": {"a": "b"}}})
    assert labelled["metadata"]["generation"] == 1
    await api.patch(f"{PODS}/p/status", {"status": {"phase": "Running"}})
    changed = await api.patch(f"{PODS}/p", {"spec": {"activeDeadlineSeconds": 5}})
    assert changed["metadata"]["generation"] == 2


async def test_status_and_spec_have_their_own_endpoints(api: Api) -> None:
    """The main endpoint ignores the status, and the status endpoint everything else."""
    await api.create(NODES, {"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "4"}}})
    main = await api.patch(f"{NODES}/n", {"spec": {"unschedulable": True}, "status": {"capacity": {"cpu": "8"}}})
    assert (main["spec"], main["status"]["capacity"]) == ({"unschedulable": True}, {"cpu": "4"})
    status = await api.patch(f"{NODES}/n/status", {"spec": {"unschedulable": False}, "status": {"phase": "x"}})
    assert (status["spec"], status["status"]["phase"]) == ({"unschedulable": True}, "x")


async def test_dry_run_leaves_no_trace(api: Api) -> None:
    """A dry run answers as the real thing would and stores nothing."""
    revision = api.server.context.store.revision
    tried = await api.create(PODS, a_pod("p"), dryRun="All")
    assert tried["spec"]["schedulerName"] == "default-scheduler"
    assert await api.names(PODS) == []
    assert api.server.context.store.revision == revision
    refused = await api.send("POST", PODS, {"metadata": {"name": "p"}, "spec": {}}, query={"dryRun": "All"})
    assert refused.status == 422


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", f"{PODS}/nobody", None, 404),
        ("GET", "/api/v1/nothings", None, 404),
        ("GET", "/apis/nowhere.io/v1/things", None, 404),
        ("GET", "/api/v1/pods/p", None, 404),
        ("POST", f"{NODES}/n", {}, 405),
        ("PUT", PODS, {}, 405),
        ("POST", "/api/v1/namespaces/nowhere/pods", a_pod(), 404),
        ("POST", PODS, b"{", 400),
        ("POST", PODS, b"[]", 400),
        ("POST", PODS, {"kind": "Node"}, 400),
        ("POST", PODS, {"metadata": {"name": "Upper"}, "spec": {}}, 422),
        ("POST", PODS, {"metadata": {"name": "p", "namespace": "other"}}, 400),
        ("POST", PODS, {"metadata": {"name": "p", "labels": {"a": 1}}}, 400),
        ("POST", PODS, {"metadata": {"name": "p", "resourceVersion": "7"}}, 400),
        ("DELETE", f"{PODS}/nobody", None, 404),
    ],
)
async def test_what_is_not_there_or_not_right_is_an_error(method: str, path: str, body: object, status: int) -> None:
    """Every wrong request gets a Status with the code that says what is wrong."""
    answer = await an_api().send(method, path, body)
    assert answer.status == status
    assert (answer.body["kind"], answer.body["code"]) == ("Status", status)


async def test_yaml_is_read_without_aliases(api: Api) -> None:
    """YAML bodies are accepted; aliases, with which a small body becomes a huge object, are not."""
    headers = {"content-type": "application/yaml"}
    made = await api.send("POST", CONFIG_MAPS, b"metadata: {name: a}\ndata: {when: '2026-01-01'}\n", headers=headers)
    assert (made.status, made.body["data"]) == (201, {"when": "2026-01-01"})
    refused = await api.send("POST", CONFIG_MAPS, b"metadata: &m {name: a}\nother: *m\n", headers=headers)
    assert refused.status == 400
    other = await api.send("POST", CONFIG_MAPS, b"x", headers={"content-type": "application/cbor"})
    assert other.status == 415


async def test_a_target_port_that_is_not_said_is_the_port(api: Api) -> None:
    """Clients in Go send 0, or an empty name, for a target port that nobody set; it is the port then."""
    services = "/api/v1/namespaces/default/services"
    unsaid: list[dict[str, Any]] = [{}, {"targetPort": 0}, {"targetPort": ""}]
    for number, said in enumerate(unsaid):
        made = await api.create(
            services, {"metadata": {"name": f"s{number}"}, "spec": {"ports": [{"port": 80, **said}]}}
        )
        assert made["spec"]["ports"][0]["targetPort"] == 80


async def test_services_are_given_addresses_of_their_own(api: Api) -> None:
    """A service gets a cluster IP and node ports that nobody else has, and keeps them; what is taken is refused."""
    services = "/api/v1/namespaces/default/services"

    def service(name: str, **spec: Any) -> Any:
        return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], "selector": {"a": "b"}, **spec}}

    first = await api.create(services, service("a", type="NodePort"))
    second = await api.create(services, service("b", type="NodePort"))
    assert first["spec"]["clusterIP"].startswith("10.96.")
    assert first["spec"]["clusterIPs"] == [first["spec"]["clusterIP"]] != second["spec"]["clusterIPs"]
    ports = [each["spec"]["ports"][0]["nodePort"] for each in (first, second)]
    assert 30000 <= min(ports) < max(ports) <= 32767
    replaced = await api.replace(f"{services}/a", service("a", type="NodePort"))
    assert replaced["spec"] == first["spec"]
    taken = await api.send("POST", services, service("c", clusterIP=first["spec"]["clusterIP"]))
    assert (taken.status, taken.body["details"]["causes"][0]["field"]) == (422, "spec.clusterIPs")
