"""What each process may do, as roles and bindings."""

from collections.abc import Iterable

from spinney.backends import Right, SchedulerBackend
from spinney.backends.profiles import ALWAYS_ENABLED
from spinney.cli.installing import computed, rights
from spinney.cli.installing.computed import NAMESPACE
from spinney.cli.installing.description import Condition, Description, Each, Value, When, no
from spinney.cli.installing.processes import COSCHEDULER, GROUPER, OPERATOR, PROCESSES, SCHEDULER, labels, metadata
from spinney.grouping.loading import built_in
from spinney.grouping.rules import Rule, RuleSet

_RBAC = "rbac.authorization.k8s.io"


def roles(backends: Iterable[type[SchedulerBackend]]) -> list[Description]:
    """Return the roles of every process; the operator's have the rights of these backends, where they are enabled."""
    rules = {
        OPERATOR: [
            *rights.rules(rights.OPERATOR),
            *_when(computed.STARTUP_ORDER, [rights.TOKENS]),
            *_when(computed.MNNVL, [rights.MNNVL]),
            *_backends(backends),
        ],
        SCHEDULER: [
            *rights.rules(rights.SCHEDULER),
            *_when(computed.ASKS_FOR_NODES, rights.PROVISIONING),
            *(rule for kind, granted in rights.QUEUED.items() for rule in _when(computed.queues_kind(kind), granted)),
        ],
        COSCHEDULER: rights.rules(rights.COSCHEDULER),
        GROUPER: [
            *rights.rules(rights.GROUPER),
            *_when(computed.TELLS_AT_CREATION, rights.TELLING),
            *_kinds(),
            *_backends(each for each in backends if each.name != ALWAYS_ENABLED),
        ],
    }
    own = {process.name: _one(rights.LEASE, process.name) for process in PROCESSES}
    own[OPERATOR] = [
        *(When(computed.ELECTS, rule) for rule in _one(rights.LEASE, computed.OPERATOR_LEASE)),
        *(When(no(computed.OWN_CERTIFICATE), rule) for rule in _one(rights.CERTIFICATE, computed.WEBHOOK_SECRET)),
    ]
    certificate = _one(rights.CERTIFICATE, computed.GROUPER_WEBHOOK_SECRET)
    own[GROUPER] += [When(computed.TELLS_AT_CREATION, rule) for rule in certificate]
    return [
        When(process.condition, each)
        for process in PROCESSES
        for each in _of(
            process.name,
            [*rules[process.name], Each(f"{process.command}.extraRules")],
            own[process.name],
        )
    ]


def _backends(backends: Iterable[type[SchedulerBackend]]) -> list[Description]:
    """Return the rules of backends, each there where its profile is enabled."""
    return [
        rule for backend in backends for rule in _when(computed.profile(backend.name, *backend.aliases), backend.rights)
    ]


def _kinds() -> list[Description]:
    """Return the rules to read what the grouper's configuration makes it read: kinds of ours that are not left out."""
    ours = built_in()
    defaults = "grouper.config.kindDefaultsConfigMap"
    (read_defaults,) = rights.rules([rights.CONFIG_MAPS])
    found = [
        *_when(Value("grouper.config.namespaceLabels"), [rights.NAMESPACES]),
        When(Value(defaults), {**read_defaults, "resourceNames": [Value(f"{defaults}.name")]}),
    ]
    for kind in sorted(ours.watched()):
        only = RuleSet.of([Rule(kind=kind, resource=ours.plural_of(kind))])
        found += _when(computed.has_rule(kind), rights.kind_rights(only))
    return found


def _when(condition: Condition, granted: Iterable[Right]) -> list[Description]:
    return [When(condition, rule) for rule in rights.rules(granted)]


def _one(granted: Iterable[Right], name: Description) -> list[Description]:
    """Return rules to make an object, which cannot be limited to a name, and to keep the one of this name."""
    making, keeping = rights.rules(granted)
    return [making, {**keeping, "resourceNames": [name]}]


def _of(name: str, cluster: list[Description], own: list[Description]) -> list[Description]:
    here = metadata(name)
    everywhere = {"name": name, "labels": labels(name)}
    return [
        {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": everywhere, "rules": cluster},
        _binding("ClusterRole", name, everywhere),
        {"apiVersion": f"{_RBAC}/v1", "kind": "Role", "metadata": here, "rules": own},
        _binding("Role", name, here),
    ]


def _binding(kind: str, name: str, about: Description) -> Description:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": f"{kind}Binding",
        "metadata": about,
        "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}],
    }
