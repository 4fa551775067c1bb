"""Plugins fail closed: what one gets wrong never lets a pod through."""

import pytest

from spinney.extensions.registry import UnknownPlugin
from spinney.reporting.pods import UNSCHEDULABLE
from spinney.scheduler import DoesNotFit, Event, EventHandler, Plugin, PodGroupInfo, PodInfo, Session
from spinney.scheduler.config import PluginOption, SchedulerConfig
from tests.scheduler.building import a_node, a_scheduler, an_inventory, placements, put_job


def broken(*args: object) -> None:
    raise RuntimeError("lost my configuration")


class Broken(Plugin):
    """Registers one failing function, chosen by ``hook``."""

    name = "broken"
    hook = ""
    closed = 0

    def on_session_open(self, session: Session) -> None:
        """Register the failing function."""
        match self.hook:
            case "pre-predicate":
                session.add_pre_predicate_fn(broken)
            case "predicate":
                session.add_predicate_fn(broken)
            case "predicate-columns":
                session.add_predicate_columns(broken)  # type: ignore[arg-type]
            case "score":
                session.add_node_order_fn(broken)  # type: ignore[arg-type]
            case "score-columns":
                session.add_node_order_columns(broken)  # type: ignore[arg-type]
            case "order":
                session.add_job_order_fn(broken)  # type: ignore[arg-type]
                session.add_task_order_fn(broken)  # type: ignore[arg-type]
                session.add_queue_order_fn(broken)  # type: ignore[arg-type]
            case "event":
                session.add_event_handler(EventHandler(allocate=broken))
            case "capacity":
                session.add_is_job_over_capacity_fn(broken)  # type: ignore[arg-type]

    def on_session_close(self, session: Session) -> None:
        """Count, and fail as well."""
        Broken.closed += 1
        broken()


class Late(Plugin):
    """Notes that it was closed."""

    name = "late"
    closed = 0

    def on_session_open(self, session: Session) -> None:
        """Do nothing."""

    def on_session_close(self, session: Session) -> None:
        Late.closed += 1


def placed(hook: str, count: int = 2) -> dict[str, str]:
    """Return what is placed when a function fails."""
    Broken.hook = hook
    inventory = an_inventory(a_node("n1"), a_node("n2"))
    put_job(inventory, "job", count)
    return placements(a_scheduler(inventory, Broken, Late))


@pytest.mark.parametrize("hook", ["pre-predicate", "predicate", "predicate-columns", "score", "score-columns"])
def test_a_failing_filter_or_score_refuses(hook: str) -> None:
    """No node is used on which a plugin could not be asked."""
    assert placed(hook) == {}


def test_a_plugin_that_failed_is_asked_again() -> None:
    """A job that was refused because a plugin failed is placed when the plugin answers, though nothing happens."""
    Broken.hook = "predicate"
    inventory = an_inventory(a_node("n1"))
    put_job(inventory, "job", 1)
    scheduler = a_scheduler(inventory, Broken)
    assert scheduler.run_cycle().next_moment is not None
    Broken.hook = ""
    again = scheduler.run_cycle()
    assert len(again.binds) == 1
    assert again.next_moment is None


@pytest.mark.parametrize("hook", ["order", "event", ""])
def test_a_failing_order_or_handler_changes_nothing(hook: str) -> None:
    """An order that fails says equal; a handler that fails is reported and the operation stands."""
    assert len(placed(hook)) == 2


def test_every_plugin_is_closed_though_another_fails() -> None:
    """A plugin that fails to close does not keep later ones from closing."""
    Late.closed = Broken.closed = 0
    placed("")

    assert (Broken.closed, Late.closed) == (1, 1)


def test_plugins_are_closed_when_an_action_raises() -> None:
    """A cycle that breaks still closes what it opened."""
    Late.closed = 0
    inventory = an_inventory(a_node("n1"))
    scheduler = a_scheduler(inventory, Late)
    scheduler._actions = [("exploding", lambda session: broken())]
    with pytest.raises(RuntimeError):
        scheduler.run_cycle()

    assert Late.closed == 1


class Picky(Plugin):
    """Refuses in each of the ways there are."""

    name = "picky"

    def on_session_open(self, session: Session) -> None:
        """Register a predicate that answers by node name."""
        session.add_predicate_fn(self._judge)

    def _judge(self, task: PodInfo, job: PodGroupInfo, node: object) -> bool | str | None:
        match getattr(node, "name", ""):
            case "a-false":
                return False
            case "b-text":
                return "because"
            case "c-raised":
                raise DoesNotFit("because")
            case "d-true":
                return True
            case _:
                return None


def test_a_predicate_may_answer_in_several_ways() -> None:
    """False, a text and DoesNotFit refuse; None and True accept."""
    names = ("a-false", "b-text", "c-raised", "d-true", "e-none")
    inventory = an_inventory(*(a_node(name, gpus=1) for name in names))
    put_job(inventory, "job", 2)

    assert set(placements(a_scheduler(inventory, Picky)).values()) == {"d-true", "e-none"}


def test_an_unknown_plugin_stops_the_scheduler_with_its_name() -> None:
    """A misspelt plugin is found when the scheduler is built, not when a policy is missed."""
    config = SchedulerConfig(plugins=(PluginOption("proportoin"),))
    with pytest.raises(UnknownPlugin, match="proportoin"):
        a_scheduler(an_inventory(), config=config)


def test_events_name_task_and_job() -> None:
    """A handler hears which task of which job was placed where."""
    heard: list[tuple[str, str, str]] = []

    class Listener(Plugin):
        name = "listener"

        def on_session_open(self, session: Session) -> None:
            session.add_event_handler(EventHandler(allocate=self._hear))

        def _hear(self, event: Event) -> None:
            heard.append((event.task.name, event.job.name, event.task.node_name))

    inventory = an_inventory(a_node("n1"))
    put_job(inventory, "job", 1)
    a_scheduler(inventory, Listener).run_cycle()

    assert heard == [("job-0", "job", "n1")]


class FussyAboutBad(Plugin):
    """Fails about one gang, by a predicate or by a score."""

    name = "fussy"
    hook = "predicate"

    def on_session_open(self, session: Session) -> None:
        """Register the failing function."""
        if self.hook == "predicate":
            session.add_predicate_fn(lambda task, job, node: _fail_about_bad(job))
        else:
            session.add_node_order_fn(lambda task, node: float(_fail_about_bad(task.job)))


def _fail_about_bad(job: PodGroupInfo) -> bool:
    if job.name == "bad":
        broken()
    return True


@pytest.mark.parametrize("hook", ["predicate", "score"])
def test_only_the_gang_a_plugin_failed_about_says_so(hook: str) -> None:
    """Another that waits for room says that it waits for room, though it asks for the same."""
    inventory = an_inventory(a_node("n", gpus=2))
    put_job(inventory, "bad", 1)
    put_job(inventory, "large", 3)
    plugin = type("Fussy", (FussyAboutBad,), {"hook": hook})

    result = a_scheduler(inventory, plugin).run_cycle()

    said = {refused.gang.name: refused for refused in result.unschedulable}
    assert "plugin fussy" in said["bad"].message
    assert "fussy" not in said["large"].message
    assert said["large"].reason == UNSCHEDULABLE
