"""The coscheduler's configuration, in the grammar of kube-scheduler's own.

::

    podInitialBackoffSeconds: 1
    podMaxBackoffSeconds: 10
    profiles:
      - schedulerName: coscheduling
        plugins:
          multiPoint: {enabled: [{name: MyPlugin, weight: 2}], disabled: [{name: ImageLocality}]}
          postFilter: {enabled: [{name: MyPreemption}], disabled: [{name: "*"}]}
        pluginConfig:
          - {name: Coscheduling, args: {permitWaitingTimeSeconds: 30}}

At each extension point run, in this order: what is enabled for that point, then the default plugins, then what is
enabled for all points (``multiPoint``). ``disabled`` takes a default away, at one point or at all; ``"*"`` takes all
defaults. Decoding is strict: an unknown field is an error that names it and the nearest valid one.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Self

import msgspec
import yaml

from spinney.api import yaml_text
from spinney.api.documents import InvalidConfiguration, nearest
from spinney.coscheduling.framework import FrameworkPlugin, FrameworkRegistry, Handle, Profile
from spinney.coscheduling.framework.profile import POINTS, serves
from spinney.coscheduling.framework.soundness import faults_of
from spinney.coscheduling.plugins.unkept import KEEPERS, Unkept
from spinney.extensions.registry import UnknownPlugin
from spinney.runtime.faults import raised, told

MULTI_POINT: Final = "multiPoint"
ALL: Final = "*"
OWN_NAME: Final = "coscheduling"
"""The scheduler name served when the configuration lists no profile: one that no other scheduler has."""
KUBE_SCHEDULER: Final = "default-scheduler"
"""The name of a cluster's own scheduler."""

_KIND_FIELDS: Final = {"apiVersion", "kind", "metadata"}


