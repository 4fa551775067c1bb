"""The operator's webhooks, served for as long as it runs."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from spinney.kube.client import Client
from spinney.kube.webhooks.process import WebhookProcess, WebhookSettings
from spinney.kube.webhooks.server import ServicePlace
from spinney.operator.admission.rules import Admission
from spinney.operator.admission.webhooks import WEBHOOK_CONFIGURATIONS, register
from spinney.operator.configuration import OperatorConfiguration

SERVICE: Final = "grove-operator"


def webhook_process(
    admission: Admission,
    client: Client,
    configuration: OperatorConfiguration,
    *,
    namespace: str,
    leaving: Callable[[], bool] = lambda: False,
) -> WebhookProcess:
    """Return what serves the operator's webhooks, as configured."""
    webhooks, place = configuration.server.webhooks, ServicePlace(SERVICE, namespace)
    settings = WebhookSettings(
        place=place,
        bind_address=webhooks.bind_address,
        port=webhooks.port,
        secret_name=webhooks.secret_name,
        directory=Path(webhooks.server_cert_dir) if webhooks.cert_provision_mode == "manual" else None,
        configurations=WEBHOOK_CONFIGURATIONS,
        register=partial(register, client, place, authorizer=configuration.authorizer.enabled),
    )
    return WebhookProcess(admission, client, settings, leaving=leaving)
