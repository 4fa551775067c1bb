"""The shape of Grove's scale tests: one set, one clique of two pods, so N replicas are N gangs and 2N pods."""

from datetime import datetime

import msgspec

from spinney.api.core import SERVICE
from spinney.api.grove import POD_CLIQUE_SET, PodClique, PodCliqueSet
from spinney.api.meta import Condition, ObjectMeta, owner_reference
from spinney.api.podgang import INITIALIZED, NamespacedName, PodGang, PodGangStatus
from spinney.api.struct import JSON, convert
from spinney.operator.configuration import InitContainer
from spinney.operator.desired import auxiliary, gangs, names
from spinney.operator.desired.gangs import GangPlan
from spinney.operator.desired.layout import Layout
from spinney.operator.desired.podcliques import desired_clique
from spinney.operator.desired.pods import pod_manifest
from spinney.operator.desired.topologies import SetTopology
from spinney.operator.status.podgang import BackendAnswer, Members, gang_status

NAMESPACE = "bench"
SIZE = 2
CLIQUE = "expert-worker"
SCHEDULER = "default-scheduler"


def pod_spec() -> JSON:
    """Return the pod spec of scale-test-1000; no node is there to run it, so a pod stays where the gate left it."""
    term = {"matchExpressions": [{"key": "type", "operator": "In", "values": ["kwok"]}]}
    toleration = {
        "key": "node_role.e2e.grove.nvidia.com",
        "operator": "Equal",
        "value": "agent",
        "effect": "NoSchedule",
    }
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    container = {"name": CLIQUE, "image": "nginx", "resources": {"requests": {"memory": "1Mi"}}}
    return {
        "schedulerName": SCHEDULER,
        "affinity": {"nodeAffinity": required},
        "tolerations": [toleration],
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "containers": [container],
    }


def a_set(name: str, replicas: int, *, size: int = SIZE) -> JSON:
    """Return a PodCliqueSet as admission leaves it."""
    spec = {"roleName": "expert", "replicas": size, "minAvailable": size, "podSpec": pod_spec()}
    template = {
        "cliqueStartupType": "CliqueStartupTypeAnyOrder",
        "terminationDelay": "4h",
        "headlessServiceConfig": {"publishNotReadyAddresses": True},
        "cliques": [{"name": CLIQUE, "spec": spec}],
    }
    return {
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"app": name}},
        "spec": {"replicas": replicas, "template": template},
    }


class Replicas:
    """What the operator makes of a set of this shape, to be written by somebody who has nothing to find out.

    The objects are the operator's own, label for label, so that a comparison with it is about writes and not about
    their size. Only the pods have names that are known in advance.
    """

    def __init__(self, name: str, replicas: int) -> None:
        described = a_set(name, replicas)
        described["metadata"]["uid"] = "00000000-0000-4000-8000-000000000000"
        self._layout = Layout(convert(PodCliqueSet, described))
        self._owner = owner_reference(POD_CLIQUE_SET, self._layout.pcs.metadata)
        beside = auxiliary.wanted(self._layout, mnnvl_enabled=False)
        self._services = [each.manifest for each in beside if each.resource == SERVICE]

    def service(self, i: int) -> JSON:
        """Return the Service of one replica."""
        return self._services[i]

    def empty_gang(self, i: int) -> PodGang:
        """Return the PodGang of one replica before its pods exist."""
        gang = self.gang(i)
        return msgspec.structs.replace(gang, spec=gangs.with_references_of(gang.spec, None))

    def initialized(self, gang: PodGang, now: datetime) -> PodGangStatus:
        """Return the status of a PodGang whose pods all exist and are referred to."""
        condition = Condition(type=INITIALIZED, status="True", reason="Ready", message="every pod is referred to")
        nobody = Members({}, {})
        return gang_status(gang, nobody, initialized=condition, backend=BackendAnswer(), derive_scheduled=True, now=now)

    def gang(self, i: int) -> PodGang:
        """Return the PodGang of one replica, its references filled in."""
        [place] = self._layout.standalone(i)
        plan = GangPlan(self._layout, names.base_gang(self._layout.name, i), i)
        references = tuple(NamespacedName(namespace=NAMESPACE, name=f"{place.name}-{k}") for k in range(SIZE))
        spec = gangs.content(plan, self._layout, SetTopology(), {}).spec
        groups = tuple(msgspec.structs.replace(group, pod_references=references) for group in spec.pod_groups)
        metadata = ObjectMeta(
            name=plan.name,
            namespace=NAMESPACE,
            labels=gangs.gang_labels(self._layout, plan, SCHEDULER),
            owner_references=(self._owner,),
        )
        return PodGang(metadata=metadata, spec=msgspec.structs.replace(spec, pod_groups=groups))

    def clique(self, i: int) -> PodClique:
        """Return the PodClique of one replica."""
        [place] = self._layout.standalone(i)
        return desired_clique(self._layout, place, self._layout.hashes.cliques[CLIQUE], self._owner)

    def pods(self, i: int, clique: PodClique) -> list[JSON]:
        """Return the gated pods of one replica; ``clique`` is as the API server stored it."""
        [place] = self._layout.standalone(i)
        nobody = InitContainer()
        return [
            pod_manifest(clique, self._layout, place, k, name=f"{place.name}-{k}", waiting=nobody) for k in range(SIZE)
        ]
