"""What stands in a pod: place, environment, gate, start-up order and what the user wrote."""

import copy

import msgspec

from spinney.api import labels as marks
from spinney.api.grove import EXPLICIT, IN_ORDER, PodCliqueSet
from spinney.api.meta import OwnerReference
from spinney.api.struct import JSON
from spinney.operator.configuration import InitContainer
from spinney.operator.desired import podcliques, pods, startup
from spinney.operator.desired.layout import CliquePlace, Layout
from spinney.testing.builders import a_clique, a_pod_clique_set, a_pod_spec, a_scaling_group

OWNER = OwnerReference(api_version="v1", kind="X", name="x", uid="x", controller=True)


def manifest(pcs: PodCliqueSet, place: CliquePlace, index: int = 0) -> JSON:
    """Return a pod of the PodClique at a place."""
    layout = Layout(pcs)
    clique = podcliques.desired_clique(layout, place, "hash", OWNER)
    clique = msgspec.structs.replace(clique, metadata=msgspec.structs.replace(clique.metadata, uid="uid"))
    return pods.pod_manifest(
        clique,
        layout,
        place,
        index,
        name="pod",
        waiting=InitContainer(image="spinney:1", image_pull_policy="Always", image_pull_secrets=("ours",)),
    )


def environment(pod: JSON, container: int = 0) -> dict[str, object]:
    """Return a container's variables, in order."""
    return {each["name"]: each.get("value", "downward") for each in pod["spec"]["containers"][container]["env"]}


def test_a_pod_knows_its_place() -> None:
    """Host name, subdomain, labels and environment say which pod of which clique this is."""
    pcs = a_pod_clique_set("model", [a_clique("worker", 2)], replicas=2)
    pod = manifest(pcs, Layout(pcs).standalone(1)[0], 1)
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("model-1-worker-1", "model-1")
    assert environment(pod) == {
        "GROVE_PCS_NAME": "model",
        "GROVE_PCS_INDEX": "1",
        "GROVE_PCLQ_NAME": "model-1-worker",
        "GROVE_HEADLESS_SERVICE": "model-1.test.svc.cluster.local",
        "GROVE_PCLQ_POD_INDEX": "downward",
    }
    labels = pod["metadata"]["labels"]
    assert labels[marks.POD_CLIQUE] == "model-1-worker"
    assert labels[marks.POD_GANG] == "model-1"
    assert labels[marks.POD_INDEX] == "1"
    assert labels[marks.POD_TEMPLATE_HASH] == "hash"
    assert marks.BASE_POD_GANG not in labels


def test_group_members_know_their_group() -> None:
    """Pods of a scaling group get its name, index and size, before the set's variables in the PodClique's own spec."""
    cliques = [a_clique("leader", 1), a_clique("worker", 3)]
    pcs = a_pod_clique_set("model", cliques, [a_scaling_group("sg", ["leader", "worker"], 3, 1)])
    pod = manifest(pcs, Layout(pcs).members(0, "sg", 2)[1])
    assert environment(pod)["GROVE_PCSG_TEMPLATE_NUM_PODS"] == "4"
    assert pod["metadata"]["labels"][marks.BASE_POD_GANG] == "model-0"
    assert pod["metadata"]["labels"][marks.POD_GANG] == "model-0-sg-1"


def test_the_users_spec_is_kept_verbatim() -> None:
    """Unknown fields and variables of the user survive, ours win by name; the only gate is the gang's."""
    spec = a_pod_spec(fieldOfTheFuture={"a": 1}, schedulingGates=[{"name": "theirs"}])
    own = {"name": "OWN", "value": "$(GROVE_PCS_NAME)"}
    spec["containers"][0]["env"] = [{"name": "GROVE_PCS_NAME", "value": "x"}, own]
    written = copy.deepcopy(spec)
    pcs = a_pod_clique_set("model", [a_clique("worker", 1, pod_spec=spec)])
    pod = manifest(pcs, Layout(pcs).standalone(0)[0])
    assert spec == written
    assert pod["spec"]["fieldOfTheFuture"] == {"a": 1}
    assert pod["spec"]["schedulingGates"] == [{"name": marks.POD_GANG_GATE}]
    found = environment(pod)
    assert found["GROVE_PCS_NAME"] == "model"
    assert list(found)[-1] == "OWN"


def test_the_sets_priority_reaches_pods_that_name_none() -> None:
    """A pod spec's own priority class wins over the set's."""
    pcs = a_pod_clique_set(
        "model", [a_clique("a"), a_clique("b", pod_spec=a_pod_spec(priorityClassName="own"))], priority_class="high"
    )
    found = [manifest(pcs, place)["spec"]["priorityClassName"] for place in Layout(pcs).standalone(0)]
    assert found == ["high", "own"]


