"""Ending workloads for good: pods that a controller would make again are ended with what they are made from."""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from spinney.api.core import Pod
from spinney.api.grove import POD_CLIQUE, POD_CLIQUE_SET
from spinney.api.labels import PART_OF
from spinney.sim.remedies.change import Patch, patches_between
from spinney.sim.snapshots.snapshot import ClusterSnapshot, differing

_TEMPLATE_HASH: Final = "pod-template-hash"


class Maker(NamedTuple):
    """What pods are made from, as far up as a pod itself tells."""

    namespace: str | None
    api_version: str
    kind: str
    name: str

    def patch(self, **what: Any) -> Patch:
        return Patch(api_version=self.api_version, kind=self.kind, name=self.name, namespace=self.namespace, **what)

    @property
    def deletion(self) -> Patch:
        return self.patch(delete=True)

    @property
    def command(self) -> str:
        return f"kubectl delete {self.deletion.target}"

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def maker_of(pod: Pod) -> Maker | None:
    """Return what a pod is made from: its PodCliqueSet, its Deployment, or whatever controls it; ``None`` if nothing.

    A ReplicaSet of a Deployment is named for it and for the hash of the template, which is a label of the pod.
    """
    metadata, owner = pod.metadata, pod.metadata.controller
    if owner is None:
        return None
    if owner.kind == POD_CLIQUE.kind and (name := metadata.labels.get(PART_OF)):
        return Maker(metadata.namespace, POD_CLIQUE_SET.api_version, POD_CLIQUE_SET.kind, name)
    hashed = f"-{metadata.labels.get(_TEMPLATE_HASH, '')}"
    if owner.kind == "ReplicaSet" and hashed != "-" and owner.name.endswith(hashed):
        return Maker(metadata.namespace, owner.api_version, "Deployment", owner.name.removesuffix(hashed))
    return Maker(metadata.namespace, owner.api_version, owner.kind, owner.name)


def makers_of(pods: Iterable[Pod]) -> list[Maker]:
    """Return what pods are made from, each once."""
    return list(dict.fromkeys(maker for pod in pods if (maker := maker_of(pod)) is not None))


def patches_at_owners(before: ClusterSnapshot, after: ClusterSnapshot) -> tuple[Patch, ...]:
    """Return what turns one snapshot into another, pods that are gone ended with what they are made from."""
    gone = [old for _, _, old, new in differing(before, after) if new is None and isinstance(old, Pod)]
    made = [pod for pod in gone if maker_of(pod) is not None]
    rest = patches_between(before, after.with_objects(made))
    return (*(maker.deletion for maker in makers_of(made)), *rest)
