"""Late-binding volumes: claims that wait for their first consumer get their volume where the pod was placed.

As kube-scheduler does: a claim that an existing volume of the node can serve is given that volume (its ``claimRef`` is
written, and the volume controller completes the rest); for any other claim the node is named in the annotation
``volume.kubernetes.io/selected-node``, and the provisioner of its class makes a volume there. The pod is bound once all
its claims are. Of pods that share a claim the first asks for its volume, and the others wait for that.
A bind that waits is woken by the watch; a claim that is not bound in time, or whose node the
provisioner refuses by taking the annotation away, refuses the pod.
"""

import asyncio
from collections.abc import Iterator

import structlog

from spinney.api.core import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, Pod
from spinney.api.storage import SELECTED_NODE, PersistentVolume, PersistentVolumeClaim
from spinney.binding.placement import Placement
from spinney.binding.prebind import PreBindInterrupted, PreBindRefused
from spinney.cluster.filters.storage import claim_uses
from spinney.cluster.filters.volume_binding import reaches, volumes_on_node
from spinney.cluster.state import ClusterState
from spinney.kube.cache import Change, WatchCache
from spinney.kube.client import Client
from spinney.kube.errors import Conflict, KubeError, NotFound
from spinney.kube.keys import Key, key_of

log = structlog.get_logger()

TIMEOUT_SECONDS = 600.0
"""How long a pod waits for its volumes unless configured otherwise; kube-scheduler's figure."""
_BOUND_BY_US = {"pv.kubernetes.io/bound-by-controller": "yes"}


