"""Keeping the ResourceClaims of an owner: they exist before the pods that use them, and go when unused.

The spec of a claim comes from a template inside the set or from a ResourceClaimTemplate object, and is fixed once the
claim exists.
"""

from collections.abc import Iterable, Mapping

from spinney.api.grove import PodCliqueSet
from spinney.api.meta import OwnerReference
from spinney.api.resource_claims import RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE
from spinney.api.struct import JSON, to_json
from spinney.kube.cache import WatchCache
from spinney.kube.client import Client
from spinney.kube.errors import NotFound
from spinney.kube.keys import Key
from spinney.kube.manager import Manager
from spinney.kube.reconciling import create_once, delete_exactly, write_each
from spinney.operator.desired.claims import ClaimPlan
from spinney.operator.owned.auxiliary import BY_OWNER, OwnedObject, owned_cache
from spinney.operator.status.last_errors import ReconcileFault


class MissingTemplate(ReconcileFault):
    """A resource is to be shared whose claim template does not exist."""


class ClaimKeeper:
    """Keeps claims; where the cluster serves none there are none to keep."""

    def __init__(self, client: Client, cache: WatchCache[OwnedObject] | None) -> None:
        self._client = client
        self.cache = cache

    @classmethod
    def of(cls, manager: Manager, *, served: bool) -> "ClaimKeeper":
        """Declare the cache with the manager, which runs it."""
        return cls(manager.client, owned_cache(manager, RESOURCE_CLAIM) if served else None)

    async def keep(self, pcs: PodCliqueSet, owner: OwnerReference, plans: Iterable[ClaimPlan]) -> None:
        """Make the claims of an owner exactly those planned."""
        if self.cache is None:
            return
        wanted = {plan.name: plan for plan in plans}
        namespace = pcs.metadata.namespace or ""
        missing = [plan for name, plan in wanted.items() if self.cache.get(Key(namespace, name)) is None]
        await write_each(missing, lambda plan: self._create(pcs, owner, plan))
        surplus = [found for found in self.cache.index(BY_OWNER, owner.uid) if found.metadata.name not in wanted]
        await write_each(surplus, lambda found: delete_exactly(self._client, RESOURCE_CLAIM, found))

    async def _create(self, pcs: PodCliqueSet, owner: OwnerReference, plan: ClaimPlan) -> None:
        template = await self._template(pcs, plan)
        metadata: Mapping[str, Mapping[str, str]] = template.get("metadata") or {}
        manifest: JSON = {
            "metadata": {
                "name": plan.name,
                "namespace": pcs.metadata.namespace,
                "labels": {**metadata.get("labels", {}), **plan.labels},
                "annotations": dict(metadata.get("annotations", {})),
                "ownerReferences": [to_json(owner)],
            },
            "spec": template["spec"],
        }
        await create_once(self._client, RESOURCE_CLAIM, manifest)

    async def _template(self, pcs: PodCliqueSet, plan: ClaimPlan) -> JSON:
        """Return the template of a claim: one inside the set comes before an object of the same name."""
        if not plan.template_namespace:
            for template in pcs.spec.template.resource_claim_templates:
                if template.name == plan.template:
                    return template.template_spec
        namespace = plan.template_namespace or pcs.metadata.namespace
        try:
            found: JSON = await self._client.get(RESOURCE_CLAIM_TEMPLATE, plan.template, namespace)
        except NotFound as error:
            raise MissingTemplate(
                f"PodCliqueSet {pcs.metadata.name} shares {plan.template!r}, which is neither among its "
                f"resourceClaimTemplates nor a ResourceClaimTemplate in namespace {namespace!r}; create one of them"
            ) from error
        spec: JSON = found["spec"]
        return spec
