"""Whether an answer is an API server's: a gateway in between may say 200, in HTML or JSON of its own, and did nothing.

Every object that an API server answers with says its kind, be it a ``Status``; what a gateway says does not. Decoded as
the type asked for, its JSON would be an object without anything in it.
"""

import msgspec

from spinney.kube.errors import UndecodableResponse


class _Named(msgspec.Struct, frozen=True):
    name: str = ""


class _Object(msgspec.Struct, frozen=True):
    kind: str
    metadata: _Named = _Named()


_decoder = msgspec.json.Decoder(_Object)


def check_object(body: bytes, request: str, *, kind: str = "", name: str = "") -> None:
    """Raise unless a request was answered with an object, of this kind and with this name where they are given."""
    expected = f"a {kind} {name}".rstrip() if kind else f"an object {name}".rstrip()
    try:
        found = _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise undecodable(body, request, expected, problem) from problem
    if (kind and found.kind != kind) or (name and found.metadata.name != name):
        raise undecodable(body, request, expected, f"it is {found.kind} {found.metadata.name}".rstrip())


def undecodable(body: bytes, request: str, expected: str, problem: object) -> UndecodableResponse:
    """Return the error of an answer that is not what was asked for."""
    return UndecodableResponse(f"{request} did not answer with {expected}: {problem}; got {body[:200]!r}")
