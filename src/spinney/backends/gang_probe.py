"""Finding out whether kube-scheduler keeps native gangs together.

The API server says whether it stores groups; what kube-scheduler has switched on cannot be asked, only tried. The probe
is a gang of two of which at first only one pod exists, with a node selector that no node satisfies, so that nothing is
ever placed. A scheduler that keeps gangs together leaves that pod alone; one that does not tries it at once and calls
it unschedulable. Two ordinary pods with the same selector, one after the other, show that it had its turn. When the
second member arrives both are tried, which shows that the group was understood.

What was found stands in the condition ``GangSchedulingVerified`` of the PodGang :data:`NAME`, which is kept; group and
pods are deleted.
"""

import asyncio
import contextlib
from typing import Final

import msgspec

from spinney.api import labels as marks
from spinney.api.conditions import set_condition
from spinney.api.core import POD, Pod
from spinney.api.meta import Condition, ConditionStatus, ObjectMeta, owner_reference
from spinney.api.podgang import POD_GANG, PodGang, PodGangSpec, PodGangStatus, PodGroup
from spinney.api.struct import JSON, to_json
from spinney.backends import additions
from spinney.backends.native_gangs import INCARNATION_LENGTH, GangTraits, NativeGangs
from spinney.kube.client import Client
from spinney.kube.errors import ApiError, KubeError, NotFound

NAME: Final = "spinney-gang-probe"
VERIFIED: Final = "GangSchedulingVerified"
FIELD_MANAGER: Final = "spinney-gang-probe"
NOWHERE: Final = "scheduler.grove.io/gang-probe"
"""A node label that no node has."""
PATIENCE_SECONDS: Final = 30.0


async def probe(client: Client, native: NativeGangs, *, namespace: str, scheduler: str) -> Condition:
    """Try a gang, write down what became of it, and return that: ``Unknown`` when kube-scheduler did not look at it."""
    labels = {marks.SCHEDULER_NAME: scheduler}
    spec = PodGangSpec(pod_groups=(PodGroup(name=NAME, min_replicas=2),))
    record = PodGang(metadata=ObjectMeta(name=NAME, namespace=namespace, labels=labels), spec=spec)
    gang = await client.apply(POD_GANG, record, field_manager=FIELD_MANAGER, type=PodGang)
    trial = _Trial(client, native, gang, life=client.runtime.uid()[:INCARNATION_LENGTH], scheduler=scheduler)
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            finding = await trial.run()
    except TimeoutError:
        text = f"nothing that serves {scheduler!r} looked at the probe within {PATIENCE_SECONDS:.0f} s"
        finding = _found("Unknown", "NotLookedAt", text)
    except ApiError as error:
        finding = _found("Unknown", "ProbeRefused", f"the probe could not be made: {error}")
    finally:
        await trial.clean_up()
    await _write_down(client, gang, finding)
    return finding


class _Trial:
    """One run of the probe; objects of several runs, as of several replicas of the operator, do not meet."""

    def __init__(self, client: Client, native: NativeGangs, gang: PodGang, *, life: str, scheduler: str) -> None:
        self._client = client
        self._native = native
        self._gang = gang
        self._scheduler = scheduler
        self._life = life
        self._group = f"{NAME}-{life}"

    async def run(self) -> Condition:
        """Go through the steps; each waits for what the scheduler says about a pod."""
        await self._client.create(self._native.resource, self._group_manifest())
        await self._create("member-0", member=True)
        for control in ("control-0", "control-1"):
            await self._create(control, member=False)
            await self._until_tried(control)
        member = f"{self._group}-member-0"
        if _was_tried(await self._client.get(POD, member, self._gang.metadata.namespace, type=Pod)):
            text = (
                "kube-scheduler tried a pod whose gang was not complete: it places the pods of a gang one by one; "
                f"start it with --feature-gates={self._native.gates}"
            )
            return _found("False", "TriedAlone", text)
        await self._create("member-1", member=True)
        await self._until_tried("member-0")
        await self._until_tried("member-1")
        return _found("True", "WaitedForQuorum", "kube-scheduler left a pod alone until its gang was complete")

    async def clean_up(self) -> None:
        """Delete pods and group."""
        namespace = self._gang.metadata.namespace
        with contextlib.suppress(KubeError):
            for name in ("member-0", "member-1", "control-0", "control-1"):
                with contextlib.suppress(NotFound):
                    await self._client.delete(POD, f"{self._group}-{name}", namespace, grace_period_seconds=0)
            await self._client.delete(self._native.resource, self._group, namespace)

    def _group_manifest(self) -> JSON:
        annotations = {additions.INCARNATION: self._life}
        metadata = msgspec.structs.replace(self._gang.metadata, annotations=annotations)
        gang = msgspec.structs.replace(self._gang, metadata=metadata)
        manifest: JSON = to_json(self._native.group(gang, GangTraits("", None)))
        return manifest

    async def _create(self, name: str, *, member: bool) -> None:
        spec: JSON = {
            "containers": [{"name": "probe", "image": "probe"}],
            "schedulerName": self._scheduler,
            "nodeSelector": {NOWHERE: self._life},
        }
        if member:
            self._native.join(spec, self._group)
        metadata = {
            "name": f"{self._group}-{name}",
            "namespace": self._gang.metadata.namespace,
            "ownerReferences": [to_json(owner_reference(POD_GANG, self._gang.metadata))],
        }
        await self._client.create(POD, {"metadata": metadata, "spec": spec})

    async def _until_tried(self, name: str) -> None:
        namespace, selector = self._gang.metadata.namespace, f"metadata.name={self._group}-{name}"
        while True:
            listing = await self._client.list(POD, namespace, type=Pod, field_selector=selector)
            if any(map(_was_tried, listing.items)):
                return
            version = listing.resource_version
            async for event in self._client.watch(
                POD, namespace, type=Pod, field_selector=selector, resource_version=version
            ):
                if event.type == "MODIFIED" and _was_tried(event.object):
                    return


def _was_tried(pod: Pod) -> bool:
    condition = pod.condition("PodScheduled")
    return condition is not None and condition.reason in ("Unschedulable", "SchedulerError")


def _found(status: ConditionStatus, reason: str, message: str) -> Condition:
    return Condition(type=VERIFIED, status=status, reason=reason, message=message)


async def _write_down(client: Client, gang: PodGang, found: Condition) -> None:
    status = PodGangStatus(conditions=set_condition(gang.status.conditions, found, client.runtime.clock.now()))
    body = {
        "metadata": {"name": NAME, "namespace": gang.metadata.namespace},
        "status": {"conditions": to_json(status)["conditions"]},
    }
    await client.apply(POD_GANG, body, field_manager=FIELD_MANAGER, subresource="status")
