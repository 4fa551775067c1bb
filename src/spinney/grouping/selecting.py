"""Which pods are the grouper's: of the served schedulers and namespaces, and in no other group."""

from collections.abc import Iterable, Mapping
from typing import Final, Literal

from spinney.api import labels as marks
from spinney.api.core import Pod
from spinney.api.meta import Metadata

Stranger = Literal["grove", "kai", "volcano", "coscheduling", "kubernetes"]
"""Who else groups pods."""


def skip_requested(metadata: Metadata) -> bool:
    """Tell whether an object asks to be left alone; pods of ours may ask that of KAI's grouper only."""
    return marks.GROUPED not in metadata.labels and metadata.annotations.get(marks.KAI_SKIP_POD_GROUPER) == "true"


def skip_requested_by(owners: Iterable[Metadata]) -> bool:
    """Tell whether one of the owners asks that its pods be left alone."""
    return any(skip_requested(owner) for owner in owners)


def foreign_group(pod: Pod) -> Stranger | None:
    """Return whose group a pod names, if it names one that is not ours."""
    metadata, spec = pod.metadata, pod.spec
    if marks.GROUPED in metadata.labels:
        return None
    if metadata.labels.get(marks.POD_GANG):
        return "grove"
    if metadata.annotations.get(marks.KAI_POD_GROUP):
        return "kai"
    if metadata.annotations.get(marks.VOLCANO_GROUP) or metadata.annotations.get(marks.LEGACY_GROUP):
        return "volcano"
    if metadata.labels.get(marks.COSCHEDULING_GROUP):
        return "coscheduling"
    return "kubernetes" if spec.scheduling_group is not None or spec.workload_ref is not None else None


def labels_match(labels: Mapping[str, str] | None, selector: Mapping[str, str] | None) -> bool:
    """Tell whether labels have everything that a selector asks for."""
    return not selector or selector.items() <= (labels or {}).items()


def namespace_matches(namespace: Mapping[str, str] | None, selector: Mapping[str, str] | None) -> bool:
    """Tell whether a namespace is served; ``None`` is one that cannot be read, which only no selector lets through."""
    return not selector or (namespace is not None and labels_match(namespace, selector))


def gang_labels(gang: str, sub_group: str | None) -> dict[str, str]:
    """Return the labels by which a pod says that it is in a gang, and in which part of it."""
    labels = {marks.GROUPED: "gang", marks.POD_GANG: gang}
    return labels if sub_group is None else {**labels, marks.POD_CLIQUE: sub_group}


MARKED_LABELS: Final = frozenset({marks.POD_GANG, marks.POD_CLIQUE, marks.KAI_SUB_GROUP, marks.COSCHEDULING_GROUP})
"""The labels by which pods join a gang of any scheduler."""
MARKED_ANNOTATIONS: Final = frozenset(
    {marks.KAI_POD_GROUP, marks.KAI_SKIP_POD_GROUPER, marks.VOLCANO_GROUP, marks.LEGACY_GROUP}
)
"""The annotations by which they do."""


_MARKS: Final = frozenset({marks.GROUPED}) | MARKED_LABELS | MARKED_ANNOTATIONS


def without_marks(texts: Mapping[str, str]) -> Mapping[str, str]:
    """Return labels or annotations without those by which a pod says that it has been grouped."""
    return texts if _MARKS.isdisjoint(texts) else {key: text for key, text in texts.items() if key not in _MARKS}


def leaving(pod: Pod) -> dict[str, dict[str, None]]:
    """Return the merge patch of metadata with which a pod is in no gang any more."""
    return {
        "labels": dict.fromkeys(MARKED_LABELS & pod.metadata.labels.keys()),
        "annotations": dict.fromkeys(MARKED_ANNOTATIONS & pod.metadata.annotations.keys()),
    }
