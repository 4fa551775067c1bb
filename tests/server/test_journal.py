"""The data directory: what was acknowledged is there again after the process is gone."""

import asyncio
import json
import os
import random
import signal
import stat
import sys
from contextlib import closing
from pathlib import Path

import pytest

from spinney.api.struct import JSON
from spinney.runtime import Runtime
from spinney.server import ApiServer, HttpServer, Request, ServerOptions
from spinney.server.authentication.identity import IdentityUnusable
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

_FULL = """
import asyncio, resource, sys
from pathlib import Path
from spinney.runtime import Runtime
from spinney.server import ApiServer, Request, ServerOptions

MAPS = "/api/v1/namespaces/default/configmaps"
journal = Path(sys.argv[1]) / "journal"

def limit(size):
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))

async def main():
    server = ApiServer(Runtime.system(), ServerOptions(data_directory=journal.parent))

    async def send(method, path, body=b""):
        return await server.handle(Request(method, path, {}, {}, body))

    def dependent(name, uid):
        return b'{"metadata":{"name":"%s","ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"owner",' % (
            name.encode()) + b'"uid":"%s"}]}}' % uid.encode()

    refused, acknowledged = [], []
    async with server.running():
        owner = await send("POST", MAPS, b'{"metadata":{"name":"owner"}}')
        uid = __import__("json").loads(owner.body)["metadata"]["uid"]
        await send("POST", MAPS, dependent("dependent", uid))
        limit(journal.stat().st_size + 5_000)
        await send("DELETE", MAPS + "/owner")
        for index in range(100):
            body = b'{"metadata":{"name":"c%d"},"data":{"v":"%s"}}' % (index, b"x" * 200)
            answer = await send("POST", MAPS, body)
            if answer.status == 201:
                acknowledged.append("c%d" % index)
            else:
                assert (answer.status, b"make room" in answer.body) == (500, True), answer
                assert (await send("GET", MAPS + "/c%d" % index)).status == 404
                refused.append("c%d" % index)
            await asyncio.sleep(0)
        limit(resource.RLIM_INFINITY)
        answer = await send("POST", MAPS, b'{"metadata":{"name":"cafter"}}')
        assert answer.status == 201, answer
        acknowledged.append("cafter")
        async with asyncio.timeout(60):
            while (await send("GET", MAPS + "/dependent")).status != 404:
                await asyncio.sleep(0.05)
    server.close()
    print(*refused)
    print(*acknowledged)

asyncio.run(main())
"""

