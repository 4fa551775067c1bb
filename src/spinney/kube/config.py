"""From configuration to a connection: kubeconfig files, or the service account of the pod we run in."""

import base64
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from spinney.api.struct import JSON
from spinney.kube.credentials import (
    ClientCertificateFiles,
    Credential,
    CredentialSource,
    FixedCredential,
    Header,
    TokenFile,
    basic,
    bearer,
)
from spinney.kube.errors import ConfigurationError
from spinney.kube.exec_plugin import ExecPlugin
from spinney.kube.http import Endpoint, HttpTransport
from spinney.kube.kubeconfig import (
    EXEC_EXTENSION,
    ClusterEntry,
    Selection,
    UserEntry,
    data_or_file,
    kubeconfig_paths,
    read_kubeconfig,
)
from spinney.kube.tls import ClientCertificate
from spinney.kube.wire.proxies import proxy_for
from spinney.runtime import Runtime

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def load_kubeconfig(
    paths: Path | str | Iterable[Path | str] | None = None,
    context: str | None = None,
    *,
    runtime: Runtime,
    environ: Mapping[str, str] = os.environ,
) -> HttpTransport:
    """Return a transport for a context of one or several kubeconfig files; by default those kubectl would read."""
    return connect(select_context(paths, context, environ=environ), runtime=runtime, environ=environ)


def select_context(
    paths: Path | str | Iterable[Path | str] | None = None,
    context: str | None = None,
    *,
    environ: Mapping[str, str] = os.environ,
) -> Selection:
    """Return what a context of the kubeconfig comes to, among it the namespace to start in."""
    if paths is None:
        files = list(kubeconfig_paths(environ))
    elif isinstance(paths, Path | str):
        files = [Path(paths)]
    else:
        files = [Path(path) for path in paths]
    return read_kubeconfig(files).select(context)


def connect(selection: Selection, *, runtime: Runtime, environ: Mapping[str, str] = os.environ) -> HttpTransport:
    """Return a transport to the cluster of a selected context, as its user."""
    cluster = selection.cluster
    authorities = data_or_file(
        cluster.certificate_authority_data, cluster.certificate_authority, what="certificate-authority"
    )
    if authorities is not None and cluster.insecure_skip_tls_verify:
        raise ConfigurationError(
            f"the cluster of context {selection.context!r} has a certificate authority and insecure-skip-tls-verify; "
            "remove one of them"
        )
    endpoint = Endpoint(
        url=cluster.server,
        authorities=authorities,
        authorities_file=None if cluster.certificate_authority_data else _file(cluster.certificate_authority),
        insecure=cluster.insecure_skip_tls_verify,
        server_name=cluster.tls_server_name or None,
        proxy=cluster.proxy_url or proxy_for(cluster.server, environ),
        compression=not cluster.disable_compression,
    )
    _check_proxy(endpoint.proxy)
    credentials = _credentials(selection, authorities, runtime, environ)
    return HttpTransport(endpoint, credentials, executor=runtime.executor)


def in_cluster(
    *, runtime: Runtime, environ: Mapping[str, str] = os.environ, directory: Path = SERVICE_ACCOUNT
) -> HttpTransport:
    """Return a transport for the pod's service account; token and authority are read again as they are rotated."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise ConfigurationError("not in a cluster: KUBERNETES_SERVICE_HOST is not set; pass a kubeconfig instead")
    try:
        authorities = (directory / "ca.crt").read_bytes()
    except OSError as problem:
        raise ConfigurationError(
            f"{directory / 'ca.crt'} cannot be read: {problem.strerror}; is the service account token mounted?"
        ) from problem
    url = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    return HttpTransport(
        Endpoint(
            url=url,
            authorities=authorities,
            authorities_file=directory / "ca.crt",
            proxy=proxy_for(url, environ),
        ),
        TokenFile(directory / "token", runtime),
        executor=runtime.executor,
    )


def in_cluster_namespace() -> str:
    """Return the namespace this pod runs in."""
    return (SERVICE_ACCOUNT / "namespace").read_text(encoding="utf-8").strip()


def namespace_in_cluster() -> str | None:
    """Return the namespace this pod runs in, ``None`` for a process that runs in no pod."""
    try:
        return in_cluster_namespace()
    except FileNotFoundError:
        return None


def _credentials(
    selection: Selection, authorities: bytes | None, runtime: Runtime, environ: Mapping[str, str]
) -> CredentialSource:
    user = selection.user
    if user.client_certificate_data or not user.client_certificate:
        return _identified(
            selection, Credential(_impersonation(user), _certificate(user)), authorities, runtime, environ
        )
    behind = _identified(selection, Credential(_impersonation(user)), authorities, runtime, environ)
    return ClientCertificateFiles(lambda: _certificate(user), behind, runtime)


def _identified(
    selection: Selection, base: Credential, authorities: bytes | None, runtime: Runtime, environ: Mapping[str, str]
) -> CredentialSource:
    """Return what adds to ``base`` who the user is."""
    user = selection.user
    if user.auth_provider is not None and not (user.exec or user.token or user.token_file):
        raise ConfigurationError(
            f"the user of context {selection.context!r} has an auth-provider, which Kubernetes has removed; "
            "use an exec plugin"
        )
    if user.exec is not None:
        described = _described(selection.cluster, authorities)
        return ExecPlugin(user.exec, runtime, cluster=described, base=base, environ=environ)
    if user.token_file:
        return TokenFile(Path(user.token_file), runtime, base=base)
    if user.token:
        return FixedCredential(base.carrying(bearer(user.token)))
    if user.username:
        return FixedCredential(base.carrying(basic(user.username, user.password)))
    return FixedCredential(base)


def _file(path: str) -> Path | None:
    return Path(path) if path else None


def _certificate(user: UserEntry) -> ClientCertificate | None:
    certificate = data_or_file(user.client_certificate_data, user.client_certificate, what="client-certificate")
    key = data_or_file(user.client_key_data, user.client_key, what="client-key")
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        missing = "client-certificate" if certificate is None else "client-key"
        raise ConfigurationError(f"the user of the kubeconfig has no {missing}; certificate and key go together")
    return ClientCertificate(certificate, key)


def _impersonation(user: UserEntry) -> tuple[Header, ...]:
    headers = [("impersonate-user", user.impersonate), ("impersonate-uid", user.impersonate_uid)]
    headers += [("impersonate-group", group) for group in user.impersonate_groups or ()]
    return tuple((name, value) for name, value in headers if value)


def _described(cluster: ClusterEntry, authorities: bytes | None) -> JSON:
    """Return the cluster as a credential plugin is told of it."""
    extension = next((e.extension for e in cluster.extensions or () if e.name == EXEC_EXTENSION), None)
    fields = {
        "server": cluster.server,
        "tls-server-name": cluster.tls_server_name,
        "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
        "certificate-authority-data": base64.b64encode(authorities).decode() if authorities else "",
        "proxy-url": cluster.proxy_url,
        "config": extension,
    }
    return {name: value for name, value in fields.items() if value}


def _check_proxy(proxy: str | None) -> None:
    if proxy is not None and urlsplit(proxy).scheme not in ("http", "https"):
        raise ConfigurationError(f"proxy {proxy!r} cannot be used: only http and https proxies are supported")
