"""Pins the base image of the Containerfile by the digest that its registry gives for the tag now.

``python hack/base.py`` asks the registry, checks the answer against its own hash and writes the digest behind the tag;
``python hack/base.py --check`` fails where there is none. A tag can be moved; a digest is the content.
"""

import hashlib
import json
import re
import sys
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import NamedTuple

CONTAINERFILE = Path(__file__).resolve().parent.parent / "Containerfile"
_ARGUMENT = re.compile(r"^ARG BASE=(?P<host>[^/\s]+)/(?P<name>[^:@\s]+):(?P<tag>[^@\s]+)(?:@(?P<digest>\S+))?$", re.M)
_DOCKER_HUB = {"docker.io": "registry-1.docker.io"}
_KINDS = "application/vnd.oci.image.index.v1+json, application/vnd.docker.distribution.manifest.list.v2+json"


class Answer(NamedTuple):
    """What a registry answered."""

    body: bytes
    digest: str


def pinned(text: str) -> bool:
    """Tell whether the base image is named by its digest."""
    return bool(_base(text)["digest"])


def pin(text: str, scheme: str = "https") -> str:
    """Return the Containerfile with the digest that the registry gives for the tag."""
    base = _base(text)
    host = _DOCKER_HUB.get(base["host"], base["host"])
    answer = _manifest(f"{scheme}://{host}/v2/{base['name']}/manifests/{base['tag']}")
    digest = f"sha256:{hashlib.sha256(answer.body).hexdigest()}"
    if answer.digest and answer.digest != digest:
        raise SystemExit(f"{host}: said {answer.digest} and sent {digest}; nothing is pinned")
    named = f"ARG BASE={base['host']}/{base['name']}:{base['tag']}@{digest}"
    return _ARGUMENT.sub(named, text, count=1)


def _base(text: str) -> dict[str, str]:
    found = _ARGUMENT.search(text)
    if found is None:
        raise SystemExit("Containerfile: no line of the form ARG BASE=registry/name:tag")
    return found.groupdict(default="")


def _manifest(url: str) -> Answer:
    """Return the list of an image's manifests, with a token where the registry wants one."""
    try:
        return _get(url)
    except urllib.error.HTTPError as error:
        with error:  # it is an open answer, too
            if error.code != 401:
                raise
            wanted = dict(re.findall(r'(\w+)="([^"]*)"', error.headers["WWW-Authenticate"]))
    query = urllib.parse.urlencode({key: wanted[key] for key in ("service", "scope") if key in wanted})
    token = json.loads(_get(f"{wanted['realm']}?{query}").body)["token"]
    return _get(url, token)


def _get(url: str, token: str = "") -> Answer:
    request = urllib.request.Request(url, headers={"Accept": _KINDS})  # noqa: S310 - of the Containerfile
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
        return Answer(answer.read(), answer.headers.get("Docker-Content-Digest", ""))


def main(*arguments: str) -> int:
    """Pin the base image, or say that it is not pinned."""
    text = CONTAINERFILE.read_text(encoding="utf-8")
    if "--check" in arguments:
        if not pinned(text):
            print("Containerfile: the base image is named by a tag only; `make base` pins it by digest")
        return 0 if pinned(text) else 1
    try:
        text = pin(text)
    except OSError as error:
        print(f"the registry of the base image is out of reach, so nothing is pinned: {error}")
        return 1
    CONTAINERFILE.write_text(text, encoding="utf-8")
    print(_ARGUMENT.search(text)[0])  # type: ignore[index]
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
