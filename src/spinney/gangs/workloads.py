"""Gangs of Workloads of Kubernetes 1.35: no object lists them, pods name the Workload, its group and a replica."""

from collections.abc import Collection, Iterable

from spinney.api.workload_v1alpha1 import Workload
from spinney.gangs.sources import native
from spinney.gangs.sources.context import SourceContext
from spinney.gangs.tree import Gang, GangKey


class WorkloadGangs:
    """Workloads, and the gangs that pods have named of each. Mutable."""

    def __init__(self) -> None:
        self._workloads: dict[tuple[str, str], Workload] = {}
        self._named: dict[tuple[str, str], dict[GangKey, None]] = {}

    def derive(self, key: GangKey, context: SourceContext) -> Gang | None:
        """Return the gang that a pod names, if its Workload is there and has such a group."""
        if key.source != native.WORKLOAD_SOURCE:
            return None
        origin = native.workload_of(key)
        self._named.setdefault(origin, {})[key] = None
        workload = self._workloads.get(origin)
        return native.workload_gang(workload, key, context) if workload is not None else None

    def forget(self, key: GangKey) -> None:
        """Forget a gang that no pod names any more."""
        if key.source == native.WORKLOAD_SOURCE:
            origin = native.workload_of(key)
            named = self._named.get(origin, {})
            named.pop(key, None)
            if not named:
                self._named.pop(origin, None)

    def put(self, workload: Workload) -> Collection[GangKey]:
        """Take in a Workload that appeared or changed; return the gangs to look at again."""
        self._workloads[_key(workload)] = workload
        return tuple(self._named.get(_key(workload), ()))

    def remove(self, workload: Workload) -> Collection[GangKey]:
        """Take out a Workload that is gone; return the gangs to look at again."""
        self._workloads.pop(_key(workload), None)
        return tuple(self._named.get(_key(workload), ()))

    def named(self) -> Iterable[GangKey]:
        """Return every gang that pods have named."""
        return [key for keys in self._named.values() for key in keys]


def _key(workload: Workload) -> tuple[str, str]:
    return workload.metadata.namespace or "", workload.metadata.name
