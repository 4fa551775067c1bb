"""The backend contract as a pytest suite.

A backend author subclasses :class:`BackendContract` in a test module, says which backend it is, and runs pytest::

    class TestMyBackend(BackendContract):
        backend = MyBackend
        config = {"queue": "batch"}          # as in the profile of the operator's configuration
        crds = (MY_POD_GROUP_CRD,)           # what the scheduler's installation brings

        def workload(self) -> PodCliqueSet:  # a workload the backend accepts; the default suits most
            ...

Each test runs on a fresh embedded cluster in virtual time. This module is the only one of Spinney that needs pytest.
"""

import copy
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import wraps
from inspect import signature
from typing import Any, ClassVar

import msgspec
import pytest
import yaml

from spinney.api import labels as marks
from spinney.api.core import NAMESPACE, Pod
from spinney.api.documents import InvalidDocument, parse
from spinney.api.grove import PodCliqueSet
from spinney.api.meta import Condition
from spinney.api.podgang import POD_GANG, SCHEDULED, PodGang
from spinney.api.schema.crd import manifests
from spinney.api.struct import JSON, convert, to_json
from spinney.backends import (
    BackendContext,
    Capabilities,
    Catalogue,
    Degradation,
    InitializationFailed,
    Registry,
    Rejected,
    SchedulerBackend,
)
from spinney.backends.interface import is_compatible
from spinney.backends.profiles import Profiles, SchedulerConfiguration, resolve
from spinney.kube.client import Client
from spinney.kube.crds import install_crds
from spinney.kube.events import EventRecorder
from spinney.runtime import Runtime, run_virtual
from spinney.server import ApiServer, ServerOptions
from spinney.testing.backend_bench import NAME_OF_GANG, Bench, Lookup, Overheard, a_gang, a_pod
from spinney.testing.builders import a_clique, a_pod_clique_set, a_scaling_group

__all__ = ["BackendContract", "Bench", "Lookup", "a_gang", "a_pod"]

OPERATORS_OWN = {"", "grove.io", "scheduler.grove.io", "apiextensions.k8s.io"}
"""API groups in which the operator has rights of its own: pods, its own kinds, and reading CRDs."""


def _on_bench(test: Callable[["BackendContract", Bench], Awaitable[None]]) -> Callable[["BackendContract"], None]:
    """Give a test the backend on a cluster of its own, on virtual time."""

    @wraps(test)
    def run(self: "BackendContract") -> None:
        async def whole() -> None:
            async with self.bench() as bench:
                await test(self, bench)

        run_virtual(whole())

    run.__signature__ = signature(lambda self: None)  # type: ignore[attr-defined]  # the bench is no fixture
    return run


