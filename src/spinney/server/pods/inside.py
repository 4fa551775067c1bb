"""Reaching into containers (``kubectl exec``, ``attach``, ``port-forward``): refused, with the reason."""

from spinney.server.context import Context, Target
from spinney.server.operations.reading import get
from spinney.server.status import ApiError, bad_request

INSIDE = ("attach", "exec", "portforward")
"""The subresources that connect to a program."""


def nothing_inside(context: Context, target: Target) -> ApiError:
    """Say that a simulated pod has no program to connect to; a pod that is not there is a 404 as ever."""
    get(context, target)
    return bad_request(f"pod {target.key.name} runs on a simulated node: there is no program in it to connect to")
