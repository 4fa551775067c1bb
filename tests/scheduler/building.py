"""Builders for scheduler tests: say what matters, get objects as a watch would deliver them."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from random import Random

from spinney.api.core import Container, Node, NodeStatus, Pod, PodSpec, PodStatus, ResourceRequirements
from spinney.api.labels import KAI_POD_GROUP, KAI_SUB_GROUP
from spinney.api.meta import Metadata
from spinney.gangs.tree import DEFAULT_POD_SET, Gang, GangKey, GroupSet, PodSet, TopologyConstraintInfo, single
from spinney.runtime import InlineExecutor, Runtime, SystemClock
from spinney.scheduler.config import PluginOption, SchedulerConfig
from spinney.scheduler.cycle.scheduler import Scheduler
from spinney.scheduler.framework.plugin import Plugin, PluginRegistry
from spinney.scheduler.framework.session import Session
from spinney.scheduler.intake.inventory import Inventory
from spinney.scheduler.plugins import default_registry

NAMESPACE = "team"
QUEUE = "default-queue"
KNOWN = default_registry()
RACK, ZONE = "example.com/rack", "example.com/zone"


NOW = datetime(2026, 1, 1, tzinfo=UTC)


class StandingClock(SystemClock):
    """A clock whose day is always the same; durations are real."""

    def now(self) -> datetime:
        """Return the moment all tests take place."""
        return NOW


def a_runtime() -> Runtime:
    """Return a day that stands still and seeded chance."""
    return Runtime(clock=StandingClock(), random=Random(0), executor=InlineExecutor())


def a_node(name: str, *, gpus: int = 8, cpu: str = "64", labels: Mapping[str, str] | None = None) -> Node:
    return Node(
        metadata=Metadata(name=name, labels=dict(labels or {})),
        status=NodeStatus(
            allocatable={"cpu": cpu, "memory": "512Gi", "pods": "110", "nvidia.com/gpu": str(gpus)},
        ),
    )


def a_pod(
    name: str,
    *,
    gang: str = "",
    pod_set: str = "",
    gpus: int = 0,
    cpu: str = "1",
    node: str = "",
    terminating: bool = False,
    terminating_for: timedelta = timedelta(0),
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    namespace: str = NAMESPACE,
    **spec: object,
) -> Pod:
    """Return a pod: pending, or running on ``node``."""
    requests: dict[str, str] = {"cpu": cpu, **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    own = dict(annotations or {})
    if gang:
        own[KAI_POD_GROUP] = gang
    marks = dict(labels or {})
    if pod_set:
        marks[KAI_SUB_GROUP] = pod_set
    return Pod(
        metadata=Metadata(
            name=name,
            namespace=namespace,
            uid=name,
            labels=marks,
            annotations=own,
            deletion_timestamp=NOW - terminating_for if terminating else None,
        ),
        spec=PodSpec(
            scheduler_name="spinney-scheduler",
            node_name=node,
            containers=(Container(name="main", resources=ResourceRequirements(requests=requests)),),
            **spec,  # type: ignore[arg-type]
        ),
        status=PodStatus(phase="Running" if node else "Pending"),
    )


def a_gang(
    name: str,
    *,
    minimum: int = 1,
    root: GroupSet | None = None,
    topology: TopologyConstraintInfo | None = None,
    priority: int = 50,
    preemptible: bool = True,
    queue: str = QUEUE,
    created: datetime | None = None,
) -> Gang:
    """Return a gang of one pod set, or with the tree given."""
    return Gang(
        key=GangKey("kai", NAMESPACE, name),
        root=root if root is not None else single(PodSet(DEFAULT_POD_SET, minimum), topology=topology),
        uid=name,
        queue=queue,
        priority=priority,
        preemptible=preemptible,
        created=created,
    )


def put_gang(inventory: Inventory, gang: Gang, pods: Iterable[Pod]) -> None:
    inventory.put_gang(gang)
    for pod in pods:
        inventory.apply(pod)


def put_job(inventory: Inventory, name: str, count: int, *, gpus: int = 1, minimum: int | None = None) -> None:
    """Put a gang of ``count`` equal pending pods into an inventory."""
    gang = a_gang(name, minimum=count if minimum is None else minimum)
    put_gang(inventory, gang, (a_pod(f"{name}-{number}", gang=name, gpus=gpus) for number in range(count)))


def an_inventory(*nodes: Node) -> Inventory:
    inventory = Inventory()
    for node in nodes:
        inventory.apply(node)
    return inventory


def a_scheduler(
    inventory: Inventory, *plugins: type[Plugin], config: SchedulerConfig | None = None, only: bool = False
) -> Scheduler:
    """Return a scheduler with the default plugins and ``plugins`` after them; ``only`` leaves the defaults out."""
    registry = PluginRegistry({name: KNOWN.builder(name) for name in KNOWN})
    base = config if config is not None else SchedulerConfig()
    options = () if only else base.plugins
    for plugin in plugins:
        registry.register(plugin.name, plugin)
        options = (*options, PluginOption(plugin.name))
    changed = {field: getattr(base, field) for field in base.__struct_fields__} | {"plugins": options}
    return Scheduler(SchedulerConfig(**changed), inventory, runtime=a_runtime(), registry=registry)


def a_session(inventory: Inventory, *plugins: type[Plugin], config: SchedulerConfig | None = None) -> Session:
    return a_scheduler(inventory, *plugins, config=config).open_session()


def placements(scheduler: Scheduler) -> dict[str, str]:
    """Run one cycle; return the node of every bound pod."""
    return {bind.pod.name: bind.node for bind in scheduler.run_cycle().binds}
