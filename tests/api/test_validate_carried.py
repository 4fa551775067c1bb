"""What Kubernetes' own parts of a set may hold: refused when it is written, not when a pod is made of it."""

from typing import Any

import msgspec
import pytest

from spinney.api.grove import AutoScalingConfig, PodCliqueSet, ResourceClaimTemplateConfig
from spinney.api.schema.defaults import default_pod_clique_set
from spinney.api.schema.validate_pod_clique_set import (
    AdmissionPolicy,
    pod_clique_set_warnings,
    validate_pod_clique_set,
)
from spinney.testing.builders import a_clique, a_pod_clique_set, a_pod_spec

POLICY = AdmissionPolicy()
CLIQUE = "spec.template.cliques[0].spec"


def a_set(**pod_fields: Any) -> PodCliqueSet:
    """Return a set whose pods have these fields."""
    return default_pod_clique_set(a_pod_clique_set("model", [a_clique("worker", pod_spec=a_pod_spec(**pod_fields))]))


@pytest.mark.parametrize(
    ("field", "value", "path", "expected"),
    [
        ("affinity", ["x"], "affinity", "an object"),
        ("affinity", {"nodeAffinity": 5}, "affinity.nodeAffinity", "an object"),
        ("nodeSelector", {"zone": 1}, "nodeSelector[zone]", "a string"),
        ("hostNetwork", "yes", "hostNetwork", "true or false"),
        ("imagePullSecrets", {"name": "x"}, "imagePullSecrets", "a list"),
        ("securityContext", {"fsGroup": 2**63}, "securityContext.fsGroup", "a whole number from"),
        ("overhead", {"cpu": "much"}, "overhead[cpu]", "a quantity"),
    ],
)
def test_what_a_field_cannot_hold_is_refused_at_its_path(field: str, value: object, path: str, expected: str) -> None:
    """The fault names the field and what it takes."""
    (fault,) = validate_pod_clique_set(a_set(**{field: value}), POLICY)
    assert fault.path == f"{CLIQUE}.podSpec.{path}"
    assert f": must be {expected}" in fault.text


def test_a_null_is_the_same_as_nothing() -> None:
    """Kubernetes reads a null as an absent field, wherever it stands."""
    assert validate_pod_clique_set(a_set(affinity=None, nodeSelector={"zone": None}), POLICY) == []


def test_a_rule_has_the_first_word() -> None:
    """Where a rule already says what is wrong with a field, its type is not complained of as well."""
    (fault,) = validate_pod_clique_set(a_set(volumes="many"), POLICY)
    assert str(fault) == f'{CLIQUE}.podSpec.volumes: Invalid value: "many": must be a list'


def test_claims_and_metrics_are_looked_at_too() -> None:
    """A claim template and the metrics of an autoscaler are held to the fields of their kinds."""
    pcs = a_set()
    template = pcs.spec.template
    spec = msgspec.structs.replace(
        template.cliques[0].spec,
        auto_scaling_config=AutoScalingConfig(
            min_replicas=1,
            max_replicas=3,
            metrics=(
                {
                    "type": "Pods",
                    "pods": {"metric": {"name": "x", "selector": 5}, "target": {"type": "Value", "value": 1}},
                },
            ),
        ),
    )
    claim: dict[str, Any] = {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": "one"}]}}}
    changed = msgspec.structs.replace(
        template,
        cliques=(msgspec.structs.replace(template.cliques[0], spec=spec),),
        resource_claim_templates=(ResourceClaimTemplateConfig(name="gpu", template_spec=claim),),
    )
    faults = validate_pod_clique_set(
        msgspec.structs.replace(pcs, spec=msgspec.structs.replace(pcs.spec, template=changed)), POLICY
    )
    assert {fault.path for fault in faults} == {
        f"{CLIQUE}.autoScalingConfig.metrics[0].pods.metric.selector",
        "spec.template.resourceClaimTemplates[0].templateSpec.spec.devices.requests[0].exactly",
    }


def test_an_unknown_field_is_let_through_with_a_warning() -> None:
    """It may come from a newer Kubernetes, or be misspelt, in which case the one that was meant is named."""
    pcs = a_set(tolerances=[], fromTheFuture=1)
    assert validate_pod_clique_set(pcs, POLICY) == []
    misspelt, unheard = pod_clique_set_warnings(pcs, POLICY)
    assert misspelt == f"{CLIQUE}.podSpec.tolerances: unknown field; did you mean 'tolerations'?"
    assert unheard.startswith(f"{CLIQUE}.podSpec.fromTheFuture: unknown field: Kubernetes 1.37 has no such field")


def test_what_an_update_leaves_alone_is_not_looked_at_again() -> None:
    """A spec from before a rule can still be scaled, and is not warned about each time."""
    old = a_set(affinity="odd", tolerances=[])
    new = msgspec.structs.replace(old, spec=msgspec.structs.replace(old.spec, replicas=7))
    assert validate_pod_clique_set(new, POLICY, old) == []
    assert pod_clique_set_warnings(new, POLICY, old) == []
