"""Devices are given to requests as Kubernetes says: counts, alternatives, constraints, classes and taints."""

from collections.abc import Container
from typing import Any

import msgspec
import pytest

from spinney.api.affinity import Taint
from spinney.api.meta import Metadata
from spinney.api.resource_claims import (
    CelSelector,
    Counter,
    CounterConsumption,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceClass,
    DeviceClassSpec,
    DeviceSelector,
    ResourceClaim,
    ResourceClaimSpec,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from spinney.api.struct import JSON, convert
from spinney.cluster.dra.allocating import LEAST, STEPS, GivenDevice, SearchBudget, allocate
from spinney.cluster.dra.book import ClaimBook
from spinney.cluster.dra.catalogue import DeviceCatalogue, PublishedDevice
from spinney.cluster.dra.requests import ClaimDemand, ask_of
from spinney.kube.keys import Key

DRIVER = "gpu.example.com"


def a_device(name: str, **facts: str | int | bool) -> Device:
    """Return a device with attributes; ``memory`` is capacity, ``version`` a version."""
    attributes = {}
    for key, value in facts.items():
        if key == "version":
            attributes[key] = DeviceAttribute(version_value=str(value))
        elif isinstance(value, bool):
            attributes[key] = DeviceAttribute(bool_value=value)
        elif isinstance(value, int):
            attributes[key] = DeviceAttribute(int_value=value)
        elif key != "memory":
            attributes[key] = DeviceAttribute(string_value=value)
    capacity = {"memory": DeviceCapacity(value=str(facts["memory"]))} if "memory" in facts else {}
    return Device(name=name, attributes=attributes, capacity=capacity)


def a_slice(*devices: Device, name: str = "s", pool: ResourcePool | None = None) -> ResourceSlice:
    """Return the devices of node n1."""
    spec = ResourceSliceSpec(driver=DRIVER, pool=pool or ResourcePool(name="n1"), node_name="n1", devices=devices)
    return ResourceSlice(metadata=Metadata(name=name), spec=spec)


def given(
    request: JSON | list[JSON],
    *devices: Device,
    constraints: list[JSON] | None = None,
    of_class: str = "",
    taken: tuple[str, ...] = (),
) -> dict[str, list[str]] | None:
    """Return the devices by request that a claim is given on n1."""
    requests = request if isinstance(request, list) else [request]
    spec = convert(ResourceClaimSpec, {"devices": {"requests": requests, "constraints": constraints or []}})
    selectors = (DeviceSelector(cel=CelSelector(expression=of_class)),) if of_class else ()
    classes = {"gpu": DeviceClass(metadata=Metadata(name="gpu"), spec=DeviceClassSpec(selectors=selectors))}
    catalogue = DeviceCatalogue([a_slice(*devices)], classes)
    found = allocate(catalogue, "n1", [ask_of(spec)], {PublishedDevice(DRIVER, "n1", name) for name in taken})
    if found is None:
        return None
    by_request: dict[str, list[str]] = {}
    for each in found[0]:
        by_request.setdefault(each.request, []).append(each.name)
    return by_request


def exactly(expression: str = "", *, name: str = "r", **more: object) -> JSON:
    """Return a request, with a selector if one is given."""
    selectors = [{"cel": {"expression": expression}}] if expression else []
    return {"name": name, "exactly": {"deviceClassName": "gpu", "selectors": selectors, **more}}


def matching(expression: str, **facts: str | int | bool) -> bool:
    """Tell whether a device with these facts matches a selector."""
    return given(exactly(expression), a_device("d", **facts)) is not None


def test_selectors_read_attributes_and_capacity() -> None:
    """Strings, numbers, booleans, versions and quantities compare as Kubernetes' selectors do."""
    assert matching(f'device.driver == "{DRIVER}"')
    assert matching(f'device.attributes["{DRIVER}"].model == "h100"', model="h100")
    assert not matching(f'device.attributes["{DRIVER}"].model == "h100"', model="a100")
    assert matching(f'device.attributes["{DRIVER}"].healthy', healthy=True)
    assert matching(f'device.capacity["{DRIVER}"].memory.compareTo(quantity("40Gi")) >= 0', memory="80Gi")
    assert not matching(f'device.capacity["{DRIVER}"].memory.isGreaterThan(quantity("80Gi"))', memory="81920Mi")
    assert matching(f'device.attributes["{DRIVER}"].version.isGreaterThan(semver("1.9.0"))', version="1.10.0")
    assert matching(f'device.attributes["{DRIVER}"].version.isLessThan(semver("1.10.0"))', version="1.10.0-rc.1")


def test_a_selector_about_what_a_device_lacks_does_not_match() -> None:
    """A missing attribute fails closed; a missing domain is empty, so it can be asked about."""
    assert not matching(f'device.attributes["{DRIVER}"].model == "h100"')
    assert matching('!has(device.attributes["other.example.com"].model)')


def test_class_and_request_must_both_match() -> None:
    """A device is given only if the selectors of its class hold too."""
    devices = a_device("a", size=1, fast=True), a_device("b", size=2, fast=True), a_device("c", size=2, fast=False)
    of_class = f'device.attributes["{DRIVER}"].fast'
    assert given(exactly(f'device.attributes["{DRIVER}"].size == 2'), *devices, of_class=of_class) == {"r": ["b"]}


def test_counts_and_all() -> None:
    """A count takes free devices; all of them means every one that matches, or nothing if somebody holds one."""
    devices = [a_device(name) for name in "abc"]
    assert given(exactly(count=2), *devices, taken=("a",)) == {"r": ["b", "c"]}
    assert given(exactly(count=3), *devices, taken=("a",)) is None
    assert given(exactly(allocationMode="All"), *devices) == {"r": ["a", "b", "c"]}
    assert given(exactly(allocationMode="All"), *devices, taken=("a",)) is None
    assert given(exactly("false", allocationMode="All"), *devices) is None


def test_the_first_alternative_that_can_be_had_is_taken() -> None:
    """Alternatives are tried in order, and the result names the one that was met."""
    large, small = exactly(count=4)["exactly"], exactly(count=1)["exactly"]
    request = {"name": "r", "firstAvailable": [{"name": "large", **large}, {"name": "small", **small}]}
    assert given(request, *(a_device(name) for name in "abcd")) == {"r/large": ["a", "b", "c", "d"]}
    assert given(request, a_device("a")) == {"r/small": ["a"]}


def test_devices_of_a_claim_agree_where_they_must() -> None:
    """A matching constraint finds the group that is large enough, a distinct one takes different values."""
    devices = a_device("a", numa=0), a_device("b", numa=1), a_device("c", numa=1)
    matched = [{"requests": ["r"], "matchAttribute": f"{DRIVER}/numa"}]
    distinct = [{"distinctAttribute": f"{DRIVER}/numa"}]
    assert given(exactly(count=2), *devices, constraints=matched) == {"r": ["b", "c"]}
    assert given(exactly(count=2), *devices, constraints=distinct) == {"r": ["a", "b"]}
    assert given(exactly(count=3), *devices, constraints=distinct) is None


def test_requests_do_not_take_what_another_needs() -> None:
    """A request that could take either device leaves the one that the next request needs."""
    devices = a_device("a", fast=True), a_device("b", fast=False)
    requests = [exactly(name="any"), exactly(f'device.attributes["{DRIVER}"].fast', name="fast")]
    assert given(requests, *devices) == {"any": ["b"], "fast": ["a"]}


def test_a_tainted_device_needs_a_toleration() -> None:
    """A device with a NoSchedule taint goes only to requests that tolerate it."""
    tainted = msgspec.structs.replace(a_device("a"), taints=(Taint(key="worn", effect="NoSchedule"),))
    assert given(exactly(), tainted) is None
    assert given(exactly(tolerations=[{"key": "worn", "operator": "Exists"}]), tainted) == {"r": ["a"]}


def test_only_the_newest_whole_generation_of_a_pool_counts() -> None:
    """Slices of an older generation are gone, and a pool that has not arrived in full offers nothing."""
    old = a_slice(a_device("old"), name="s1", pool=ResourcePool(name="n1", generation=1))
    new = a_slice(a_device("new"), name="s2", pool=ResourcePool(name="n1", generation=2))
    part = a_slice(a_device("x"), name="s3", pool=ResourcePool(name="n1", generation=3, resource_slice_count=2))
    assert DeviceCatalogue([old, new]).by_node == {"n1": [PublishedDevice(DRIVER, "n1", "new")]}
    assert DeviceCatalogue([old, new, part]).by_node == {}


def test_a_selector_that_is_no_cel_is_a_problem_of_the_claim() -> None:
    """The claim is told what is wrong with its selector."""
    catalogue = DeviceCatalogue([a_slice(a_device("a"))], {"gpu": DeviceClass(metadata=Metadata(name="gpu"))})
    spec = convert(ResourceClaimSpec, {"devices": {"requests": [exactly("device.")]}})
    assert "no valid CEL" in catalogue.problem(ask_of(spec).requests[0].options[0])


def partitions(*sizes: int, of: int = 7) -> DeviceCatalogue:
    """Return partitions p0, p1, ... of one device, each drawing so many of its slices."""
    devices = tuple(
        Device(
            name=f"p{number}",
            consumes_counters=(CounterConsumption(counter_set="gpu-0", counters={"slices": Counter(value=str(size))}),),
        )
        for number, size in enumerate(sizes)
    )
    counters = (CounterSet(name="gpu-0", counters={"slices": Counter(value=str(of))}),)
    spec = ResourceSliceSpec(
        driver=DRIVER, pool=ResourcePool(name="n1"), node_name="n1", devices=devices, shared_counters=counters
    )
    return DeviceCatalogue(
        [ResourceSlice(metadata=Metadata(name="s"), spec=spec)], {"gpu": DeviceClass(metadata=Metadata(name="gpu"))}
    )


@pytest.mark.parametrize(
    ("count", "taken", "expected"),
    [
        (1, (), ["p0"]),
        (2, (), ["p0", "p1"]),  # 3 + 4 of 7
        (3, (), None),
        (1, ("p2",), None),  # the whole device is held
        (1, ("p1",), ["p0"]),
        (2, ("p1",), None),
    ],
)
def test_partitions_draw_from_one_device(count: int, taken: tuple[str, ...], expected: list[str] | None) -> None:
    """Partitions are given out while the counters of their device hold, whoever drew before."""
    catalogue = partitions(3, 4, 7)
    spec = convert(ResourceClaimSpec, {"devices": {"requests": [exactly(count=count)]}})
    held = {PublishedDevice(DRIVER, "n1", name) for name in taken}
    found = allocate(catalogue, "n1", [ask_of(spec)], held)
    assert (None if found is None else [each.name for each in found[0]]) == expected


def test_a_search_turns_back_when_counters_are_spent() -> None:
    """The first partition leaves too little for a second request, so a smaller one is given to the first."""
    catalogue = partitions(5, 4, 3)
    pair = [exactly(name="a"), exactly(name="b")]
    spec = convert(ResourceClaimSpec, {"devices": {"requests": pair}})
    found = allocate(catalogue, "n1", [ask_of(spec)], ())
    assert found is not None
    assert [each.name for each in found[0]] == ["p1", "p2"]
    assert allocate(partitions(4, 4, 4), "n1", [ask_of(spec)], ()) is None


def test_a_device_that_draws_from_nothing_known_is_not_offered() -> None:
    """A partition whose counters nobody published is given to nobody."""
    drawing = CounterConsumption(counter_set="gone", counters={"slices": Counter(value="1")})
    device = Device(name="p0", consumes_counters=(drawing,))
    assert given(exactly(), device) is None


def test_administrative_access_looks_on() -> None:
    """Devices are given for administrative access though others hold them, and are marked so."""
    assert given(exactly(adminAccess=True), a_device("d"), taken=("d",)) == {"r": ["d"]}
    assert given(exactly(adminAccess=True, allocationMode="All"), a_device("d"), a_device("e"), taken=("d",)) == {
        "r": ["d", "e"]
    }
    both = [exactly(name="watch", adminAccess=True), exactly(name="use")]
    assert given(both, a_device("d")) == {"watch": ["d"], "use": ["d"]}


def test_who_looks_on_takes_nothing_and_pays_nothing() -> None:
    """A claim with administrative access leaves its device to others and counts as no GPU."""
    claim = convert(
        ResourceClaim,
        {
            "metadata": {"name": "monitor", "namespace": "ns"},
            "spec": {"devices": {"requests": [exactly(adminAccess=True)]}},
            "status": {
                "allocation": {
                    "devices": {
                        "results": [
                            {"request": "r", "driver": DRIVER, "pool": "n1", "device": "d", "adminAccess": True}
                        ]
                    }
                }
            },
        },
    )
    book = ClaimBook()
    book.apply(claim)
    (state,) = book.claims.values()
    assert (state.allocated, state.gpus, set(book.taken())) == (True, 0, set())


class Looking(DeviceCatalogue):
    """A catalogue that counts how often it is asked about an attribute of a device."""

    looks = 0

    def attribute(self, device: PublishedDevice, name: str) -> object:
        """Count and answer."""
        self.looks += 1
        return super().attribute(device, name)


def indexed(*nodes: str, devices: int) -> Looking:
    """Return nodes with so many devices each, numbered by an attribute."""
    slices = [
        ResourceSlice(
            metadata=Metadata(name=node),
            spec=ResourceSliceSpec(
                driver=DRIVER,
                pool=ResourcePool(name=node),
                node_name=node,
                devices=tuple(a_device(f"d{number}", index=number, socket=number // 12) for number in range(devices)),
            ),
        )
        for node in nodes
    ]
    return Looking(slices, {"gpu": DeviceClass(metadata=Metadata(name="gpu"))})


def an_ask(requests: list[JSON], constraints: list[JSON] | None = None) -> ClaimDemand:
    """Return what a claim with these requests asks for."""
    return ask_of(convert(ResourceClaimSpec, {"devices": {"requests": requests, "constraints": constraints or []}}))


def test_a_claim_that_contradicts_itself_in_every_constraint_is_given_up_soon() -> None:
    """As many requests and constraints as a claim may have cost little on each of many nodes."""
    nodes = [f"n{number}" for number in range(50)]
    catalogue = indexed(*nodes, devices=64)
    differ: list[JSON] = [{"distinctAttribute": f"{DRIVER}/index"}] * 31
    same: JSON = {"matchAttribute": f"{DRIVER}/index", "requests": ["r30", "r31"]}
    ask = an_ask([exactly(name=f"r{number}") for number in range(32)], [*differ, same])
    budget = SearchBudget()
    assert all(allocate(catalogue, node, [ask], (), budget) is None for node in nodes)
    assert catalogue.looks < 3 * (STEPS + LEAST * len(nodes))


def test_nodes_searched_for_one_pod_share_what_is_looked_at() -> None:
    """A claim that is hard to meet finds devices on the first node, and is given up on those after it."""
    catalogue = indexed("n1", "n2", devices=16)
    late = f'device.attributes["{DRIVER}"].index >= 12'
    socket = [{"matchAttribute": f"{DRIVER}/socket"}]
    ask = an_ask([exactly(name="any", count=3), exactly(late, name="late")], socket)
    budget = SearchBudget()
    assert [allocate(catalogue, node, [ask], (), budget) is not None for node in ("n1", "n2")] == [True, False]
    assert allocate(catalogue, "n2", [ask], ()) is not None


@pytest.mark.parametrize("mode", [{"count": 33}, {"allocationMode": "All"}])
def test_a_claim_holds_no_more_devices_than_kubernetes_lets_it(mode: JSON) -> None:
    """A node that could give more is refused: the API server would refuse the claim's status."""
    devices = [a_device(f"d{number}") for number in range(40)]
    assert given(exactly(**mode), *devices) is None
    assert an_ask([exactly(count=2**63 - 1)] * 2).problem == (
        f"it asks for {2**64 - 2} devices, and a claim may hold 32"
    )


def test_a_pod_may_use_many_claims() -> None:
    """A search is as deep as there are devices to give."""
    devices = [a_device(f"d{number}") for number in range(140)]
    catalogue = DeviceCatalogue([a_slice(*devices)], {"gpu": DeviceClass(metadata=Metadata(name="gpu"))})
    found = allocate(catalogue, "n1", [an_ask([exactly()])] * 130, ())
    assert found is not None
    assert [each.name for claim in found for each in claim] == [f"d{number}" for number in range(130)]


def test_a_pod_may_use_more_claims_than_would_be_tried_one_after_the_other() -> None:
    """Claims that ask for the same are given devices in their order, and it is soon known that one is too many."""
    devices = [a_device(f"d{number}") for number in range(250)]
    catalogue = DeviceCatalogue([a_slice(*devices)], {"gpu": DeviceClass(metadata=Metadata(name="gpu"))})
    found = allocate(catalogue, "n1", [an_ask([exactly(name=f"r{number}")]) for number in range(250)], ())
    assert found is not None
    assert [each.name for claim in found for each in claim] == [f"d{number}" for number in range(250)]
    assert allocate(catalogue, "n1", [an_ask([exactly()])] * 251, ()) is None


def test_what_is_taken_on_a_node_is_remembered_once_for_all_searches_that_failed() -> None:
    """A node may have a hundred devices, and many kinds of pods wait for them."""
    devices = [a_device(f"d{number}") for number in range(3)]
    catalogue = DeviceCatalogue([a_slice(*devices)], {"gpu": DeviceClass(metadata=Metadata(name="gpu"))})
    demands = [[an_ask([exactly(count=count)])] for count in (3, 4)]
    for asks in demands:
        assert allocate(catalogue, "n1", asks, {PublishedDevice(DRIVER, "n1", "d0")}) is None
    first, second = (catalogue.failures.of(asks)["n1"].taken for asks in demands)
    assert first is second


def test_a_search_that_failed_is_not_made_again_until_devices_of_the_node_are_taken_or_given_back() -> None:
    """A pod whose claims fit nowhere waits for many cycles, and each asks about every node."""
    nodes = [f"n{number}" for number in range(20)]
    catalogue = indexed(*nodes, devices=12)
    constraint: JSON = {"matchAttribute": f"{DRIVER}/index", "requests": ["r2", "r3"]}
    ask = an_ask([exactly(name=f"r{number}") for number in range(4)], [constraint])

    def looks(taken: Container[PublishedDevice]) -> int:
        before, budget = catalogue.looks, SearchBudget()
        assert all(allocate(catalogue, node, [ask], taken, budget) is None for node in nodes)
        return catalogue.looks - before

    every = looks(())
    assert every > 0
    assert looks(()) < every  # some were given up, for which nothing is left of the budget until others are known
    while looks(()):
        pass
    one = {PublishedDevice(DRIVER, "n1", "d0")}
    assert 0 < looks(one) < every
    assert looks(one) == 0
    assert looks(()) > 0


def test_what_is_taken_is_known_without_looking_at_every_claim() -> None:
    """Claims that hold nothing may be any number; a device is free when the last claim that has it lets go."""
    book, device = ClaimBook(), GivenDevice("r", DRIVER, "n1", "d0")
    for name in ("a", "b"):
        book.apply(ResourceClaim(metadata=Metadata(name=name, namespace="ns")))
        book.assign(Key("ns", name), "n1", (device,), name)
    fork = book.fork()
    fork.release(Key("ns", "a"), "a")
    assert fork.taken() == {device.published}
    fork.release(Key("ns", "b"), "b")
    assert (set(fork.taken()), set(book.taken())) == (set(), {device.published})
    book.delete(ResourceClaim(metadata=Metadata(name="a", namespace="ns")))
    book.delete(ResourceClaim(metadata=Metadata(name="b", namespace="ns")))
    assert book.taken() == set()

    class Unread(dict[Key, Any]):
        def values(self) -> Any:
            raise AssertionError("every claim is looked at")

    book.claims = Unread(book.claims)
    assert book.taken() == set()
