"""Webhooks are served over TLS while certificates are renewed, replaced and spoilt; only the clock is not real."""

import asyncio
import base64
import json
import random
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from spinney.api.admission import VALIDATING_WEBHOOK_CONFIGURATION
from spinney.api.core import NAMESPACE, SECRET
from spinney.api.struct import JSON
from spinney.backends.builtin import every_backend
from spinney.kube.client import Client
from spinney.kube.webhooks.certificates import new_certificate, provision, service_names
from spinney.kube.webhooks.process import LOOK_AGAIN_SECONDS, WebhookProcess, distrust
from spinney.kube.webhooks.server import ServicePlace
from spinney.operator.admission.webhooks import SERVICE, WEBHOOK_CONFIGURATIONS, register, webhook_process
from spinney.operator.configuration import check
from spinney.operator.operator import Operator, Settings
from spinney.runtime import Runtime
from spinney.runtime.certificates import LIFETIME, ServingCertificate
from spinney.runtime.clock import Clock
from spinney.runtime.executor import InlineExecutor
from spinney.runtime.tasks import end
from spinney.server import ApiServer
from spinney.sim.embedded.transport import InProcessTransport

HOST = f"{SERVICE}.grove.svc"
NAMES = service_names(SERVICE, "grove")
CONFIGURED = "podcliqueset-validating-webhook"
REVIEW: JSON = {
    "request": {
        "uid": "7",
        "kind": {"version": "v1", "kind": "Pod"},
        "resource": {"version": "v1", "resource": "pods"},
        "operation": "DELETE",
    }
}


class Turned(Clock):
    """A clock that somebody turns. Mutable: so is the time, and whoever sleeps waits for it."""

    def __init__(self) -> None:
        self._now = datetime.now(UTC) - LIFETIME * 0.75  # TLS goes by the real time, at which renewals are due
        self._asleep: list[asyncio.Future[None]] = []
        self._slept = asyncio.Event()

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._now.timestamp()

    async def sleep(self, seconds: float) -> None:
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._asleep.append(waiting)
        self._slept.set()
        await waiting

    async def look_again(self, later: timedelta = timedelta(seconds=LOOK_AGAIN_SECONDS)) -> None:
        """Let so much time pass and whoever sleeps wake, and wait until it sleeps again."""
        self._now += later
        asleep, self._asleep = self._asleep, []
        self._slept.clear()
        for waiting in asleep:
            waiting.set_result(None)
        await self.somebody_sleeps()

    async def somebody_sleeps(self) -> None:
        """Wait until whoever uses this clock has nothing to do."""
        async with asyncio.timeout(60):
            await self._slept.wait()


@dataclass(frozen=True)
class Connection:
    """An open connection to the webhooks."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def ask(self) -> str:
        """Have a review answered; returns the serial number of the certificate the connection began with."""
        body = json.dumps(REVIEW).encode()
        head = f"POST /webhooks/authorizer-webhook HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: {len(body)}\r\n\r\n"
        self.writer.write(head.encode() + body)
        async with asyncio.timeout(60):
            found = (await self.reader.readuntil(b"\r\n\r\n")).decode().lower()
            length = int(found.partition("content-length:")[2].split("\r\n")[0])
            answer = json.loads(await self.reader.readexactly(length))
        assert answer["response"]["allowed"]
        return str(self.writer.get_extra_info("peercert")["serialNumber"])


@dataclass(frozen=True)
class Scene:
    """An operator's webhooks, the API server they are registered with, and the hands of a clock."""

    client: Client
    clock: Turned
    process: WebhookProcess

    async def bundle(self) -> str:
        """Return the authorities the API server was told to trust."""
        found = await self.client.get(VALIDATING_WEBHOOK_CONFIGURATION, CONFIGURED)
        return base64.b64decode(found["webhooks"][0]["clientConfig"]["caBundle"]).decode()

    async def ask(self, trusted: str | None = None) -> str:
        """Have a review answered by whoever is trusted, as the API server would; returns the serial number it saw."""
        async with self.connection(await self.bundle() if trusted is None else trusted) as connection:
            return await connection.ask()

    @asynccontextmanager
    async def connection(self, trusted: str) -> AsyncIterator["Connection"]:
        """Open a connection to the webhooks."""
        context = ssl.create_default_context(cadata=trusted)
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", self.process.port, ssl=context, server_hostname=HOST
        )
        try:
            yield Connection(reader, writer)
        finally:
            writer.close()
            await writer.wait_closed()

    async def secret(self) -> ServingCertificate:
        """Return the certificate in the Secret."""
        return await provision(self.client, "grove-webhook-server-cert", "grove", NAMES, self.clock.now())


