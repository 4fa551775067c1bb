"""Event handlers: how many pods each namespace was given in this cycle.

Handlers hear of every virtual allocation and deallocation, those that are undone later included, so the count is right
at any moment.

    register_plugin_builder("namespace-tracker", NamespaceAllocationTracker)
"""

import structlog

from spinney.scheduler import Event, EventHandler, Plugin, Session

log = structlog.get_logger()


class NamespaceAllocationTracker(Plugin):
    """Counts allocated pods by namespace."""

    name = "namespace-tracker"

    def on_session_open(self, session: Session) -> None:
        """Begin with nothing and listen."""
        self.pods_per_namespace: dict[str, int] = {}
        session.add_event_handler(EventHandler(allocate=self.allocated, deallocate=self.deallocated))

    def on_session_close(self, session: Session) -> None:
        """Report what was counted."""
        log.info("pods allocated", by_namespace=self.pods_per_namespace)

    def allocated(self, event: Event) -> None:
        """Count a pod in."""
        namespace = event.task.namespace
        self.pods_per_namespace[namespace] = self.pods_per_namespace.get(namespace, 0) + 1

    def deallocated(self, event: Event) -> None:
        """Count a pod out."""
        namespace = event.task.namespace
        self.pods_per_namespace[namespace] = self.pods_per_namespace.get(namespace, 0) - 1