class BackendContract:
    """What every backend must do. Subclass it; the class attributes and ``workload`` describe the backend."""

    backend: ClassVar[type[SchedulerBackend]]
    config: ClassVar[Mapping[str, object]] = {}
    crds: ClassVar[Sequence[JSON]] = ()
    objects: ClassVar[Sequence[tuple[Any, JSON]]] = ()
    """Objects that must exist, such as a queue: pairs of a ``Resource`` and a manifest, status included."""
    server: ClassVar[ServerOptions | None] = None

    def workload(self) -> PodCliqueSet:
        """Return a workload that the backend accepts."""
        cliques = [a_clique("leader", 1), a_clique("worker", 3, 2)]
        return a_pod_clique_set("model", cliques, [a_scaling_group("sg", ["worker"], 2, 1)])

    # -- the contract --------------------------------------------------------------------------------------------------

    def test_says_which_interface_it_was_written_for(self) -> None:
        """The interface version is one this release serves, and the name is a legal scheduler name."""
        assert is_compatible(self.backend.interface_version)
        assert self.backend.name
        assert self.backend.name == self.backend.name.strip().lower()

    def test_registers_under_its_name_and_aliases(self) -> None:
        """The catalogue finds the backend under each of its names, and refuses a second one of the same name."""
        catalogue = Catalogue()
        catalogue.register(self.backend)
        assert {catalogue.get(name) for name in (self.backend.name, *self.backend.aliases)} == {self.backend}
        with pytest.raises(ValueError, match="two backends are called"):
            catalogue.register(self.backend)

    def test_its_configuration_is_read_strictly(self) -> None:
        """An unknown key in the profile's config is refused with its line."""
        profile = {"name": self.backend.name, "config": {**self.config, "noSuchKey": 1}}
        with pytest.raises(InvalidDocument, match=r"noSuchKey|takes no configuration"):
            self._profiles(profile)

    @_on_bench
    async def test_init_may_be_repeated(self, bench: Bench) -> None:
        """A second ``init``, as on another replica of the operator, succeeds and writes nothing."""
        before = await bench.revision()
        await bench.backend.init()
        assert await bench.revision() == before

    def test_init_says_what_is_missing(self) -> None:
        """On a cluster without what the scheduler brings, ``init`` fails with a message, unless it needs nothing."""

        async def story() -> None:
            async with self.bench(installed=False):
                pass

        if not self.crds and self.server is None:
            run_virtual(story())
            return
        with pytest.raises(InitializationFailed) as caught:
            run_virtual(story())
        assert len(str(caught.value)) > len(self.backend.name) + 20

    @_on_bench
    async def test_capabilities_do_not_change_by_themselves(self, bench: Bench) -> None:
        """Asked twice, the backend names the same capabilities."""
        first = bench.backend.capabilities
        assert isinstance(first, Capabilities)
        assert bench.backend.capabilities == first

    @_on_bench
    async def test_prepares_pods_without_undoing_what_the_operator_did(self, bench: Bench) -> None:
        """``prepare_pod`` sets a scheduler name, keeps gate, labels and containers, and may be repeated."""
        for group in bench.gang.spec.pod_groups:
            pod = a_pod(bench.gang, group, 0)
            original = copy.deepcopy(pod)
            returned: object = bench.backend.prepare_pod(pod, bench.gang)
            assert returned is None, "prepare_pod changes the pod it is given; what it returns is not looked at"
            assert pod["spec"].get("schedulerName"), "prepare_pod must set spec.schedulerName"
            assert {"name": marks.POD_GANG_GATE} in pod["spec"]["schedulingGates"]
            assert original["metadata"]["labels"].items() <= pod["metadata"]["labels"].items()
            assert pod["metadata"]["ownerReferences"] == original["metadata"]["ownerReferences"]
            assert pod["spec"]["containers"] == original["spec"]["containers"]
            again = copy.deepcopy(pod)
            bench.backend.prepare_pod(again, bench.gang)
            assert again == pod

    @_on_bench
    async def test_syncing_again_writes_nothing(self, bench: Bench) -> None:
        """Once a gang has been synced, syncing it again changes nothing in the cluster."""
        await bench.backend.sync_pod_gang(bench.gang)
        before = await bench.revision()
        await bench.backend.sync_pod_gang(bench.gang)
        await bench.backend.sync_pod_gang(_with(bench.gang, "Initialized"))
        assert await bench.revision() == before

    @_on_bench
    async def test_a_restarted_operator_writes_nothing(self, bench: Bench) -> None:
        """Another instance of the backend finds what the first one made and leaves it alone."""
        await bench.backend.sync_pod_gang(bench.gang)
        other = type(bench.backend)(bench.backend.context, bench.backend.config)
        await other.init()
        before = await bench.revision()
        await other.sync_pod_gang(bench.gang)
        assert await bench.revision() == before

    @_on_bench
    async def test_its_rights_cover_what_it_does(self, bench: Bench) -> None:
        """Every request to the API server, beyond what the operator may do anyhow, is among the declared rights."""
        await bench.backend.sync_pod_gang(bench.gang)
        smaller = msgspec.structs.replace(bench.gang.spec, pod_groups=bench.gang.spec.pod_groups[:1])
        await bench.backend.sync_pod_gang(msgspec.structs.replace(bench.gang, spec=smaller))
        await bench.backend.validate_pod_clique_set(self.workload(), None)
        await bench.backend.on_pod_gang_delete(bench.gang)
        granted = {
            (verb, right.group, resource)
            for right in self.backend.rights
            for resource in right.resources
            for verb in right.verbs
        }
        needed = {each for each in bench.asked if each[1] not in OPERATORS_OWN}
        assert needed <= granted, f"add to {self.backend.__name__}.rights: {sorted(needed - granted)}"

    @_on_bench
    async def test_what_it_makes_goes_with_the_gang(self, bench: Bench) -> None:
        """After a gang has been deleted nothing is left of what was made for it."""
        before = await bench.everything()
        await bench.backend.sync_pod_gang(bench.gang)
        await bench.backend.on_pod_gang_delete(bench.gang)
        await bench.client.delete(POD_GANG, NAME_OF_GANG, "test")
        await bench.backend.context.clock.sleep(60)
        assert await bench.everything() == before - {("podgangs", NAME_OF_GANG)}

    @_on_bench
    async def test_the_delete_hook_may_be_repeated(self, bench: Bench) -> None:
        """``on_pod_gang_delete`` may be called twice, and for a gang that was never synced."""
        await bench.backend.on_pod_gang_delete(bench.gang)
        await bench.backend.sync_pod_gang(bench.gang)
        await bench.backend.on_pod_gang_delete(bench.gang)
        await bench.backend.on_pod_gang_delete(bench.gang)

    @_on_bench
    async def test_holds_no_gate_for_ever(self, bench: Bench) -> None:
        """The minimum of each group may be released at once, and everything once the gang is scheduled."""
        for group in bench.gang.spec.pod_groups:
            for index in range(group.min_replicas):
                pod = convert(Pod, a_pod(bench.gang, group, index))
                assert bench.backend.may_release(pod, bench.gang)
            beyond = convert(Pod, a_pod(bench.gang, group, group.min_replicas))
            assert bench.backend.may_release(beyond, _with(bench.gang, SCHEDULED))

    @_on_bench
    async def test_accepts_its_workload(self, bench: Bench) -> None:
        """The workload is accepted; degradations name a capability that the backend indeed lacks."""
        for found in await bench.backend.validate_pod_clique_set(self.workload(), None):
            assert isinstance(found, Degradation)
            assert found.message
            assert found.capability in bench.backend.capabilities.named()

    @_on_bench
    async def test_a_required_topology_is_honoured_or_rejected(self, bench: Bench) -> None:
        """A set that requires a domain is only accepted by a backend that says it can keep to it."""
        plain = self.workload()
        pcs = a_pod_clique_set(
            "model",
            [a_clique("worker", 2, pod_spec=plain.spec.template.cliques[0].spec.pod_spec)],
            required="rack",
            topology="cluster",
            labels=plain.metadata.labels,
            annotations=plain.metadata.annotations,
        )
        if bench.backend.capabilities.required_topology:
            await bench.backend.validate_pod_clique_set(pcs, None)
        else:
            with pytest.raises(Rejected):
                await bench.backend.validate_pod_clique_set(pcs, None)

    # -- machinery -----------------------------------------------------------------------------------------------------

    def _profiles(self, profile: JSON) -> Profiles:
        catalogue = Catalogue()
        catalogue.register(self.backend)
        if catalogue.get("default-scheduler") is None:
            catalogue.register(_Kube)
        document = parse(yaml.safe_dump({"profiles": [profile]}), "profile")
        return resolve(convert(SchedulerConfiguration, document.value), catalogue, document)

    @asynccontextmanager
    async def bench(self, *, installed: bool = True) -> AsyncIterator[Bench]:
        """Give the backend on an embedded cluster, which has what its scheduler brings if that is ``installed``."""
        # The in-process transport lives in a room beside this one; only an embedded cluster needs it.
        transports = pytest.importorskip("spinney.sim.embedded.transport")
        runtime = Runtime.virtual(seed=1)
        server = ApiServer(runtime, self.server if installed else ServerOptions(gang_versions=()))
        client = Client(transports.InProcessTransport(server), runtime)
        async with server.running():
            await client.create(NAMESPACE, {"metadata": {"name": "test"}})
            own = [crd for crd in manifests() if crd["spec"]["group"] in ("grove.io", "scheduler.grove.io")]
            await install_crds(client, own)
            if installed:
                await install_crds(client, list(self.crds))
                for resource, manifest in self.objects:
                    await _put(client, resource, manifest)
            pcs = self.workload()
            gang = await client.apply(POD_GANG, a_gang(pcs), type=PodGang)
            lookup = Lookup({gang.metadata.name: gang}, {pcs.metadata.name: pcs})
            overheard = Overheard(client.transport)
            theirs = Client(overheard, runtime)
            context = BackendContext(theirs, EventRecorder(client, "contract"), runtime.clock, lookup)
            registry = Registry()
            catalogue = Catalogue()
            catalogue.register(self.backend)
            profile: JSON = {"name": self.backend.name} | ({"config": dict(self.config)} if self.config else {})
            profiles = self._profiles(profile)
            wanted = tuple(each for each in profiles.enabled if each.name == self.backend.name)
            await registry.initialize(catalogue, context, Profiles(wanted, self.backend.name))
            yield Bench(registry.get_default(), client, lookup, gang, overheard.asked)


class _Kube(SchedulerBackend):
    """Stands in for the kube backend, which is always enabled."""

    name = "default-scheduler"

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities()

    def prepare_pod(self, pod: JSON, gang: PodGang) -> None:
        raise AssertionError("the contract of another backend is being tested")


def _with(gang: PodGang, condition: str) -> PodGang:
    status = msgspec.structs.replace(gang.status, conditions=(Condition(type=condition, status="True"),))
    return msgspec.structs.replace(gang, status=status)


async def _put(client: Client, resource: Any, manifest: JSON) -> None:
    created: JSON = await client.create(resource, to_json(manifest))
    if "status" in manifest:
        patch = {"status": manifest["status"]}
        metadata = created["metadata"]
        await client.patch(resource, metadata["name"], patch, metadata.get("namespace"), subresource="status")
