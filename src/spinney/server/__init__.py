"""The embedded API server: a Kubernetes API in a Python process, for tests and simulations.

:class:`ApiServer` answers requests without any transport, :class:`HttpServer` puts it on a port with TLS and a
kubeconfig; ``docs/embedded-server.md`` shows both. What is named here is the public API. It is imported when it is
first asked for: whoever needs one rule of the server does not wait for all.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from spinney.server.exchange.message import Request, Response
    from spinney.server.exchange.user import User
    from spinney.server.http.serving import HttpServer, Listening
    from spinney.server.options import ServerOptions
    from spinney.server.server import ApiServer

__all__ = ["ApiServer", "HttpServer", "Listening", "Request", "Response", "ServerOptions", "User"]

_HOMES: Final = {
    "ApiServer": "server",
    "HttpServer": "http.serving",
    "Listening": "http.serving",
    "Request": "exchange.message",
    "Response": "exchange.message",
    "ServerOptions": "options",
    "User": "exchange.user",
}

if find_spec("jsonschema_rs") is None:
    raise ModuleNotFoundError(
        "the embedded API server needs the package jsonschema-rs: pip install 'spinney[embedded]'", name=__name__
    )


def __getattr__(name: str) -> Any:
    """Import what is asked for from the module it lives in."""
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