_FULL_AT_START = """
import asyncio, resource, sys
from pathlib import Path
from spinney.runtime import Runtime
from spinney.server import ApiServer, Request, ServerOptions
from spinney.server import HttpServer

directory = Path(sys.argv[1])
MAPS = "/api/v1/namespaces/default/configmaps"

def limit(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))

async def main():
    ApiServer(Runtime.system(), ServerOptions(data_directory=directory)).close()
    limit((directory / "journal").stat().st_size)
    server = ApiServer(Runtime.system(), ServerOptions(data_directory=directory, authorization="RBAC"))

    async def send(method, path, body=b""):
        return (await server.handle(Request(method, path, {}, {}, body))).status

    async with server.running():
        server.present_authority("another one")
        read, refused = await send("GET", MAPS + "/a"), await send("POST", MAPS, b'{"metadata":{"name":"x"}}')
        limit(resource.RLIM_INFINITY)
        print(read, refused, await send("POST", MAPS, b'{"metadata":{"name":"x"}}'))
    server.close()

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


async def test_objects_of_a_kind_that_is_not_served_outlive_their_server(tmp_path: Path) -> None:
    """They are there again when a version of their definition is served again."""
    api = _api(tmp_path)
    definition = await api.create(DEFINITIONS, a_definition())
    await api.create(WIDGETS, a_widget(size=1))
    versions = definition["spec"]["versions"]
    path = f"{DEFINITIONS}/{definition['metadata']['name']}"
    await api.patch(path, {"spec": {"versions": [{**versions[0], "served": False}]}})
    api.server.close()
    again = _api(tmp_path)
    await again.patch(path, {"spec": {"versions": versions}})
    assert [each["spec"] for each in (await again.get(WIDGETS))["items"]] == [{"size": 1}]
    again.server.close()


async def test_objects_are_shown_in_the_version_asked_for_after_the_stored_one_changed(tmp_path: Path) -> None:
    """At once, and by a server that finds them in its journal."""
    api = _api(tmp_path)
    definition = a_definition()
    first = definition["spec"]["versions"][0]
    second = {**first, "name": "v2", "storage": False}
    definition["spec"]["versions"] = [first, second]
    await api.create(DEFINITIONS, definition)
    await api.create(WIDGETS, a_widget(size=1))
    changed = {"spec": {"versions": [{**first, "storage": False}, {**second, "storage": True}]}}
    await api.patch(f"{DEFINITIONS}/{definition['metadata']['name']}", changed)
    for _ in range(2):
        for version in ("v1", "v2"):
            path = f"/apis/example.com/{version}/namespaces/default/widgets"
            assert (await api.get(f"{path}/w"))["apiVersion"] == f"example.com/{version}"
            assert [each["apiVersion"] for each in (await api.get(path))["items"]] == [f"example.com/{version}"]
        api.server.close()
        api = _api(tmp_path)
    api.server.close()


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


async def test_a_line_may_be_cut_anywhere(tmp_path: Path) -> None:
    """Wherever the last line ends, what was acknowledged before it is there, and the line only if it is whole."""
    api = _api(tmp_path)
    await api.create(CONFIG_MAPS, a_config_map("a"))
    before = (tmp_path / "journal").stat().st_size
    await api.create(CONFIG_MAPS, a_config_map("b"))
    api.server.close()
    whole = (tmp_path / "journal").read_bytes()
    for end in {*range(before, len(whole), 40), before + 1, len(whole) - 1, len(whole)}:
        (tmp_path / "journal").write_bytes(whole[:end])
        api = _api(tmp_path)
        assert {"a", "b"} & set(await api.names(CONFIG_MAPS)) == ({"a", "b"} if end == len(whole) else {"a"})
        api.server.close()


async def test_a_full_disk_stops_writes_and_nothing_else(tmp_path: Path) -> None:
    """A change there is no room for is refused and has not happened; with room again, writes and collection go on."""
    script = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _FULL, str(tmp_path), stdout=asyncio.subprocess.PIPE
    )
    output, _ = await script.communicate()
    assert script.returncode == 0, output
    refused, acknowledged = (line.split() for line in output.decode().splitlines()[-2:])
    api = _api(tmp_path)
    assert {name for name in await api.names(CONFIG_MAPS) if name.startswith("c")} == set(acknowledged)
    assert refused
    assert not {*refused} & {*acknowledged}
    api.server.close()


async def test_a_new_journal_without_room_is_put_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the journal cannot be written anew the old one goes on, and nobody who writes notices."""
    monkeypatch.setattr(journal, "_OUTDATED_FLOOR", 50)
    api = _api(tmp_path)
    await api.create(CONFIG_MAPS, a_config_map("a"))
    (tmp_path / "journal.new").mkdir()
    for index in range(600):
        await api.patch(f"{CONFIG_MAPS}/a", {"data": {"v": str(index)}})
    assert len((tmp_path / "journal").read_bytes().splitlines()) > 600
    (tmp_path / "journal.new").rmdir()
    for index in range(2000):
        await api.patch(f"{CONFIG_MAPS}/a", {"data": {"v": f"again {index}"}})
    assert len((tmp_path / "journal").read_bytes().splitlines()) < 1000
    before = await api.get(CONFIG_MAPS)
    api.server.close()
    again = _api(tmp_path)
    assert await again.get(CONFIG_MAPS) == before
    again.server.close()


async def test_what_was_under_way_goes_on(tmp_path: Path) -> None:
    """A cascading deletion that the end of the process interrupted is finished by the next one."""
    api = _api(tmp_path)
    owner = await api.create(CONFIG_MAPS, a_config_map("owner"))
    await api.create(CONFIG_MAPS, a_config_map("dependent", owner))
    await api.delete(f"{CONFIG_MAPS}/owner")
    assert "dependent" in await api.names(CONFIG_MAPS)
    api.server.close()
    again = _api(tmp_path)
    async with again.server.running(), again.watch(CONFIG_MAPS, fieldSelector="metadata.name=dependent") as watch:
        assert await watch.take(2) == [("ADDED", "dependent"), ("DELETED", "dependent")]
    again.server.close()


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
    with pytest.raises(JournalUnusable, match="damaged: a checksum is another one, at byte 0"):
        _api(tmp_path)
    (tmp_path / "journal").write_bytes(content.replace(b'"name":"a"', b'"name:"a"'))
    with pytest.raises(JournalUnusable, match="damaged: a checksum"):
        _api(tmp_path)


