"""Admission on the embedded cluster: reviews go from the server to the operator in the same process.

The webhooks are registered as in production; only the way a review travels is a function call, which works on virtual
time.
"""

from spinney.api.struct import JSON
from spinney.kube.client import Client
from spinney.kube.webhooks.server import ServicePlace
from spinney.operator.admission.rules import Admission
from spinney.operator.admission.webhooks import register
from spinney.server.admission.calling import CallFailed

OPERATOR = ServicePlace("grove-operator", "default")


class Reviews:
    """Carries admission reviews to the operator that runs at the moment. Mutable: operators come and go."""

    def __init__(self) -> None:
        self._admission: Admission | None = None

    async def connect(self, admission: Admission, client: Client) -> None:
        """Have an operator asked from now on."""
        self._admission = admission
        await register(client, OPERATOR, b"", authorizer=False)

    async def call(self, client: JSON, body: bytes, timeout: float) -> bytes:
        """Bring a review to the operator."""
        del timeout
        if self._admission is None:
            raise CallFailed("no operator is running")
        return await self._admission.answer(client["service"]["path"], body)

    async def close(self) -> None:
        """Forget the operator."""
        self._admission = None
