"""What policies allow, as the node enforces it; needs no node."""

from spinney.api.struct import JSON

from .enforcing import Allowed, may, ruleset


def a_pod(**labels: str) -> JSON:
    """Return a pod with a named port."""
    return {
        "metadata": {"uid": "u", "namespace": "team", "labels": labels},
        "spec": {"containers": [{"ports": [{"name": "webhooks", "containerPort": 2750}]}]},
        "status": {"podIP": "10.252.0.9"},
    }


def a_policy(selected: dict[str, str], *ingress: JSON, namespace: str = "team") -> JSON:
    """Return a policy for pods with labels."""
    spec = {"podSelector": {"matchLabels": selected}, "policyTypes": ["Ingress"], "ingress": list(ingress)}
    return {"metadata": {"namespace": namespace}, "spec": spec}


def test_a_pod_may_what_any_policy_that_selects_it_allows() -> None:
    """Without a policy everything, with one nothing, with more what they allow together, each in its own direction."""
    deny, allow = a_policy({}), a_policy({"app": "a"}, {"ports": [{"port": "webhooks"}, {"port": 80}]})
    assert may(a_pod(app="a"), [], "Ingress") == Allowed(everything=True)
    assert may(a_pod(app="a"), [deny], "Ingress") == Allowed(everything=False)
    assert may(a_pod(app="a"), [deny, allow], "Ingress") == Allowed(everything=False, ports=frozenset({80, 2750}))
    assert may(a_pod(app="b"), [deny, allow], "Ingress") == Allowed(everything=False)
    assert may(a_pod(app="a"), [deny, a_policy({}, {})], "Ingress") == Allowed(everything=True)
    assert may(a_pod(app="a"), [deny], "Egress") == Allowed(everything=True)
    assert may(a_pod(app="a"), [a_policy({}, namespace="other")], "Ingress") == Allowed(everything=True)


def test_rules_drop_what_is_not_allowed() -> None:
    """A pod that may nothing is dropped, and so is one that was not looked at yet."""
    rules = ruleset([a_pod()], [a_policy({})])
    assert "ip daddr 10.252.0.9 counter drop" in rules
    assert "ip saddr 10.252.0.9 return" in rules
    assert "ip saddr 10.252.0.0/24 counter drop" in rules
