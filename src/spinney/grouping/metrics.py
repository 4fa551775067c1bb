"""What the grouper counts, for ``/metrics``. Kinds are those of rules, so that there are only so many."""

from prometheus_client import CollectorRegistry, Counter


class GroupingMetrics:
    """Counters of one grouper."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.gangs_made = Counter(
            "spinney_grouper_gangs_made",
            "PodGangs that were made, by kind of the workload's rule.",
            ["kind"],
            registry=registry,
        )
        self.pods_grouped = Counter(
            "spinney_grouper_pods_grouped",
            "Pods that were told their gang, by kind of the workload's rule; those that are gangs of their own, too.",
            ["kind"],
            registry=registry,
        )
        self.refusals = Counter(
            "spinney_grouper_refusals",
            "How often a rule could not be applied to a pod, by kind of the rule; empty where no owner was found.",
            ["kind"],
            registry=registry,
        )
        self.foreign_pods = Counter(
            "spinney_grouper_foreign_pods",
            "Pods that were left alone because they name a group already, by whose it is "
            "(grove, kai, volcano, coscheduling, kubernetes).",
            ["group"],
            registry=registry,
        )
        self.admissions = Counter(
            "spinney_grouper_admissions",
            "Pods that were looked at while they were created, by answer: gang (they were told their gang), alone "
            "(told that they are gangs of their own), later (they are told once they exist).",
            ["answer"],
            registry=registry,
        )
