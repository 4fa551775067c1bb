"""The operator: caches, backends and controllers, composed."""

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from spinney.api.compute_domains import COMPUTE_DOMAIN
from spinney.api.resource import Resource
from spinney.api.resource_claims import RESOURCE_CLAIM
from spinney.api.schema.validate_size import DEFAULT_LIMITS, SizeLimits
from spinney.backends.builtin import every_backend
from spinney.backends.catalogue import Catalogue
from spinney.backends.ensuring import serves
from spinney.backends.interface import BackendContext
from spinney.backends.profiles import Profiles
from spinney.backends.registry import Registry
from spinney.kube.client import Client
from spinney.kube.controller import Controller
from spinney.kube.discovery import served
from spinney.kube.manager import Manager
from spinney.operator.admission.authorization import WriteAuthorizer
from spinney.operator.admission.rules import Admission
from spinney.operator.caches import Caches
from spinney.operator.configuration import WORKERS, InitContainer, LoadedOperatorConfiguration, workers
from spinney.operator.controllers.clustertopologybinding import ClusterTopologyBindingController
from spinney.operator.controllers.growth import Growth
from spinney.operator.controllers.interlock import GangInterlock
from spinney.operator.controllers.lookups import BackendLookups
from spinney.operator.controllers.podclique import PodCliqueController
from spinney.operator.controllers.podcliquescalinggroup import PodCliqueScalingGroupController
from spinney.operator.controllers.podcliqueset import PodCliqueSetController
from spinney.operator.controllers.podgang import PodGangController
from spinney.operator.controllers.shared import Shared
from spinney.operator.owned.auxiliary import AuxiliaryObjects
from spinney.operator.owned.claims import ClaimKeeper

COMPONENT = "grove-operator"
_OWN: Final = InitContainer(image="spinney")


class ComputeDomainsMissing(RuntimeError):
    """Multi-node NVLink is switched on in a cluster that does not have it."""


@dataclass(frozen=True)
class Settings:
    """What the controllers need to know of the configuration."""

    profiles: Profiles = field(default_factory=Profiles)
    topology_enabled: bool = False
    mnnvl_enabled: bool = False
    limits: SizeLimits = DEFAULT_LIMITS
    init_container: InitContainer = _OWN
    workers: Mapping[str, int] = field(default_factory=WORKERS.copy)
    """How many objects of each kind are reconciled at the same time."""
    operator_user: str | None = None
    """Who the operator is to the API server; with it, generated objects are protected against others."""
    exempt_users: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, configuration: LoadedOperatorConfiguration, *, own: InitContainer = _OWN, user: str | None = None
    ) -> "Settings":
        """Return what a configuration file comes to.

        ``own`` says how the operator's own image is pulled, for init containers of which the file does not say it;
        ``user`` is who the operator is to the API server.
        """
        written = configuration.written
        return cls(
            profiles=configuration.profiles,
            topology_enabled=written.topology_aware_scheduling.enabled,
            mnnvl_enabled=written.network.auto_mnnvl_enabled,
            limits=written.limits.sizes(),
            init_container=msgspec.structs.replace(
                written.init_container,
                image=written.init_container.image or own.image,
                image_pull_policy=written.init_container.image_pull_policy or own.image_pull_policy,
                image_pull_secrets=written.init_container.image_pull_secrets or own.image_pull_secrets,
            ),
            workers=workers(written),
            operator_user=user if written.authorizer.enabled else None,
            exempt_users=(*written.authorizer.exempt_service_account_user_names, *_scheduler_beside(user)),
        )


def _scheduler_beside(user: str | None) -> tuple[str, ...]:
    """Return who the session scheduler of the same installation is, which writes shared devices on pods."""
    return () if user is None else (f"{user.rpartition(':')[0]}:spinney-scheduler",)


class Operator:
    """One operator process, or the operator's part of a simulation. Mutable until it runs."""

    def __init__(
        self,
        client: Client,
        settings: Settings,
        *,
        manager: Manager | None = None,
        catalogue: Catalogue | None = None,
    ) -> None:
        self.manager = manager or Manager(client, client.runtime)
        self.registry = Registry()
        self._settings = settings
        self._catalogue = catalogue or every_backend()
        self._events = self.manager.recorder(COMPONENT)
        self.caches = Caches.of(self.manager, topology_enabled=settings.topology_enabled)
        self.admission = Admission(
            self.caches,
            self.registry,
            client.runtime.executor,
            limits=settings.limits,
            mnnvl_enabled=settings.mnnvl_enabled,
            startup_order=settings.init_container.enabled,
            authorizer=self._authorizer(),
        )
        self.controllers: tuple[Controller, ...] = ()

    async def run(self) -> None:
        """Initialise the backends, then run until stopped. A backend that cannot be initialised ends it at once."""
        if not await self.manager.reach():
            return
        client = self.manager.client
        context = BackendContext(client, self._events, client.runtime.clock, BackendLookups(self.caches))
        await self.registry.initialize(self._catalogue, context, self._settings.profiles)
        if self._settings.mnnvl_enabled and not await serves(client, COMPUTE_DOMAIN):
            raise ComputeDomainsMissing(
                f"network.autoMNNVLEnabled is on, and the cluster does not serve {COMPUTE_DOMAIN}; "
                "install the NVIDIA DRA driver, or switch it off"
            )
        topologies = await served(client, (each.topology_resource for each in self.registry.topology_aware().values()))
        self.controllers = self._compose(
            claims_served=await serves(client, RESOURCE_CLAIM), topologies_served=topologies
        )
        await self.manager.run()

    def _compose(self, *, claims_served: bool, topologies_served: Container[Resource]) -> tuple[Controller, ...]:
        client, manager, settings = self.manager.client, self.manager, self._settings
        caches, registry, events = self.caches, self.registry, self._events
        auxiliary_objects = AuxiliaryObjects.of(
            manager, mnnvl=settings.mnnvl_enabled, startup_order=settings.init_container.enabled
        )
        shared = Shared(
            client=client,
            caches=caches,
            registry=registry,
            events=events,
            claims=ClaimKeeper.of(manager, served=claims_served),
            growth=Growth(caches, settings.limits),
            interlock=GangInterlock.of(client, caches),
        )
        sets = PodCliqueSetController(
            shared,
            auxiliary_objects=auxiliary_objects,
            mnnvl_enabled=settings.mnnvl_enabled,
            startup_order=settings.init_container.enabled,
        )
        cliques = PodCliqueController(shared, waiting=settings.init_container)
        groups = PodCliqueScalingGroupController(shared)
        gangs = PodGangController(shared)
        bindings = ClusterTopologyBindingController(client, caches, registry, events)
        return (
            sets.register(manager, workers=settings.workers["pod_clique_set"]),
            cliques.register(manager, workers=settings.workers["pod_clique"]),
            groups.register(manager, workers=settings.workers["pod_clique_scaling_group"]),
            gangs.register(manager, workers=settings.workers["pod_gang"]),
            bindings.register(manager, served=topologies_served),
        )

    def _authorizer(self) -> WriteAuthorizer | None:
        user, exempt = self._settings.operator_user, self._settings.exempt_users
        return None if user is None else WriteAuthorizer(self.caches.sets.get, operator=user, exempt=exempt)

    def stop(self) -> None:
        """Ask for a graceful stop."""
        self.manager.stop()
