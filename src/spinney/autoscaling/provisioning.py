"""One ProvisioningRequest for each gang that lacks nodes.

The request describes the pods that wait, by template. Their annotation keeps Cluster Autoscaler from adding nodes for
them one by one, and their condition says that they wait for the request instead of ``Unschedulable``. What the
autoscaler answers is respected: capacity that is provisioned is kept for the gang (:mod:`.keeping`), a request that
failed is made again after a while and not before. When the gang is bound, or lacks no nodes for another reason, the
request is deleted.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import structlog

from spinney.api.conditions import find_condition, is_true
from spinney.api.core import POD, POD_TEMPLATE
from spinney.api.events import ObjectReference
from spinney.api.labels import MANAGED_BY
from spinney.api.names import valid_name
from spinney.api.provisioning import (
    BOOKING_EXPIRED,
    CAPACITY_REVOKED,
    CONSUMES,
    FAILED,
    PROVISIONED,
    PROVISIONING_CLASS,
    PROVISIONING_REQUEST,
    ProvisioningRequest,
)
from spinney.api.struct import JSON
from spinney.api.time import timestamp
from spinney.autoscaling.keeping import ProvisionedCapacity
from spinney.autoscaling.marks import RequestMarks, request_name, waiting
from spinney.autoscaling.templates import MANAGER, SCHEDULER, SELECTOR, pod_template, provisioning_request
from spinney.cluster.pods import PodRecord
from spinney.explain.rendering import bounded
from spinney.gangs.book import GangMembers
from spinney.gangs.tree import GangKey
from spinney.kube.cache import Change, WatchCache
from spinney.kube.discovery import served
from spinney.kube.errors import AlreadyExists, ApiError, ConnectionFailed, KubeError, NotFound, TooManyRequests
from spinney.kube.keys import Key
from spinney.kube.manager import Manager
from spinney.kube.reconciling import annotate_exactly
from spinney.kube.troubles import Troubles
from spinney.reporting.pods import WAITING_FOR_PROVISIONING
from spinney.runtime.tasks import BackgroundTasks, in_background
from spinney.scheduler.config import NodeProvisioning, SchedulerConfig
from spinney.scheduler.framework.plugin import PluginRegistry
from spinney.scheduler.framework.results import Unschedulable
from spinney.scheduler.intake.inventory import Inventory
from spinney.scheduler.process.gang_references import gang_reference
from spinney.scheduler.process.node_requests import ConditionText, NodeRequests
from spinney.scheduler.process.own_plugins import with_plugin_first

log = structlog.get_logger()

COMPONENT: Final = "spinney-provisioning"
REQUESTED: Final = "NodesRequested"
REQUEST_FAILED: Final = "NodesRequestFailed"
MOST_TEMPLATES: Final = 32
"""As many pod sets as a ProvisioningRequest may have."""
_CRD: Final = f"{PROVISIONING_REQUEST.plural}.{PROVISIONING_REQUEST.group} with {PROVISIONING_REQUEST.version}"
_LOOK_AGAIN_SECONDS: Final = 60.0
_SOON: Final = 15.0
"""After so many seconds a request is made again that the API server could not take, and deleted that it kept."""
_ANSWER_BYTES: Final = 512
"""As much of what an autoscaler says, or the API server, is told with the condition of each pod."""


@dataclass
class _Request:
    """What is known of the request of a gang. Mutable."""

    name: Key
    about: ObjectReference
    pods: int
    """For how many pods nodes are asked."""
    answer: str
    """What the autoscaler says, or that it has said nothing, and since when."""
    templates: tuple[str, ...] = ()
    again: bool = False
    """Whether it is about to be made again."""
    leaving: bool = False
    """Whether it is being deleted."""
    made: asyncio.Event = field(default_factory=asyncio.Event)


def provisioning_for(
    manager: Manager, inventory: Inventory, config: SchedulerConfig, registry: PluginRegistry
) -> "tuple[ProvisioningRequests | None, SchedulerConfig]":
    """Return who asks for nodes, run by ``manager``, and the configuration that keeps them; ``None``: nobody does.

    Pods may still name requests of when somebody did.
    """
    marks = RequestMarks(manager.client, inventory)
    if not config.provisioning_requests.class_name:
        manager.add_runnable("requests of before", marks.run)
        return None, config
    requests = ProvisioningRequests(manager, inventory, config.provisioning_requests, config.scheduler_names, marks)
    manager.add_runnable("provisioning requests", requests.run)
    # What is provisioned is looked at whenever a session opens.
    name, provisioned = ProvisionedCapacity.name, requests.provisioned
    return requests, with_plugin_first(config, registry, name, lambda _: ProvisionedCapacity(provisioned))


class ProvisioningRequests(NodeRequests):
    """Asks for the nodes of gangs. Mutable."""

    def __init__(
        self,
        manager: Manager,
        inventory: Inventory,
        settings: NodeProvisioning,
        names: Sequence[str],
        marks: RequestMarks,
    ) -> None:
        self.provisioned: set[GangKey] = set()
        """The gangs whose capacity is there and kept for them."""
        self._manager = manager
        self._client = manager.client
        self._inventory = inventory
        self._settings = settings
        self._marks = marks
        self._names = tuple(map(valid_name, names))
        """The scheduler names that are served here; requests say the first."""
        self._events = manager.recorder(COMPONENT)
        self._requests: dict[GangKey, _Request] = {}
        self._gangs: dict[Key, GangKey] = {}
        self._deleted: dict[Key, str | None] = {}
        """The uids of requests that were deleted here, until the cache has heard of it."""
        self._under_way = BackgroundTasks()
        self._cache: WatchCache[ProvisioningRequest] | None = None
        self._absent = False
        """Whether the API server is known not to serve requests."""
        self._troubles = Troubles()
        self.wake: Callable[[], None] = lambda: None

    async def run(self) -> None:
        """Follow the answers until cancelled; while the kind is not served, pods ask for themselves."""
        while True:
            while await self._is_served() is not True:
                await self._manager.runtime.clock.sleep(_LOOK_AGAIN_SECONDS)
            log.info("ProvisioningRequests are served, so gangs ask for nodes by them")
            self._begin_anew()
            cache = self._cache = self._manager.watch(PROVISIONING_REQUEST, ProvisioningRequest, SELECTOR)
            cache.subscribe(self._answered)
            self.wake()
            async with in_background(cache.run()) as (reading,):
                while not reading.done() and await self._is_served() is not False:
                    await asyncio.wait({reading}, timeout=_LOOK_AGAIN_SECONDS)
            if not reading.cancelled():
                await reading
            self._cache = None
            for gang, request in self._requests.items():  # they are gone with the CRD, their templates are not
                self._begin_to_withdraw(gang, request)
            self.wake()

    def _begin_anew(self) -> None:
        """Forget all requests: another process may have led meanwhile, and what is there still is taken over."""
        self._requests.clear()
        self._gangs.clear()
        self._deleted.clear()
        self.provisioned.clear()

    async def _is_served(self) -> bool | None:
        """Tell whether requests can be made now; ``None`` where the API server does not say."""
        try:
            found = PROVISIONING_REQUEST in await served(self._client, [PROVISIONING_REQUEST])
        except KubeError as error:
            say = log.warning if self._troubles.is_new(error) else log.debug
            say("it is not known whether ProvisioningRequests are served; asking again", error=str(error))
            return None
        self._troubles.end()
        known, self._absent = self._absent, not found
        if self._absent and not known:
            log.warning(
                f"ProvisioningRequests are not served, so pods ask for nodes themselves; install the CRD {_CRD}",
                looked_for_again_every=f"{_LOOK_AGAIN_SECONDS:g} s",
            )
            self.wake()  # for pods that name a request of before
        return found

    # -- what the scheduler tells --------------------------------------------------------------------------------------

    def lack_nodes(self, gangs: Sequence[Unschedulable]) -> Mapping[GangKey, ConditionText]:
        """Ask for the nodes of gangs that lack them, and take back what is no longer lacked."""
        lacking = {each.gang: each for each in gangs}
        if self._cache is None:  # answers could not be heard
            for gang in lacking if self._absent else ():
                self._marks.take_off(gang)
            return {}
        self._take_over(self._cache)
        for gang, request in self._requests.items():
            if gang not in lacking and not self._is_kept(gang):
                self._begin_to_withdraw(gang, request)
        for gang in lacking:
            members, asked = self._inventory.gangs.members(gang), self._requests.get(gang)
            pods = len(waiting(members)) if members is not None else 0
            if asked is not None and pods > asked.pods:
                self._begin_to_withdraw(gang, asked)  # a request cannot be changed, so it is made anew
            elif asked is None and members is not None and pods >= self._settings.min_pods:
                self._request(gang, members)
            elif asked is None:
                self._marks.take_off(gang)
        return {
            gang: ConditionText(
                WAITING_FOR_PROVISIONING, f"ProvisioningRequest {found.name.name}: {found.answer}; {said}"
            )
            for gang, each in lacking.items()
            if (found := self._requests.get(gang)) is not None and (said := each.message)
        }

    def _is_kept(self, gang: GangKey) -> bool:
        """Tell whether what is provisioned is still waited for, whatever else a gang waits for at the moment."""
        members = self._inventory.gangs.members(gang) if gang in self.provisioned else None
        return members is not None and bool(waiting(members))

    def _take_over(self, cache: WatchCache[ProvisioningRequest]) -> None:
        """Go on with what a process before this one asked for: its answer counts, and what nobody needs is deleted."""
        strange = [key for key in cache if key not in self._gangs and key not in self._deleted]
        gangs = {request_name(gang): gang for gang in self._inventory.gangs} if strange else {}
        for name in strange:
            found, gang = cache.get(name), gangs.get(name)
            members = self._inventory.gangs.members(gang) if gang is not None else None
            if found is None or gang in self._requests or not self._is_ours(found, members):
                continue
            templates = tuple(each.pod_template_ref.name for each in found.spec.pod_sets)
            if gang is None or members is None:
                self._under_way.begin(self._delete(name, templates))
                continue
            pods = sum(each.count for each in found.spec.pod_sets)
            asked = _asked(found.metadata.creation_timestamp or self._client.runtime.clock.now())
            self._requests[gang] = request = _Request(name, gang_reference(members.gang), pods, asked, templates)
            self._gangs[name] = gang
            request.made.set()
            if found.spec.provisioning_class_name == self._settings.class_name:
                self._take_answer(name, found)
            else:
                self._begin_to_withdraw(gang, request)

    def _is_ours(self, found: ProvisioningRequest, members: GangMembers | None) -> bool:
        """Tell whether a request is this scheduler's: as it says, or where it does not, as the pods of its gang do.

        Versions before wrote no scheduler on requests. One whose gang has no pods here is left to another scheduler, or
        to the garbage collector.
        """
        scheduler = found.metadata.labels.get(SCHEDULER)
        if scheduler is None:
            return members is not None and bool(members.pods)
        return scheduler in self._names

    # -- asking and taking back ----------------------------------------------------------------------------------------

    def _request(self, gang: GangKey, members: GangMembers) -> None:
        name = request_name(gang)
        about, asked = gang_reference(members.gang), _asked(self._client.runtime.clock.now())
        self._requests[gang] = request = _Request(name, about, len(waiting(members)), asked)
        self._gangs[name] = gang
        self._under_way.begin(self._ask(gang, request, _by_class(waiting(members))))

    async def _ask(self, gang: GangKey, request: _Request, classes: Sequence[Sequence[PodRecord]]) -> None:
        try:
            await self._make(request, classes)
        except KubeError as error:
            log.warning("nodes not asked for", gang=str(gang), error=str(error))
            seconds = self._settings.retry_seconds
            self._ask_again(gang, f"it could not be made: {error}", min(seconds, _SOON) if _passes(error) else seconds)
            self.wake()  # for its pods to say so
            return
        finally:
            request.made.set()
        self._events.event(request.about, "Normal", REQUESTED, f"nodes are asked for: {request.name.name}")
        found = self._cache.get(request.name) if self._cache is not None else None
        if found is not None and request.name not in self._deleted:
            self._take_answer(request.name, found)  # it was there before, with its answer

    async def _make(self, request: _Request, classes: Sequence[Sequence[PodRecord]]) -> None:
        if len(classes) > MOST_TEMPLATES:
            raise KubeError(f"its pods are of {len(classes)} kinds, and a request may have {MOST_TEMPLATES}")
        metadata = self._metadata(request)
        counts = []
        for number, alike in enumerate(classes):
            pod: JSON = await self._client.get(POD, alike[0].key.name, alike[0].key.namespace)
            template = f"{request.name.name}-{number}"
            request.templates = (*request.templates, template)
            with suppress(AlreadyExists):
                await self._client.create(POD_TEMPLATE, pod_template(template, pod, metadata))
            counts.append((template, len(alike)))
        settings = self._settings
        wanted = provisioning_request(
            request.name.name, metadata, counts, class_name=settings.class_name, parameters=settings.parameters
        )
        try:
            await self._client.create(PROVISIONING_REQUEST, wanted)
        except AlreadyExists:  # it was made before this process began, for the same pods
            if request.name in self._deleted:
                raise KubeError(f"{request.name.name} was deleted, and its finalizers keep it") from None
        marks = {CONSUMES: request.name.name, PROVISIONING_CLASS: settings.class_name}
        for record in (each for alike in classes for each in alike):
            await annotate_exactly(self._client, POD, record.key, record.uid, marks)

    def _metadata(self, request: _Request) -> JSON:
        about = request.about
        owner = {"apiVersion": about.api_version, "kind": about.kind, "name": about.name, "uid": about.uid}
        labels = {MANAGED_BY: MANAGER, SCHEDULER: self._names[0]}
        metadata: JSON = {"namespace": request.name.namespace, "labels": labels}
        return {**metadata, "ownerReferences": [owner]} if about.uid else metadata

    def _begin_to_withdraw(self, gang: GangKey, request: _Request) -> None:
        if not request.leaving:
            request.leaving = True
            self._under_way.begin(self._withdraw(gang, request))

    async def _withdraw(self, gang: GangKey, request: _Request) -> None:
        """Delete the request of a gang and its templates; only then may it be made again."""
        self.provisioned.discard(gang)
        self._gangs.pop(request.name, None)
        await request.made.wait()
        try:
            await self._delete(request.name, request.templates)
        finally:
            if self._requests.get(gang) is request:
                del self._requests[gang]
            self.wake()

    async def _delete(self, name: Key, templates: Iterable[str]) -> None:
        found = self._cache.get(name) if self._cache is not None else None
        if found is not None:
            self._deleted[name] = found.metadata.uid
        try:
            with suppress(NotFound):
                await self._client.delete(PROVISIONING_REQUEST, name.name, name.namespace)
            for template in templates:
                with suppress(NotFound):
                    await self._client.delete(POD_TEMPLATE, template, name.namespace)
        except KubeError as error:
            log.warning("provisioning request not deleted, tried again later", request=str(name), error=str(error))
            asyncio.get_running_loop().call_later(_SOON, self._stays, name)

    def _stays(self, name: Key) -> None:
        """Look at a request again that could not be deleted: it is taken over, or deleted then."""
        self._deleted.pop(name, None)
        self.wake()

    def _ask_again(self, gang: GangKey, why: str, seconds: float) -> None:
        """Make the request of a gang anew after a while, if it still lacks nodes then."""
        request = self._requests.get(gang)
        if request is None or request.again:
            return
        request.again = True
        request.answer = f"{bounded(why, _ANSWER_BYTES)}; nodes are asked for again in {seconds:g} s"
        self._events.event(request.about, "Warning", REQUEST_FAILED, request.answer)

        def forget() -> None:
            if self._requests.get(gang) is request:
                self._begin_to_withdraw(gang, request)

        asyncio.get_running_loop().call_later(seconds, forget)

    def _ask_where_it_was_kept(self, name: Key) -> None:
        """Make the request of a gang anew now, if it could not be made because the old one was still there."""
        gang = self._gangs.get(name)
        request = self._requests.get(gang) if gang is not None else None
        if gang is not None and request is not None and request.again:
            self._begin_to_withdraw(gang, request)

    # -- what the autoscaler answers -----------------------------------------------------------------------------------

    def _answered(self, change: Change[ProvisioningRequest]) -> None:
        known = change.new or change.old
        if known is not None and self._deleted.get(change.key) == known.metadata.uid:
            if change.new is None:
                del self._deleted[change.key]
                self._ask_where_it_was_kept(change.key)
        elif change.new is not None:
            self._take_answer(change.key, change.new)
        elif (gang := self._gangs.get(change.key)) is not None:
            self._lose(gang, "it was deleted")  # by another client: what is withdrawn here is forgotten before

    def _take_answer(self, name: Key, found: ProvisioningRequest) -> None:
        gang = self._gangs.get(name)
        request = self._requests.get(gang) if gang is not None else None
        if gang is None or request is None or request.leaving:
            return
        conditions = found.status.conditions
        for ended in (FAILED, CAPACITY_REVOKED, BOOKING_EXPIRED):
            if is_true(conditions, ended):
                said = find_condition(conditions, ended)
                self._lose(gang, f"{ended}: {said.message}" if said is not None and said.message else ended)
                return
        if is_true(conditions, PROVISIONED) and gang not in self.provisioned:
            request.answer = "its capacity is provisioned and kept for the gang"
            self.provisioned.add(gang)
            self.wake()

    def _lose(self, gang: GangKey, why: str) -> None:
        """Keep nothing for a gang any more, and ask again after a while."""
        self.provisioned.discard(gang)
        self._ask_again(gang, why, self._settings.retry_seconds)
        self.wake()


def _asked(since: datetime) -> str:
    return f"asked for at {timestamp(since)}, and the autoscaler has not answered yet"


def _passes(error: KubeError) -> bool:
    """Tell whether an error says nothing of what was asked for, so that it may be taken in a moment."""
    return isinstance(error, ConnectionFailed | TooManyRequests) or (
        isinstance(error, ApiError) and error.status >= 500
    )


def _by_class(records: Iterable[PodRecord]) -> list[list[PodRecord]]:
    """Return pods that ask for the same together, in order."""
    classes: dict[int, list[PodRecord]] = {}
    for record in records:
        classes.setdefault(record.request.number, []).append(record)
    return list(classes.values())
