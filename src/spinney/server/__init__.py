"""The embedded API server: store, REST and discovery, patches, admission, garbage collection."""

from spinney.server.exchange import Request, Response
from spinney.server.options import ServerOptions
from spinney.server.server import ApiServer

__all__ = ["ApiServer", "Request", "Response", "ServerOptions"]
