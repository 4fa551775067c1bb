"""Annotations and finalizers for which Grove has no word; all others are in :mod:`spinney.api.labels`."""

from typing import Final

INCARNATION: Final = "grove.io/podgang-incarnation"
"""Annotation of a PodGang that changes when the whole gang is recycled; absent in its first life."""
INCARNATION_CLIQUES: Final = "grove.io/podgang-incarnation-cliques"
"""Annotation of a PodGang: the last recycling it has completed, and by the start of their uids its PodCliques."""
RECYCLE: Final = "grove.io/podgang-recycle"
"""Annotation of a PodGang by which its recycling is asked for; another value asks for another one."""
ADOPTED_HASHES: Final = "grove.io/adopted-hashes"
"""Annotation of a PodCliqueSet taken over from Grove: our template hash to the one Grove had recorded."""
COMPUTE_DOMAIN_FINALIZER: Final = "grove.io/computedomain-finalizer"
BACKEND_FINALIZER: Final = "scheduler.grove.io/backend-cleanup"
"""Finalizer of PodGangs whose backend has a delete hook."""
