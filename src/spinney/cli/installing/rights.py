"""What each process must be allowed to do, as RBAC rules: as little as it needs.

A test runs the processes on a real API server under exactly these rights, so a rule that is missing shows.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from spinney.api.struct import JSON
from spinney.backends import Catalogue, Right
from spinney.backends.profiles import ALWAYS_ENABLED
from spinney.grouping.configuration import LoadedGrouperConfiguration
from spinney.grouping.rules import RuleSet
from spinney.grouping.webhook import WEBHOOK
from spinney.operator.admission.webhooks import WEBHOOK_CONFIGURATIONS

READ: Final = ("get", "list", "watch")
OWN: Final = (*READ, "create", "patch", "delete")
REGISTER: Final = ("get", "create", "patch", "delete")
"""On webhook configurations, which are applied by name, so that creating is limited to these names, too."""
EVENTS: Final = Right("", ("events",), ("create", "patch"))

OPERATOR: Final = (
    Right("grove.io", ("podcliquesets",), (*READ, "patch")),
    Right("grove.io", ("podcliques", "podcliquescalinggroups"), OWN),
    Right("grove.io", ("clustertopologybindings",), READ),
    Right(
        "grove.io",
        (
            "podcliquesets/status",
            "podcliques/status",
            "podcliquescalinggroups/status",
            "clustertopologybindings/status",
        ),
        ("patch",),
    ),
    Right(
        "grove.io",
        ("podcliquesets/finalizers", "podcliques/finalizers", "podcliquescalinggroups/finalizers"),
        ("update",),
    ),
    Right("scheduler.grove.io", ("podgangs",), OWN),
    Right("scheduler.grove.io", ("podgangs/status",), ("patch",)),
    Right("scheduler.grove.io", ("podgangs/finalizers",), ("update",)),
    Right("", ("pods",), (*READ, "create", "patch", "delete")),
    Right("", ("pods/status",), READ),  # granted on by the Role of the start-up init container
    Right("", ("services", "serviceaccounts"), OWN),
    Right("rbac.authorization.k8s.io", ("roles", "rolebindings"), OWN),
    Right("autoscaling", ("horizontalpodautoscalers",), OWN),
    Right("resource.k8s.io", ("resourceclaims",), OWN),
    Right("resource.k8s.io", ("resourceclaimtemplates",), ("get",)),
    Right("apiextensions.k8s.io", ("customresourcedefinitions",), ("get",)),
    Right(
        "admissionregistration.k8s.io",
        ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"),
        REGISTER,
        names=tuple(WEBHOOK_CONFIGURATIONS),
    ),
    Right("rbac.authorization.k8s.io", ("clusterroles",), ("get",), names=("grove-operator",)),
    EVENTS,
)

TOKENS: Final = Right("", ("secrets",), OWN)
"""Token Secrets of start-up init containers are in users' namespaces, and their names follow from users' sets."""

MNNVL: Final = Right("resource.nvidia.com", ("computedomains",), OWN)

_DEVICES: Final = (
    Right("resource.k8s.io", ("resourceclaims", "resourceslices", "deviceclasses"), READ),
    # Since 1.36 writing an allocation also asks for the right to `binding`, which is no subresource.
    Right("resource.k8s.io", ("resourceclaims", "resourceclaims/status", "resourceclaims/binding"), ("patch",)),
)

_GROUP_STATUS: Final = tuple(
    Right(group, ("podgroups/status",), ("patch",)) for group in ("scheduling.k8s.io", "scheduling.x-k8s.io")
)

SCHEDULER: Final = (
    Right("", ("pods", "nodes", "namespaces", "persistentvolumes", "persistentvolumeclaims"), READ),
    Right("", ("pods/binding", "pods/eviction"), ("create",)),
    # On pods: what victims are asked before they are evicted, and which shared device a pod was given.
    Right("", ("pods", "pods/status", "persistentvolumes", "persistentvolumeclaims"), ("patch",)),
    Right("storage.k8s.io", ("storageclasses",), READ),
    Right("scheduling.k8s.io", ("priorityclasses", "workloads", "podgroups", "compositepodgroups"), READ),
    Right("policy", ("poddisruptionbudgets",), READ),
    *_DEVICES,
    Right("grove.io", ("clustertopologybindings",), READ),
    Right("scheduler.grove.io", ("podgangs",), READ),
    Right("scheduler.grove.io", ("podgangs/status",), ("patch",)),
    Right("scheduling.run.ai", ("queues", "podgroups"), READ),
    Right("scheduling.run.ai", ("queues/status", "podgroups", "podgroups/status"), ("patch",)),
    Right("kai.scheduler", ("topologies",), READ),
    Right("scheduling.x-k8s.io", ("podgroups",), READ),
    *_GROUP_STATUS,
    Right("authentication.k8s.io", ("tokenreviews",), ("create",)),  # who reads /explanations from another host
    Right("authorization.k8s.io", ("subjectaccessreviews",), ("create",)),
    Right("scheduling.volcano.sh", ("podgroups",), READ),
    Right("scheduling.volcano.sh", ("podgroups/status",), ("patch",)),
    EVENTS,
)

QUEUED: Final = {
    "Job": (Right("batch", ("jobs",), (*READ, "patch")),),
    "JobSet": (Right("jobset.x-k8s.io", ("jobsets",), (*READ, "patch")),),
    "TrainJob": (
        Right("trainer.kubeflow.org", ("trainjobs",), (*READ, "patch")),
        Right("trainer.kubeflow.org", ("clustertrainingruntimes", "trainingruntimes"), READ),
    ),
}
"""Resuming suspended workloads, by kind; only of the kinds that wait in queues."""

PROVISIONING: Final = (
    Right("autoscaling.x-k8s.io", ("provisioningrequests",), (*READ, "create", "delete")),
    Right("", ("podtemplates",), ("create", "delete")),
)
"""Asking an autoscaler for the nodes of gangs; only where a class of requests is named."""

COSCHEDULER: Final = (
    # Preemption deletes, as kube-scheduler's does; patched is what victims are asked before.
    Right("", ("pods",), (*READ, "patch", "delete")),
    Right("", ("nodes", "namespaces", "persistentvolumes", "persistentvolumeclaims"), READ),
    Right("", ("pods/binding", "pods/eviction"), ("create",)),  # evicted is what is left of a group that is moved
    Right("", ("pods/status", "persistentvolumes", "persistentvolumeclaims"), ("patch",)),
    Right("storage.k8s.io", ("storageclasses",), READ),
    Right("scheduling.k8s.io", ("workloads", "podgroups", "compositepodgroups", "priorityclasses"), READ),
    Right("scheduling.x-k8s.io", ("podgroups",), READ),
    *_GROUP_STATUS,
    Right("policy", ("poddisruptionbudgets",), READ),
    *_DEVICES,
    EVENTS,
)


NAMESPACES: Final = Right("", ("namespaces",), READ)
CONFIG_MAPS: Final = Right("", ("configmaps",), READ)

LEASE: Final = (
    Right("coordination.k8s.io", ("leases",), ("create",)),
    Right("coordination.k8s.io", ("leases",), ("get", "update")),
)
"""What an election needs: making a Lease, which cannot be limited to a name, and keeping the one."""
CERTIFICATE: Final = (Right("", ("secrets",), ("create",)), Right("", ("secrets",), ("get", "patch")))
"""What a process's own certificate needs: making a Secret, and keeping the one."""

