"""A gang whose priority class says that it never preempts does not, whichever kind of object the gang is."""

from typing import Any

import pytest

from spinney.api import kai, volcano, workload_v1beta1
from spinney.api.meta import ObjectMeta
from spinney.api.podgang import PodGang, PodGangSpec
from spinney.api.scheduling import PriorityClass
from spinney.api.workload_v1alpha1 import GangPolicy
from spinney.api.workload_v1alpha2 import SchedulingPolicy
from spinney.gangs.definitions import GangDefinitions
from spinney.gangs.sources import kai as kai_source
from spinney.gangs.sources import native, podgang
from spinney.gangs.sources import volcano as volcano_source
from spinney.gangs.tree import GangKey
from spinney.kube.keys import Key

NAMED = ObjectMeta(name="gang", namespace="team")
KINDS = {
    podgang.SOURCE: PodGang(metadata=NAMED, spec=PodGangSpec(priority_class_name="polite")),
    kai_source.SOURCE: kai.PodGroup(metadata=NAMED, spec=kai.PodGroupSpec(min_member=1, priority_class_name="polite")),
    volcano_source.SOURCE: volcano.PodGroup(
        metadata=NAMED, spec=volcano.PodGroupSpec(min_member=1, priority_class_name="polite")
    ),
    native.SOURCE: workload_v1beta1.PodGroup(
        metadata=NAMED,
        spec=workload_v1beta1.PodGroupSpec(
            scheduling_policy=SchedulingPolicy(gang=GangPolicy(min_count=1)),
            priority_class_name="polite",
        ),
    ),
}


@pytest.mark.parametrize("source", KINDS)
@pytest.mark.parametrize("class_first", [True, False])
def test_the_policy_of_its_priority_class_counts(source: str, class_first: bool) -> None:
    """Whether the class or the gang is seen first, ``preemptionPolicy: Never`` of the class is the gang's."""
    definitions, found = GangDefinitions(), KINDS[source]
    policy = PriorityClass(metadata=ObjectMeta(name="polite"), value=5, preemption_policy="Never")
    objects: list[tuple[Key, Any]] = [(Key("", "polite"), policy), (Key("team", "gang"), found)]
    for key, each in objects if class_first else reversed(objects):
        definitions.put(type(each), key, each)
    gang = definitions.gang(GangKey(source, "team", "gang"))
    assert gang is not None
    assert not gang.preempts
