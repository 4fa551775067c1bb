"""A plugin that is badly written is refused where it is registered, with what to write, and never just not asked."""

from collections.abc import Callable
from functools import partial
from importlib.metadata import EntryPoint
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from spinney.extensions.registry import InvalidPlugin
from spinney.scheduler import (
    CapacityVerdict,
    Constraint,
    Event,
    EventHandler,
    NodeInfo,
    Plugin,
    PluginRegistry,
    PodInfo,
    Session,
)
from spinney.scheduler.framework.registration import OWN_PATHS
from spinney.scheduler.plugins import default_registry
from spinney.scheduler.process.endpoint import CYCLES, EXPLANATIONS
from tests.scheduler.building import a_node, a_scheduler, an_inventory, put_job


class Sound(Plugin):
    """A plugin with nothing to say."""

    name = "mine"

    def on_session_open(self, session: Session) -> None: ...


class Listed(msgspec.Struct, frozen=True):
    """Has an argument that a configuration cannot give: all it gives is text."""

    pools: list[str] = []
    most: int | None = None


class Nested(msgspec.Struct, frozen=True):
    """Has one that has arguments itself."""

    inner: Listed = Listed()


class Untyped(msgspec.Struct, frozen=True):
    """Has one of a type that is not there."""

    key: "Nowhere" = ""  # type: ignore[name-defined]  # noqa: F821


async def asynchronous(*_: Any) -> None: ...


def yielding(*_: Any) -> Any:
    yield


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ({"on_session_open": asynchronous}, "on_session_open is async, write `def on_session_open`"),
        ({"on_session_open": yielding}, "on_session_open has a `yield` in it, so nothing of it is run"),
        ({"on_session_close": asynchronous}, "on_session_close is async, write `def on_session_close`"),
        ({"on_session_open": None}, "on_session_open is None, write `def on_session_open`"),
        ({"honours": "TOPOLOGY"}, "honours is 'TOPOLOGY' (str), write a set such as frozenset({Constraint.TOPOLOGY})"),
        ({"honours": Constraint.TOPOLOGY}, "write a set such as frozenset({Constraint.TOPOLOGY})"),
        ({"honours": frozenset({"TOPOLOGY"})}, "write a set such as frozenset({Constraint.TOPOLOGY})"),
        ({"contradicts": "backfill"}, "contradicts is 'backfill' (str), write a set such as"),
        ({"arguments_type": dict}, "write a class that derives from msgspec.Struct, or None"),
        ({"arguments_type": Listed}, "arguments_type has pools: list[str], which no text can be read as; write a text"),
        ({"arguments_type": Nested}, "arguments_type has inner: Listed, which no text can be read as"),
        ({"arguments_type": Untyped}, "arguments_type has a field that has no type: NameError: name 'Nowhere' is not"),
        ({"treats_alike": "no"}, "treats_alike is 'no' (str), write True or False"),
        ({"replaces_built_in": "priority"}, "replaces_built_in is 'priority' (str), write True or False"),
    ],
)
def test_a_badly_written_class_is_refused_with_what_to_write(attributes: dict[str, Any], said: str) -> None:
    """The line that registers it says what is wrong."""
    with pytest.raises(InvalidPlugin) as refused:
        PluginRegistry().register("mine", type("Mine", (Sound,), attributes))
    assert "plugin 'mine' is badly written" in str(refused.value)
    assert said in str(refused.value)


class Duck:
    """Looks like a plugin."""

    def on_session_open(self, session: Session) -> None: ...


@pytest.mark.parametrize(
    ("name", "builder", "said"),
    [
        ("mine", Duck, "Duck does not extend Plugin, write `class Duck(Plugin)`"),
        ("mine", Sound(), "it is Sound, register the class itself, or a function that makes the plugin"),
        ("mine", type("Empty", (Plugin,), {}), "it has no on_session_open(self, session)"),
        (5, Sound, 'its name is 5 (int), write a text such as "my-plugin"'),
        ("", Sound, "its name cannot be shown in messages"),
        ("mine\n", Sound, "its name cannot be shown in messages"),
        ("caf\udce9", Sound, "its name cannot be shown in messages"),
        ("x" * 500, Sound, "its name has 500 characters, write one of at most 100"),
    ],
)
def test_what_is_no_plugin_or_has_no_name_is_refused(name: Any, builder: Any, said: str) -> None:
    """It could not be asked, or not be told of."""
    with pytest.raises(InvalidPlugin) as refused:
        PluginRegistry().register(name, builder)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (Duck, "returned Duck, expected a plugin, an object of a class that extends Plugin"),
        (lambda: None, "returned None, expected a plugin"),
        (type("Mine", (Sound,), {"on_session_open": asynchronous}), "on_session_open is async"),
    ],
)
def test_nothing_is_placed_where_a_function_makes_something_else(made: Callable[[], Any], said: str) -> None:
    """What the plugin would have refused is not known; gangs say what was made, and the cycle ends."""
    inventory = an_inventory(a_node("n0"))
    put_job(inventory, "job", 1)
    scheduler = a_scheduler(inventory, Sound)
    scheduler.registry.register("mine", lambda _: made())

    result = scheduler.run_cycle()

    assert not result.binds
    (refused,) = result.unschedulable
    assert "plugin mine failed to open" in refused.message
    assert said in refused.message


