"""A whole cluster in one process: API server, simulated nodes, operator and both schedulers.

The parts are the ones that run in production; only the transport between them is a function call. On a
:class:`~spinney.runtime.VirtualTimeLoop` with a seeded runtime the whole cluster is deterministic. The same parts
without the server (:class:`Stack`) run against any API server.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace

from spinney.api.struct import JSON
from spinney.autoscaling.provisioning import provisioning_for
from spinney.backends.coscheduling import CoschedulingConfig
from spinney.backends.kube import KubeSchedulerConfig
from spinney.backends.profiles import Profile, Profiles
from spinney.coscheduling.framework.registry import FrameworkRegistry
from spinney.coscheduling.process.configuration import (
    CoschedulerConfiguration,
    PluginChoice,
    PluginSet,
    ProfileConfiguration,
)
from spinney.coscheduling.process.process import CoschedulerProcess
from spinney.grouping.configuration import GrouperConfiguration, LoadedGrouperConfiguration
from spinney.grouping.grouper import COMPONENT as GROUPER_COMPONENT
from spinney.grouping.grouper import Grouper
from spinney.grouping.loading import built_in
from spinney.kube.client import Client
from spinney.kube.crds import install_crds
from spinney.kube.decoding import CommonDecoders
from spinney.kube.lease import LeaderElection
from spinney.kube.manager import Manager
from spinney.kube.webhooks.certificates import new_certificate, service_names
from spinney.kube.webhooks.server import ServicePlace, WebhookServer
from spinney.nodes import ClusterSpec, Fleet
from spinney.nodes.compute_domains import ComputeDomains
from spinney.operator.admission.webhooks import register
from spinney.operator.operator import Operator, Settings
from spinney.queueing.admission import admission_for
from spinney.runtime import Runtime
from spinney.scheduler.config import SchedulerConfig
from spinney.scheduler.framework.plugin import PluginRegistry
from spinney.scheduler.intake.inventory import Inventory
from spinney.scheduler.plugins import default_registry
from spinney.scheduler.process.process import SchedulerProcess
from spinney.server import ApiServer, ServerOptions
from spinney.server.admission.attributes import Attributes
from spinney.sim.embedded.parts import Part, running, stop
from spinney.sim.embedded.transport import InProcessTransport, RequestTurns
from spinney.workloads import WorkloadControllers

_WEBHOOKS = ServicePlace("grove-operator", "kube-system")

OUR_BACKENDS = Profiles((Profile("default-scheduler"), Profile("spinney-scheduler")), "spinney-scheduler")

EVERY_BACKEND = Profiles(
    (
        Profile("default-scheduler", KubeSchedulerConfig(gang_scheduling=True)),
        Profile("kai-scheduler"),
        Profile("coscheduling", CoschedulingConfig()),
        Profile("volcano"),
        Profile("spinney-scheduler"),
    ),
    "spinney-scheduler",
)
"""Every built-in backend, as the embedded cluster's own schedulers serve them."""

GROUPER = GrouperConfiguration(scheduler_names=("spinney-scheduler", "kai-scheduler", "volcano", "coscheduling"))

_COSCHEDULER = CoschedulerConfiguration(
    profiles=(
        ProfileConfiguration(scheduler_name="default-scheduler"),
        ProfileConfiguration(
            scheduler_name="coscheduling",
            plugins={"preEnqueue": PluginSet(enabled=(PluginChoice(name="WaitForGrouper"),))},
        ),
    )
)
"""Pods of the one name wait for the grouper; those of the other are kube-scheduler's, which knows no grouper."""


@dataclass(frozen=True, kw_only=True)
class StackOptions:
    """What runs beside the API server."""

    crds: Sequence[JSON] | None = None  # None: every kind Spinney reads, also those of other projects
    nodes: ClusterSpec = field(default_factory=ClusterSpec)
    operator: Settings = field(default_factory=lambda: Settings(profiles=OUR_BACKENDS, topology_enabled=True))
    scheduler: SchedulerConfig = field(default_factory=lambda: SchedulerConfig(device_reservation=True))
    coscheduler: CoschedulerConfiguration | None = None  # None: pods of its names are left to other schedulers
    plugins: PluginRegistry | None = None  # None: what is built in and installed
    framework_plugins: FrameworkRegistry | None = None
    grouper: LoadedGrouperConfiguration | None = None  # None: pods of ordinary workloads are placed one by one
    compute_domains: bool = False  # True: ComputeDomains are served as NVIDIA's DRA driver does, so MNNVL can be tried
    workloads: bool = False  # True: Deployments, StatefulSets and Jobs become pods; a real cluster does that itself

    @classmethod
    def whole(cls, nodes: ClusterSpec) -> "StackOptions":
        """Return every backend with a scheduler that serves it: both of ours, over one ledger."""
        return cls(
            nodes=nodes,
            operator=Settings(profiles=EVERY_BACKEND, topology_enabled=True),
            scheduler=SchedulerConfig(
                scheduler_names=("spinney-scheduler", "kai-scheduler", "volcano"),
                device_reservation=True,
                wait_for_grouper=True,
            ),
            coscheduler=_COSCHEDULER,
            grouper=LoadedGrouperConfiguration(GROUPER, built_in(), EVERY_BACKEND),
            workloads=True,
        )


