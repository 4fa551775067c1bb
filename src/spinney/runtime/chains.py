"""Loading a certificate chain into a TLS context without a disk.

OpenSSL reads a chain only from a file. On Linux that file is anonymous and in memory, so a container whose root is
read-only needs no directory to write to, and a key never reaches a disk. Elsewhere it is a temporary file that only
its owner can read, gone right after.
"""

import os
import ssl
import tempfile


def load_chain(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Have a context present a certificate (with its intermediates) that has this key, all PEM."""
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
