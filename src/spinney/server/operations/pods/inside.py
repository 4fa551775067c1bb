"""Reaching into containers (``kubectl exec``, ``attach``, ``port-forward``, a proxy): refused, with the reason."""

from spinney.server.exchange.status import StatusError, bad_request
from spinney.server.operations.context import Context, Target
from spinney.server.operations.reading import get

INSIDE = ("attach", "exec", "portforward", "proxy")
"""The subresources that connect to a program."""


def nothing_inside(context: Context, target: Target) -> StatusError:
    """Say that there is no program to connect to; what is not there is a 404 as ever."""
    found = get(context, target)
    name = target.key.name
    match target.resource.plural:
        case "nodes":
            return bad_request(f"node {name} is simulated: there is no kubelet on it to connect to")
        case "services":
            return bad_request(f"service {name} leads to simulated pods: there is no program in them to connect to")
    if not (found.decode().get("spec") or {}).get("nodeName"):
        return bad_request(f"pod {name} does not have a host assigned")
    return bad_request(f"pod {name} runs on a simulated node: there is no program in it to connect to")
