"""A certificate is loaded without writing to a disk."""

import ssl
import sys
import tempfile
from datetime import UTC, datetime

import pytest

from spinney.runtime.certificates import serving_certificate


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere OpenSSL needs a file")
def test_a_read_only_root_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """With no directory to write to, as in a container with a read-only root, a server still has its certificate."""
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: ["/proc/nowhere"])
    monkeypatch.setattr(tempfile, "tempdir", None)
    made = serving_certificate(["grove-operator.spinney-system.svc"], now=datetime.now(UTC))

    context = made.context()

    arriving, leaving, trusting = ssl.MemoryBIO(), ssl.MemoryBIO(), ssl.create_default_context()
    trusting.load_verify_locations(cadata=made.authority.decode())
    server = context.wrap_bio(arriving, leaving, server_side=True)
    client = trusting.wrap_bio(leaving, arriving, server_hostname="grove-operator.spinney-system.svc")
    for _ in range(4):
        for side in (client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    assert client.getpeercert()
