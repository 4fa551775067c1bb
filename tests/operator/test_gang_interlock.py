"""Controllers that act on one gang at once never contradict each other, and nobody waits for what has ended."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from spinney.api import labels as marks
from spinney.api.core import Pod
from spinney.api.meta import ObjectMeta
from spinney.api.podgang import PodGang
from spinney.kube.cache import Change
from spinney.kube.keys import Key
from spinney.operator.controllers.interlock import GangInterlock, Member

GANGS = ("one", "two")
PODS = {f"{gang}-{index}": gang for gang in GANGS for index in range(2)}


@dataclass(eq=False)
class Request:
    """A request of a controller: it waits for its turn, is under way, and ends when the test says so."""

    target: str
    pod: Pod | None = None
    answered: asyncio.Event = field(default_factory=asyncio.Event)
    under_way: bool = False
    task: "asyncio.Task[None] | None" = None

    @property
    def is_waiting(self) -> bool:
        """Say whether the request has not begun."""
        assert self.task is not None
        return not self.under_way and not self.task.done()


class Controllers(RuleBasedStateMachine):
    """Four sorts of controllers work on two gangs of two pods, each request of which takes as long as it likes."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.uids = count()
        self.shown = {name: self.a_pod(name) for name in PODS}  # what the caches show
        self.stored = dict(self.shown)  # what the API server has
        self.interlock = GangInterlock(lambda pod: self.shown.get(pod.metadata.name), self.exists)
        self.gates: list[Request] = []
        self.deletions: list[Request] = []
        self.initializations: list[Request] = []
        self.closings: list[Request] = []
        self.closed: set[str] = set()
        self.ready: dict[str, str] = {}
        self.woken: list[Key] = []
        self.expected_wakes: list[Key] = []
        self.interlock.on_backend_ready(self.woken.append)

    def teardown(self) -> None:
        """End all requests: every task ends with them."""
        for request in (*self.gates, *self.initializations, *self.deletions):
            request.answered.set()
        self.settle()
        every = (*self.gates, *self.initializations, *self.deletions, *self.closings)
        unfinished = [request for request in every if request.task is not None and not request.task.done()]
        self.loop.close()
        assert not unfinished, unfinished

    # -- the four sorts of controllers ---------------------------------------------------------------------------------

    @rule(gang=st.sampled_from(GANGS))
    def open_a_gate(self, gang: str) -> None:
        """A PodClique controller opens a gate; it is refused if and only if the gang is closed."""
        allowed: list[bool] = []

        async def work(request: Request) -> None:
            with self.interlock.opening_gate(a_gang(gang)) as open_:
                allowed.append(open_)
                if open_:
                    await under_way(request)

        self.gates.append(self.start(gang, work))
        assert allowed == [gang not in self.closed]

    @rule(gang=st.sampled_from(GANGS))
    def close(self, gang: str) -> None:
        """A PodCliqueSet controller wants to delete a gang."""
        self.closed.add(gang)

        async def work(_: Request) -> None:
            await self.interlock.close(a_gang(gang))

        self.closings.append(self.start(gang, work))

    @rule(gang=st.sampled_from(GANGS))
    def reopen(self, gang: str) -> None:
        """The gang is wanted after all, or it is gone: whoever waits to delete it goes on, whatever is under way."""
        self.closed.discard(gang)
        self.interlock.reopen(a_gang(gang))
        self.settle()
        assert not [each for each in self.closings if each.target == gang and each.is_waiting]

    @rule(name=st.sampled_from(sorted(PODS)))
    def delete_a_pod(self, name: str) -> None:
        """A controller deletes a pod that the caches show."""
        pod = self.shown.get(name)
        if pod is None:
            return

        async def work(request: Request) -> None:
            async with self.interlock.deleting(pod):
                await under_way(request)

        self.deletions.append(self.start(name, work, pod))

    @rule(gang=st.sampled_from(GANGS))
    def initialize(self, gang: str) -> None:
        """The PodGang controller, one reconcile for a gang at a time, writes ``Initialized`` if nothing is going."""
        if any(each.target == gang and each.under_way for each in self.initializations):
            return
        members = [pod for name, pod in self.shown.items() if PODS[name] == gang]

        async def work(request: Request) -> None:
            if not await self.interlock.is_any_deleted(members):
                with self.interlock.initializing(Key("test", gang)):
                    await under_way(request)

        pending = [each for each in self.deletions if each.under_way or each.is_waiting]
        requested = {each.target for each in pending if each.pod is self.shown[each.target]}
        request = self.start(gang, work)
        self.initializations.append(request)
        going = requested | (self.shown.keys() - self.stored.keys())
        assert not (request.under_way and any(PODS[name] == gang for name in going))

    @rule(gang=st.sampled_from(GANGS), uid=st.sampled_from(("a", "b")))
    def backend_ready(self, gang: str, uid: str) -> None:
        """A backend becomes ready for a gang; a new answer wakes who waits for it, the same answer nobody."""
        if self.ready.get(gang) != uid:
            self.expected_wakes.append(Key("test", gang))
        self.ready[gang] = uid
        self.interlock.backend_ready(Key("test", gang), a_gang(gang, uid))

    @rule(gang=st.sampled_from(GANGS))
    def backend_unready(self, gang: str) -> None:
        """A backend takes its answer back."""
        self.ready.pop(gang, None)
        self.interlock.backend_unready(Key("test", gang))

    # -- what happens to requests --------------------------------------------------------------------------------------

    @precondition(lambda self: self.under_way())
    @rule(data=st.data(), lost=st.booleans(), cancelled=st.booleans())
    def end_a_request(self, data: st.DataObject, lost: bool, cancelled: bool) -> None:
        """A request is answered, is lost on its way, or its controller is stopped."""
        request = data.draw(st.sampled_from(self.under_way()))
        if request in self.deletions and not lost and self.stored.get(request.target) is request.pod:
            del self.stored[request.target]
        assert request.task is not None
        if cancelled:
            request.task.cancel()
        request.answered.set()
        self.settle()

    @rule(name=st.sampled_from(sorted(PODS)))
    def the_caches_catch_up(self, name: str) -> None:
        """The watch tells that a pod has gone; a controller then makes another of its name."""
        if name in self.shown and name not in self.stored:
            old = self.shown.pop(name)
            self.interlock.observe(Change(Key("test", name), old, None, ""))
            self.stored[name] = self.shown[name] = self.a_pod(name)

    # -- what always holds ---------------------------------------------------------------------------------------------

    @invariant()
    def no_pod_goes_while_its_gang_becomes_initialized(self) -> None:
        """The deletion of a member that exists and the writing of ``Initialized`` are never under way at once."""
        initializing = {each.target for each in self.initializations if each.under_way}
        going = [each for each in self.deletions if each.under_way and self.stored.get(each.target) is each.pod]
        assert not initializing & {PODS[each.target] for each in going}

    @invariant()
    def nobody_waits_for_nothing(self) -> None:
        """A deletion waits only for ``Initialized`` being written, a closing only for a gate being opened."""
        initializing = {each.target for each in self.initializations if each.under_way}
        assert {PODS[each.target] for each in self.deletions if each.is_waiting} <= initializing
        opening = {each.target for each in self.gates if each.under_way}
        assert {each.target for each in self.closings if each.is_waiting} <= opening & self.closed

    @invariant()
    def backends_are_ready_for_what_they_answered(self) -> None:
        """An answer counts for the gang it was given for, not for another of its name; each wakes those who wait."""
        assert self.woken == self.expected_wakes
        for gang in GANGS:
            assert {uid for uid in "ab" if self.interlock.is_backend_ready(a_gang(gang, uid))} == (
                {self.ready[gang]} if gang in self.ready else set()
            )

    # -- the stage -----------------------------------------------------------------------------------------------------

    def start(self, target: str, work: Callable[[Request], Awaitable[None]], pod: Pod | None = None) -> Request:
        """Start a controller and let it come as far as it can."""
        request = Request(target, pod)

        async def run() -> None:
            with suppress(asyncio.CancelledError):
                await work(request)

        request.task = self.loop.create_task(run())
        self.settle()
        return request

    def settle(self) -> None:
        """Run until every task waits for the test."""
        for _ in range(5):
            self.loop.run_until_complete(asyncio.sleep(0))

    def under_way(self) -> list[Request]:
        """Return the requests that could be answered."""
        return [each for each in (*self.gates, *self.deletions, *self.initializations) if each.under_way]

    async def exists(self, pod: Member) -> bool:
        """Ask the API server."""
        return self.stored.get(pod.metadata.name) is pod

    def a_pod(self, name: str) -> Pod:
        """Return a pod nobody has seen before."""
        labels = {marks.POD_GANG: PODS[name]}
        return Pod(metadata=ObjectMeta(name=name, namespace="test", uid=str(next(self.uids)), labels=labels))


async def under_way(request: Request) -> None:
    """Be under way until the test ends the request."""
    request.under_way = True
    try:
        await request.answered.wait()
    finally:
        request.under_way = False


def a_gang(name: str, uid: str = "a") -> PodGang:
    return PodGang(metadata=ObjectMeta(name=name, namespace="test", uid=f"{name}-{uid}"))


TestControllers = Controllers.TestCase
TestControllers.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
