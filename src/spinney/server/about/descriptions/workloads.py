"""Texts about what makes pods, and about what limits their eviction."""

from collections.abc import Mapping
from typing import Final

from spinney.server.about.descriptions.texts import ITSELF, Texts

TYPES: Final[Mapping[str, Texts]] = {
    "apps.Deployment": {
        ITSELF: "Keeps a number of equal pods running and brings new versions of them out step by step."
    },
    "apps.DeploymentSpec": {
        ITSELF: "Which pods are wanted, how many, and how they are replaced.",
        "replicas": "How many pods.",
        "selector": "Labels by which the pods are found. The template must have them. Fixed.",
        "template": "What the pods look like. A change brings out a new version.",
        "strategy": "RollingUpdate replaces pods little by little, Recreate all at once.",
        "minReadySeconds": "How long a new pod has to be ready before it counts.",
        "revisionHistoryLimit": "How many former versions are kept to go back to.",
        "paused": "Changes of the template wait.",
        "progressDeadlineSeconds": "How long a version may take before it is reported as failed.",
    },
    "apps.DeploymentStatus": {
        ITSELF: "How far a deployment has come.",
        "observedGeneration": "The generation that this status is about.",
        "replicas": "How many pods there are.",
        "updatedReplicas": "How many of them are of the newest version.",
        "readyReplicas": "How many are ready.",
        "availableReplicas": "How many have been ready long enough.",
        "unavailableReplicas": "How many are still missing.",
        "terminatingReplicas": "How many are on their way out.",
        "conditions": "Whether it is available, goes on, or is stuck.",
        "collisionCount": "Counts clashes of names of its replica sets.",
    },
    "batch.Job": {ITSELF: "Runs pods until enough of them have succeeded."},
    "batch.JobSpec": {
        ITSELF: "What a job runs, how often, and when it gives up.",
        "parallelism": "How many pods at most run at a time.",
        "completions": "How many pods have to succeed.",
        "completionMode": "Indexed gives every pod a number of its own; NonIndexed treats them alike.",
        "template": "What the pods look like. Fixed.",
        "backoffLimit": "How often pods may fail before the job does.",
        "backoffLimitPerIndex": "How often the pods of one index may fail.",
        "maxFailedIndexes": "How many indexes may fail before the job does.",
        "activeDeadlineSeconds": "How long the job may take.",
        "ttlSecondsAfterFinished": "How long the job is kept after its end.",
        "suspend": "No pods run while this is true.",
        "selector": "Labels by which the pods are found. Usually filled in.",
        "manualSelector": "The selector is the author's own.",
        "podFailurePolicy": "Which failures count, and which end the job at once.",
        "successPolicy": "When a job has succeeded before all of its pods have.",
        "podReplacementPolicy": "Whether a pod on its way out is replaced before it is gone.",
        "managedBy": "Which controller looks after the job.",
        "scheduling": "How the pods are scheduled together.",
    },
    "batch.JobStatus": {
        ITSELF: "How far a job has come.",
        "conditions": "Whether it is complete, failed or suspended, and why.",
        "startTime": "When its controller took it on.",
        "completionTime": "When it succeeded.",
        "active": "How many pods run or wait.",
        "ready": "How many of those are ready.",
        "terminating": "How many pods are on their way out.",
        "succeeded": "How many pods have succeeded.",
        "failed": "How many pods have failed.",
        "completedIndexes": "The indexes that are done, as in 1,3-5.",
        "failedIndexes": "The indexes that have failed, as in 1,3-5.",
        "uncountedTerminatedPods": "Pods that have ended and are not in the counts yet.",
    },
    "policy.PodDisruptionBudget": {ITSELF: "Limits how many pods of a set may be evicted at the same time."},
    "policy.PodDisruptionBudgetSpec": {
        ITSELF: "Which pods, and how many must stay.",
        "minAvailable": "How many pods, or what share of them, must stay.",
        "maxUnavailable": "How many pods, or what share of them, may be missing. Instead of minAvailable.",
        "selector": "Labels of the pods.",
        "unhealthyPodEvictionPolicy": "Whether pods that are not ready may always be evicted.",
    },
    "policy.PodDisruptionBudgetStatus": {
        ITSELF: "How many evictions a budget still allows.",
        "disruptionsAllowed": "How many pods may be evicted now.",
        "currentHealthy": "How many pods are healthy.",
        "desiredHealthy": "How many must be.",
        "expectedPods": "How many there should be.",
        "disruptedPods": "Pods whose eviction was granted and is not seen yet.",
        "observedGeneration": "The generation that this status is about.",
        "conditions": "Whether evictions are allowed, and why not.",
    },
}