def serial(certificate: ServingCertificate) -> str:
    """Return the serial number of a certificate as TLS shows it."""
    found = x509.load_pem_x509_certificate(certificate.certificate).serial_number
    return f"{found:X}".zfill(len(f"{found:X}") + len(f"{found:X}") % 2)


@asynccontextmanager
async def webhooks(configuration: str = "") -> AsyncIterator[Scene]:
    """Serve webhooks on a free port."""
    clock = Turned()
    runtime = Runtime(clock, random.Random(1), InlineExecutor())
    server = ApiServer(Runtime.system())
    client = Client(InProcessTransport(server), runtime)
    await client.create(NAMESPACE, {"metadata": {"name": "grove"}})
    loaded = check(f"server: {{webhooks: {{port: 0, bindAddress: 127.0.0.1{configuration}}}}}", every_backend())
    admission = Operator(client, Settings()).admission
    process = webhook_process(admission, client, loaded.written, namespace="grove")
    running = asyncio.create_task(process.run())
    scene = Scene(client, clock, process)
    try:
        await clock.somebody_sleeps()
        yield scene
    finally:
        await end(running)


async def test_a_renewed_certificate_is_trusted_before_it_is_presented() -> None:
    """Renewal goes unnoticed: at every moment whatever is presented is trusted, by those who know the news and not."""
    async with webhooks() as scene:
        first, port, old_bundle = await scene.secret(), scene.process.port, await scene.bundle()
        assert await scene.ask() == serial(first)
        await scene.clock.look_again()
        assert await scene.ask() == serial(first)

        await scene.clock.look_again(LIFETIME * 0.7)
        second = await scene.secret()
        assert second.expires > first.expires
        assert await scene.ask() == await scene.ask(old_bundle) == serial(first)
        await scene.clock.look_again()
        assert await scene.ask() == serial(second)
        assert scene.process.port == port
        with pytest.raises(ssl.SSLCertVerificationError):
            await scene.ask(old_bundle)


async def test_a_connection_outlives_the_certificate_it_began_with() -> None:
    """Replacing the certificate closes nothing: a review on an open connection is answered."""
    async with webhooks() as scene, scene.connection(await scene.bundle()) as connection:
        for _ in range(3):
            await connection.ask()
            await scene.clock.look_again(LIFETIME * 0.7)


async def test_a_bundle_that_was_overwritten_is_restored() -> None:
    """Whoever applies the configurations without a bundle breaks admission for no longer than until the next look."""
    async with webhooks() as scene:
        bundle = await scene.bundle()
        found = await scene.client.get(VALIDATING_WEBHOOK_CONFIGURATION, CONFIGURED)
        found["webhooks"][0]["clientConfig"]["caBundle"] = ""
        await scene.client.replace(VALIDATING_WEBHOOK_CONFIGURATION, found)
        await scene.clock.look_again()
        assert await scene.bundle() == bundle
        await scene.ask()


@pytest.mark.parametrize("spoilt", ["deleted", "emptied", "another's", "no certificate", "another key"])
async def test_a_secret_that_was_spoilt_is_made_anew(spoilt: str) -> None:
    """Without a usable certificate in the Secret there soon is a new one, and it is trusted and presented."""
    async with webhooks() as scene:
        before = await scene.ask()
        if spoilt == "deleted":
            await scene.client.delete(SECRET, "grove-webhook-server-cert", "grove")
        else:
            now = scene.clock.now()
            other, third = new_certificate(("elsewhere",), now), new_certificate(NAMES, now)
            mine = await scene.secret()
            parts = {
                "emptied": (b"", b"", b""),
                "another's": (other.authority, other.certificate, other.key),
                "no certificate": (mine.authority, b"nonsense", mine.key),
                "another key": (mine.authority, mine.certificate, third.key),
            }[spoilt]
            names = ("ca.crt", "tls.crt", "tls.key")
            data = {name: base64.b64encode(part).decode() for name, part in zip(names, parts, strict=True)}
            await scene.client.patch(SECRET, "grove-webhook-server-cert", {"data": data}, "grove")
        await scene.clock.look_again()
        await scene.clock.look_again()
        assert await scene.ask() == serial(await scene.secret()) != before


async def test_another_replicas_certificate_is_taken_over() -> None:
    """Two operators share the Secret: what one of them renews the other presents, too."""
    async with webhooks() as scene:
        later = scene.clock.now() + LIFETIME * 0.7
        renewed = await provision(scene.client, "grove-webhook-server-cert", "grove", NAMES, later)
        await scene.clock.look_again()
        await scene.clock.look_again()
        assert await scene.ask() == serial(renewed)


