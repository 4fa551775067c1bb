"""A server that is killed under load, again and again: whatever it acknowledged is there when it is started again.

``SPINNEY_KILLS=100`` kills it that often.
"""

import asyncio
import os
import random
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest

_KILLS = int(os.environ.get("SPINNEY_KILLS", "5"))
_CLIENTS, _KEYS, _WRITES = 6, 5, 40
_SERVER = """
import asyncio, sys
from pathlib import Path
from spinney.runtime import Runtime
from spinney.server import ApiServer, ServerOptions
from spinney.server import HttpServer, Listening
from spinney.server.store import journal

journal._OUTDATED_FLOOR = int(sys.argv[2])

async def main():
    server = ApiServer(Runtime.system(), ServerOptions(data_directory=Path(sys.argv[1])))
    async with server.running(), HttpServer(server, Listening(tls=False, token="t")) as http:
        print(http.url, file=sys.stderr, flush=True)
        await asyncio.get_running_loop().create_future()

asyncio.run(main())
"""
_HEADERS = {"authorization": "Bearer t"}


@dataclass
class Acknowledged:
    """What the server has to have, by name: the value acknowledged last, and one that may have been written since."""

    values: dict[str, str | None] = field(default_factory=dict)  # None: it is not there
    unsure: dict[str, str | None] = field(default_factory=dict)

    def allows(self, name: str, value: str | None) -> bool:
        expected = {self.values.get(name)}
        if name in self.unsure:
            expected.add(self.unsure[name])
        return value in expected


async def _write(
    session: aiohttp.ClientSession, url: str, client: int, state: Acknowledged, chance: random.Random
) -> None:
    """Create, change and delete config maps of one's own until the server is gone."""
    path = f"{url}/api/v1/namespaces/default/configmaps"
    for count in range(10**9):
        name = f"c{client}-{chance.randrange(_KEYS)}"
        present = state.values.get(name)
        value: str | None = f"{client}-{count}-{chance.random()}"
        if present is None:
            body = {"metadata": {"name": name}, "data": {"v": value}}
            sending = session.post(path, json=body)
        elif chance.random() < 0.2:
            value, sending = None, session.delete(f"{path}/{name}")
        else:
            headers = {"content-type": "application/merge-patch+json"}
            sending = session.patch(f"{path}/{name}", json={"data": {"v": value}}, headers=headers)
        state.unsure[name] = value
        try:
            async with sending as answer:
                assert answer.status in {200, 201}, await answer.text()
                await answer.read()
        except aiohttp.ClientError:
            return
        state.values[name] = value
        del state.unsure[name]


async def _life(directory: Path, floor: int, state: Acknowledged, chance: random.Random) -> None:
    """Start the server, compare, write at full speed, and kill it in the middle."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _SERVER, str(directory), str(floor), stderr=asyncio.subprocess.PIPE
    )
    assert process.stderr is not None
    url = (await process.stderr.readline()).decode().strip()
    assert url.startswith("http"), (await process.stderr.read()).decode()
    async with aiohttp.ClientSession(headers=_HEADERS) as session:
        async with session.get(f"{url}/api/v1/namespaces/default/configmaps") as answer:
            items = (await answer.json())["items"]
        found = {item["metadata"]["name"]: item["data"]["v"] for item in items if "v" in item["data"]}
        for name in {*found, *state.values, *state.unsure}:
            assert state.allows(name, found.get(name)), (name, found.get(name), state)
        state.values, state.unsure = dict(found), {}
        writers = [
            asyncio.create_task(_write(session, url, client, state, random.Random(chance.random())))
            for client in range(_CLIENTS)
        ]
        before = await _revision(session, url)
        while await _revision(session, url) < before + chance.randrange(_WRITES):
            pass
        process.send_signal(signal.SIGKILL)
        await asyncio.gather(*writers)
    await process.wait()


async def _revision(session: aiohttp.ClientSession, url: str) -> int:
    async with session.get(f"{url}/api/v1/namespaces/default/configmaps", params={"limit": "1"}) as answer:
        return int((await answer.json())["metadata"]["resourceVersion"])


@pytest.mark.timeout(120 + 30 * _KILLS)
@pytest.mark.parametrize("floor", [20_000, 10], ids=["appending", "writing the journal anew"])
async def test_no_kill_loses_an_acknowledged_write(tmp_path: Path, floor: int) -> None:
    """Each life begins with what the one before had acknowledged, also if it was killed while tidying its journal."""
    state, chance = Acknowledged(), random.Random(floor)
    for _ in range(_KILLS):
        await _life(tmp_path, floor, state, chance)
    assert state.values
