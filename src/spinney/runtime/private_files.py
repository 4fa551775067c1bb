"""Files that only their owner may read: keys, tokens, kubeconfigs, snapshots of a cluster.

A file is written beside its place under a name nobody can foresee and then takes the place in one step. So it is never
there half written, it never has the mode of a file that was there before, and a link that was put there is replaced,
not followed.
"""

import os
import ssl
import tempfile
from pathlib import Path


def write_private(path: Path, content: bytes) -> None:
    """Write a file with mode 0600 in the place of whatever is there; raise :class:`OSError` and leave that in place."""
    handle, partial = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(partial).replace(path)
    finally:
        Path(partial).unlink(missing_ok=True)


def load_chain(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Have a context present a certificate (with its intermediates) that has this key, all PEM.

    OpenSSL reads a chain only from a file. On Linux that is one in memory, so a container with a read-only root needs
    no directory, and a key reaches no disk. Elsewhere it is a temporary file that is gone right after.
    """
    chain = certificate.rstrip() + b"\n" + key
    if hasattr(os, "memfd_create"):
        with os.fdopen(os.memfd_create("spinney-chain"), "wb") as file:
            file.write(chain)
            file.flush()
            context.load_cert_chain(f"/proc/self/fd/{file.fileno()}")
        return
    with tempfile.NamedTemporaryFile(suffix=".pem") as named:
        named.write(chain)
        named.flush()
        context.load_cert_chain(named.name)
