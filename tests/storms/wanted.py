"""What users want while it storms: sets, and workloads of Kubernetes' own kinds."""

from dataclasses import dataclass, field

from spinney.api.grove import PodCliqueSet
from spinney.api.resource import Resource
from spinney.api.struct import JSON
from spinney.testing.builders import a_clique, a_pod_clique_set, a_pod_spec, a_scaling_group
from spinney.workloads.objects import DEPLOYMENT, JOB, STATEFUL_SET

QUEUE_LABEL = "kai.scheduler/queue"
NAME_LABEL = "storm/workload"
KINDS = (JOB, DEPLOYMENT, STATEFUL_SET)


@dataclass
class Wanted:
    """A set as users want it: a PodClique of two pods, and a scaling group of so many ``members``. Mutable."""

    scheduler: str
    replicas: int = 1
    members: str = "bc"
    image: int = 1
    copies: dict[int, int] = field(default_factory=dict)  # of the scaling group, where somebody scaled it
    former: dict[int, set[int]] = field(default_factory=dict)
    """What copies were before somebody took the replica away: one that is wanted again at once may never have gone."""

    def manifest(self, name: str) -> PodCliqueSet:
        """Return what is applied."""
        spec = a_pod_spec(scheduler=self.scheduler, image=f"registry.example/worker:{self.image}", gpus=1)
        cliques = [a_clique(each, 1 + (each == "a"), pod_spec=spec) for each in f"a{self.members}"]
        groups = [a_scaling_group("sg", list(self.members), 2, 1)] if self.members else []
        return a_pod_clique_set(name, cliques, groups, replicas=self.replicas, labels={QUEUE_LABEL: "team"})

    def scale(self, replicas: int) -> None:
        """Want so many replicas."""
        for i in [i for i in self.copies if i >= replicas]:
            self.former.setdefault(i, set()).add(self.copies.pop(i))
        self.replicas = replicas

    def scale_group(self, replica: int, copies: int) -> None:
        """Want so many copies of the scaling group of one replica."""
        self.copies[replica] = copies
        self.former.pop(replica, None)

    @property
    def pods(self) -> set[int]:
        """Return how many pods that may make."""
        counts = {0}
        for i in range(self.replicas):
            copies = {self.copies[i]} if i in self.copies else {2} | self.former.get(i, set())
            counts = {count + 2 + len(self.members) * each for count in counts for each in copies}
        return counts


@dataclass
class WantedWorkload:
    """A Job, Deployment or StatefulSet as users want it; its pods run until somebody takes them away. Mutable."""

    resource: Resource
    scheduler: str
    pods: int

    def manifest(self, name: str) -> JSON:
        """Return what is applied."""
        labels = {NAME_LABEL: name, QUEUE_LABEL: "team"}
        spec = a_pod_spec(scheduler=self.scheduler, gpus=1)
        template: JSON = {"metadata": {"labels": labels}, "spec": spec}
        metadata: JSON = {"name": name, "namespace": "test", "labels": labels}
        if self.resource is JOB:
            spec["restartPolicy"] = "Never"
            metadata["annotations"] = {"kai.scheduler/batch-min-member": str(self.pods)}
            counts: JSON = {"parallelism": self.pods, "completions": self.pods, "backoffLimit": 1000}
        else:
            counts = {"replicas": self.pods, "selector": {"matchLabels": {NAME_LABEL: name}}}
        return {"metadata": metadata, "spec": {**counts, "template": template}}
