"""The HTTP transport, against a real server: TLS, identities, streams, proxies, failures."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from spinney.kube.config import load_kubeconfig
from spinney.kube.credentials import ClientCertificateFiles, Credential, FixedCredential, TokenFile
from spinney.kube.errors import ConnectionFailed, ConnectionRefused, ConnectionTimedOut
from spinney.kube.http import Endpoint, HttpTransport
from spinney.kube.tls import ClientCertificate
from spinney.kube.transport import Request, StreamingResponse
from spinney.runtime import Runtime
from spinney.server.http.serving import kubeconfig_text
from tests.kube.certificates import Authority
from tests.kube.tinyserver import Answer, break_off, proxying, serving


async def seen_by(transport: HttpTransport, path: str = "/x", **options: Any) -> Mapping[str, Any]:
    """Send one request, close the transport and return what the server saw."""
    try:
        response = await transport.request(Request("GET", path, **options))
        answer: Mapping[str, Any] = json.loads(response.body)
        return answer
    finally:
        await transport.close()


async def drained(stream: StreamingResponse) -> bytes:
    """Read a stream to its end."""
    return b"".join([chunk async for chunk in stream])


def once(first: Answer, *, then: Answer) -> Answer:
    """Answer the first request in one way, and those that follow in another."""
    answers = iter([first])

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        return await next(answers, then)(request)

    return answer


class Pairs:
    """The files of a client certificate, of which each reading finds the next user's, and then the last one's."""

    def __init__(self, *users: str) -> None:
        self._pairs = [Authority().client(user) for user in users]

    def read(self) -> ClientCertificate:
        """Read them."""
        found = self._pairs.pop(0) if len(self._pairs) > 1 else self._pairs[0]
        return ClientCertificate(found.certificate, found.key)


class Rotating(TokenFile):
    """A token file that is rotated the moment its token is refused."""

    def reject(self, credential: Credential) -> bool:
        """Rotate, then read."""
        self._path.write_text("new")
        return super().reject(credential)


async def test_a_server_is_trusted_by_its_authority(tmp_path: Path) -> None:
    """A certificate of the given authority is accepted, another's is not, and the error says why."""
    ours, theirs = Authority(), Authority("another")
    async with serving(pair=ours.server("127.0.0.1"), directory=tmp_path) as server:
        assert (await seen_by(HttpTransport(Endpoint(server.url, authorities=ours.pem))))["path"] == "/x"
        with pytest.raises(ConnectionRefused, match="certificate verify failed"):
            await seen_by(HttpTransport(Endpoint(server.url, authorities=theirs.pem)))
        with pytest.raises(ConnectionRefused, match="certificate verify failed"):
            await seen_by(HttpTransport(Endpoint(server.url)))


async def test_a_stream_given_up_while_it_is_being_opened_leaves_nothing_open(tmp_path: Path) -> None:
    """Whenever a command ends its watches, also during the TLS handshake, no connection outlives its event loop."""
    authority = Authority()

    async def read(transport: HttpTransport) -> None:
        async with transport.stream(Request("GET", "/watch")) as stream:
            await drained(stream)

    async def command(url: str, steps: int) -> None:
        transport = HttpTransport(Endpoint(url, authorities=authority.pem))
        watches = [asyncio.create_task(read(transport)) for _ in range(10)]
        for _ in range(steps):
            await asyncio.sleep(0)
        for watch in watches:
            watch.cancel()
        await asyncio.wait(watches)
        await transport.close()

    async with serving(pair=authority.server("127.0.0.1"), directory=tmp_path) as server:
        for steps in range(0, 400, 10):
            await asyncio.to_thread(asyncio.run, command(server.url, steps))


async def test_a_connection_refused_when_nobody_waits_for_it_is_not_a_word_in_the_log() -> None:
    """A process that is told to go says nothing of connections it was making: Python 3.14 logs what a shield hides."""
    said: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: said.append(context))
    for steps in range(20):
        transport = HttpTransport(Endpoint("http://127.0.0.1:9"))
        request = asyncio.create_task(transport.request(Request("GET", "/x")))
        for _ in range(steps):
            await asyncio.sleep(0)
        request.cancel()
        await asyncio.wait((request,))
        await transport.close()
    assert said == []


@pytest.mark.parametrize("given_up", [True, False])
async def test_a_request_whose_connection_is_being_made_leaves_nothing_open(tmp_path: Path, *, given_up: bool) -> None:
    """A command that fails closes its transport while other requests are under way: no connection outlives its loop."""
    authority = Authority()

    async def command(url: str, steps: int) -> None:
        transport = HttpTransport(Endpoint(url, authorities=authority.pem))
        requests = [asyncio.create_task(transport.request(Request("GET", "/x"))) for _ in range(10)]
        for _ in range(steps):
            await asyncio.sleep(0)
        for request in requests if given_up else ():
            request.cancel()
        await transport.close()
        with pytest.raises(ConnectionRefused, match="was closed here"):
            await transport.request(Request("GET", "/x"))

    async with serving(pair=authority.server("127.0.0.1"), directory=tmp_path) as server:
        for steps in [*range(20), *range(20, 400, 20)]:
            await asyncio.to_thread(asyncio.run, command(server.url, steps))


