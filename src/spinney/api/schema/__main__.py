"""Write the CRD manifests: ``python -m spinney.api.schema [DIRECTORY]``."""

import sys
from pathlib import Path

from spinney.api.schema.crd import write_manifests

for path in write_manifests(Path(sys.argv[1] if len(sys.argv) > 1 else "deploy/crds")):
    sys.stdout.write(f"{path}\n")
