"""The session scheduler: opens a session on the inventory, runs the actions, returns what was decided.

It needs no Kubernetes: an inventory filled by hand, from a snapshot file or by watches all look the same. Carrying out
the decisions (binding, evicting, writing conditions) is not its part.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

import structlog
from prometheus_client import CollectorRegistry

from spinney.api.documents import InvalidConfiguration
from spinney.gangs.tree import GangKey
from spinney.reporting.pods import SCHEDULER_ERROR
from spinney.runtime import Runtime, collection_held_off
from spinney.scheduler.actions import BUILT_IN_ACTIONS, Action
from spinney.scheduler.config import SchedulerConfig, check_plugins
from spinney.scheduler.cycle.explaining import Explainer
from spinney.scheduler.cycle.promises import Promises
from spinney.scheduler.evaluation.constraints import keep_off_closed_nodes
from spinney.scheduler.evaluation.questions import Questions
from spinney.scheduler.framework.extension_points import Hook, HttpHandler
from spinney.scheduler.framework.plugin import PluginRegistry
from spinney.scheduler.framework.results import OUT_OF_TIME, CycleResult, FitError, Unschedulable
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.setbacks import Setbacks
from spinney.scheduler.framework.snapshot import Snapshot
from spinney.scheduler.framework.timing import Timings
from spinney.scheduler.intake.inventory import Inventory
from spinney.scheduler.plugins import default_registry
from spinney.scheduler.victims.requests import settle_requests

log = structlog.get_logger()

EXPLAIN_SECONDS: Final = 10.0
"""For all refused jobs of a cycle; those whose turn does not come are told the reason without the look at nodes."""
ASK_AGAIN_SECONDS: Final = 10.0
"""After which jobs that wait are looked at again where a plugin failed, if nothing happens before."""


class Scheduler:
    """Runs scheduling cycles over an inventory."""

    def __init__(
        self,
        config: SchedulerConfig,
        inventory: Inventory,
        *,
        runtime: Runtime | None = None,
        registry: PluginRegistry | None = None,
        metrics: CollectorRegistry | None = None,
        asks: bool = False,
    ) -> None:
        self.config = config
        self.inventory = inventory
        self.runtime = runtime if runtime is not None else Runtime.system()
        self.registry = registry if registry is not None else default_registry()
        self.metrics = metrics if metrics is not None else CollectorRegistry()
        """Where plugins register metrics of their own."""
        self.http_handlers: Mapping[str, Hook[HttpHandler]] = {}
        """What plugins of the newest session serve, by path."""
        self._asks = asks
        """Whether victims that checkpoint are asked first when decisions are carried out; else they go at once."""
        self._stale_since: dict[GangKey, datetime] = {}
        self._memory: dict[str, object] = {}
        self._setbacks = Setbacks()
        self._overdue: dict[str, frozenset[GangKey]] = {}
        self._timings: Timings | None = None
        self._promises = Promises(config)
        self._unasked: set[tuple[str, str, str]] = set()
        """What plugins registered that is never asked, and was said."""
        self._actions = [_action(name) for name in config.actions]
        check_plugins(config.plugins, self.registry)

    @property
    def busy_with(self) -> str:
        """Return what the newest session is doing now: a plugin's function, or an action."""
        current = self._timings.current if self._timings is not None else None
        if current is None:
            return "no plugin"
        plugin, hook = current
        return f"action {hook}" if plugin == "action" else f"plugin {plugin} at {hook}"

    def open_session(self, snapshot: Snapshot | None = None) -> Session:
        """Return an opened session on ``snapshot``, or on the inventory as it is now.

        A plugin that fails to open is left out; the session then decides nothing.
        """
        session = Session(
            snapshot if snapshot is not None else self.inventory.snapshot(),
            self.config,
            self.registry,
            self.runtime,
            ask=Questions,
            metrics=self.metrics,
        )
        self._timings = session.timings
        session.stale_since = self._stale_since
        session.memory = self._memory
        session.setbacks = self._setbacks
        session.overdue = self._overdue
        self._promises.begin(session)
        session.open()
        keep_off_closed_nodes(session)
        self.http_handlers = session.hooks.http_handlers
        for unasked in session.hooks.never_asked:
            if unasked not in self._unasked:
                self._unasked.add(unasked)
                plugin, registration, asked = unasked
                log.warning("plugin is never asked, list it first", plugin=plugin, registered=registration, asked=asked)
        return session

    def run_cycle(self, snapshot: Snapshot | None = None, *, release: bool = False) -> CycleResult:
        """Run one cycle: open, act, close. Plugins are closed also when an action raises.

        ``release`` frees the session at once; no plugin may look at it afterwards.
        """
        with collection_held_off():
            session = self.open_session(snapshot)
            try:
                self.run_actions(session)
                return self.result(session)
            finally:
                session.close()
                if release:
                    session.release()

    def run_actions(self, session: Session) -> None:
        """Run the configured actions in order on an open session; none without all plugins."""
        if session.unopened:
            _let_wait(session)
            return
        session.hooks.close()
        with collection_held_off():
            for name, action in self._actions:
                session.action = name
                with session.timings.measure("action", name):
                    action(session)

    def result(self, session: Session) -> CycleResult:
        """Return what a session has decided; what it promised is kept for the sessions after it."""
        self._promises.end(session)
        settled = settle_requests(session, asks=self._asks)
        unschedulable = self._refused(session)
        self._setbacks.end(session.snapshot.gangs.gangs, session.now)
        return CycleResult(
            binds=session.binds,
            evictions=settled.evictions,
            asked=settled.asked,
            withdrawn=settled.withdrawn,
            pipelines=session.pipelines,
            unschedulable=unschedulable,
            started=session.started,
            next_moment=_next_moment(session),
            seconds=session.timings.seconds,
            failures=session.failures.counts,
            errors=session.errors,
        )

    def _refused(self, session: Session) -> list[Unschedulable]:
        """Return the refused jobs, each explained if the configuration asks for it."""
        if not self.config.explain:
            return [Unschedulable(key, tuple(errors)) for key, errors in session.fit_errors.items()]
        explainer = Explainer(session)
        refused = []
        deadline = session.monotonic() + EXPLAIN_SECONDS
        with session.timings.measure("explain", "refused"):
            for key in list(session.fit_errors):
                explanation = None
                untried = session.fit_errors[key][0].reason == OUT_OF_TIME
                if not untried and session.monotonic() < deadline:
                    with session.bulkhead(key, "explaining"):
                        explanation = explainer.explain(session.job(key), session.fit_errors[key])
                refused.append(Unschedulable(key, tuple(session.fit_errors[key]), explanation))
        return refused