GROUPER: Final = (
    Right("", ("pods",), (*READ, "patch")),
    Right("scheduler.grove.io", ("podgangs",), (*READ, "create", "patch", "delete")),
    Right("scheduler.grove.io", ("podgangs/status",), ("patch",)),
    Right("scheduler.grove.io", ("podgangs/finalizers",), ("update",)),  # what backends make blocks its deletion
    Right("grove.io", ("clustertopologybindings",), READ),
    Right("scheduling.k8s.io", ("priorityclasses",), READ),
    Right("apiextensions.k8s.io", ("customresourcedefinitions",), ("get",)),
    # Where pods are no longer told while they are created, the API server has to be told so.
    Right("admissionregistration.k8s.io", ("mutatingwebhookconfigurations",), ("delete",), names=(WEBHOOK,)),
    EVENTS,
)

TELLING: Final = (
    Right("admissionregistration.k8s.io", ("mutatingwebhookconfigurations",), REGISTER, names=(WEBHOOK,)),
    Right("rbac.authorization.k8s.io", ("clusterroles",), ("get",), names=("spinney-grouper",)),
)
"""Having the API server ask about new pods; only where pods are told while they are created."""


def grouper_rights(configuration: LoadedGrouperConfiguration, catalogue: Catalogue) -> list[Right]:
    """Return the grouper's own rights, those to read the kinds of the enabled rules, and those of the backends.

    Of kube-scheduler's it has none: pods that exist cannot join its groups.
    """
    rights = list(GROUPER)
    written = configuration.written
    if written.admission.enabled:
        rights += TELLING
    if written.namespace_labels:
        rights.append(NAMESPACES)
    if written.kind_defaults_config_map is not None:
        rights.append(replace(CONFIG_MAPS, names=(written.kind_defaults_config_map.name,)))
    rights += kind_rights(configuration.rules)
    for name in configuration.profiles.names():
        backend = catalogue.get(name)
        rights += backend.rights if backend is not None and name != ALWAYS_ENABLED else ()
    return rights


def kind_rights(rules: RuleSet) -> list[Right]:
    """Return the rights to read the kinds that rules name, one for each API group."""
    groups: dict[str, set[str]] = {}
    for kind in rules.watched():
        groups.setdefault(kind.rpartition("/")[0], set()).add(rules.plural_of(kind))
    return [
        Right("" if group == "v1" else group, tuple(sorted(names)), READ) for group, names in sorted(groups.items())
    ]


def rules(rights: Iterable[Right]) -> list[JSON]:
    """Return rights as the rules of a Role or ClusterRole."""
    return [
        {"apiGroups": [each.group], "resources": list(each.resources), "verbs": list(each.verbs)}
        | ({"resourceNames": list(each.names)} if each.names else {})
        for each in rights
    ]
