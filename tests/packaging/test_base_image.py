"""The base image of the Containerfile is pinned by what its registry serves, and by nothing else."""

import hashlib
import json
import runpy
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.packaging.test_dependencies import ROOT

BASE: dict[str, Any] = runpy.run_path(str(ROOT / "hack" / "base.py"))
MANIFEST = b'{"manifests": []}'
DIGEST = f"sha256:{hashlib.sha256(MANIFEST).hexdigest()}"


@contextmanager
def a_registry(*, told: str = DIGEST) -> Iterator[str]:
    """Serve one image to those who have a token, as public registries do; yield the registry's name."""

    class Registry(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.startswith("/token?service=here&scope=repository"):
                self._answer(200, json.dumps({"token": "t"}).encode())
            elif self.headers.get("Authorization") != "Bearer t":
                realm = f'realm="http://{name}/token",service="here",scope="repository:library/python:pull"'
                self._answer(401, b"", **{"WWW-Authenticate": f"Bearer {realm}"})
            elif self.path == "/v2/library/python/manifests/3.13-slim":
                self._answer(200, MANIFEST, **{"Docker-Content-Digest": told})
            else:
                self._answer(404, b"")

        def _answer(self, status: int, body: bytes, **headers: str) -> None:
            self.send_response(status)
            for key, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(key, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Registry)
    name = f"127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield name
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize("before", ["", "@sha256:0"])
def test_the_digest_is_that_of_what_is_served(before: str) -> None:
    """The tag stays, to be read and updated; the digest behind it is the hash of what the registry sent."""
    with a_registry() as name:
        text = f"# first\nARG BASE={name}/library/python:3.13-slim{before}\nFROM ${{BASE}}\n"
        pinned = BASE["pin"](text, "http")
    assert pinned == f"# first\nARG BASE={name}/library/python:3.13-slim@{DIGEST}\nFROM ${{BASE}}\n"
    assert BASE["pinned"](pinned)


def test_what_does_not_match_its_digest_is_not_pinned() -> None:
    """A registry, or whoever stands before it, that says one thing and sends another is not believed."""
    with a_registry(told="sha256:1") as name, pytest.raises(SystemExit, match="nothing is pinned"):
        BASE["pin"](f"ARG BASE={name}/library/python:3.13-slim\n", "http")


def test_the_containerfile_can_be_pinned() -> None:
    """Its base image is written in the form that pinning reads, and both stages use it."""
    text = (ROOT / "Containerfile").read_text(encoding="utf-8")
    assert BASE["_base"](text)["host"] == "docker.io"
    assert [line.split()[1] for line in text.splitlines() if line.startswith("FROM ")] == ["${BASE}", "${BASE}"]
