"""Which proxy the environment wants for a URL: ``HTTPS_PROXY``, ``HTTP_PROXY``, ``ALL_PROXY`` and ``NO_PROXY``.

``NO_PROXY`` is read as the Go tools of a cluster read it: host names match themselves and their subdomains, a leading
dot only the subdomains, addresses match themselves, and networks in CIDR form match what is inside; any of them but a
network may have a port. Nor do they use a proxy for this machine itself.
"""

from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit


def proxy_for(url: str, environ: Mapping[str, str]) -> str | None:
    """Return the proxy to use for ``url``, or None to connect directly."""
    parts = urlsplit(url)
    proxy = _variable(environ, f"{parts.scheme}_proxy") or _variable(environ, "all_proxy")
    if not proxy or not parts.hostname or _is_this_machine(parts.hostname):
        return None
    port = parts.port or (443 if parts.scheme == "https" else 80)
    exceptions = _variable(environ, "no_proxy").split(",")
    if any(_excepts(exception.strip().lower(), parts.hostname, port) for exception in exceptions):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _variable(environ: Mapping[str, str], name: str) -> str:
    return environ.get(name) or environ.get(name.upper()) or ""


def _is_this_machine(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _excepts(exception: str, host: str, port: int) -> bool:
    if not exception:
        return False
    if exception == "*":
        return True
    if "/" in exception:
        return _is_inside(host, exception)
    name, _, wanted_port = exception.rpartition(":") if exception.count(":") == 1 else (exception, "", "")
    if wanted_port and wanted_port != str(port):
        return False
    name = name.removeprefix("*")
    return host.endswith(name) if name.startswith(".") else host == name or host.endswith(f".{name}")


def _is_inside(host: str, network: str) -> bool:
    try:
        return ip_address(host) in ip_network(network, strict=False)
    except ValueError:
        return False
