"""Admission policies, their bindings, and what becomes of writes that meet them, for either server.

A case is met by config maps that have its name as the label ``case``. ``{ns}`` stands for the namespace of the run.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from spinney.api.struct import JSON

GROUP = "/apis/admissionregistration.k8s.io/v1"
POLICIES, BINDINGS = f"{GROUP}/validatingadmissionpolicies", f"{GROUP}/validatingadmissionpolicybindings"
RULES = [
    {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE", "DELETE"],
        "resources": ["configmaps"],
    }
]
_MAPS = {"apiVersion": "v1", "kind": "ConfigMap"}
_WANT = {"expression": "object.data.a == 'b'"}


@dataclass(frozen=True)
class Case:
    """A policy, how it is bound, and what a config map with ``data: {a: x}`` is told."""

    policy: JSON
    binding: JSON = field(default_factory=dict)
    code: int = 422
    reason: str = "Invalid"
    told: str = ""  # the end of the message, or of the warning


CASES: Mapping[str, Case] = {
    "plain": Case({"validations": [_WANT]}, told="denied request: failed expression: object.data.a == 'b'"),
    "kept": Case({"validations": [{"expression": "object.data.a == 'x'"}]}, code=201),
    "message": Case(
        {"validations": [{**_WANT, "message": "say b", "reason": "Forbidden"}, {"expression": "false"}]},
        code=403,
        reason="Forbidden",
        told="denied request: say b",
    ),
    "variables": Case(
        {
            "variables": [{"name": "x", "expression": "'!'"}, {"name": "y", "expression": "variables.x + '?'"}],
            "validations": [{**_WANT, "messageExpression": "'was ' + object.data.a + variables.y"}],
        },
        told="denied request: was x!?",
    ),
    "unused-variable": Case(
        {
            "variables": [{"name": "bad", "expression": "object.data.none"}],
            "validations": [{"expression": "object.data.a == 'x' || variables.bad == 'y'"}],
        },
        code=201,
    ),
    "failing": Case({"validations": [{"expression": "object.data.none == 'b'"}]}, told=""),
    "failing-ignored": Case(
        {"failurePolicy": "Ignore", "validations": [{"expression": "object.data.none == 'b'"}]}, code=201
    ),
    "warning": Case(
        {"validations": [_WANT]},
        {"validationActions": ["Warn", "Audit"]},
        code=201,
        told="with binding '{ns}-warning': failed expression: object.data.a == 'b'",
    ),
    "audited": Case({"validations": [_WANT]}, {"validationActions": ["Audit"]}, code=201),
    "condition": Case(
        {
            "matchConditions": [{"name": "c", "expression": "object.data.a == 'z'"}],
            "validations": [{"expression": "false"}],
        },
        code=201,
    ),
    "excluded": Case(
        {"validations": [{"expression": "false"}]},
        {"matchResources": {"excludeResourceRules": RULES}},
        code=201,
    ),
    "elsewhere": Case(
        {"validations": [{"expression": "false"}]},
        {"matchResources": {"namespaceSelector": {"matchLabels": {"no": "such"}}}},
        code=201,
    ),
    "params": Case(
        {
            "paramKind": _MAPS,
            "validations": [
                {"expression": "object.data.a == params.data.a", "messageExpression": "'want ' + params.data.a"}
            ],
        },
        {"paramRef": {"name": "wanted", "parameterNotFoundAction": "Deny"}},
        told="denied request: want q",
    ),
    "no-params": Case(
        {"paramKind": _MAPS, "validations": [{"expression": "object.data.a == params.data.a"}]},
        {"paramRef": {"name": "nope", "parameterNotFoundAction": "Deny"}},
        told="no params found for policy binding with `Deny` parameterNotFoundAction",
    ),
    "no-params-allowed": Case(
        {"paramKind": _MAPS, "validations": [{"expression": "object.data.a == params.data.a"}]},
        {"paramRef": {"selector": {"matchLabels": {"no": "such"}}, "parameterNotFoundAction": "Allow"}},
        code=201,
    ),
    "request": Case(
        {
            "validations": [
                {
                    "expression": "namespaceObject.metadata.name != request.namespace || oldObject != null",
                    "messageExpression": "request.operation + ' ' + request.resource.resource + ' ' + request.name",
                }
            ]
        },
        told="denied request: CREATE configmaps request",
    ),
}


def a_case(name: str, case: Case) -> tuple[JSON, JSON, JSON]:
    """Return the policy, the binding and the config map of a case."""
    selector = {"matchLabels": {"case": name}}
    constraints = {"resourceRules": RULES, "objectSelector": selector}
    metadata = {"name": f"{{ns}}-{name}"}
    policy = {"metadata": metadata, "spec": {"matchConstraints": constraints, **case.policy}}
    spec = {"policyName": f"{{ns}}-{name}", "validationActions": ["Deny"], **case.binding}
    config = {"metadata": {"name": name, "labels": {"case": name}}, "data": {"a": "x"}}
    return policy, {"metadata": metadata, "spec": spec}, config


def _policy(**spec: Any) -> JSON:
    return {"matchConstraints": {"resourceRules": RULES}, "validations": [_WANT], **spec}


def _binding(**spec: Any) -> JSON:
    return {"policyName": "p", "validationActions": ["Deny"], **spec}


# Specs that are refused, by the collection: the spec, and the causes.
REFUSED: Mapping[str, tuple[tuple[JSON, tuple[str, ...]], ...]] = {
    POLICIES: (
        (_policy(matchConstraints=None), ("spec.matchConstraints FieldValueRequired",)),
        (_policy(matchConstraints={}), ("spec.matchConstraints.resourceRules FieldValueRequired",)),
        (
            _policy(validations=[]),
            ("spec.auditAnnotations FieldValueRequired", "spec.validations FieldValueRequired"),
        ),
        (_policy(validations=[{"expression": "object."}]), ("spec.validations[0].expression FieldValueInvalid",)),
        (_policy(validations=[{"expression": ""}]), ("spec.validations[0].expression FieldValueRequired",)),
        (_policy(validations=[{"expression": "1"}]), ("spec.validations[0].expression FieldValueInvalid",)),
        (_policy(validations=[{"expression": "params.x == 1"}]), ("spec.validations[0].expression FieldValueInvalid",)),
        (
            _policy(validations=[{"expression": "variables.z == 1"}]),
            ("spec.validations[0].expression FieldValueInvalid",),
        ),
        (
            _policy(validations=[{**_WANT, "messageExpression": "1"}]),
            ("spec.validations[0].messageExpression FieldValueInvalid",),
        ),
        (_policy(validations=[{**_WANT, "reason": "X"}]), ("spec.validations[0].reason FieldValueNotSupported",)),
        (_policy(variables=[{"name": "a", "expression": "foo"}]), ("spec.variables[0].expression FieldValueInvalid",)),
        (_policy(variables=[{"name": "a b", "expression": "1"}]), ("spec.variables[0].name FieldValueInvalid",)),
        (
            _policy(matchConditions=[{"name": "a", "expression": "foo"}]),
            ("spec.matchConditions[0].expression FieldValueInvalid",),
        ),
        (_policy(paramKind={"kind": "ConfigMap"}), ("spec.paramKind.apiVersion FieldValueRequired",)),
        (_policy(failurePolicy="X"), ("spec.failurePolicy FieldValueNotSupported",)),
    ),
    BINDINGS: (
        (_binding(policyName=""), ("spec.policyName FieldValueRequired",)),
        (_binding(validationActions=[]), ("spec.validationActions FieldValueRequired",)),
        (_binding(validationActions=["X"]), ("spec.validationActions[0] FieldValueNotSupported",)),
        (_binding(validationActions=["Deny", "Warn"]), ("spec.validationActions FieldValueInvalid",)),
        (_binding(validationActions=["Deny"] * 2), ("spec.validationActions[1] FieldValueDuplicate",)),
        (
            _binding(paramRef={}),
            ("spec.paramRef FieldValueRequired", "spec.paramRef.parameterNotFoundAction FieldValueRequired"),
        ),
        (
            _binding(paramRef={"name": "a", "selector": {}, "parameterNotFoundAction": "Allow"}),
            ("spec.paramRef.name FieldValueForbidden", "spec.paramRef.selector FieldValueForbidden"),
        ),
    ),
}
