"""``spinney dashboard``: serves the cluster of a kubeconfig on loopback, and nothing unsafe anywhere else."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import aiohttp
import pytest
from click.testing import CliRunner

from spinney.cli import main
from tests.cli.clusters import served_cluster


def test_it_serves_until_interrupted(tmp_path: Path) -> None:
    """It says where the page is, shows cluster, schedulers and Prometheus it was given, and ends cleanly on Ctrl-C."""

    async def look(kubeconfig: Path) -> None:
        command = [sys.executable, "-c", "from spinney.cli import main; main()", "dashboard", "--port", "0"]
        given = ["--scheduler", "http://127.0.0.1:9", "--prometheus", "http://127.0.0.1:9"]
        process = await asyncio.create_subprocess_exec(
            *command, *given, "--kubeconfig", str(kubeconfig), stdout=asyncio.subprocess.PIPE, env=os.environ
        )
        assert process.stdout is not None
        line = (await process.stdout.readline()).decode()
        async with aiohttp.ClientSession(line.split()[-1]) as session:
            answers = [await session.get(f"/api/{each}") for each in ("state", "about", "cycles")]
            state, about, cycles = [await each.json() for each in answers]
        process.send_signal(signal.SIGINT)
        await process.communicate()

        assert [node["cells"] for node in state["nodes"]] == [8] * 4
        assert about["prometheus"]
        assert "127.0.0.1:9" in str(cycles)
        assert process.returncode == 130

    with served_cluster(tmp_path) as cluster:
        asyncio.run(look(cluster.kubeconfig))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--address", "0.0.0.0"], "--tls-cert-file"),
        (["--address", "0.0.0.0", "--authentication", "kubeconfig"], "--authentication token"),
        (["--tls-cert-file", __file__], "--tls-private-key-file is missing"),
        (["--tls-cert-file", __file__, "--tls-private-key-file", __file__], "not a certificate and its key"),
        (["--scheduler", "localhost:8080"], "expected http://HOST:PORT"),
        (["--prometheus", "ftp://x"], "expected http://HOST:PORT"),
    ],
)
def test_what_would_be_unsafe_or_cannot_work_is_refused(arguments: list[str], said: str) -> None:
    """The message names what is missing."""
    answer = CliRunner().invoke(main, ["dashboard", *arguments])

    assert answer.exit_code in (1, 2)
    assert said in " ".join(answer.output.split())
