"""``spinney manifests``: everything an installation needs, for ``kubectl apply -f -``."""

from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

import click
import yaml

import spinney
from spinney.api.documents import InvalidConfiguration, InvalidDocument
from spinney.api.struct import JSON
from spinney.backends import Catalogue, every_backend
from spinney.backends.builtin import BACKENDS
from spinney.cli.installing import installation
from spinney.cli.installing.checks import unworkable
from spinney.cli.installing.computed import ELECTS, GROUPER_CONFIGURATION, operator_configuration
from spinney.cli.installing.description import ChartSetting
from spinney.cli.installing.rights import kind_rights, rules
from spinney.cli.installing.values import default_values, merged, read_values
from spinney.cli.running import in_one_line
from spinney.coscheduling.process.configuration import load_configuration, parse_configuration
from spinney.grouping.configuration import check as check_grouper
from spinney.grouping.configuration import load as load_grouper
from spinney.grouping.loading import built_in
from spinney.grouping.rules import RuleSet
from spinney.operator.configuration import check, load
from spinney.scheduler.config_files import load_config, parse_config


def manifests(
    *,
    values_files: tuple[Path, ...],
    config: Path | None,
    namespace: str,
    image: str | None,
    replicas: int | None,
    crds: bool,
    operator: bool,
    scheduler_config: Path | None,
    coscheduler: bool,
    coscheduler_config: Path | None,
    grouper: bool,
    grouper_config: Path | None,
) -> None:
    catalogue = every_backend()
    values = default_values()
    with in_one_line(InvalidDocument):
        given = [read_values(file.read_text(encoding="utf-8"), str(file)) for file in values_files]
        values = reduce(merged, given, values)
        if config is not None:
            load(config, catalogue)
            values["config"] = _read(config)
        values = _with_flags(values, image, operator=operator, coscheduler=coscheduler)
        if scheduler_config is not None:
            values["scheduler"]["config"] = _checked(scheduler_config, load_config)
        if coscheduler_config is not None:
            values["coscheduler"] |= {"enabled": True, "config": _checked(coscheduler_config, load_configuration)}
        if grouper or grouper_config is not None:
            values["grouper"] |= _grouper(values["grouper"], grouper_config, catalogue)
        setting = ChartSetting(values, namespace, spinney.__version__)
        said = any("replicaCount" in each for each in given)
        values["replicaCount"] = _replicas(setting, replicas, alone=config is not None and not said)
        for problem in unworkable(setting):
            raise click.UsageError(problem)
        loaded = check(yaml.safe_dump(operator_configuration(setting)), catalogue)
        _check_others(setting, catalogue)
    enabled = [backend for name in loaded.profiles.names() if (backend := catalogue.get(name)) is not None]
    backends = [*BACKENDS, *(backend for backend in enabled if backend not in BACKENDS)]
    click.echo(
        yaml.dump_all(installation(setting, backends, crds=crds), Dumper=_WithoutAliases, sort_keys=False), nl=False
    )


def _check_others(setting: ChartSetting, catalogue: Catalogue) -> None:
    """Check what the other processes are told, as they will read it: a pod that cannot start is a poor messenger."""
    if setting.at("grouper.enabled"):
        check_grouper(GROUPER_CONFIGURATION.of(setting), "grouper.config", catalogue)
    for process, parsed in (("scheduler", parse_config), ("coscheduler", parse_configuration)):
        try:
            parsed(setting.at(f"{process}.config"))
        except InvalidConfiguration as error:
            raise click.ClickException(f"{process}.config: {error}") from error


def _with_flags(values: JSON, image: str | None, *, operator: bool, coscheduler: bool) -> JSON:
    """Return values with what options of the command say."""
    changes: JSON = {}
    if image is not None:
        name, _, digest = image.partition("@")
        repository, colon, tag = name.rpartition(":")
        named = (repository, tag) if colon and "/" not in tag else (name, "latest")
        changes["image"] = {"repository": named[0], "tag": named[1], "digest": digest}
    if not operator:
        changes["operator"] = {"enabled": False}
    if coscheduler:
        changes["coscheduler"] = {"enabled": True}
    return merged(values, changes)


def _grouper(values: JSON, file: Path | None, catalogue: Catalogue) -> JSON:
    """Return the grouper's values with a file's configuration, and the rights to read the kinds of its own rules."""
    if file is None:
        return {"enabled": True}
    loaded = load_grouper(file, catalogue)
    known = {rule.kind for rule in built_in().rules.values()}
    own = RuleSet.of(rule for rule in loaded.written.rules if rule.kind not in known)
    extra = rules(kind_rights(own))
    return {"enabled": True, "config": _read(file), "extraRules": [*values["extraRules"], *extra]}


def _replicas(setting: ChartSetting, asked: int | None, *, alone: bool) -> int:
    """Return how many of each process run.

    One, where nobody says how many and the operator's own file, which the chart does not know, has no election.
    """
    if asked is not None:
        return asked
    return 1 if alone and not ELECTS.of(setting) else int(setting.at("replicaCount"))


def _checked(file: Path, load_it: Callable[[Path], object]) -> JSON:
    """Return a scheduler's configuration, which can be used."""
    with in_one_line(InvalidConfiguration):
        load_it(file)
    return _read(file)


def _read(file: Path) -> JSON:
    return yaml.safe_load(file.read_text(encoding="utf-8")) or {}


class _WithoutAliases(yaml.SafeDumper):
    """Writes what stands in several places in each of them: anchors are hard to read and to edit."""

    def ignore_aliases(self, data: Any) -> bool:
        return True
