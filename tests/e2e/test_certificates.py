"""Webhooks go on being called while their certificates change hands (Grove's CM1).

Certificates matter only where there are sockets, so this scenario runs in real time, over TLS on loopback.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from spinney.api.grove import POD_CLIQUE_SET, PodCliqueSet
from spinney.api.struct import JSON
from spinney.backends.builtin import every_backend
from spinney.kube.client import Client
from spinney.kube.errors import ApiError
from spinney.kube.webhooks.certificates import new_certificate, provision, service_names
from spinney.kube.webhooks.server import ServicePlace, WebhookServer, certificate_in
from spinney.operator.admission.webhooks import register
from spinney.operator.configuration import check
from spinney.operator.operator import Settings
from spinney.runtime import Runtime
from spinney.runtime.certificates import ServingCertificate
from spinney.server import ApiServer, ServerOptions
from spinney.sim.embedded.stack import Stack, StackOptions
from spinney.sim.embedded.transport import InProcessTransport
from tests.e2e.backends import SPINNEY
from tests.e2e.floor import INSTANT, a_floor
from tests.e2e.workloads.parts import a_clique, a_set

PLACE = ServicePlace("grove-operator", "default")
NAMES = service_names(PLACE.name, PLACE.namespace)


class Front:
    """An operator whose webhooks can be moved from one certificate to another. Mutable: so is their address."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self._addresses: dict[str, str] = {}
        self.server = ApiServer(runtime, ServerOptions(service_addresses=self._addresses))
        configuration = check(SPINNEY.configuration(topology=False, mnnvl=False), every_backend())
        nodes = a_floor(1, times=INSTANT)
        self.stack = Stack(self.connect, StackOptions(nodes=nodes, operator=Settings.of(configuration)))
        self.client = self.connect("user")

    def connect(self, field_manager: str) -> Client:
        return Client(InProcessTransport(self.server), self.runtime, field_manager=field_manager)

    @asynccontextmanager
    async def serving(self, certificate: ServingCertificate) -> AsyncIterator[None]:
        """Answer reviews with a certificate."""
        webhooks = WebhookServer(self.stack.operator.admission, certificate, host="127.0.0.1")
        async with webhooks.serving() as port:
            self._addresses[f"{PLACE.namespace}/{PLACE.name}"] = f"127.0.0.1:{port}"
            yield

    async def trust(self, authority: bytes) -> None:
        """Have the API server trust who signed the certificate."""
        await register(self.client, PLACE, authority, authorizer=False)

    async def admit(self, name: str) -> None:
        """Create a workload, which must come back with the operator's defaults."""
        manifest: JSON = a_set(name, [a_clique("worker", 1)])
        created = await self.client.create(POD_CLIQUE_SET, manifest, "default", type=PodCliqueSet)
        assert created.spec.template.termination_delay is not None
        await self.client.delete(POD_CLIQUE_SET, name, "default")


async def test_cm1_from_own_certificates_to_others_and_back(tmp_path: Path) -> None:
    """Workloads are admitted with the operator's own certificate, with one from elsewhere, and with its own again."""
    runtime = Runtime.system()
    front = Front(runtime)
    async with front.server.running(), front.stack.running():
        now = runtime.clock.now()
        own = await provision(front.client, "grove-webhook-server-cert", "default", NAMES, now)
        async with front.serving(own):
            await front.trust(own.authority)
            await front.admit("own")

        issued = new_certificate(NAMES, now)
        for name, content in (("ca.crt", issued.authority), ("tls.crt", issued.certificate), ("tls.key", issued.key)):
            (tmp_path / name).write_bytes(content)
        async with front.serving(certificate_in(tmp_path)):
            with pytest.raises(ApiError, match="cannot be reached"):
                await front.admit("not-trusted-yet")
            await front.trust(issued.authority)
            await front.admit("issued")

        again = await provision(front.client, "grove-webhook-server-cert", "default", NAMES, now)
        assert again == own
        async with front.serving(again):
            await front.trust(again.authority)
            await front.admit("own-again")
    runtime.executor.close()
