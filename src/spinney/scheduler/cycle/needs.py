"""What has to be there before anything else can help a job: its queue, its claims, and what these come from."""

from collections.abc import Iterator, Sequence

from spinney.api.core import Pod
from spinney.api.labels import KAI_QUEUE
from spinney.cluster.dra.book import ClaimKey
from spinney.cluster.filters.storage import claim_uses, class_name
from spinney.scheduler.framework.jobs import PodGroupInfo
from spinney.scheduler.framework.results import FitError
from spinney.scheduler.framework.session import Session
from spinney.scheduler.framework.tasks import PodInfo


def needs_of(
    session: Session, job: PodGroupInfo, errors: Sequence[FitError], one_of_each: Sequence[PodInfo]
) -> tuple[str, ...]:
    """Return what a refused job needs, each as an imperative; ``one_of_each`` are pods of each kind."""
    found = [*_queue(session, job, errors)]
    for task in one_of_each:
        found += [*_device_claims(session, task.record.pod), *_volume_claims(session, task.record.pod)]
    return tuple(dict.fromkeys(found))


def _queue(session: Session, job: PodGroupInfo, errors: Sequence[FitError]) -> Iterator[str]:
    missing = job.queue not in session.queues.index and job.queue not in session.queues.dropped
    if missing and any(error.reason == "QueueDoesNotExist" for error in errors):
        yield f"name a queue that exists in the label {KAI_QUEUE} ('spinney queues' lists them), or create it"


def _device_claims(session: Session, pod: Pod) -> Iterator[str]:
    made = {each.name: each.resource_claim_name for each in pod.status.resource_claim_statuses}
    for wanted in pod.spec.resource_claims:
        template = wanted.resource_claim_template_name
        if template and wanted.name not in made:
            yield (
                f"see that the ResourceClaimTemplate {template} exists in the namespace of the pods: "
                f"the claim {wanted.name} is made from it"
            )
            continue
        name = wanted.resource_claim_name or made.get(wanted.name)
        if not name:
            continue
        claim = session.claims.claims.get(ClaimKey(pod.metadata.namespace or "", name))
        if claim is None and not template:
            yield f"create the ResourceClaim {name} in the namespace of the pods"
        if claim is None or claim.allocated:
            continue
        said_in = f"the ResourceClaimTemplate {template}" if template else f"the ResourceClaim {name}"
        for missing in session.claims.missing_classes(claim):
            yield f"install the driver that brings the DeviceClass {missing}, or name another class in {said_in}"


def _volume_claims(session: Session, pod: Pod) -> Iterator[str]:
    storage = session.nodes.surroundings.storage
    for use in claim_uses(pod):
        claim = storage.claim(pod, use.name)
        if claim is None:
            if not use.ephemeral:
                yield f"create the PersistentVolumeClaim {use.name} in the namespace of the pods"
            continue
        volume, its_class = claim.spec.volume_name, class_name(claim)
        if claim.bound or (not volume and storage.waits_for_consumer(claim)):
            continue
        if volume:
            how = f"the PersistentVolume {volume} that it names has to exist, and to be for it"
        elif its_class:
            how = f"its StorageClass {its_class} has to exist, and its provisioner to run"
        else:
            how = "it names no StorageClass, so that a PersistentVolume has to match it"
        yield f"see that the PersistentVolumeClaim {use.name} is bound: {how}"
