"""Warnings about a pod, or the template of one, that is accepted but will not do what its author expects."""

from collections.abc import Iterator, Mapping

from spinney.api.names import dns_label_faults
from spinney.api.quantity import Quantity
from spinney.api.struct import JSON

DEPRECATED_LABELS: Mapping[str, str] = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
}
_ANNOTATIONS = {
    "scheduler.alpha.kubernetes.io/critical-pod": 'v1.16+; use the "priorityClassName" field instead',
    "security.alpha.kubernetes.io/sysctls": 'v1.11+; use the "sysctls" field instead',
    "security.alpha.kubernetes.io/unsafe-sysctls": 'v1.11+; use the "sysctls" field instead',
    "seccomp.security.alpha.kubernetes.io/pod": 'v1.27+; use the "seccompProfile" field instead',
}
_VOLUMES = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
_TERMS = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
_NO_SELECTOR = "a null labelSelector results in matching no pod"


def pod_warnings(pod: JSON) -> list[str]:
    """Return what to tell about a new pod."""
    return [*name_warnings(pod, "the Pod's hostname"), *template_warnings(pod, "")]


def name_warnings(obj: JSON, use: str) -> list[str]:
    """Return what to tell about a name that becomes part of a host name."""
    name = obj["metadata"].get("name", "")
    if "." not in name and not (faults := dns_label_faults(name)):
        return []
    faults = ["must not contain dots"] if "." in name else faults
    what = f"metadata.name: this is used in {use}, which can result in surprising behavior"
    return [f"{what}; a DNS label is recommended: [{', '.join(faults)}]"]


def template_warnings(template: JSON, path: str) -> list[str]:
    """Return what to tell about a pod template; ``path`` is where it stands, with a dot at its end."""
    spec, annotations = template.get("spec") or {}, (template.get("metadata") or {}).get("annotations") or {}
    where = f"{path}spec"
    found = [
        f"{where}.nodeSelector[{name}]: {DEPRECATED_LABELS[name]}"
        for name in spec.get("nodeSelector") or ()
        if name in DEPRECATED_LABELS
    ]
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        at, key = f"{where}.topologySpreadConstraints[{index}]", constraint.get("topologyKey", "")
        if key in DEPRECATED_LABELS:
            found.append(f"{at}.topologyKey: {key} is {DEPRECATED_LABELS[key]}")
        if "labelSelector" not in constraint:
            found.append(f"{at}.labelSelector: {_NO_SELECTOR}")
    if annotations:
        found += [
            f"{path}metadata.annotations[{name}]: non-functional in {_ANNOTATIONS[name]}"
            for name in _ANNOTATIONS
            if name in annotations
        ]
    for index, volume in enumerate(spec.get("volumes") or ()):
        found += [f"{where}.volumes[{index}].{name}: {_VOLUMES[name]}" for name in volume if name in _VOLUMES]
    if len(spec.get("hostAliases") or ()) > 1:
        found += _repeated(spec["hostAliases"], "ip", f"{where}.hostAliases")
    if secrets := spec.get("imagePullSecrets"):
        found += _repeated(secrets, "name", f"{where}.imagePullSecrets")
        found += [
            f'{where}.imagePullSecrets[{index}].name: invalid empty name ""'
            for index, secret in enumerate(secrets)
            if not secret.get("name")
        ]
    found += _of_containers(spec, where)
    if affinity := spec.get("affinity"):
        found += _of_affinity(affinity, f"{where}.affinity")
    return found


def fractional(given: Mapping[str, object], names: tuple[str, ...], path: str) -> Iterator[str]:
    """Say which amounts of bytes are not whole."""
    for name in names:
        text = given.get(name)
        if isinstance(text, str) and text.endswith("m") and Quantity.parse(text).milli % 1000:
            yield f'{path}[{name}]: fractional byte value "{text}" is invalid, must be an integer'


def _of_containers(spec: JSON, where: str) -> Iterator[str]:
    placed = [
        (f"{where}.{field}[{index}]", container)
        for field in ("initContainers", "containers")
        for index, container in enumerate(spec.get(field) or ())
    ]
    for path, container in placed:
        if resources := container.get("resources"):
            for name in ("memory", "ephemeral-storage"):
                for field in ("limits", "requests"):
                    if given := resources.get(field):
                        yield from fractional(given, (name,), f"{path}.resources.{field}")
        if len(container.get("env") or ()) > 1:
            yield from _hidden(container["env"], f"{path}.env")
    ports = [
        (f"{path}.ports[{index}]", port)
        for path, container in placed
        for index, port in enumerate(container.get("ports") or ())
    ]
    if len(ports) > 1:
        yield from _clashing(ports)


def _hidden(variables: list[JSON], path: str) -> Iterator[str]:
    """Say which variables hide an earlier one that they do not build upon."""
    seen = set()
    for index, variable in enumerate(variables):
        name, value = variable.get("name", ""), variable.get("value", "")
        reference = f"$({name})"
        builds = reference in value and value != reference and "valueFrom" not in variable
        if name in seen and not builds:
            yield f'{path}[{index}]: hides previous definition of "{name}", which may be dropped when using apply'
        seen.add(name)


def _clashing(ports: list[tuple[str, JSON]]) -> Iterator[str]:
    """Say which ports stand twice, or overlap."""
    seen: dict[tuple[int, str], list[tuple[str, JSON]]] = {}
    for path, port in ports:
        others = seen.setdefault((port.get("containerPort", 0), port.get("protocol", "TCP")), [])
        for there, other in others:
            ours, theirs = (each.get("hostPort", 0) for each in (port, other))
            hosts = [each.get("hostIP", "") for each in (port, other)]
            if ours == theirs and hosts[0] == hosts[1]:
                yield f"{path}: duplicate port definition with {there}"
            elif not ours or not theirs:
                yield f"{path}: overlapping port definition with {there}"
            elif ours == theirs and (not hosts[0]) != (not hosts[1]):
                yield f"{path}: dangerously ambiguous port definition with {there}"
        others.append((path, port))
    named: dict[str, str] = {}
    for path, port in ports:
        name = port.get("name")
        if name and name in named:
            used = f"services and probes that select ports by name will use {named[name]}"
            yield f'{path}: duplicate port name "{name}" with {named[name]}, {used}'
        elif name:
            named[name] = path


def _of_affinity(affinity: JSON, where: str) -> Iterator[str]:
    for field in ("podAffinity", "podAntiAffinity"):
        required, preferred = ((affinity.get(field) or {}).get(name) or () for name in _TERMS)
        for index, term in enumerate(required):
            if "labelSelector" not in term:
                yield f"{where}.{field}.{_TERMS[0]}[{index}].labelSelector: {_NO_SELECTOR}"
        for index, weighted in enumerate(preferred):
            if "labelSelector" not in (weighted.get("podAffinityTerm") or {}):
                yield f"{where}.{field}.{_TERMS[1]}[{index}].podAffinityTerm.labelSelector: {_NO_SELECTOR}"


def _repeated(items: list[JSON], field: str, path: str) -> Iterator[str]:
    seen = set()
    for index, item in enumerate(items):
        value = item.get(field, "")
        if value in seen:
            yield f'{path}[{index}].{field}: duplicate {field} "{value}"'
        seen.add(value)
