"""The kubeconfig that lets clients in."""

import base64
from pathlib import Path

import yaml

from spinney.runtime.private_files import write_private

_NAME = "spinney"


def kubeconfig(url: str, *, token: str, authority: bytes | None) -> str:
    """Return a kubeconfig for the server at ``url``."""
    cluster = {"server": url}
    if authority is not None:
        cluster["certificate-authority-data"] = base64.b64encode(authority).decode()
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": _NAME, "cluster": cluster}],
        "users": [{"name": _NAME, "user": {"token": token}}],
        "contexts": [{"name": _NAME, "context": {"cluster": _NAME, "user": _NAME, "namespace": "default"}}],
        "current-context": _NAME,
    }
    return yaml.safe_dump(content, sort_keys=False)


def write_kubeconfig(path: Path, content: str) -> None:
    """Write a kubeconfig that only its owner can read; it is never there half written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_private(path, content.encode())
