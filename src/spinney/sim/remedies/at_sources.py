"""Every change told at what the changed object is made from: at the object itself its controller would undo it.

A backend makes PodGroups from a PodGang, the operator makes that from a PodCliqueSet, the grouper from a workload.
Steps get the commands that make such changes, and words where there is none.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from spinney.api import coscheduling, kai, volcano, workload_v1alpha2, workload_v1beta1
from spinney.api.podgang import POD_GANG, PodGang
from spinney.sim.remedies.at_sets import at_sets
from spinney.sim.remedies.at_workloads import at_workloads, changed_in, in_words
from spinney.sim.remedies.change import Patch, RemedyStep, patches_at_owners, source_of
from spinney.sim.snapshots.snapshot import ClusterSnapshot, identity

_POD_GROUPS: Final = (
    kai.PodGroup,
    coscheduling.PodGroup,
    volcano.PodGroup,
    workload_v1alpha2.PodGroup,
    workload_v1beta1.PodGroup,
)
_Gangs = Mapping[tuple[str | None, str], PodGang]


class ToldChange(NamedTuple):
    """A change as a user can make it so that it lasts."""

    of_gangs: tuple[Patch, ...]
    """Patches of what gangs and their pods are made from."""
    others: tuple[Patch, ...]
    """Patches of other objects."""
    words: tuple[str, ...]
    """What is to be done where no patch would last."""


def at_sources(before: ClusterSnapshot, after: ClusterSnapshot) -> ToldChange:
    """Return what turns one snapshot into another, each change where it lasts."""
    gangs = {identity(each): each for each in before.of(POD_GANG, PodGang)}
    redefined = {identity(each): each for each, _ in changed_in(before, after, PodGang)}
    groups = [each for each, _ in changed_in(before, after, *_POD_GROUPS)]
    made = [each for each in groups if pod_gang_of(each, redefined) is not None]
    rest, of_sets = at_sets(before, after.with_objects(made))
    rest, of_workloads, words = at_workloads(before, rest)
    owned = [each for each, _ in changed_in(before, rest, PodGang, *_POD_GROUPS) if source_of(each) is not None]
    tops = dict.fromkeys(source_of(pod_gang_of(each, gangs) or each) or source_of(each) for each in owned)
    return ToldChange(
        of_gangs=of_sets + of_workloads,
        others=patches_at_owners(before, rest.with_objects(owned)),
        words=(*words, *(in_words(top, "this") for top in tops if top is not None)),
    )


def pod_gang_of(group: Any, gangs: _Gangs) -> PodGang | None:
    """Return the PodGang from which a backend made the object of a gang."""
    owner = source_of(group)
    return gangs.get((owner.namespace, owner.name)) if owner is not None and owner.kind == POD_GANG.kind else None


OF_GANGS: Final = frozenset({"minimum", "relax", "queue", "preemptible", "tolerate"})
"""The levers that change the object of a gang, or its pods."""


def with_commands(
    steps: Sequence[RemedyStep], patches: Sequence[Patch], words: Sequence[str]
) -> tuple[RemedyStep, ...]:
    """Return steps with the commands that make them where a gang comes from, and with words for what has no command.

    They follow the last step that is made there.
    """
    last = max((number for number, step in enumerate(steps) if step.lever in OF_GANGS), default=None)
    if last is None or not (patches or words):
        return tuple(steps)
    anew = [f"{each.kind} {each.name} has to be created anew for that" for each in patches if each.recreate]
    told = msgspec.structs.replace(
        steps[last], text="; ".join([steps[last].text, *anew, *words]), command="\n".join(map(_command, patches))
    )
    return (*steps[:last], told, *steps[last + 1 :])


def _command(patch: Patch) -> str:
    how, what = ("merge", patch.merge) if patch.merge is not None else ("json", patch.operations)
    change = f"--type {how} -p '{json.dumps(what, separators=(',', ':'))}'"
    if not patch.recreate:
        return f"kubectl patch {patch.target} {change}"
    changed = f"kubectl get {patch.target} -o json | kubectl patch --local -f - {change} -o json"
    return f"{changed} | kubectl replace --force -f -"