def test_a_class_without_a_name_has_the_name_it_is_registered_under() -> None:
    """It is opened, asked and closed under that."""

    class Nameless(Plugin):
        def on_session_open(self, session: Session) -> None:
            session.add_predicate_fn(lambda task, job, node: "no")

    inventory = an_inventory(a_node("n0"))
    put_job(inventory, "job", 1)
    scheduler = a_scheduler(inventory, Sound)
    scheduler.registry.register("mine", Nameless)

    (refused,) = scheduler.run_cycle().unschedulable

    assert "refused by plugin mine (no)" in refused.message


class OtherPriority(Sound):
    """Has the name of a built-in plugin."""

    name = "priority"


class OwnPriority(OtherPriority):
    """Is to take its place."""

    replaces_built_in = True


def test_a_plugin_takes_the_place_of_a_built_in_one_only_if_it_says_so() -> None:
    """Who calls a plugin `priority` without knowing that there is one would lose the order of jobs."""
    registry = default_registry()
    with pytest.raises(InvalidPlugin, match=r"its name is that of a built-in plugin.*`replaces_built_in = True`"):
        registry.register("priority", OtherPriority)

    registry.register("priority", OwnPriority)

    assert registry.builder("priority") is OwnPriority


def declared(name: str, kind: type) -> EntryPoint:
    """Return what a distribution declares that brings a class of this file."""
    return EntryPoint(name, f"{kind.__module__}:{kind.__name__}", PluginRegistry.group)


def test_an_installed_plugin_with_the_name_of_a_built_in_one_is_not_left_out_without_a_word() -> None:
    """Neither of the two is taken for the other: what is installed says that it replaces, or is refused."""
    registry, other = default_registry(), default_registry()
    registry.offer(declared("priority", OtherPriority))
    other.offer(declared("priority", OwnPriority))

    with pytest.raises(InvalidPlugin, match=r"OtherPriority of .* its name is that of a built-in plugin"):
        registry.builder("priority")
    assert other.builder("priority") is OwnPriority


def test_of_two_installed_plugins_with_one_name_none_is_taken() -> None:
    """Which of two distributions came first is chance; who does not ask for the name is not disturbed."""
    registry = PluginRegistry({"priority": OtherPriority})
    for kind in (Sound, Sound, OtherPriority):
        registry.offer(declared("mine", kind))

    assert registry.builder("priority") is OtherPriority
    with pytest.raises(InvalidPlugin, match=r"two plugins are called 'mine': .*Sound of .* and .*OtherPriority of"):
        registry.builder("mine")
    registry.register("mine", Sound)
    assert registry.builder("mine") is Sound


class AsyncCall:
    async def __call__(self, *_: Any) -> None: ...


@pytest.mark.parametrize("fn", [asynchronous, yielding, partial(asynchronous), AsyncCall()])
@pytest.mark.parametrize(
    "register",
    [
        lambda session, fn: session.add_predicate_fn(fn),
        lambda session, fn: session.add_job_order_fn(fn),
        lambda session, fn: session.add_event_handler(EventHandler(allocate=fn)),
        lambda session, fn: session.add_predicate_fn(lambda *_: None, applies_to=fn),
    ],
)
def test_a_function_of_which_nothing_would_be_run_is_refused(register: Callable[[Session, Any], None], fn: Any) -> None:
    """An event handler that is async has counted nothing, and nobody was told."""

    class Registers(Plugin):
        name = "mine"

        def on_session_open(self, session: Session) -> None:
            register(session, fn)

    inventory = an_inventory(a_node("n0"))
    put_job(inventory, "job", 1)

    result = a_scheduler(inventory, Registers).run_cycle()

    assert not result.binds
    (refused,) = result.unschedulable
    written = getattr(fn, "func", fn)
    assert f"{getattr(written, '__name__', 'AsyncCall')} was registered, which" in refused.message


