"""Running the real kubectl in tests."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from spinney.server import HttpServer
from spinney.testing.controlplane import GoMissing, find_binaries


def kubectl_binary() -> Path:
    """Return the kubectl to test with: ``SPINNEY_KUBECTL``, or the one built with the control plane."""
    named = os.environ.get("SPINNEY_KUBECTL")
    try:
        return Path(named) if named else find_binaries("1.37").kubectl
    except GoMissing as missing:
        pytest.skip(f"NO KUBECTL: {missing}")


class Kubectl:
    """Runs kubectl with a kubeconfig and a cache of its own."""

    def __init__(self, binary: Path, kubeconfig: Path, home: Path) -> None:
        self._binary = binary
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(home), "KUBECONFIG": str(kubeconfig)}

    async def start(self, *arguments: str, **environment: str) -> asyncio.subprocess.Process:
        """Start kubectl; its output and errors come through one pipe."""
        return await asyncio.create_subprocess_exec(
            self._binary,
            *arguments,
            env=self.environment | environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )

    async def run(self, *arguments: str, stdin: str = "", code: int = 0, **environment: str) -> str:
        """Run kubectl to its end, which must have the given exit code, and return what it printed."""
        process = await self.start(*arguments, **environment)
        async with asyncio.timeout(60):
            output, _ = await process.communicate(stdin.encode())
        text = output.decode()
        assert process.returncode == code, text
        return text

    async def lines(self, *arguments: str) -> list[list[str]]:
        """Run kubectl and return the words of each line."""
        return [line.split() for line in (await self.run(*arguments)).splitlines()]

    async def until(self, *arguments: str, said: Sequence[str]) -> str:
        """Run kubectl again and again until it prints all of these texts, and return what it printed."""
        text = ""
        async with asyncio.timeout(60):
            while not all(each in text for each in said):
                text = await self.run(*arguments)
        return text

    async def apply(self, manifest: str, *arguments: str, code: int = 0) -> str:
        return await self.run("apply", *arguments, "-f", "-", stdin=manifest, code=code)


def served(http: HttpServer, home: Path) -> Kubectl:
    """Return a kubectl for a server on TLS, with ``home`` for its files."""
    config = home / "config"
    http.write_kubeconfig(config)
    return Kubectl(kubectl_binary(), config, home)
