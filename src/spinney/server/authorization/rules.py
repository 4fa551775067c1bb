"""The algebra of policy rules: what a rule allows, and whether some rules cover another."""

from collections.abc import Iterable, Iterator
from itertools import product

from spinney.api.rbac import PolicyRule
from spinney.server.authorization.action import AccessRequest

_ALL = "*"


def allows(rule: PolicyRule, wanted: AccessRequest) -> bool:
    """Tell whether one rule allows an action."""
    if not _has(rule.verbs, wanted.verb):
        return False
    if wanted.path:
        return any(_url_matches(each, wanted.path) for each in rule.non_resource_urls)
    return (
        _has(rule.api_groups, wanted.group)
        and _resource_matches(rule.resources, wanted.resource, wanted.subresource)
        and (not rule.resource_names or wanted.name in rule.resource_names)
    )


def uncovered(wanted: Iterable[PolicyRule], held: Iterable[PolicyRule]) -> list[PolicyRule]:
    """Return the smallest parts of the wanted rules that no held rule covers."""
    owned = list(held)
    return [part for rule in wanted for part in _parts(rule) if not any(_covers(each, part) for each in owned)]


def described(rules: Iterable[PolicyRule]) -> str:
    """Return rules as an error names them, one per line; verbs on the same thing stand together."""
    merged: dict[tuple[tuple[str, ...], ...], list[str]] = {}
    for rule in rules:
        about = (rule.api_groups, rule.resources, rule.non_resource_urls, rule.resource_names)
        verbs = merged.setdefault(about, [])
        verbs += [verb for verb in rule.verbs if verb not in verbs]
    lines = []
    for values_of, verbs in merged.items():
        named = zip(("APIGroups", "Resources", "NonResourceURLs", "ResourceNames"), values_of, strict=True)
        parts = [f"{name}:{_listed(values)}" for name, values in named if values]
        lines.append("{" + ", ".join([*parts, f"Verbs:{_listed(verbs)}"]) + "}")
    return "\n".join(sorted(lines))


def _listed(values: Iterable[str]) -> str:
    return "[" + " ".join(f'"{value}"' for value in values) + "]"


def _parts(rule: PolicyRule) -> Iterator[PolicyRule]:
    for verb, url in product(rule.verbs, rule.non_resource_urls):
        yield PolicyRule(verbs=(verb,), non_resource_urls=(url,))
    names: list[tuple[str, ...]] = [(name,) for name in rule.resource_names] or [()]
    for group, resource, verb, name in product(rule.api_groups, rule.resources, rule.verbs, names):
        yield PolicyRule(verbs=(verb,), api_groups=(group,), resources=(resource,), resource_names=name)


def _covers(held: PolicyRule, part: PolicyRule) -> bool:
    if not all(_has(held.verbs, verb) for verb in part.verbs):
        return False
    if part.non_resource_urls:
        return all(any(_url_matches(each, url) for each in held.non_resource_urls) for url in part.non_resource_urls)
    if not all(_has(held.api_groups, group) for group in part.api_groups):
        return False
    if held.resource_names and (
        not part.resource_names or not all(each in held.resource_names for each in part.resource_names)
    ):
        return False
    return all(_resource_matches(held.resources, *_split(each)) for each in part.resources)


def _split(resource: str) -> tuple[str, str]:
    name, _, subresource = resource.partition("/")
    return name, subresource


def _has(values: Iterable[str], wanted: str) -> bool:
    return any(value in (_ALL, wanted) for value in values)


def _resource_matches(resources: Iterable[str], resource: str, subresource: str) -> bool:
    full = f"{resource}/{subresource}" if subresource else resource
    return any(each in (_ALL, full) or (subresource and each == f"*/{subresource}") for each in resources)


def _url_matches(pattern: str, path: str) -> bool:
    return pattern in (_ALL, path) or (pattern.endswith(_ALL) and path.startswith(pattern.rstrip(_ALL)))
