"""The contract, kept."""

from pathlib import Path
from typing import ClassVar

import yaml
from acme_backend import AcmeScheduler

from spinney.testing.backends import BackendContract

CRD = yaml.safe_load((Path(__file__).parents[1] / "crd.yaml").read_text())


class TestAcme(BackendContract):
    """ACME is a good backend."""

    backend = AcmeScheduler
    config: ClassVar = {"pool": "gpu"}
    crds: ClassVar = [CRD]
