"""The rules of webhook configurations: only what can be asked may be stored."""

import msgspec

from spinney.api.struct import JSON
from spinney.server.admission.hooks import webhook
from spinney.server.kinds.kind import Behaviour
from spinney.server.status import Cause, invalid_value, required

_UNREADABLE = (msgspec.ValidationError, AttributeError, KeyError, TypeError, ValueError)


class WebhookConfigurationBehaviour(Behaviour):
    """Validating and mutating webhook configurations."""

    def validate(self, obj: JSON, old: JSON | None, subresource: str) -> list[Cause]:
        causes = []
        for index, hook in enumerate(obj.get("webhooks") or ()):
            path = f"webhooks[{index}]"
            try:
                read = webhook(hook)
            except _UNREADABLE as error:
                causes.append(invalid_value(path, hook.get("name"), f"cannot be read: {error}"))
                continue
            if not read.name:
                causes.append(required(f"{path}.name"))
            if not read.client.get("url") and not read.client.get("service"):
                causes.append(required(f"{path}.clientConfig", "exactly one of url or service is required"))
        return causes
