"""The embedded API server: a Kubernetes API in a Python process, for tests and simulations.

:class:`ApiServer` answers requests without any transport, :class:`HttpServer` puts it on a port with TLS and a
kubeconfig; ``docs/embedded-server.md`` shows both. What is named here is the public API. It is imported when it is
first asked for: a program that needs one rule of the server does not wait for all.
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from spinney.lazy_exports import exported

if TYPE_CHECKING:
    from spinney.server.exchange.message import Request, Response, User
    from spinney.server.http.serving import HttpServer, Listening
    from spinney.server.options import ServerOptions
    from spinney.server.server import ApiServer

__all__ = ["ApiServer", "HttpServer", "Listening", "Request", "Response", "ServerOptions", "User"]

if find_spec("jsonschema_rs") is None:
    raise ModuleNotFoundError(
        "the embedded API server needs the package jsonschema-rs: pip install 'spinney[embedded]'", name=__name__
    )

__getattr__ = exported(__name__, __file__)
