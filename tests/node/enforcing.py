"""NetworkPolicies, enforced on the node with nftables: its bridge does not, and a policy nobody enforces tests nothing.

What a pod may is worked out from the policies that select it, and written as rules about its address. A pod that was
not looked at yet may nothing. Peers of policies are not needed here and not understood: a rule that names some is
refused rather than taken for one that names none.
"""

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from spinney.api.struct import JSON

from .machine import Machine

PODS = "10.252.0.0/24"
_SECONDS = 0.5


@dataclass(frozen=True)
class Allowed:
    """What a pod may in one direction: everything, or some ports."""

    everything: bool
    ports: frozenset[int] = frozenset()


@contextmanager
def enforced(machine: Machine) -> Iterator[None]:
    """Enforce the policies of a cluster for the time of the block."""
    ended = threading.Event()
    following = threading.Thread(target=_follow, args=(machine, ended), name="network policies")
    following.start()
    try:
        yield
    finally:
        ended.set()
        following.join()
        machine.inside("nft", "delete", "table", "ip", "policies")


def _follow(machine: Machine, ended: threading.Event) -> None:
    before = ""
    while True:
        pods = machine.get("pods", "--all-namespaces")["items"]
        policies = machine.get("networkpolicies", "--all-namespaces")["items"]
        rules = ruleset(pods, policies)
        if rules != before:
            machine.inside("bash", "-c", f"nft -f - <<'E'\n{rules}\nE")
            before = rules
        if ended.wait(_SECONDS):
            return


def ruleset(pods: Iterable[JSON], policies: Sequence[JSON]) -> str:
    """Return rules for the addresses of pods. Of traffic to the node only what pods begin is looked at."""
    out, into = [], []
    for pod in sorted(pods, key=lambda each: str(each["metadata"]["uid"])):
        address = pod.get("status", {}).get("podIP")
        if address is None or pod["spec"].get("hostNetwork"):
            continue
        out.append(_rule(f"ip saddr {address}", may(pod, policies, "Egress")))
        into.append(_rule(f"ip daddr {address}", may(pod, policies, "Ingress")))
    known = "ct state established,related accept"
    chains = {
        "out_of_pods": [known, *out, f"ip saddr {PODS} counter drop"],
        "into_pods": [known, *into, f"ip daddr {PODS} counter drop"],
        "forwarded": [
            "type filter hook forward priority -10; policy accept;",
            f"ip saddr {PODS} jump out_of_pods",
            f"ip daddr {PODS} jump into_pods",
        ],
        "to_the_node": ["type filter hook input priority -10; policy accept;", f"ip saddr {PODS} jump out_of_pods"],
    }
    body = "\n".join(f"chain {name} {{\n" + "\n".join(rules) + "\n}" for name, rules in chains.items())
    return f"table ip policies\ndelete table ip policies\ntable ip policies {{\n{body}\n}}"


def _rule(selected: str, allowed: Allowed) -> str:
    if allowed.everything:
        return f"{selected} return"
    if not allowed.ports:
        return f"{selected} counter drop"
    return f"{selected} tcp dport {{ {', '.join(map(str, sorted(allowed.ports)))} }} return"


def may(pod: JSON, policies: Iterable[JSON], direction: str) -> Allowed:
    """Return what a pod may in a direction: what any policy that selects it allows, and everything where none does."""
    mine = [each for each in policies if _selects(each, pod) and direction in each["spec"]["policyTypes"]]
    rules = [rule for policy in mine for rule in policy["spec"].get(direction.lower()) or ()]
    if not mine or {} in rules:
        return Allowed(everything=True)
    return Allowed(everything=False, ports=frozenset(port for rule in rules for port in _ports(rule, pod)))


def _selects(policy: JSON, pod: JSON) -> bool:
    selector = policy["spec"]["podSelector"]
    assert set(selector) <= {"matchLabels"}, f"not understood: {selector}"
    labels = pod["metadata"].get("labels", {})
    here = policy["metadata"]["namespace"] == pod["metadata"]["namespace"]
    return here and all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items())


def _ports(rule: JSON, pod: JSON) -> Iterator[int]:
    assert set(rule) == {"ports"}, f"not understood: {rule}"
    named = {
        port["name"]: port["containerPort"] for each in pod["spec"]["containers"] for port in each.get("ports", ())
    }
    for each in rule["ports"]:
        yield each["port"] if isinstance(each["port"], int) else named[each["port"]]
