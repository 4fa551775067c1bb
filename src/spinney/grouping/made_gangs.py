"""Workloads of any kind that have no pods yet: the pods they make, and the gangs that the grouper makes of them."""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import msgspec

from spinney.api.core import Pod
from spinney.api.podgang import PodGang
from spinney.api.struct import JSON
from spinney.backends.profiles import ALWAYS_ENABLED
from spinney.grouping import podgangs, selecting
from spinney.grouping.attributes import Conventions
from spinney.grouping.describing import Grouping, describe
from spinney.grouping.loading import built_in
from spinney.grouping.making import pods_made
from spinney.grouping.owners import Owner, group_kind
from spinney.grouping.rules import POD_KIND, Rule
from spinney.grouping.world import World


def rule_for(manifest: JSON) -> Rule | None:
    """Return the rule of a workload that can be simulated: one that says what pods it makes."""
    rule = built_in().get(group_kind(str(manifest.get("apiVersion")), str(manifest.get("kind"))), {})
    return rule if rule is not None and rule.kind != POD_KIND and (rule.makes or rule.roles) else None


def grouped(
    manifest: JSON, rule: Rule, decoded: Callable[[JSON], Pod], classes: set[str], born: datetime
) -> Iterator[Any]:
    """Yield what a cluster with the grouper holds after a workload was applied; raises :class:`Refused`."""
    metadata = {
        **manifest["metadata"],
        "uid": manifest["metadata"].get("uid") or f"simulated-{manifest['metadata']['name']}",
    }
    owner = msgspec.convert({**manifest, "metadata": metadata, "status": {}}, type=Owner)
    pods = [decoded(each) for each in pods_made({**manifest, "metadata": metadata}, rule)]
    conventions = Conventions()
    groupings: dict[str, list[tuple[Pod, Grouping]]] = {}
    for pod in pods:
        if pod.spec.scheduler_name in ("", ALWAYS_ENABLED):
            yield pod  # kube-scheduler learns the group of a pod only when it is made
            continue
        world = World(peers=lambda owner, pod: pods, priority_classes=classes)
        found = describe(pod, (owner,), built_in(), conventions, world)
        groupings.setdefault(podgangs.gang_name(found.gang), []).append((pod, found))
    for name, members in groupings.items():
        single = members[0][1].gang.owner.group_kind == POD_KIND
        groups: dict[str, list[Pod]] = {}
        for pod, found in members:
            alone = single or found.alone
            group = podgangs.group_name(found.sub_group)
            labels = podgangs.alone_labels(found.gang) if alone else selecting.gang_labels(name, group)
            own = msgspec.structs.replace(pod.metadata, labels={**labels, **pod.metadata.labels})
            labelled = msgspec.structs.replace(pod, metadata=own)
            if not alone:
                groups.setdefault(group, []).append(labelled)
            yield labelled
        if groups:
            yield _gang(members[0][1], members[0][0].spec.scheduler_name, groups, born)


def _gang(found: Grouping, scheduler: str, groups: dict[str, list[Pod]], born: datetime) -> PodGang:
    made = podgangs.pod_gang(found.gang, scheduler, groups)
    metadata = msgspec.structs.replace(made.metadata, uid=f"simulated/{made.metadata.name}", creation_timestamp=born)
    return msgspec.structs.replace(made, metadata=metadata)