def _let_wait(session: Session) -> None:
    """Say of every job that waits which plugin is missing: it might have refused any of them."""
    for plugin, said in session.unopened.items():
        message = f"plugin {plugin} failed to open: {said}; nothing is placed or evicted without it"
        for key in session.snapshot.gangs.pending:
            session.fit_errors.setdefault(key, []).append(FitError(SCHEDULER_ERROR, message))


def _next_moment(session: Session) -> datetime | None:
    """Return when time alone may change a decision: as plugins and actions said, or when a pod counts as stuck.

    A plugin that failed may answer the next time, and nobody else will say so.
    """
    if session.fit_errors and (session.failures.total or session.unopened):
        session.wake_at(session.now + timedelta(seconds=ASK_AGAIN_SECONDS))
    grace = timedelta(seconds=session.config.stuck_in_releasing_seconds)
    for record in session.snapshot.releasing:
        since = record.pod.metadata.deletion_timestamp
        if since is not None:
            session.wake_at(since + grace)
    return session.next_moment


def _action(name: str) -> tuple[str, Action]:
    try:
        return name, BUILT_IN_ACTIONS[name]
    except KeyError:
        known = ", ".join(sorted(BUILT_IN_ACTIONS))
        raise InvalidConfiguration(f"actions: no action is called {name!r}; known are {known}") from None