async def test_verification_can_be_skipped(tmp_path: Path) -> None:
    """With insecure-skip-tls-verify any certificate will do."""
    async with serving(pair=Authority().server("elsewhere.example"), directory=tmp_path) as server:
        assert (await seen_by(HttpTransport(Endpoint(server.url, insecure=True))))["path"] == "/x"


async def test_the_server_name_can_be_given(tmp_path: Path) -> None:
    """With tls-server-name the certificate is checked against that name instead of the address."""
    authority = Authority()
    async with serving(pair=authority.server("api.example"), directory=tmp_path) as server:
        with pytest.raises(ConnectionRefused):
            await seen_by(HttpTransport(Endpoint(server.url, authorities=authority.pem)))
        endpoint = Endpoint(server.url, authorities=authority.pem, server_name="api.example")
        assert (await seen_by(HttpTransport(endpoint)))["path"] == "/x"


async def test_a_client_certificate_is_presented(tmp_path: Path) -> None:
    """The server sees who the client certificate says we are."""
    authority = Authority()
    pair = authority.client("jane")
    async with serving(pair=authority.server("127.0.0.1"), clients=authority, directory=tmp_path) as server:
        credential = Credential((), ClientCertificate(pair.certificate, pair.key))
        transport = HttpTransport(Endpoint(server.url, authorities=authority.pem), FixedCredential(credential))
        assert (await seen_by(transport))["certificate"] == "jane"


async def test_a_rotated_certificate_is_read_again_after_a_refusal(tmp_path: Path) -> None:
    """When the server refuses the client certificate of a kubeconfig's files, they are read again."""
    authority = Authority()
    names = {"certificate-authority": "ca", "client-certificate": "crt", "client-key": "key"}

    def write(user: str, *, whole: bool = True) -> None:
        pair = authority.client(user)
        (tmp_path / "crt").write_bytes(pair.certificate)
        if whole:
            (tmp_path / "key").write_bytes(pair.key)

    async with serving(pair=authority.server("127.0.0.1"), clients=authority, directory=tmp_path) as server:
        echo = server.answer

        async def refuse(request: web.BaseRequest) -> web.StreamResponse:
            return web.Response(status=401)

        (tmp_path / "ca").write_bytes(authority.pem)
        write("jane")
        cluster = {"server": server.url, "certificate-authority": names.pop("certificate-authority")}
        config = tmp_path / "config"
        config.write_text(kubeconfig_text(cluster, names))
        transport = load_kubeconfig(config, runtime=Runtime.system())

        async def who() -> tuple[int, str]:
            response = await transport.request(Request("GET", "/x"))
            return response.status, json.loads(response.body)["certificate"] if response.body else ""

        assert await who() == (200, "jane")
        server.answer = refuse
        write("half", whole=False)
        assert await who() == (401, "")
        server.answer = echo
        assert await who() == (200, "jane")
        write("janet")
        server.answer = once(refuse, then=echo)
        assert await who() == (200, "janet")
        await transport.close()


async def test_requests_that_are_refused_together_all_get_the_rotated_certificate() -> None:
    """Whose certificate was read again for another request has a new one, too; a third refusal changes nothing."""
    source = ClientCertificateFiles(Pairs("jane", "janet").read, FixedCredential(), Runtime.system())
    first = await source.credential()
    assert [source.reject(first), source.reject(first)] == [True, True]
    second = await source.credential()
    assert second.certificate != first.certificate
    assert not source.reject(second)


async def test_authorities_are_read_again_when_a_server_is_not_recognised(tmp_path: Path) -> None:
    """A server whose authority was rotated is recognised by the file as it is now, and one of no authority never."""
    before, now = Authority("before"), Authority("now")
    file = tmp_path / "ca.crt"
    file.write_bytes(before.pem)
    async with serving(pair=now.server("127.0.0.1"), directory=tmp_path) as server:
        transport = HttpTransport(Endpoint(server.url, authorities=before.pem, authorities_file=file))
        with pytest.raises(ConnectionRefused, match="certificate verify failed"):
            await transport.request(Request("GET", "/x"))
        file.write_bytes(now.pem)
        async with transport.stream(Request("GET", "/watch")) as stream:
            assert stream.status == 200
        assert (await seen_by(transport))["path"] == "/x"


