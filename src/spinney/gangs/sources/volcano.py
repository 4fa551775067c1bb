"""Gangs of Volcano PodGroups (``scheduling.volcano.sh/v1beta1``).

With minimums per task each task is a pod set, and the pods of all other tasks are one without a minimum; ``minMember``
above their sum is then not enforced separately, because pods beyond a task's minimum are interchangeable with none of
another task. ``minMember`` below their sum holds alone, as it does for Volcano. Sub-groups that are PodCliques, as the
operator writes them, are pod sets likewise; a pod says by label which it is in. Otherwise there is one pod set, and
every pod is in it whatever task it names.
"""

from dataclasses import replace
from typing import Final

from spinney.api.labels import LEGACY_GROUP, POD_CLIQUE, VOLCANO_GROUP
from spinney.api.volcano import DEFAULT_QUEUE, PodGroup, SubGroupPolicy
from spinney.cluster.pods import PodRecord
from spinney.gangs.sources.context import SourceContext
from spinney.gangs.tree import DEFAULT_POD_SET, Gang, GangKey, GroupSet, PodSet, single

SOURCE: Final = "volcano"
TASK_ANNOTATION: Final = "volcano.sh/task-spec"
OTHER_TASKS: Final = "other tasks"
"""The pod set of tasks without a minimum, where others have one; no task can have this name."""


def membership(record: PodRecord) -> tuple[GangKey, str] | None:
    """Return the gang and pod set a pod says it belongs to; the gang tells in which set it counts."""
    annotations = record.annotations
    name = annotations.get(VOLCANO_GROUP) or annotations.get(LEGACY_GROUP)
    if not name:
        return None
    pod_set = annotations.get(TASK_ANNOTATION) or record.labels.get(POD_CLIQUE, DEFAULT_POD_SET)
    return GangKey(SOURCE, record.namespace, name), pod_set


def gang(group: PodGroup, context: SourceContext) -> Gang:
    """Return the gang of a PodGroup."""
    spec = group.spec
    tasks, other_pods = spec.min_task_member, DEFAULT_POD_SET
    if spec.min_member is not None and spec.min_member < sum(tasks.values()):
        root = single(PodSet(DEFAULT_POD_SET, spec.min_member))
    elif tasks:
        other_pods = OTHER_TASKS
        root = GroupSet("", (*(PodSet(task, tasks[task]) for task in sorted(tasks)), PodSet(other_pods, 0)))
    elif spec.sub_group_policy and all(map(_is_pod_clique, spec.sub_group_policy)):
        cliques = (
            PodSet(each.name, (each.sub_group_size or 1) * (each.min_sub_groups or 1)) for each in spec.sub_group_policy
        )
        root = GroupSet("", tuple(cliques))
    else:
        root = single(PodSet(DEFAULT_POD_SET, 1 if spec.min_member is None else spec.min_member))
    gang = context.gang(GangKey.of(SOURCE, group.metadata), root, group.metadata, spec.priority_class_name)
    return replace(gang, queue=spec.queue or DEFAULT_QUEUE, other_pods=other_pods)


def _is_pod_clique(policy: SubGroupPolicy) -> bool:
    selector = policy.label_selector
    return selector is not None and selector.match_labels == {POD_CLIQUE: policy.name}