class PluginChoice(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """A plugin by name and, for scores, how much it counts."""

    name: str
    """The plugin; `*` in `disabled` is all of them."""
    weight: int | None = None
    """How much its scores count; absent: the plugin's own default."""


class PluginSet(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """What is added to, and taken from, the defaults of an extension point."""

    enabled: tuple[PluginChoice, ...] = ()
    """What is added, in this order."""
    disabled: tuple[PluginChoice, ...] = ()
    """Which defaults are taken away."""


class PluginArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """The arguments of one plugin."""

    name: str
    """The plugin the arguments are for."""
    args: dict[str, Any] = {}
    """Its settings; what Coscheduling takes is below."""


class ProfileConfiguration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """Plugins for the pods of one scheduler name."""

    scheduler_name: str
    """Pods with this `schedulerName` are placed by the profile."""
    plugins: dict[str, PluginSet] = {}
    """Changes to the default plugins, by extension point (`filter`, `score`, ...); `multiPoint` is all points."""
    plugin_config: tuple[PluginArguments, ...] = ()
    """Arguments of plugins."""


class CoschedulerConfiguration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """Profiles, and how long rejected pods rest."""

    profiles: tuple[ProfileConfiguration, ...] = (ProfileConfiguration(scheduler_name=OWN_NAME),)
    """A scheduler name and its plugins each."""
    pod_initial_backoff_seconds: float = 1.0
    """How long a pod rests after it was refused for the first time; twice as long after each further time."""
    pod_max_backoff_seconds: float = 10.0
    """The longest a pod rests."""
    burst_milliseconds: float = 10.0
    """How long scheduling cycles may run before watches and binds get their turn."""
    max_checkpoint_grace_seconds: Annotated[float, msgspec.Meta(ge=0)] = 600.0
    """The longest that a victim is given to checkpoint before it is evicted; 0: nobody is asked."""
    max_own_min_runtime_seconds: Annotated[float, msgspec.Meta(ge=0)] = 3600.0
    """The longest minimum runtime that a gang may ask for itself; 0: none."""

    @classmethod
    def in_place_of_kube_scheduler(cls, **settings: Any) -> Self:
        """Return a configuration for a cluster that has no kube-scheduler: its name is served, too."""
        return cls(
            profiles=tuple(ProfileConfiguration(scheduler_name=name) for name in (KUBE_SCHEDULER, OWN_NAME)), **settings
        )

    @property
    def scheduler_names(self) -> tuple[str, ...]:
        """Return the names whose pods are scheduled."""
        return tuple(profile.scheduler_name for profile in self.profiles)


def load_configuration(path: Path) -> CoschedulerConfiguration:
    """Read a configuration file; raises :class:`InvalidConfiguration`."""
    try:
        raw = yaml_text.load(path.read_text())
    except (OSError, yaml.YAMLError) as error:
        raise InvalidConfiguration(f"{path}: cannot be read: {error}") from error
    try:
        return parse_configuration(raw if raw is not None else {})
    except InvalidConfiguration as error:
        raise InvalidConfiguration(f"{path}: {error}") from error


def parse_configuration(raw: object) -> CoschedulerConfiguration:
    """Return the configuration in ``raw``; raises :class:`InvalidConfiguration`."""
    if not isinstance(raw, dict):
        raise InvalidConfiguration(f"expected a mapping, found {type(raw).__name__}")
    fields = {key: value for key, value in raw.items() if key not in _KIND_FIELDS}
    known = [each.encode_name for each in msgspec.structs.fields(CoschedulerConfiguration)]
    _check_names(fields, known, "field")
    try:
        configuration = msgspec.convert(fields, CoschedulerConfiguration)
    except msgspec.ValidationError as error:
        raise InvalidConfiguration(str(error)) from error
    if not configuration.profiles:
        raise InvalidConfiguration("profiles: the list is empty, so no pod would be scheduled; name at least one")
    names = configuration.scheduler_names
    for profile in configuration.profiles:
        if names.count(profile.scheduler_name) > 1:
            raise InvalidConfiguration(f"profiles: schedulerName {profile.scheduler_name!r} is there twice")
        _check_names(profile.plugins, [*POINTS, MULTI_POINT], f"extension point in profile {profile.scheduler_name}")
    if not 0 < configuration.pod_initial_backoff_seconds <= configuration.pod_max_backoff_seconds:
        raise InvalidConfiguration("podInitialBackoffSeconds: expected above 0 and at most podMaxBackoffSeconds")
    return configuration


def make_profile(
    chosen: ProfileConfiguration, defaults: Sequence[str], registry: FrameworkRegistry, handle: Handle
) -> Profile:
    """Make the plugins of a profile and put them in order; raises :class:`InvalidConfiguration`."""
    plugins = _Plugins(chosen, registry, handle)
    lists = {point: plugins.at(point, defaults) for point in POINTS}
    if unused := plugins.unused():
        raise plugins.refused(f"pluginConfig names {unused[0]}, which is not enabled")
    missing = [name for name, point in KEEPERS.items() if name not in {each.name for each in lists[point]}]
    if missing:
        lists["preFilter"] = (Unkept(handle, missing), *lists["preFilter"])
    weighed = (*plugins.chosen_at(MULTI_POINT).enabled, *plugins.chosen_at("score").enabled)
    weights = {each.name: each.weight for each in weighed if each.weight is not None}
    return Profile(chosen.scheduler_name, lists, weights)


class _Plugins:
    """The plugins of one profile, each made once. Mutable."""

    def __init__(self, chosen: ProfileConfiguration, registry: FrameworkRegistry, handle: Handle) -> None:
        self._chosen = chosen
        self._registry = registry
        self._handle = handle
        self._arguments = {each.name: each.args for each in chosen.plugin_config}
        self._made: dict[str, FrameworkPlugin] = {}

    def chosen_at(self, point: str) -> PluginSet:
        """Return what the profile enables and disables at a point."""
        return self._chosen.plugins.get(point, PluginSet())

    def at(self, point: str, defaults: Sequence[str]) -> tuple[FrameworkPlugin, ...]:
        """Return the plugins that serve a point, in their order: those named for it, the defaults, then the others."""
        here, everywhere = self.chosen_at(point), self.chosen_at(MULTI_POINT)
        not_here = {each.name for each in here.disabled}
        gone = not_here | {each.name for each in everywhere.disabled}
        names = [each.name for each in here.enabled]
        names += [name for name in defaults if name not in gone and ALL not in gone]
        names += [each.name for each in everywhere.enabled if each.name not in not_here]
        candidates = [self._plugin(name) for name in dict.fromkeys(names)]
        for each in here.enabled:
            if not serves(self._plugin(each.name), point):
                raise self.refused(f"plugins.{point}.enabled: {each.name} does nothing at {point}")
        return tuple(each for each in candidates if serves(each, point))

    def unused(self) -> list[str]:
        """Return the plugins that have arguments and stand at no point."""
        return sorted(set(self._arguments) - set(self._made))

    def refused(self, why: str) -> InvalidConfiguration:
        """Return the error that names the profile."""
        return InvalidConfiguration(f"profile {self._chosen.scheduler_name}: {why}")

    def _plugin(self, name: str) -> FrameworkPlugin:
        if name not in self._made:
            try:
                made = self._registry.builder(name)(self._handle, self._arguments.get(name, {}))
            except (UnknownPlugin, ValueError) as error:
                raise self.refused(f"plugin {name}: {error}") from error
            except raised() as error:
                raise self.refused(
                    f"plugin {name} cannot be built: {told(error)}; "
                    "it is called with the handle and its arguments: __init__(self, handle, arguments)"
                ) from error
            if faults := list(faults_of(made)):
                raise self.refused(f"plugin {name} is badly written: {'; '.join(faults)}")
            self._made[name] = made
        return self._made[name]


def _check_names(found: Mapping[str, object], known: Sequence[str], what: str) -> None:
    for name in found:
        if name not in known:
            raise InvalidConfiguration(f"{name}: no such {what}; {nearest(name, known)}")