async def test_authorities_that_are_half_written_are_read_again(tmp_path: Path) -> None:
    """What is no certificate is not taken for whom to trust: nothing after it would be."""
    before, now = Authority("before"), Authority("now")
    file = tmp_path / "ca.crt"
    async with serving(pair=now.server("127.0.0.1"), directory=tmp_path) as server:
        transport = HttpTransport(Endpoint(server.url, authorities=before.pem, authorities_file=file))
        file.write_bytes(now.pem[:100])
        with pytest.raises(ConnectionRefused, match="certificate verify failed"):
            await transport.request(Request("GET", "/x"))
        file.write_bytes(now.pem)
        assert (await seen_by(transport))["path"] == "/x"


async def test_requests_that_do_not_recognise_a_server_together_are_all_repeated(tmp_path: Path) -> None:
    """Whose authorities were read again for another request has new ones, too."""
    before, now = Authority("before"), Authority("now")
    file = tmp_path / "ca.crt"
    file.write_bytes(now.pem)
    async with serving(pair=now.server("127.0.0.1"), directory=tmp_path) as server:
        transport = HttpTransport(Endpoint(server.url, authorities=before.pem, authorities_file=file))
        answers = await asyncio.gather(*(transport.request(Request("GET", f"/{number}")) for number in range(5)))
        assert [answer.status for answer in answers] == [200] * 5
        await transport.close()


