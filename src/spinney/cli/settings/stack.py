"""Configuration files that an embedded cluster is given: which process each is for."""

from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final

import click
import msgspec
import yaml

from spinney.api import yaml_text
from spinney.api.documents import InvalidConfiguration, InvalidDocument
from spinney.backends import every_backend
from spinney.cli.running import in_one_line
from spinney.coscheduling.process import configuration as coscheduling
from spinney.grouping.configuration import KIND as GROUPER_KIND
from spinney.grouping.configuration import GrouperConfiguration
from spinney.grouping.configuration import load as load_grouper
from spinney.nodes import ClusterSpec
from spinney.operator.configuration import KIND as OPERATOR_KIND
from spinney.operator.configuration import OperatorConfiguration
from spinney.operator.configuration import load as load_operator
from spinney.operator.operator import Settings
from spinney.scheduler.config import SchedulerConfig
from spinney.scheduler.config_files import load_config
from spinney.sim.embedded.stack import EVERY_BACKEND, GROUPER, StackOptions
from spinney.sim.policies.files import Policies, with_framework_policies, with_policies

_NONE: Final = Policies()


def embedded_settings(spec: ClusterSpec, configs: Iterable[Path], policies: Policies = _NONE) -> StackOptions:
    """Return what an embedded cluster runs: everything, each process as the file says that is for it.

    An ``OperatorConfiguration`` is the operator's, a ``GrouperConfiguration`` the grouper's, a file with ``profiles``
    (kube-scheduler's grammar) the coscheduler's, any other the session scheduler's, which goes on serving all the names
    it serves here and waiting for the grouper. Operator and grouper read files without ``kind``, too: then the keys say
    whose it is.
    """
    options = StackOptions.whole(spec)
    for path in configs:
        raw = _mapping(path)
        with in_one_line(InvalidConfiguration, InvalidDocument):
            kind = raw.get("kind") or _kind_by_keys(raw)
            if kind == GROUPER_KIND:
                loaded = load_grouper(path)
                served = loaded.written.scheduler_names or GROUPER.scheduler_names
                written = msgspec.structs.replace(loaded.written, scheduler_names=served)
                options = replace(options, grouper=replace(loaded, written=written, profiles=EVERY_BACKEND))
            elif kind == OPERATOR_KIND:
                options = replace(options, operator=Settings.of(load_operator(path, every_backend())))
            elif "profiles" in raw:
                options = replace(options, coscheduler=coscheduling.load_configuration(path))
            else:
                config = load_config(path, policies.registry())
                names = tuple(dict.fromkeys((*options.scheduler.scheduler_names, *config.scheduler_names)))
                config = msgspec.structs.replace(config, scheduler_names=names, wait_for_grouper=True)
                options = replace(options, scheduler=config)
    options = _with_grouper_of_all(options)
    return _with_policies(options, policies) if policies else options


def ungrouped_names(options: StackOptions) -> list[str]:
    """Return the names served by the session scheduler whose pods wait for the grouper, which does not serve them."""
    assert options.grouper is not None, "the whole stack has one"
    return [name for name in options.scheduler.scheduler_names if name not in options.grouper.written.scheduler_names]


def _with_grouper_of_all(options: StackOptions) -> StackOptions:
    """Return the options with a grouper for the backends that only the operator was told of: those of third parties."""
    assert options.grouper is not None, "the whole stack has one"
    profiles, written = options.grouper.profiles, options.grouper.written
    own = [each for each in options.operator.profiles.enabled if each.name not in profiles.names()]
    names = tuple(dict.fromkeys((*written.scheduler_names, *(each.name for each in own))))
    profiles = replace(profiles, enabled=(*profiles.enabled, *own))
    written = msgspec.structs.replace(written, scheduler_names=names)
    return replace(options, grouper=replace(options.grouper, written=written, profiles=profiles))


def _kind_by_keys(raw: Collection[object]) -> str:
    """Return the kind that most keys of a file are of; empty for a scheduler's, which has none."""
    known: dict[str, type[msgspec.Struct]] = {
        "": SchedulerConfig,
        OPERATOR_KIND: OperatorConfiguration,
        GROUPER_KIND: GrouperConfiguration,
    }
    keys = {kind: {field.encode_name for field in msgspec.structs.fields(each)} for kind, each in known.items()}
    return max(keys, key=lambda kind: len(keys[kind].intersection(raw)))


def _with_policies(options: StackOptions, policies: Policies) -> StackOptions:
    """Return the options with plugins from files, each in the scheduler it is written for."""
    scheduler, plugins = with_policies(options.scheduler, policies)
    assert options.coscheduler is not None, "the whole stack has one"
    coscheduler, framework_plugins = with_framework_policies(options.coscheduler, policies)
    return replace(
        options,
        scheduler=scheduler,
        plugins=plugins,
        coscheduler=coscheduler,
        framework_plugins=framework_plugins,
    )


def _mapping(path: Path) -> dict[str, object]:
    try:
        raw = yaml_text.load(path.read_text())
    except (OSError, yaml.YAMLError) as error:
        raise click.ClickException(f"{path}: cannot be read: {' '.join(str(error).split())}") from error
    if not isinstance(raw, dict):
        raise click.ClickException(
            f"{path}: expected the configuration of the operator, the grouper, the scheduler or the coscheduler, found "
            f"{'nothing' if raw is None else type(raw).__name__}"
        )
    return raw
