"""The embedded API server: store, REST and discovery, patches, admission, garbage collection.

What is named here is imported when it is first asked for: whoever needs one rule of the server does not wait for all.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from spinney.server.exchange.message import Request, Response
    from spinney.server.options import ServerOptions
    from spinney.server.server import ApiServer

__all__ = ["ApiServer", "Request", "Response", "ServerOptions"]

_HOMES: Final = {
    "ApiServer": "server",
    "Request": "exchange.message",
    "Response": "exchange.message",
    "ServerOptions": "options",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for from the module it lives in."""
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