async def test_a_connection_that_is_cut_off_says_so() -> None:
    """An error without a text, as of a TLS handshake that ends half-way, is told by its name."""

    async def cut_off(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.close()

    cut = await asyncio.start_server(cut_off, "127.0.0.1", 0)
    async with cut:
        transport = HttpTransport(Endpoint(f"https://127.0.0.1:{cut.sockets[0].getsockname()[1]}", insecure=True))
        with pytest.raises(ConnectionRefused, match=r"no connection: \S"):
            await transport.request(Request("GET", "/x"))
        await transport.close()


async def test_a_rotated_token_is_read_again_after_a_refusal(tmp_path: Path) -> None:
    """When the server refuses the token, the file is read again and the request repeated once."""
    token = tmp_path / "token"
    token.write_text("old\n")
    runtime = Runtime.system()
    async with serving() as server:
        echo = server.answer

        async def only_new(request: web.BaseRequest) -> web.StreamResponse:
            if request.headers["authorization"] != "Bearer new":
                return web.Response(status=401)
            return await echo(request)

        transport = HttpTransport(Endpoint(server.url), TokenFile(token, runtime))
        assert json.loads((await transport.request(Request("GET", "/a"))).body)["authorization"] == "Bearer old"
        server.answer = only_new
        assert (await transport.request(Request("GET", "/b"))).status == 401
        token.write_text("new\n")
        assert (await seen_by(transport))["authorization"] == "Bearer new"
        token.write_text("old\n")
        transport = HttpTransport(Endpoint(server.url), Rotating(token, runtime))
        async with transport.stream(Request("GET", "/c")) as stream:
            assert stream.status == 200
        await transport.close()
    runtime.executor.close()


async def test_queries_bodies_and_prefixes_arrive_as_they_were(tmp_path: Path) -> None:
    """Query values are escaped, a path prefix of the server's URL is kept, and names may hold colons."""
    async with serving() as server:
        transport = HttpTransport(Endpoint(f"{server.url}/k8s/clusters/c-1/"))
        path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node"
        seen = await seen_by(transport, path, query={"labelSelector": "a in (b,c),d!=e&f"}, body=b'{"a": "\xc3\xa9"}')
        assert seen["path"] == f"/k8s/clusters/c-1{path}"
        assert seen["query"] == {"labelSelector": "a in (b,c),d!=e&f"}
        assert seen["body"] == '{"a": "é"}'


async def test_a_stream_hands_out_chunks_as_they_come() -> None:
    """Each part is seen before the server sends the next, and the end of the stream ends the iteration."""
    async with serving() as server:
        read = asyncio.Event()

        async def slowly(request: web.BaseRequest) -> web.StreamResponse:
            response = web.StreamResponse()
            await response.prepare(request)
            await response.write(b'{"a":1}\n')
            await read.wait()
            await response.write(b'{"b":2}\n')
            return response

        server.answer = slowly
        transport = HttpTransport(Endpoint(server.url))
        chunks = []
        async with transport.stream(Request("GET", "/watch")) as stream:
            async for chunk in stream:
                chunks.append(chunk)
                read.set()
        assert chunks == [b'{"a":1}\n', b'{"b":2}\n']
        await transport.close()


async def test_a_stream_that_breaks_says_so() -> None:
    """A connection that dies in the middle of a stream raises, instead of looking like its end."""
    async with serving() as server:
        server.answer = break_off
        transport = HttpTransport(Endpoint(server.url))
        async with transport.stream(Request("GET", "/watch")) as stream:
            with pytest.raises(ConnectionFailed):
                await drained(stream)
        await transport.close()


async def test_many_watches_do_not_starve_a_write() -> None:
    """There is no limit on connections: with two hundred watches open a request still gets through."""
    async with serving() as server:
        release = asyncio.Event()
        echo = server.answer

        async def hold(request: web.BaseRequest) -> web.StreamResponse:
            if request.path != "/watch":
                return await echo(request)
            response = web.StreamResponse()
            await response.prepare(request)
            await release.wait()
            return response

        server.answer = hold
        transport = HttpTransport(Endpoint(server.url))

        async def watch() -> None:
            async with transport.stream(Request("GET", "/watch")) as stream:
                async for _ in stream:
                    pass

        watches = [asyncio.create_task(watch()) for _ in range(200)]
        await server.wait_for(200)
        assert (await transport.request(Request("GET", "/write", timeout=30))).status == 200
        release.set()
        await asyncio.gather(*watches)
        await transport.close()


async def test_connections_are_reused() -> None:
    """Requests one after the other share a connection."""
    async with serving() as server:
        transport = HttpTransport(Endpoint(server.url))
        for _ in range(10):
            await transport.request(Request("GET", "/a"))
        assert server.connections == 1
        await transport.close()


async def test_a_request_that_could_not_be_sent_is_told_from_one_that_was() -> None:
    """No server: refused, safe to repeat. No answer in time, or a hang-up: whether it happened is unknown."""
    async with serving() as server:
        gone = server.url

        async def never(_: web.BaseRequest) -> web.StreamResponse:
            await asyncio.Event().wait()
            raise AssertionError

        async def hang_up(request: web.BaseRequest) -> web.StreamResponse:
            assert request.transport is not None
            request.transport.abort()
            return web.Response()

        transport = HttpTransport(Endpoint(server.url))
        await transport.request(Request("POST", "/a", body=b"{}"))  # its connection serves the next: none is to be made
        server.answer = never
        with pytest.raises(ConnectionTimedOut, match=r"POST .*/a"):
            await transport.request(Request("POST", "/a", body=b"{}", timeout=0.05))
        with pytest.raises(ConnectionTimedOut):
            async with transport.stream(Request("GET", "/a", timeout=0.05)):
                pass
        server.answer = hang_up
        with pytest.raises(ConnectionFailed) as caught:
            await transport.request(Request("POST", "/a", body=b"{}"))
        assert not isinstance(caught.value, ConnectionRefused)
        await transport.close()
    with pytest.raises(ConnectionRefused):
        await seen_by(HttpTransport(Endpoint(gone)))


async def test_a_proxy_tunnels_tls(tmp_path: Path) -> None:
    """Through a proxy the TLS connection still ends at the API server."""
    authority = Authority()
    async with (
        serving(pair=authority.server("127.0.0.1"), directory=tmp_path) as server,
        proxying() as (proxy, targets),
    ):
        endpoint = Endpoint(server.url, authorities=authority.pem, proxy=proxy)
        assert (await seen_by(HttpTransport(endpoint)))["path"] == "/x"
        assert targets == [server.url.removeprefix("https://")]


async def test_a_watch_passes_a_proxy(tmp_path: Path) -> None:
    """A stream goes through the tunnel, too: what the server sends arrives whole, and its end is the end."""
    authority = Authority()

    async def two(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for line in (b'{"a":1}\n', b'{"b":2}\n'):
            await response.write(line)
        return response

    async with (
        serving(pair=authority.server("127.0.0.1"), directory=tmp_path) as server,
        proxying() as (proxy, targets),
    ):
        server.answer = two
        transport = HttpTransport(Endpoint(server.url, authorities=authority.pem, proxy=proxy))
        async with transport.stream(Request("GET", "/watch")) as stream:
            assert await drained(stream) == b'{"a":1}\n{"b":2}\n'
        assert targets == [server.url.removeprefix("https://")]
        await transport.close()


async def test_redirects_are_not_followed() -> None:
    """A redirect comes back as it is, so that the credential goes nowhere else."""
    async with serving() as server:

        async def redirect(_: web.BaseRequest) -> web.StreamResponse:
            return web.Response(status=302, headers={"location": "http://elsewhere.example/"})

        server.answer = redirect
        transport = HttpTransport(Endpoint(server.url))
        assert (await transport.request(Request("GET", "/a"))).status == 302
        await transport.close()


async def test_a_header_cannot_smuggle_in_another() -> None:
    """A value with a line break, such as a token from a file that has two lines, is refused before anything is sent."""
    async with serving() as server:
        transport = HttpTransport(Endpoint(server.url))
        with pytest.raises(ValueError, match="header 'x-note' contains a line break"):
            await transport.request(Request("GET", "/a", headers={"x-note": "one\r\nx-other: two"}))
        assert server.requests == []
        await transport.close()