async def test_two_replicas_that_renew_at_once_agree() -> None:
    """Whoever comes second uses what the first has written."""
    async with webhooks() as scene:
        later = scene.clock.now() + LIFETIME * 0.7
        both = [provision(scene.client, "grove-webhook-server-cert", "grove", NAMES, later) for _ in range(2)]
        one, other = await asyncio.gather(*both)
        assert one == other


async def test_certificates_from_elsewhere_are_read_again(tmp_path: Path) -> None:
    """In manual mode files that change are presented and registered; files that cannot be used are not."""

    def write(certificate: ServingCertificate) -> None:
        parts = {"ca.crt": certificate.authority, "tls.crt": certificate.certificate, "tls.key": certificate.key}
        for name, part in parts.items():
            (tmp_path / name).write_bytes(part)

    first, second = (new_certificate(NAMES, datetime.now(UTC)) for _ in range(2))
    write(first)
    async with webhooks(f", certProvisionMode: manual, serverCertDir: {tmp_path}") as scene:
        assert await scene.bundle() == first.authority.decode()
        trusted = first.authority.decode() + second.authority.decode()
        assert await scene.ask(trusted) == serial(first)
        (tmp_path / "tls.crt").write_bytes(b"half a file")
        await scene.clock.look_again()
        assert await scene.ask(trusted) == serial(first)
        write(second)
        await scene.clock.look_again()
        await scene.clock.look_again()
        assert await scene.ask(trusted) == serial(second)
        assert await scene.bundle() == second.authority.decode()


async def test_nothing_is_registered_for_an_authority_that_is_not_told(tmp_path: Path) -> None:
    """In manual mode without ca.crt somebody else registers the webhooks; the process is ready all the same."""
    made = new_certificate(NAMES, datetime.now(UTC))
    (tmp_path / "tls.crt").write_bytes(made.certificate)
    (tmp_path / "tls.key").write_bytes(made.key)
    async with webhooks(f", certProvisionMode: manual, serverCertDir: {tmp_path}") as scene:
        assert (await scene.client.list(VALIDATING_WEBHOOK_CONFIGURATION)).items == ()
        assert scene.process.unready() is None


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"caBundle": new_certificate(("elsewhere",), datetime.now(UTC)).authority}, "certificate verify failed"),
        ({"caBundle": b"no certificate"}, "would not trust this process"),
        ({"service": {"name": "another", "namespace": "grove"}}, "certificate is not valid for 'another.grove.svc'"),
    ],
)
async def test_a_process_is_not_ready_while_the_api_server_would_not_trust_it(told: JSON, expected: str) -> None:
    """Readiness is found out by a call as the API server would make it, with the bundle and the name it was told."""
    async with webhooks() as scene:
        found = await scene.client.get(VALIDATING_WEBHOOK_CONFIGURATION, CONFIGURED)
        config = found["webhooks"][0]["clientConfig"]
        changed = {**told, **({"caBundle": base64.b64encode(told["caBundle"]).decode()} if "caBundle" in told else {})}
        assert scene.process.port is not None
        assert await distrust(scene.client, WEBHOOK_CONFIGURATIONS, scene.process.port) is None
        found["webhooks"][0]["clientConfig"] = {**config, **changed}
        await scene.client.replace(VALIDATING_WEBHOOK_CONFIGURATION, found)
        problem = await distrust(scene.client, WEBHOOK_CONFIGURATIONS, scene.process.port)
        assert problem is not None
        assert expected in problem
        assert CONFIGURED in problem


async def test_a_process_learns_whether_it_is_trusted(tmp_path: Path) -> None:
    """Where others register the webhooks, a replica is ready only while what they wrote lets it be trusted."""
    now = datetime.now(UTC)
    made, other, place = new_certificate(NAMES, now), new_certificate(NAMES, now), ServicePlace(SERVICE, "grove")
    (tmp_path / "tls.crt").write_bytes(made.certificate)
    (tmp_path / "tls.key").write_bytes(made.key)
    async with webhooks(f", certProvisionMode: manual, serverCertDir: {tmp_path}") as scene:
        await register(scene.client, place, other.authority, authorizer=False)
        await scene.clock.look_again()
        assert "would not trust this process" in (scene.process.unready() or "")
        await register(scene.client, place, made.authority, authorizer=False)
        await scene.clock.look_again()
        assert scene.process.unready() is None


async def test_a_process_is_ready_once_its_webhooks_are_served_and_trusted() -> None:
    """Before that the API server must not send it reviews, for writes would be refused."""
    async with webhooks() as scene:
        assert scene.process.unready() is None
        fresh = webhook_process(
            Operator(scene.client, Settings()).admission,
            scene.client,
            check("", every_backend()).written,
            namespace="x",
        )
        assert fresh.unready() == "webhooks are not served yet"