@pytest.mark.parametrize(
    ("register", "said"),
    [
        (lambda s: s.add_task_order_key(str, labels="tier"), "labels is 'tier' (str), write a set of label keys"),
        (lambda s: s.add_predicate_fn(str, per_pod="no"), "per_pod is 'no' (str), write True or False"),
        (lambda s: s.add_node_order_columns(str, monotone=None), "monotone is None, write True or False"),
        (lambda s: s.add_pre_predicate_fn(str, per_job=0), "per_job is 0 (int), write True or False"),
        (lambda s: s.add_gives_way_fn(str, across_queues="a"), "across_queues is 'a' (str), write True or False"),
        (lambda s: s.add_http_handler("mine", str), "path 'mine' (str) would never be asked for; write one such as"),
        (lambda s: s.add_http_handler("/mine/", str), "path '/mine/' (str) would never be asked for"),
        (lambda s: s.add_http_handler("/cycles", str), "path '/cycles' is the scheduler's own; choose another"),
        (
            lambda s: [s.add_http_handler("/mine", each) for each in (str, repr)],
            "a handler of '/mine' is registered by plugin mine; choose another name",
        ),
        (
            lambda s: [s.add_scenario_generator("all", each) for each in (str, repr)],
            "a scenario generator called 'all' is registered by plugin mine; choose another name",
        ),
    ],
)
def test_what_would_be_taken_for_something_else_or_never_asked_is_refused(
    register: Callable[[Session], Any], said: str
) -> None:
    """A label key was read letter by letter, and one handler took the place of the other, without a word."""

    class Registers(Plugin):
        name = "mine"

        def on_session_open(self, session: Session) -> None:
            register(session)

    inventory = an_inventory(a_node("n0"))
    put_job(inventory, "job", 1)

    (refused,) = a_scheduler(inventory, Registers).run_cycle().unschedulable

    assert said in refused.message


def test_who_is_never_asked_is_told_once() -> None:
    """Where only the first that registers is asked, a plugin that is added to the default ones comes second."""

    class Limits(Plugin):
        name = "limits"

        def on_session_open(self, session: Session) -> None:
            session.add_is_job_over_capacity_fn(lambda job, tasks: CapacityVerdict(ok=False))

    scheduler = a_scheduler(an_inventory(a_node("n0")), Limits)
    with capture_logs() as logs:
        for _ in range(2):
            scheduler.run_cycle()

    assert [(each["plugin"], each["registered"], each["asked"]) for each in logs if each["log_level"] == "warning"] == [
        ("limits", "add_is_job_over_capacity_fn", "proportion")
    ]


def test_no_plugin_can_take_a_path_that_the_scheduler_answers_itself() -> None:
    """The list of them is whole."""
    assert {EXPLANATIONS, CYCLES} < OWN_PATHS


class Counting(EventHandler, frozen=True):
    """Has a field of its own."""

    counted: str = "pods"


def test_an_event_handler_may_have_fields_of_its_own() -> None:
    """Only the functions that are called are looked at."""

    class Registers(Plugin):
        name = "mine"

        def on_session_open(self, session: Session) -> None:
            session.add_event_handler(Counting(allocate=lambda event: None))

    inventory = an_inventory(a_node("n0"))
    put_job(inventory, "job", 1)
    assert a_scheduler(inventory, Registers).run_cycle().binds


def test_what_is_registered_while_jobs_are_placed_is_refused() -> None:
    """It would hold for some of the decisions only; a session that is over takes in nothing, either."""

    class Late(Plugin):
        name = "late"

        def on_session_open(self, session: Session) -> None:
            def predicate(task: PodInfo, job: object, node: NodeInfo) -> None:
                session.add_event_handler(EventHandler(allocate=self.placed))

            session.add_predicate_fn(predicate)

        def placed(self, event: Event) -> None: ...

    inventory = an_inventory(a_node("n0"))
    put_job(inventory, "job", 1)

    (refused,) = a_scheduler(inventory, Late).run_cycle().unschedulable

    assert "registered while jobs are placed; register in on_session_open" in refused.message