class LateVolumes:
    """Has volumes bound for placed pods; fills ``PreBind``. Mutable: it knows who waits, and which volumes it gave.

    ``cluster.view.storage`` must be kept up to date by the owner of the cluster state.
    """

    def __init__(self, client: Client, cluster: ClusterState, *, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        self._client = client
        self._cluster = cluster
        self._timeout = timeout_seconds
        self._waiting: dict[Key, set[asyncio.Event]] = {}
        self._given: dict[str, Key] = {}
        self._asked: set[Key] = set()
        """The claims for which a bind has asked, and waits."""
        self._interrupted = False

    def follow(self, claims: WatchCache[PersistentVolumeClaim]) -> None:
        """Be woken by changes of claims; subscribe after the storage view was."""
        claims.subscribe(self.claim_changed)

    def claim_changed(self, change: Change[PersistentVolumeClaim]) -> None:
        """Wake binds that wait for a claim."""
        for event in self._waiting.get(change.key, ()):
            event.set()

    def needs(self, placement: Placement) -> bool:
        """Tell whether a pod mounts claims that are not bound yet."""
        pod = self._pod(placement)
        return pod is not None and any(True for _ in self._unbound(pod))

    async def prepare(self, placement: Placement) -> None:
        """Have every claim of a pod bound to a volume that its node can reach."""
        pod = self._pod(placement)
        row = self._cluster.table.find(placement.node)
        if pod is None or row is None:
            raise PreBindRefused(f"pod {placement.pod} or node {placement.node} is gone")
        claims = list(self._unbound(pod))
        own = [claim for claim in claims if key_of(claim) not in self._asked]
        asked = {key_of(claim) for claim in own}
        self._asked |= asked
        chosen = volumes_on_node(self._cluster.view, own, row, without=self._given)
        for name, volume in chosen.items():
            self._given[volume.metadata.name] = Key(placement.pod.namespace, name)
        try:
            for claim in own:
                if claim.metadata.name in chosen:
                    await self._give(chosen[claim.metadata.name], claim)
                else:
                    await self._select(claim, placement.node)
            async with asyncio.timeout(self._timeout):
                for claim in claims:
                    await self._until_bound(claim, placement.node, for_others=key_of(claim) not in asked)
        except TimeoutError:
            waiting = ", ".join(claim.metadata.name for claim in self._unbound(pod))
            raise PreBindRefused(
                f"volumes of claims {waiting} were not bound on {placement.node} within {self._timeout:g} s; "
                "see the events of the claims for what their provisioner says"
            ) from None
        finally:
            for volume in chosen.values():
                self._given.pop(volume.metadata.name, None)
            self._asked -= asked
            for key in asked:
                for event in self._waiting.get(key, ()):
                    event.set()

    async def release(self, placement: Placement) -> None:
        """Take back the choice of node from claims that are still unbound, so that the pod may go elsewhere."""
        pod = self._pod(placement)
        for claim in self._unbound(pod) if pod is not None else ():
            if claim.metadata.annotations.get(SELECTED_NODE) != placement.node:
                continue
            try:
                await self._annotate(claim, None)
            except (NotFound, Conflict):
                continue  # gone, or moving on without us
            except KubeError as error:
                log.warning("selected node not taken back", claim=str(key_of(claim)), error=str(error))

    def resume(self) -> None:
        """Wait again, after an interruption: a process that gave its lease away may lead once more."""
        self._interrupted = False

    def interrupt(self) -> None:
        """Give up waiting, and wait no more until it is resumed."""
        self._interrupted = True
        for events in self._waiting.values():
            for event in events:
                event.set()

    # -- writing -----------------------------------------------------------------------------------------------------

    async def _give(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> None:
        metadata = claim.metadata
        reference = {
            "apiVersion": PERSISTENT_VOLUME_CLAIM.api_version,
            "kind": PERSISTENT_VOLUME_CLAIM.kind,
            "namespace": metadata.namespace,
            "name": metadata.name,
            "uid": metadata.uid,
            "resourceVersion": metadata.resource_version,
        }
        patch = {
            "metadata": {"resourceVersion": volume.metadata.resource_version, "annotations": _BOUND_BY_US},
            "spec": {"claimRef": reference},
        }
        await self._client.patch(PERSISTENT_VOLUME, volume.metadata.name, patch)

    async def _select(self, claim: PersistentVolumeClaim, node: str) -> None:
        selected = claim.metadata.annotations.get(SELECTED_NODE)
        if selected is None:
            await self._annotate(claim, node)
        elif selected != node:
            raise PreBindRefused(f"claim {claim.metadata.name} is being provisioned on node {selected}")

    async def _annotate(self, claim: PersistentVolumeClaim, node: str | None) -> None:
        metadata = claim.metadata
        patch = {"metadata": {"uid": metadata.uid, "annotations": {SELECTED_NODE: node}}}
        if metadata.resource_version is not None:
            patch["metadata"]["resourceVersion"] = metadata.resource_version
        await self._client.patch(PERSISTENT_VOLUME_CLAIM, metadata.name, patch, metadata.namespace)

    # -- waiting -----------------------------------------------------------------------------------------------------

    async def _until_bound(self, claim: PersistentVolumeClaim, node: str, *, for_others: bool) -> None:
        key = key_of(claim)
        news = asyncio.Event()
        self._waiting.setdefault(key, set()).add(news)
        seen_selected = False
        try:
            while True:
                news.clear()
                if self._interrupted:
                    raise PreBindInterrupted(f"claim {key.name} is not bound yet, and the scheduler stops")
                found = self._cluster.view.storage.claims.get((key.namespace, key.name))
                if found is None or found.metadata.uid != claim.metadata.uid:
                    raise PreBindRefused(f"claim {key.name} is gone")
                if found.bound:
                    self._check_reach(found, node)
                    return
                if for_others:
                    if key not in self._asked:
                        raise PreBindRefused(f"claim {key.name} was not bound for the pod that asked for it first")
                    await news.wait()
                    continue
                selected = found.metadata.annotations.get(SELECTED_NODE)
                if seen_selected and selected != node:
                    raise PreBindRefused(f"claim {key.name} cannot be provisioned on node {node}")
                seen_selected = seen_selected or selected == node
                await news.wait()
        finally:
            self._waiting[key].discard(news)
            if not self._waiting[key]:
                del self._waiting[key]

    def _check_reach(self, claim: PersistentVolumeClaim, node: str) -> None:
        """Refuse a pod whose node does not reach the volume that its claim got, for another pod that shares it."""
        view = self._cluster.view
        volume, row = view.storage.volumes.get(claim.spec.volume_name), view.table.find(node)
        if volume is not None and row is not None and not reaches(view, volume)[row]:
            raise PreBindRefused(
                f"node {node} does not reach {claim.spec.volume_name}, the volume of {claim.metadata.name}"
            )

    # -- looking up --------------------------------------------------------------------------------------------------

    def _pod(self, placement: Placement) -> Pod | None:
        record = self._cluster.pod(placement.pod)
        return record.pod if record is not None and record.uid == placement.uid else None

    def _unbound(self, pod: Pod) -> Iterator[PersistentVolumeClaim]:
        storage = self._cluster.view.storage
        for use in claim_uses(pod):
            claim = storage.claim(pod, use.name)
            if claim is not None and not claim.bound:
                yield claim
