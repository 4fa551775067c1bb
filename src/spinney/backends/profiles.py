"""The ``scheduler`` block of the operator's configuration: which backends are enabled, and which is the default.

Both documents' forms are read: ``profiles[].default: true`` and ``defaultProfileName``. The kube backend is always
enabled, listed or not, and is the default when nothing else is said. ``kube-scheduler`` and ``default-scheduler`` are
one backend here (in a pod spec only the latter is valid).
"""

from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from spinney.api.documents import Document, DocumentProblem, InvalidDocument, Step, decode, nearest
from spinney.api.struct import JSON, Struct
from spinney.backends.catalogue import Catalogue, UnusableBackend

ALWAYS_ENABLED = "default-scheduler"


class SchedulerProfile(Struct, frozen=True, kw_only=True):
    """One enabled backend, as written."""

    name: str
    """The backend: `kube-scheduler`, `kai-scheduler`, `coscheduling`, `volcano`, `spinney-scheduler`, or one of a
    third party."""
    config: JSON | None = None
    """Settings of the backend; what each takes is below."""
    default: bool = False
    """Workloads that name no scheduler get this one; at most one profile says so."""


class SchedulerConfiguration(Struct, frozen=True, kw_only=True):
    """The ``scheduler`` block, as written."""

    profiles: tuple[SchedulerProfile, ...] = ()
    """The enabled backends; kube-scheduler is enabled even if it is not listed."""
    default_profile_name: str | None = None
    """Another way to say which profile is the default; absent: kube-scheduler."""


@dataclass(frozen=True)
class Profile:
    """One enabled backend: its canonical name, its decoded configuration, and where it stands."""

    name: str
    config: Any = None
    where: str = "not listed"


@dataclass(frozen=True)
class Profiles:
    """The enabled backends in the order listed, and the default among them."""

    enabled: tuple[Profile, ...] = (Profile(ALWAYS_ENABLED),)
    default: str = ALWAYS_ENABLED

    def names(self) -> list[str]:
        """Return the names of the enabled backends, in order."""
        return sorted(profile.name for profile in self.enabled)

    def without_native_gangs(self) -> "Profiles":
        """Return the same without kube-scheduler's settings, for who has no use for its gangs and no right to try."""
        plain = (replace(each, config=None) if each.name == ALWAYS_ENABLED else each for each in self.enabled)
        return replace(self, enabled=tuple(plain))


@dataclass
class _Findings:
    """What resolving a scheduler block has brought up so far. Mutable."""

    document: Document
    problems: list[DocumentProblem] = field(default_factory=list)

    def report(self, path: tuple[Step, ...], message: str) -> None:
        self.problems.append(self.document.problem(path, message))


def resolve(written: SchedulerConfiguration, catalogue: Catalogue, document: Document) -> Profiles:
    """Return the profiles in force, or raise :class:`InvalidDocument` with everything that is wrong.

    ``document`` is the scheduler block itself.
    """
    findings = _Findings(document)
    enabled: dict[str, Profile] = {}
    for index, profile in enumerate(written.profiles):
        resolved = _resolve_one(profile, index, catalogue, enabled, findings)
        if resolved is not None:
            enabled[resolved.name] = resolved
    if ALWAYS_ENABLED not in enabled:
        try:
            enabled[ALWAYS_ENABLED] = Profile(ALWAYS_ENABLED, _default_config(catalogue))
        except UnusableBackend as error:
            findings.report(("profiles",), f"{error} ({ALWAYS_ENABLED!r} is enabled whether it is listed or not)")
    default = _default(written, catalogue, enabled, findings)
    if findings.problems:
        raise InvalidDocument(findings.problems)
    return Profiles(tuple(enabled.values()), default)


def _resolve_one(
    profile: SchedulerProfile, index: int, catalogue: Catalogue, enabled: dict[str, Profile], findings: _Findings
) -> Profile | None:
    path = ("profiles", index)
    line = findings.document.line(*path, "name")
    try:
        backend = catalogue.get(profile.name)
    except UnusableBackend as error:
        findings.report((*path, "name"), str(error))
        return None
    if backend is None:
        findings.report(
            (*path, "name"),
            f"no backend is called {profile.name!r}; {nearest(profile.name, catalogue.names())} "
            "(a third-party backend must be installed beside the operator)",
        )
        return None
    if backend.name in enabled:
        findings.report(
            (*path, "name"),
            f"backend {backend.name!r} is already listed in {enabled[backend.name].where}; remove one of the two",
        )
        return None
    config: Any = None
    if backend.config_type is not None:
        try:
            config = decode(backend.config_type, findings.document.at(*path, "config"))
        except InvalidDocument as error:
            findings.problems.extend(error.problems)
    elif profile.config:
        findings.report((*path, "config"), f"backend {backend.name!r} takes no configuration; remove it")
    return Profile(backend.name, config, f"line {line}")


def _default(
    written: SchedulerConfiguration, catalogue: Catalogue, enabled: dict[str, Profile], findings: _Findings
) -> str:
    marked = [
        (index, catalogue.canonical(profile.name)) for index, profile in enumerate(written.profiles) if profile.default
    ]
    for index, name in marked[1:]:
        first = findings.document.line("profiles", marked[0][0], "default")
        findings.report(
            ("profiles", index, "default"),
            f"{name!r} is marked as the default, and so is {marked[0][1]!r} in line {first}; only one profile can be",
        )
    named = catalogue.canonical(written.default_profile_name) if written.default_profile_name else None
    if named is not None and named not in enabled:
        findings.report(
            ("defaultProfileName",),
            f"profile {written.default_profile_name!r} is not enabled; enabled are {', '.join(sorted(enabled))}",
        )
    if named is not None and marked and marked[0][1] != named:
        line = findings.document.line("profiles", marked[0][0], "default")
        findings.report(
            ("defaultProfileName",), f"names {named!r}, but line {line} marks {marked[0][1]!r} as the default"
        )
    return named or (marked[0][1] if marked else ALWAYS_ENABLED)


def _default_config(catalogue: Catalogue) -> msgspec.Struct | None:
    backend = catalogue.get(ALWAYS_ENABLED)
    return backend.config_type() if backend is not None and backend.config_type is not None else None
