"""The contract, kept."""

from typing import ClassVar

from acme_backend import ACME_GANG, AcmeScheduler

from spinney.testing.backends import BackendContract

CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"{ACME_GANG.plural}.{ACME_GANG.group}"},
    "spec": {
        "group": ACME_GANG.group,
        "scope": "Namespaced",
        "names": {"kind": ACME_GANG.kind, "plural": ACME_GANG.plural, "singular": "acmegang"},
        "versions": [
            {
                "name": ACME_GANG.version,
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                    }
                },
            }
        ],
    },
}


class TestAcme(BackendContract):
    """ACME is a good backend."""

    backend = AcmeScheduler
    config: ClassVar = {"pool": "gpu"}
    crds: ClassVar = [CRD]
