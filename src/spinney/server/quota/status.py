"""The status of a quota: what may be used, and what is."""

from collections.abc import Mapping

from spinney.api.quantity import Quantity
from spinney.api.struct import JSON
from spinney.server.quota.amounts import amounts, written


def with_usage(quota: JSON, used: Mapping[str, Quantity]) -> JSON | None:
    """Return a ResourceQuota whose status says what is used, or ``None`` if it says so already."""
    hard = (quota.get("spec") or {}).get("hard") or {}
    status = quota.get("status") or {}
    if amounts(status.get("used")) == dict(used) and amounts(status.get("hard")) == amounts(hard):
        return None
    return {**quota, "status": {"hard": hard, "used": written(used)}}