def test_order_within_the_base_gang() -> None:
    """In order, a clique waits for the one before it: in the base gang for every replica of the group's minimum."""
    cliques = [a_clique("a", 2, 1), a_clique("b", 1), a_clique("c", 3, 2), a_clique("d", 1)]
    pcs = a_pod_clique_set("model", cliques, [a_scaling_group("sg", ["b", "c"], 3, 2)], startup=IN_ORDER)
    layout = Layout(pcs)
    found = {place.name: startup.required_ready(layout, place) for place in layout.base(0)}
    assert found["model-0-a"] == []
    assert found["model-0-sg-1-b"] == [("model-0-a", 1)]
    assert found["model-0-sg-0-c"] == [("model-0-sg-0-b", 1), ("model-0-sg-1-b", 1)]
    assert found["model-0-d"] == [("model-0-sg-0-c", 2), ("model-0-sg-1-c", 2)]


def test_order_within_a_scaled_gang() -> None:
    """A scaled gang only waits within itself."""
    cliques = [a_clique("a"), a_clique("b", after=["a"]), a_clique("c", after=["a", "b"])]
    pcs = a_pod_clique_set("model", cliques, [a_scaling_group("sg", ["b", "c"], 2, 1)], startup=EXPLICIT)
    layout = Layout(pcs)
    b, c = layout.members(0, "sg", 1)
    assert startup.starts_after(layout, b) == []
    assert startup.starts_after(layout, c) == ["model-0-sg-1-b"]


def test_waiting_pods_get_an_init_container() -> None:
    """A clique that starts after others waits for their minimum in a last init container, without our variables."""
    first = {"name": "first", "image": "first"}
    cliques = [a_clique("a", 3, 2), a_clique("b", 1, after=["a"], pod_spec=a_pod_spec(initContainers=[first]))]
    pcs = a_pod_clique_set("model", cliques, startup=EXPLICIT)
    a, b = Layout(pcs).standalone(0)
    assert "initContainers" not in manifest(pcs, a)["spec"]
    found = manifest(pcs, b)["spec"]["initContainers"]
    assert [each["name"] for each in found] == ["first", "grove-initc"]
    assert found[1]["command"] == ["spinney", "wait-for"]
    assert found[1]["args"] == ["--podcliques=model-0-a:2"]
    assert "env" not in found[1]


def test_the_init_container_is_admitted_where_others_are() -> None:
    """It passes `restricted` and a ResourceQuota, keeps a pod Guaranteed, and is pulled as the operator is."""
    mine = a_pod_spec(imagePullSecrets=[{"name": "mine"}])
    cliques = [a_clique("a"), a_clique("b", 1, after=["a"], pod_spec=mine)]
    pcs = a_pod_clique_set("model", cliques, startup=EXPLICIT)
    spec = manifest(pcs, Layout(pcs).standalone(0)[1])["spec"]
    (found,) = spec["initContainers"]
    assert found["resources"]["requests"] == found["resources"]["limits"]
    assert set(found["resources"]["limits"]) == {"cpu", "memory"}
    context = found["securityContext"]
    assert context["runAsNonRoot"] is True
    assert context["allowPrivilegeEscalation"] is False
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    assert found["imagePullPolicy"] == "Always"
    assert [each["name"] for each in spec["imagePullSecrets"]] == ["mine", "ours"]


def test_a_repeated_creation_has_the_same_name() -> None:
    """The name of a pod follows from clique, index and lives gone by; a name that is taken is passed over."""
    pcs = a_pod_clique_set("model", [a_clique("worker", 2)])
    layout = Layout(pcs)
    clique = podcliques.desired_clique(layout, layout.standalone(0)[0], "hash", OWNER)
    first = pods.pod_name(clique, 0, 0, ())
    assert first == pods.pod_name(clique, 0, 0, ())
    others = [pods.pod_name(clique, 1, 0, ()), pods.pod_name(clique, 0, 1, ()), pods.pod_name(clique, 0, 0, {first})]
    assert first not in others
    assert others[1] == others[2]


def test_what_is_left_empty_in_a_pod_spec_is_as_if_it_was_not_written() -> None:
    """Charts leave lists empty, which YAML reads as null; pods that wait for others are made all the same."""
    spec = a_pod_spec()
    container = {**spec["containers"][0], "resources": {"claims": None, "limits": {"nvidia.com/gpu": 1}}, "env": None}
    empty = {**spec, "initContainers": None, "volumes": None, "resourceClaims": None, "containers": [container]}
    first, second = a_clique("first", 1), a_clique("second", 1)
    second = msgspec.structs.replace(second, spec=msgspec.structs.replace(second.spec, pod_spec=empty))
    pcs = a_pod_clique_set("model", [first, second], startup=IN_ORDER)

    pod = manifest(pcs, Layout(pcs).standalone(0)[1])

    assert [each["name"] for each in pod["spec"]["initContainers"]] == [marks.INIT_CONTAINER]
    assert {each["name"] for each in pod["spec"]["volumes"]} == {marks.TOKEN_VOLUME, marks.POD_INFO_VOLUME}
    assert "resourceClaims" not in pod["spec"]
