"""How an embedded server is set up."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Literal

AuthorizationMode = Literal["AlwaysAllow", "RBAC"]
GangVersion = Literal["v1beta1", "v1alpha3", "v1alpha2", "v1alpha1"]

_GANGS_OF: Mapping[str, tuple[GangVersion, ...]] = {
    "1.37": ("v1beta1", "v1alpha3"),
    "1.36": ("v1alpha2",),
    "1.35": ("v1alpha1",),
}


@dataclass(frozen=True, kw_only=True)
class ServerOptions:
    """Set-up of an embedded server. ``kubernetes_version`` (a minor, such as ``1.36``) chooses the gang API served."""

    kubernetes_version: str = "1.37"
    gang_versions: tuple[GangVersion, ...] | None = None  # overrides what the version implies; empty: none served
    history: int = 8192  # events kept per collection for watchers to resume from
    watch_timeout: timedelta = timedelta(minutes=30)
    bookmark_interval: timedelta = timedelta(minutes=1)
    event_ttl: timedelta = timedelta(hours=1)
    data_directory: Path | None = None  # None: nothing outlives the process
    authorization: AuthorizationMode = "AlwaysAllow"  # or by roles, with the roles every cluster begins with
    track_all_managers: bool = False  # record managedFields from the first write, not from the first apply
    inert: Mapping[str, str] = field(default_factory=dict)  # "cronjobs.batch" -> what to say when one is created
    service_addresses: Mapping[str, str] = field(default_factory=dict)  # "namespace/name" -> "host:port" for webhooks

    def __post_init__(self) -> None:
        if self.kubernetes_version not in _GANGS_OF:
            known = ", ".join(sorted(_GANGS_OF))
            raise ValueError(f"kubernetes_version is {self.kubernetes_version!r}; the server can play {known}")

    @property
    def gangs(self) -> tuple[GangVersion, ...]:
        """The generations of the native gang API that are served; the first is stored."""
        return _GANGS_OF[self.kubernetes_version] if self.gang_versions is None else self.gang_versions
