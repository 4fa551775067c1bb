"""The rules of webhook configurations: only what can be asked may be stored."""

from collections.abc import Iterator
from urllib.parse import urlsplit

import msgspec

from spinney.api.field_error import FieldError, invalid, required
from spinney.api.struct import JSON
from spinney.server.admission.webhooks import webhook
from spinney.server.kinds.kind import Behaviour

_FORM = "https://host[/path]"
_UNREADABLE = (msgspec.ValidationError, AttributeError, KeyError, TypeError, ValueError)


class WebhookConfigurationBehaviour(Behaviour):
    """Validating and mutating webhook configurations."""

    def validate(self, obj: JSON, old: JSON | None, subresource: str) -> Iterator[FieldError]:
        for index, hook in enumerate(obj.get("webhooks") or ()):
            path = f"webhooks[{index}]"
            try:
                read = webhook(hook)
            except _UNREADABLE as error:
                yield invalid(path, hook.get("name"), f"cannot be read: {error}")
                continue
            if not read.name:
                yield required(f"{path}.name")
            if not read.client.get("url") and not read.client.get("service"):
                yield required(f"{path}.clientConfig", "exactly one of url or service is required")
            elif url := read.client.get("url"):
                yield from _url_causes(str(url), f"{path}.clientConfig.url")


def _url_causes(url: str, path: str) -> Iterator[FieldError]:
    """Check where a webhook is said to be: reviews hold Secrets, and travel over TLS or not at all."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError as error:
        yield required(path, f"url must be a valid URL: {error}; desired format: {_FORM}")
        return
    if parts.scheme != "https":
        yield invalid(path, url, f"'https' is the only allowed URL scheme; desired format: {_FORM}")
    if not host:
        yield invalid(path, url, f"host must be specified; desired format: {_FORM}")
    if parts.username or parts.password:
        yield invalid(path, url, "user information is not permitted in the URL")
    if parts.fragment:
        yield invalid(path, url, "fragments are not permitted in the URL")
    if parts.query:
        yield invalid(path, url, "query parameters not permitted in the URL")
