"""The data directory: what was acknowledged is there again after the process is gone."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from spinney.runtime import Runtime
from spinney.server import ApiServer, ServerOptions
from spinney.server.store import Journal, JournalUnusable, journal
from tests.server.api import CONFIG_MAPS, DEFINITIONS, WIDGETS, Api, a_config_map, a_definition, a_widget

_WRITER = """
import asyncio, sys
from pathlib import Path
from spinney.runtime import Runtime
from spinney.server import ApiServer, Request, ServerOptions

async def main():
    server = ApiServer(Runtime.system(), ServerOptions(data_directory=Path(sys.argv[1])))
    for index in range(100000):
        body = b'{"metadata":{"name":"c%d"}}' % index
        answer = await server.handle(Request("POST", "/api/v1/namespaces/default/configmaps", {}, {}, body))
        print(answer.status, index, flush=True)

asyncio.run(main())
"""


def _api(directory: Path) -> Api:
    return Api(ApiServer(Runtime.virtual(), ServerOptions(data_directory=directory)))


async def test_objects_outlive_their_server(tmp_path: Path) -> None:
    """A second server on the same directory has the same objects, kinds and revision, and goes on from there."""
    api = _api(tmp_path)
    await api.create(DEFINITIONS, a_definition())
    await api.create(WIDGETS, a_widget(size=1))
    await api.create(CONFIG_MAPS, a_config_map("a", v="1"))
    await api.create(CONFIG_MAPS, a_config_map("b"))
    await api.patch(f"{CONFIG_MAPS}/a", {"data": {"v": "2"}})
    await api.delete(f"{CONFIG_MAPS}/b")
    before = [await api.get(path) for path in (WIDGETS, CONFIG_MAPS, "/api/v1/namespaces")]
    api.server.close()
    again = _api(tmp_path)
    assert [await again.get(path) for path in (WIDGETS, CONFIG_MAPS, "/api/v1/namespaces")] == before
    newer = await again.create(CONFIG_MAPS, a_config_map("c"))
    assert int(newer["metadata"]["resourceVersion"]) > int(before[0]["metadata"]["resourceVersion"])
    async with again.watch(CONFIG_MAPS, resourceVersion="101") as watch:
        assert (await watch.next())["object"]["code"] == 410
    again.server.close()


async def test_a_killed_server_loses_nothing_it_acknowledged(tmp_path: Path) -> None:
    """After kill -9 in the middle of writing, every write that was answered is there."""
    writer = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _WRITER, str(tmp_path), stdout=asyncio.subprocess.PIPE
    )
    assert writer.stdout is not None
    for _ in range(50):
        await writer.stdout.readline()
    os.kill(writer.pid, signal.SIGKILL)
    answered = 50 + len((await writer.stdout.read()).splitlines()[:-1])
    await writer.wait()
    api = _api(tmp_path)
    names = set(await api.names(CONFIG_MAPS))
    assert {f"c{index}" for index in range(answered)} <= names
    api.server.close()


async def test_a_line_cut_short_is_dropped(tmp_path: Path) -> None:
    """A write that was not finished was not acknowledged: the rest is read, and new writes follow cleanly."""
    api = _api(tmp_path)
    await api.create(CONFIG_MAPS, a_config_map("a"))
    api.server.close()
    with (tmp_path / "journal").open("ab") as file:
        file.write(b'["put","configmaps",999')
    for _ in range(2):
        api = _api(tmp_path)
        assert await api.names(CONFIG_MAPS) == ["a"]
        await api.patch(f"{CONFIG_MAPS}/a", {"data": {"v": "1"}})
        api.server.close()


async def test_an_outdated_journal_is_written_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file stays in proportion to what lives, and nothing is lost when it is replaced."""
    monkeypatch.setattr(journal, "_OUTDATED_FLOOR", 50)
    api = _api(tmp_path)
    await api.create(CONFIG_MAPS, a_config_map("a"))
    for index in range(500):
        await api.patch(f"{CONFIG_MAPS}/a", {"data": {"v": str(index)}})
    assert len((tmp_path / "journal").read_bytes().splitlines()) < 100
    before = await api.get(CONFIG_MAPS)
    api.server.close()
    again = _api(tmp_path)
    assert await again.get(CONFIG_MAPS) == before
    again.server.close()


def test_one_directory_has_one_server(tmp_path: Path) -> None:
    """A second server on a directory in use is refused, with what to do."""
    first = Journal(tmp_path / "journal")
    with pytest.raises(JournalUnusable, match="in use by another server"):
        Journal(tmp_path / "journal")
    first.close()
    Journal(tmp_path / "journal").close()


async def test_a_damaged_journal_is_not_guessed_at(tmp_path: Path) -> None:
    """A line in the middle that cannot be read stops the start and names the place."""
    api = _api(tmp_path)
    await api.create(CONFIG_MAPS, a_config_map("a"))
    api.server.close()
    content = (tmp_path / "journal").read_bytes()
    (tmp_path / "journal").write_bytes(b"rubbish\n" + content)
    with pytest.raises(JournalUnusable, match="cannot be read at byte 0"):
        _api(tmp_path)
