"""One program of a control plane: started with its output in a file, watched until it is ready, ended by its pid."""

import os
import random
import socket
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path

from spinney.runtime import Clock
from spinney.testing.controlplane.tether import Tether

_TAIL = 4000  # characters of a log that go into an error
_PROBE_PAUSE = 0.05  # seconds between two probes; a program that exits ends the pause at once
_PATIENCE = 15.0  # seconds until a program that was asked to end is made to


class ProcessFailed(RuntimeError):
    """A program exited, or did not become ready in time; the message ends with the tail of its log."""


class ServerProcess:
    """A running program, which ends with the process that holds its tether. Mutable; not shared between threads."""

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        *,
        directory: Path,
        clock: Clock,
        tether: Tether,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Start a program; ``environment`` is added to that of this process."""
        self.name = name
        self.log = directory / f"{name}.log"
        self._clock = clock
        with self.log.open("ab") as output:
            self._popen = subprocess.Popen(  # noqa: S603 - the binaries of the control plane
                [str(part) for part in command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=directory,
                env={**os.environ, **(environment or {})},
                # Not the terminal's group: an interrupt there ends the plane in order, not all at once.
                process_group=tether.group,
            )

    @property
    def pid(self) -> int:
        """Return the process id."""
        return self._popen.pid

    @property
    def alive(self) -> bool:
        """Tell whether the program still runs."""
        return self._popen.poll() is None

    def wait_until_ready(
        self, url: str, *, within: float, context: ssl.SSLContext | None = None, token: str = ""
    ) -> None:
        """Return when a GET of ``url`` answers 200; raise :class:`ProcessFailed` on exit or when time is up."""
        deadline = self._clock.monotonic() + within
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})  # noqa: S310
        while True:
            answer = _probe(request, context)
            if answer is None:
                return
            if not self._pause():
                raise ProcessFailed(f"{self.name} exited with code {self._popen.returncode}{self._story()}")
            if self._clock.monotonic() > deadline:
                raise ProcessFailed(f"{self.name} was not ready after {within:.0f} s ({answer}){self._story()}")

    def stop(self) -> None:
        """End the program: ask, and after a while insist. Ending an ended program does nothing."""
        if not self.alive:
            return
        self._popen.terminate()
        try:
            self._popen.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.wait()

    def _pause(self) -> bool:
        try:
            self._popen.wait(_PROBE_PAUSE)
        except subprocess.TimeoutExpired:
            return True
        return False

    def _story(self) -> str:
        return f"; the end of {self.log}:\n{self.log.read_text(errors='replace')[-_TAIL:]}"


class Ports:
    """TCP ports on loopback, held for as long as this object lives, so that no other program is given one of them.

    The sockets are bound and never listen; the programs share the port (``SO_REUSEPORT``) and do.
    """

    def __init__(self) -> None:
        self._sockets: list[socket.socket] = []

    def take(self) -> int:
        """Return a port that nobody else has."""
        held = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        held.bind(("127.0.0.1", 0))
        self._sockets.append(held)
        port: int = held.getsockname()[1]
        return port

    def release(self) -> None:
        """Give all ports back."""
        while self._sockets:
            self._sockets.pop().close()


def free_port() -> int:
    """Return a port that nobody listens on, below those the system gives to connections.

    For programs that do not share a port: unlike those of :class:`Ports` it is not held, so use it at once.
    """
    while True:
        port = random.randrange(15_000, 30_000)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port


def _probe(request: urllib.request.Request, context: ssl.SSLContext | None) -> str | None:
    """Return None if the request is answered with 200, else what stood in the way."""
    try:
        with urllib.request.urlopen(request, timeout=5, context=context):  # noqa: S310 - our own loopback URL
            return None
    except urllib.error.HTTPError as error:
        return f"{request.full_url} answered {error.code}: {error.read(400).decode(errors='replace')}"
    except OSError as error:  # refused, reset, timed out, TLS not up yet
        return f"{request.full_url}: {error}"
