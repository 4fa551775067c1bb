"""What the grouper may read beside a pod and its owners."""

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from spinney.api.core import Pod
from spinney.grouping.owners import Owner
from spinney.grouping.roles import RememberedRoles


class KindDefault(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The priority class and preemptibility of workloads of one kind that say nothing themselves."""

    type_name: str
    """The kind, such as `Deployment`."""
    group: str = ""
    """Its API group; empty: of any group."""
    priority_name: str = ""
    """The priority class."""
    preemptibility: str = ""
    """`preemptible` or `non-preemptible`."""


@dataclass(frozen=True)
class World:
    """Look-ups in the cluster; pure while the cluster does not change."""

    find: Callable[[str, str, str], Owner | None] = lambda kind, namespace, name: None
    """An object by ``group/Kind``, namespace and name."""
    peers: Callable[[Owner, Pod], Iterable[Pod]] = lambda owner, pod: ()
    """The pods of a workload."""
    priority_classes: Container[str] = ()
    kind_defaults: Mapping[tuple[str, str], KindDefault] = field(default_factory=dict)
    """By group and kind; the group is empty for those of any group."""
    started: dict[object, frozenset[str]] = field(default_factory=dict)
    """Which roles of a workload have pods, as far as that was looked at. Mutable."""
    roles: RememberedRoles = field(default_factory=RememberedRoles)

    def default_for(self, owner: Owner) -> KindDefault | None:
        """Return what holds for the kind of an owner: for its group and kind, else for its kind alone."""
        group = owner.api_version.rpartition("/")[0]
        return self.kind_defaults.get((group, owner.kind)) or self.kind_defaults.get(("", owner.kind))


class InvalidDefaults(ValueError):
    """Per-kind defaults that cannot be read."""


def kind_defaults(entries: Iterable[KindDefault]) -> dict[tuple[str, str], KindDefault]:
    """Return per-kind defaults by group and kind."""
    return {(each.group, each.type_name): each for each in entries}


def parse_defaults(data: Mapping[str, str] | None) -> dict[tuple[str, str], KindDefault]:
    """Return the defaults in the data of a ConfigMap: the key ``types``, a JSON list, as KAI reads it."""
    if data is None or "types" not in data:
        raise InvalidDefaults("the ConfigMap of per-kind defaults has no key 'types'; expected a JSON list there")
    try:
        return kind_defaults(msgspec.json.decode(data["types"], type=list[KindDefault]))
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidDefaults(f"types: {error}; expected a JSON list of typeName, group, priorityName") from error
