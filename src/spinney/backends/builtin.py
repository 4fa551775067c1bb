"""The backends that come with Spinney."""

from typing import Final

from spinney.backends.catalogue import Catalogue
from spinney.backends.coscheduling import CoschedulingBackend
from spinney.backends.interface import SchedulerBackend
from spinney.backends.kai import KaiScheduler
from spinney.backends.kube import KubeScheduler
from spinney.backends.spinney_scheduler import SpinneyScheduler
from spinney.backends.volcano import Volcano

BACKENDS: Final[tuple[type[SchedulerBackend], ...]] = (
    KubeScheduler,
    KaiScheduler,
    CoschedulingBackend,
    Volcano,
    SpinneyScheduler,
)


def every_backend() -> Catalogue:
    """Return the built-in backends and those of installed packages."""
    catalogue = Catalogue()
    for backend in BACKENDS:
        catalogue.register(backend)
    catalogue.discover()
    return catalogue
