"""Reading kubeconfig files, merging them, and choosing a context.

Of several files the first to name something wins, be it the current context, a cluster, a user or a context; a file of
the list that does not exist is passed over. Relative paths are relative to the file they stand in.
"""

import base64
import binascii
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml

from spinney.api import yaml_text
from spinney.kube.errors import ConfigurationError

EXEC_EXTENSION = "client.authentication.k8s.io/exec"


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """Base of the parts of a kubeconfig, which spells its fields with hyphens, mostly."""


class NamedExtension(_Part, frozen=True, kw_only=True):
    """Something another tool keeps in the file."""

    name: str
    extension: Any = None


class ClusterEntry(_Part, frozen=True, kw_only=True):
    """Where an API server is, and how to know that it is the right one."""

    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    disable_compression: bool = False
    extensions: tuple[NamedExtension, ...] | None = None


class ExecVariable(msgspec.Struct, frozen=True, kw_only=True):
    """An environment variable of a credential plugin."""

    name: str
    value: str


class ExecConfig(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A command that prints credentials."""

    command: str
    api_version: str = ""
    args: tuple[str, ...] | None = None
    env: tuple[ExecVariable, ...] | None = None
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


class UserEntry(_Part, frozen=True, kw_only=True):
    """How to say who we are."""

    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    username: str = ""
    password: str = ""
    impersonate: str = msgspec.field(default="", name="as")
    impersonate_uid: str = msgspec.field(default="", name="as-uid")
    impersonate_groups: tuple[str, ...] | None = msgspec.field(default=None, name="as-groups")
    exec: ExecConfig | None = None
    auth_provider: Any = None


class ContextEntry(_Part, frozen=True, kw_only=True):
    """A user on a cluster, and the namespace to start in."""

    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _NamedCluster(_Part, frozen=True, kw_only=True):
    name: str
    cluster: ClusterEntry | None = None


class _NamedUser(_Part, frozen=True, kw_only=True):
    name: str
    user: UserEntry | None = None


class _NamedContext(_Part, frozen=True, kw_only=True):
    name: str
    context: ContextEntry | None = None


class _File(_Part, frozen=True, kw_only=True):
    current_context: str = ""
    clusters: tuple[_NamedCluster, ...] | None = None
    users: tuple[_NamedUser, ...] | None = None
    contexts: tuple[_NamedContext, ...] | None = None


class Selection(msgspec.Struct, frozen=True):
    """What a context comes to: where to connect, as whom, and the namespace to start in."""

    context: str
    cluster: ClusterEntry
    user: UserEntry
    namespace: str


class Kubeconfig(msgspec.Struct, frozen=True):
    """One or several kubeconfig files, merged; paths inside are absolute."""

    current_context: str
    clusters: Mapping[str, ClusterEntry]
    users: Mapping[str, UserEntry]
    contexts: Mapping[str, ContextEntry]
    files: str
    """The names of the files, for messages."""

    def select(self, context: str | None = None) -> Selection:
        """Return what a context comes to; without a name, the current one."""
        if not self.contexts:
            raise ConfigurationError(
                f"kubeconfig {self.files} names no cluster, for it has no contexts; have it written anew by what made "
                "your cluster, or choose another kubeconfig"
            )
        name = context or self.current_context
        if not name:
            raise ConfigurationError(
                f"kubeconfig {self.files} has no current-context; name one of its contexts: "
                f"{', '.join(sorted(self.contexts))}"
            )
        chosen = self._named(self.contexts, name, "context")
        cluster = self._named(self.clusters, chosen.cluster, f"cluster of context {name!r}")
        user = self._named(self.users, chosen.user, f"user of context {name!r}") if chosen.user else UserEntry()
        if not cluster.server:
            raise ConfigurationError(
                f"cluster {chosen.cluster!r} of kubeconfig {self.files} has no server; expected a URL"
            )
        return Selection(name, cluster, user, chosen.namespace or "default")

    def _named(self, parts: Mapping[str, Any], name: str, what: str) -> Any:
        if name not in parts:
            defined = ", ".join(sorted(parts)) or "(none)"
            raise ConfigurationError(
                f"the {what} is {name!r}, which kubeconfig {self.files} does not define; it has: {defined}"
            )
        return parts[name]


def kubeconfig_paths(environ: Mapping[str, str] = os.environ) -> Sequence[Path]:
    """Return the files kubectl would read: those in ``KUBECONFIG``, else ``~/.kube/config``."""
    listed = [Path(part) for part in environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    return listed or [in_home("~/.kube/config")]


def in_home(path: Path | str) -> Path:
    """Return a path with the home directory for ``~``; as it is for a user who has none, such as a container's."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def read_kubeconfig(paths: Iterable[Path]) -> Kubeconfig:
    """Read and merge kubeconfig files; at least one must exist."""
    paths = list(paths)
    found = [path for path in paths if path.is_file()]
    files = [(_read(path), path.resolve().parent) for path in found]
    if not files:
        raise ConfigurationError(
            f"no kubeconfig found at {', '.join(map(str, paths))}; set KUBECONFIG or pass the path of one"
        )
    clusters: dict[str, ClusterEntry] = {}
    users: dict[str, UserEntry] = {}
    contexts: dict[str, ContextEntry] = {}
    for file, directory in files:
        for cluster in file.clusters or ():
            clusters.setdefault(cluster.name, _anchored_cluster(cluster.cluster or ClusterEntry(), directory))
        for user in file.users or ():
            users.setdefault(user.name, _anchored_user(user.user or UserEntry(), directory))
        for context in file.contexts or ():
            contexts.setdefault(context.name, context.context or ContextEntry())
    current = next((file.current_context for file, _ in files if file.current_context), "")
    return Kubeconfig(current, clusters, users, contexts, ", ".join(map(str, found)))


def data_or_file(data: str, path: str, *, what: str) -> bytes | None:
    """Return PEM given in line as base64, or in a file; None when neither is given."""
    if data:
        try:
            return base64.b64decode(data, validate=True)
        except binascii.Error as problem:
            raise ConfigurationError(f"{what}-data of the kubeconfig is not base64: {problem}") from problem
    if path:
        try:
            return Path(path).read_bytes()
        except OSError as problem:
            raise ConfigurationError(f"{what} {path} of the kubeconfig cannot be read: {problem.strerror}") from problem
    return None


def _read(path: Path) -> _File:
    try:
        content = yaml_text.load(path.read_text(encoding="utf-8")) or {}
        return msgspec.convert(content, type=_File)
    except (yaml.YAMLError, msgspec.ValidationError, UnicodeDecodeError) as problem:
        raise ConfigurationError(f"kubeconfig {path} cannot be understood: {problem}") from problem
    except OSError as problem:
        raise ConfigurationError(f"kubeconfig {path} cannot be read: {problem.strerror}") from problem


def _anchored_cluster(cluster: ClusterEntry, directory: Path) -> ClusterEntry:
    authority = _anchored(cluster.certificate_authority, directory)
    return msgspec.structs.replace(cluster, certificate_authority=authority)


def _anchored_user(user: UserEntry, directory: Path) -> UserEntry:
    plugin = user.exec
    if plugin is not None and os.sep in plugin.command:
        plugin = msgspec.structs.replace(plugin, command=_anchored(plugin.command, directory))
    return msgspec.structs.replace(
        user,
        client_certificate=_anchored(user.client_certificate, directory),
        client_key=_anchored(user.client_key, directory),
        token_file=_anchored(user.token_file, directory),
        exec=plugin,
    )


def _anchored(path: str, directory: Path) -> str:
    """Return a path that stands in a file of ``directory`` as an absolute one."""
    return str(directory / path) if path else ""
