"""Credentials from a plugin: a command that prints an ``ExecCredential``.

The command is run when there is no credential yet, when the one it gave has expired, and after a 401; one run serves
all requests that wait. Versions ``v1`` and ``v1beta1`` of ``client.authentication.k8s.io`` are spoken.
"""

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Mapping
from datetime import datetime

import msgspec

from spinney.api.struct import JSON, encode
from spinney.kube.credentials import Credential, bearer
from spinney.kube.errors import ConfigurationError
from spinney.kube.kubeconfig import ExecConfig
from spinney.kube.tls import ClientCertificate
from spinney.runtime import Runtime

VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")

PLUGIN_SECONDS = 120.0


class _Status(msgspec.Struct, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None


class _ExecCredential(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    status: _Status | None = None


class ExecPlugin:
    """Runs one user's credential plugin; fills the ``CredentialSource`` protocol. Mutable: it holds the last answer."""

    def __init__(
        self,
        config: ExecConfig,
        runtime: Runtime,
        *,
        cluster: JSON | None = None,
        base: Credential = Credential(),  # noqa: B008 - a frozen value
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        if config.api_version not in VERSIONS:
            raise _unusable(
                config, f"asks for apiVersion {config.api_version!r}; supported are {' and '.join(VERSIONS)}"
            )
        self._config = config
        self._runtime = runtime
        self._cluster = cluster
        self._base = base
        self._environ = environ
        self._running = asyncio.Lock()
        self._credential: Credential | None = None
        self._expires: datetime | None = None

    async def credential(self) -> Credential:
        """Return the plugin's last answer, or a new one if that has expired."""
        async with self._running:
            expired = self._expires is not None and self._expires <= self._runtime.clock.now()
            if self._credential is None or expired:
                status = _status(self._config, await self._run())
                self._credential = _credential(self._config, status, self._base)
                self._expires = status.expiration_timestamp
            return self._credential

    def reject(self, credential: Credential) -> bool:
        """Run the plugin again before the next request, unless that has happened already."""
        if self._credential == credential:
            self._credential = None
        return True

    async def _run(self) -> bytes:
        config = self._config
        interactive = self._is_interactive()
        spec: JSON = {"interactive": interactive}
        if config.provide_cluster_info and self._cluster is not None:
            spec["cluster"] = self._cluster
        info = {"apiVersion": config.api_version, "kind": "ExecCredential", "spec": spec}
        environ = {
            **self._environ,
            **{variable.name: variable.value for variable in config.env or ()},
            "KUBERNETES_EXEC_INFO": encode(info).decode(),
        }
        try:
            process = await asyncio.create_subprocess_exec(
                config.command,
                *(config.args or ()),
                env=environ,
                stdin=None if interactive else DEVNULL,
                stdout=PIPE,
                stderr=None if interactive else PIPE,
            )
        except OSError as problem:
            hint = f"\n{config.install_hint}" if config.install_hint else ""
            raise _unusable(config, f"cannot be run: {problem.strerror}{hint}") from problem
        try:
            async with asyncio.timeout(None if interactive else PLUGIN_SECONDS):
                out, err = await process.communicate()
        except TimeoutError as problem:
            raise _unusable(config, f"did not answer within {PLUGIN_SECONDS:.0f} s") from problem
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            said = (err or b"").decode("utf-8", "replace").strip()[-500:]
            raise _unusable(config, f"failed with exit code {process.returncode}: {said}")
        return out

    def _is_interactive(self) -> bool:
        available = sys.stdin is not None and sys.stdin.isatty()
        mode = self._config.interactive_mode or "IfAvailable"
        if mode == "Always" and not available:
            raise _unusable(
                self._config,
                "has interactiveMode Always, but standard input is not a terminal; log in from a terminal first, or "
                "use another user",
            )
        return available and mode != "Never"


def _status(config: ExecConfig, answer: bytes) -> _Status:
    try:
        credential = msgspec.json.decode(answer, type=_ExecCredential)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise _unusable(config, f"did not print an ExecCredential: {problem}") from problem
    if credential.kind != "ExecCredential" or credential.api_version != config.api_version:
        printed = f"{credential.api_version} {credential.kind}"
        raise _unusable(config, f"printed {printed}; expected {config.api_version} ExecCredential")
    if credential.status is None:
        raise _unusable(config, "printed an ExecCredential without status")
    return credential.status


def _credential(config: ExecConfig, status: _Status, base: Credential) -> Credential:
    if bool(status.client_certificate_data) != bool(status.client_key_data):
        raise _unusable(config, "printed one of clientCertificateData and clientKeyData; expected both or neither")
    if not status.token and not status.client_certificate_data:
        raise _unusable(config, "printed neither a token nor a client certificate")
    if status.client_certificate_data:
        certificate = ClientCertificate(status.client_certificate_data.encode(), status.client_key_data.encode())
        base = Credential(base.headers, certificate)
    return base.carrying(bearer(status.token)) if status.token else base


def _unusable(config: ExecConfig, why: str) -> ConfigurationError:
    return ConfigurationError(f"credential plugin {config.command!r} {why}")
