"""Plugins as a beginner would write them, without any flag, and one that says it must be asked every time."""

from collections import Counter

from spinney.scheduler import Event, EventHandler, NodeInfo, Plugin, PodGroupInfo, PodInfo, Session


class FreeGpu(Plugin):
    """Refuses nodes without a free GPU, node by node."""

    name = "free-gpu"

    def on_session_open(self, session: Session) -> None:
        """Register a predicate."""
        session.add_predicate_fn(self._has_free_gpu)

    def _has_free_gpu(self, task: PodInfo, job: PodGroupInfo, node: NodeInfo) -> str | None:
        if task.requires_gpu and not node.has_available_gpus():
            return f"node {node.name} has no available GPUs"
        return None


class LabelledRack(Plugin):
    """Keeps a rack for pods with a label: a rule about labels of pods and nodes."""

    name = "labelled-rack"

    def on_session_open(self, session: Session) -> None:
        """Register a predicate."""
        session.add_predicate_fn(self._may_go)

    def _may_go(self, task: PodInfo, job: PodGroupInfo, node: NodeInfo) -> str | None:
        if node.labels.get("example.com/rack") == "rack-0000" and task.labels.get("tier") != "gold":
            return f"node {node.name} is kept for pods of tier gold, which {task.name} is not"
        return None


class FirstPodElsewhere(Plugin):
    """Keeps the first pod of every gang off a rack: a rule about names of pods."""

    name = "first-pod-elsewhere"

    def on_session_open(self, session: Session) -> None:
        """Register a predicate."""
        session.add_predicate_fn(self._may_go)

    def _may_go(self, task: PodInfo, job: PodGroupInfo, node: NodeInfo) -> str | None:
        if task.name.endswith("-000") and node.labels.get("example.com/rack") == "rack-0000":
            return f"the first pod of a gang may not be on {node.name}"
        return None


class NamespaceLimit(Plugin):
    """Limits the pods of a namespace, counted by an event handler."""

    name = "namespace-limit"
    most = 1_000_000

    def on_session_open(self, session: Session) -> None:
        """Count, and register a predicate."""
        self._pods: dict[str, int] = {}
        session.add_event_handler(EventHandler(allocate=self._count, deallocate=self._discount))
        session.add_predicate_fn(self._is_below)

    def _is_below(self, task: PodInfo, job: PodGroupInfo, node: NodeInfo) -> str | None:
        if self._pods.get(task.namespace, 0) >= self.most:
            return f"namespace {task.namespace} has {self.most} pods already"
        return None

    def _count(self, event: Event) -> None:
        self._pods[event.task.namespace] = self._pods.get(event.task.namespace, 0) + 1

    def _discount(self, event: Event) -> None:
        self._pods[event.task.namespace] -= 1


class FewPerRack(Plugin):
    """Counts what it is told of and refuses nodes by the count: a rule that no verdict can be remembered of."""

    name = "few-per-rack"
    most = 10_000

    def on_session_open(self, session: Session) -> None:
        """Register a predicate that is asked every time, and listen."""
        self._pods: Counter[str] = Counter()
        session.add_event_handler(EventHandler(allocate=self._count, deallocate=self._discount))
        session.add_predicate_fn(self._is_below, stateful=True)

    def _is_below(self, task: PodInfo, job: PodGroupInfo, node: NodeInfo) -> bool:
        return self._pods[node.labels["example.com/rack"]] < self.most

    def _count(self, event: Event) -> None:
        self._pods[event.task.node_name[:-1]] += 1

    def _discount(self, event: Event) -> None:
        self._pods[event.task.node_name[:-1]] -= 1


class BusiestFirst(Plugin):
    """Prefers nodes whose GPUs are in use, node by node, and promises nothing."""

    name = "busiest-first"

    def on_session_open(self, session: Session) -> None:
        """Register a score."""
        session.add_node_order_fn(self._utilization)

    def _utilization(self, task: PodInfo, node: NodeInfo) -> float:
        return node.gpu_utilization()