async def _written(directory: Path) -> tuple[bytes, list[JSON]]:
    """Return a journal, and what a server that has it serves."""
    api = _api(directory)
    for name in ("a", "b", "c"):
        await api.create(CONFIG_MAPS, a_config_map(name, v=name))
    await api.patch(f"{CONFIG_MAPS}/a", {"data": {"v": "2"}})
    await api.delete(f"{CONFIG_MAPS}/b")
    served = await _served(api)
    api.server.close()
    return (directory / "journal").read_bytes(), served


async def _served(api: Api) -> list[JSON]:
    return [await api.get(path) for path in (CONFIG_MAPS, "/api/v1/namespaces", "/api/v1/serviceaccounts")]


async def test_no_flipped_bit_goes_unnoticed(tmp_path: Path) -> None:
    """Whichever bit of the journal flips, the start stops and names the place."""
    content, _ = await _written(tmp_path)
    chance = random.Random(13)
    for place in {len(content) - 1, 0, *(chance.randrange(len(content)) for _ in range(150))}:
        flipped = bytearray(content)
        flipped[place] ^= 1 << chance.randrange(8)
        (tmp_path / "journal").write_bytes(flipped)
        with pytest.raises(JournalUnusable, match=r"is damaged: .* at byte \d+ \(line \d+\)\. Put a copy"):
            _api(tmp_path)
        assert (tmp_path / "journal").read_bytes() == flipped, "what is damaged is left as it is"


async def test_a_line_that_is_missing_or_stands_twice_is_noticed(tmp_path: Path) -> None:
    """A journal from which a whole line was lost, or in which one was repeated, is not taken for a whole one."""
    content, _ = await _written(tmp_path)
    lines = content.splitlines(keepends=True)
    for damaged in ([*lines[:5], *lines[6:]], [*lines[:5], lines[4], *lines[5:]], [*lines[:5], lines[6], lines[5]]):
        (tmp_path / "journal").write_bytes(b"".join(damaged))
        with pytest.raises(JournalUnusable, match="damaged"):
            _api(tmp_path)


async def test_what_stands_before_the_damage_can_be_kept(tmp_path: Path) -> None:
    """The way out that the error names leads to a server with everything written before that place."""
    content, _ = await _written(tmp_path)
    (tmp_path / "journal").write_bytes(content.replace(b'"name":"c"', b'"name":"x"'))
    with pytest.raises(JournalUnusable) as stopped:
        _api(tmp_path)
    size = int(str(stopped.value).partition("head -c ")[2].split()[0])
    (tmp_path / "journal").write_bytes(content[:size])
    api = _api(tmp_path)
    assert {"a", "b"} <= set(await api.names(CONFIG_MAPS))
    api.server.close()


async def test_a_kubeconfig_outlives_a_restart(tmp_path: Path) -> None:
    """Token, certificate authority and the key of service accounts are the directory's; only their owner reads them."""

    async def known_by() -> tuple[str, bytes | None, str]:
        server = ApiServer(Runtime.system(), ServerOptions(data_directory=tmp_path))
        async with HttpServer(server) as http:
            issued = Request("POST", "/api/v1/namespaces/default/serviceaccounts/default/token", {}, {}, b"{}")
            answer = await server.handle(issued)
            assert isinstance(answer.body, bytes)
            token = json.loads(answer.body)["status"]["token"]
            found = http.token, http.authority, token.partition(".")[0]
        server.close()
        return found

    assert await known_by() == await known_by()
    kept = {path.name: stat.S_IMODE(path.stat().st_mode) for path in sorted(tmp_path.glob("*"))}  # noqa: ASYNC240
    assert kept == dict.fromkeys(("authority.pem", "token", "service-account.key", "journal"), 0o600)


@pytest.mark.parametrize("name", ["authority.pem", "token", "service-account.key"])
async def test_an_identity_that_cannot_be_read_is_not_replaced(tmp_path: Path, name: str) -> None:
    """A damaged key, token or authority stops the start and says what to do; nobody is locked out silently."""
    (tmp_path / name).write_bytes(b"rubbish")

    def start() -> None:
        with closing(ApiServer(Runtime.system(), ServerOptions(data_directory=tmp_path))) as server:
            HttpServer(server)

    with pytest.raises(IdentityUnusable, match=name):
        start()


async def test_a_full_disk_still_starts(tmp_path: Path) -> None:
    """A server that starts where nothing can be written serves what is there; with room again it takes writes."""
    await _written(tmp_path)
    script = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _FULL_AT_START, str(tmp_path), stdout=asyncio.subprocess.PIPE
    )
    output, _ = await script.communicate()
    assert (script.returncode, output.decode().split()[-3:]) == (0, ["200", "500", "201"]), output
