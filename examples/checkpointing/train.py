"""A training loop that checkpoints when its scheduler asks, with nothing but the standard library.

The scheduler writes the annotation ``spinney.dev/checkpoint-by`` on the pod; the downward API makes it a file. The loop
looks at the file between steps. When it has something new, it saves its state and answers with
``spinney.dev/checkpoint-ready``, the same value, so that the pod is evicted at once instead of when the time is over.
One pod speaks for its gang: in a job of several workers, rank 0 answers when all of them have saved.

Needs: the file (PODINFO), a folder that outlives the pod (CHECKPOINTS), the names of the pod (POD_NAME, POD_NAMESPACE),
and a service account that may patch pods. ``training-with-checkpoints.yaml`` beside ``examples/workloads`` has it all.
"""

import json
import os
import ssl
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def load(checkpoints: Path) -> int:
    """Return the step to go on from."""
    saved = checkpoints / "step"
    return int(saved.read_text()) if saved.exists() else 0


def save(checkpoints: Path, step: int) -> None:
    """Save the state; the rename makes it whole or not there at all."""
    unfinished = checkpoints / "step.new"
    unfinished.write_text(str(step))
    unfinished.replace(checkpoints / "step")


def asked(podinfo: Path) -> str:
    """Return until when the pod has time; empty while nobody asks."""
    return podinfo.read_text().strip() if podinfo.exists() else ""


def answer(by: str) -> None:
    """Say on this pod that its gang is ready to go."""
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
    path = f"/api/v1/namespaces/{os.environ['POD_NAMESPACE']}/pods/{os.environ['POD_NAME']}"
    said = {"metadata": {"annotations": {"spinney.dev/checkpoint-ready": by}}}
    request = urllib.request.Request(
        f"https://{host}:{port}{path}",
        data=json.dumps(said).encode(),
        method="PATCH",
        headers={
            "Authorization": f"Bearer {(ACCOUNT / 'token').read_text()}",
            "Content-Type": "application/merge-patch+json",
        },
    )
    trust = ssl.create_default_context(cafile=str(ACCOUNT / "ca.crt"))
    with urllib.request.urlopen(request, context=trust) as response:  # noqa: S310
        response.read()


def train(
    podinfo: Path, checkpoints: Path, *, steps: int, compute: Callable[[int], None], say: Callable[[str], None]
) -> int:
    """Train from the last checkpoint on; return the step reached."""
    step, answered = load(checkpoints), ""
    while step < steps:
        compute(step)
        step += 1
        by = asked(podinfo)
        if by and by != answered:
            save(checkpoints, step)
            say(by)
            answered = by
    save(checkpoints, step)
    return step


if __name__ == "__main__":
    train(
        Path(os.environ["PODINFO"]),
        Path(os.environ["CHECKPOINTS"]),
        steps=100_000,
        compute=lambda step: time.sleep(1),
        say=answer,
    )