class Schedulers:
    """The session scheduler and, if configured, coscheduler and grouper, with one set of caches and one ledger.

    With an election they schedule only while they lead, and ``connect`` gives clients that write only then.
    """

    def __init__(
        self, connect: Callable[[str], Client], options: StackOptions, *, election: LeaderElection | None = None
    ) -> None:
        client = connect("spinney-scheduler")
        self.manager = Manager(client, client.runtime, election=election)
        inventory = Inventory.for_config(options.scheduler)
        registry = options.plugins if options.plugins is not None else default_registry()
        requests, scheduler = provisioning_for(self.manager, inventory, options.scheduler, registry)
        self.session = SchedulerProcess(
            client,
            scheduler,
            manager=self.manager,
            inventory=inventory,
            registry=registry,
            virtual=admission_for(self.manager, inventory, options.scheduler),
            node_requests=requests,
        )
        self._coscheduler = (
            CoschedulerProcess(
                connect("spinney-coscheduler"),
                options.coscheduler,
                manager=self.manager,
                registry=options.framework_plugins,
                shared=inventory.shared,
            )
            if options.coscheduler is not None
            else None
        )
        self.grouper = (
            Grouper(connect(GROUPER_COMPONENT), options.grouper, manager=self.manager)
            if options.grouper is not None
            else None
        )

    async def run(self) -> None:
        """Watch, schedule and bind until :meth:`stop`."""
        await self.session.prepare()
        if self._coscheduler is not None:
            await self._coscheduler.prepare()
        if self.grouper is not None:
            await self.grouper.prepare()
        await self.manager.run()

    def stop(self) -> None:
        """Ask for a graceful stop."""
        self.manager.stop()


class Stack:
    """Simulated nodes, operator and schedulers on one API server, embedded or real.

    With ``adopts_nodes`` it runs the simulated nodes that it finds there, too.
    """

    def __init__(
        self, connect: Callable[[str], Client], options: StackOptions | None = None, *, adopts_nodes: bool = False
    ) -> None:
        options = options or StackOptions()
        nodes = connect("spinney-nodes")
        self._crds = options.crds
        self.client = connect("spinney")
        self.fleet = Fleet(nodes, options.nodes, runtime=nodes.runtime, adopts=adopts_nodes)
        self.operator = Operator(connect("grove-operator"), options.operator)
        self.schedulers = Schedulers(connect, options)
        self.workloads = WorkloadControllers(connect("kube-controller-manager")) if options.workloads else None
        self.compute_domains = ComputeDomains(connect("nvidia-dra-driver")) if options.compute_domains else None

    @asynccontextmanager
    async def running(self) -> AsyncIterator["Stack"]:
        """Install the CRDs and run everything for the time of the block, which begins when every part is ready.

        A part that fails ends the block with its error. Leaving the block stops all parts at once: none of them looks
        at what another one finishes.
        """
        await install_crds(self.client, self._crds)
        parts: list[Part] = [self.operator, self.schedulers]
        async with AsyncExitStack() as started, AsyncExitStack() as nodes:  # which stop first: they only react
            await nodes.enter_async_context(self.fleet.running())
            if self.compute_domains is not None:
                await self.compute_domains.prepare()
                parts.insert(0, self.compute_domains)
            if self.workloads is not None:
                parts.append(self.workloads)
            for part in parts:
                await started.enter_async_context(running(part))
            try:
                yield self
            finally:
                for part in parts:
                    stop(part)


class EmbeddedCluster:
    """An API server of our own with a stack on it."""

    def __init__(
        self, runtime: Runtime, options: StackOptions | None = None, *, server: ServerOptions | None = None
    ) -> None:
        self.runtime = runtime
        self._turns = RequestTurns()
        self._decoders = CommonDecoders()
        self._services = dict(server.service_addresses) if server is not None else {}
        options_with_services = replace(server or ServerOptions(), service_addresses=self._services)
        self.server = ApiServer(runtime, options_with_services)
        self.client = self.connect("spinney")
        self.stack = Stack(self.connect, options, adopts_nodes=True)
        join_at_creation(self.server, self.stack.schedulers.grouper)

    def connect(self, field_manager: str) -> Client:
        """Return a further client of the cluster, without sockets."""
        transport = InProcessTransport(self.server, self._turns)
        return Client(transport, self.runtime, field_manager=field_manager, decoder_for=self._decoders.of)

    @asynccontextmanager
    async def running(self) -> AsyncIterator["EmbeddedCluster"]:
        """Run server and stack for the time of the block, which begins when every part is ready."""
        async with self.server.running(), self.stack.running():
            yield self

    @asynccontextmanager
    async def reviewing(self) -> AsyncIterator[None]:
        """Have the operator default and validate what is applied, over TLS on loopback, for the time of the block.

        Needs real time: webhooks are called through a socket, as in production.
        """
        certificate = new_certificate(service_names(_WEBHOOKS.name, _WEBHOOKS.namespace), self.runtime.clock.now())
        webhooks = WebhookServer(self.stack.operator.admission, certificate, host="127.0.0.1")
        async with webhooks.serving() as port:
            self._services[f"{_WEBHOOKS.namespace}/{_WEBHOOKS.name}"] = f"127.0.0.1:{port}"
            await register(self.client, _WEBHOOKS, certificate.authority, authorizer=False)
            yield


class JoiningAtCreation:
    """Has the grouper of the same process asked about pods that are created; fills ``MutatingPlugin``."""

    def __init__(self, grouper: Grouper) -> None:
        self._grouper = grouper

    async def admit(self, attributes: Attributes) -> None:
        """Add to a new pod what the grouper tells it."""
        admission, pod = self._grouper.admission, attributes.obj
        if admission is None or pod is None or attributes.operation != "CREATE":
            return
        if attributes.kind.storage != "pods" or attributes.subresource:
            return
        pod["metadata"] |= await admission.changes(pod, attributes.namespace, dry_run=attributes.dry_run)


def join_at_creation(server: ApiServer, grouper: Grouper | None) -> None:
    """Have a server ask the grouper, if there is one, about pods that are created."""
    if grouper is not None:
        server.admit_with(JoiningAtCreation(grouper))
