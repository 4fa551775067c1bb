"""Labels, annotations, gates, finalizers and names that are part of the contract with Grove, KAI and Kubernetes."""

from typing import Final

# Kubernetes
MANAGED_BY: Final = "app.kubernetes.io/managed-by"
PART_OF: Final = "app.kubernetes.io/part-of"
APP_NAME: Final = "app.kubernetes.io/name"
COMPONENT: Final = "app.kubernetes.io/component"
HOSTNAME: Final = "kubernetes.io/hostname"
REPLICA_SET_HASH: Final = "pod-template-hash"

# Grove: every managed object carries MANAGED_BY with this value
MANAGED_BY_GROVE: Final = "grove-operator"
GROVE_PREFIX: Final = "grove.io/"
POD_CLIQUE: Final = "grove.io/podclique"
POD_GANG: Final = "grove.io/podgang"
BASE_POD_GANG: Final = "grove.io/base-podgang"
REPLICA_INDEX: Final = "grove.io/podcliqueset-replica-index"
SCALING_GROUP: Final = "grove.io/podcliquescalinggroup"
SCALING_GROUP_REPLICA_INDEX: Final = "grove.io/podcliquescalinggroup-replica-index"
POD_INDEX: Final = "grove.io/podclique-pod-index"
POD_TEMPLATE_HASH: Final = "grove.io/pod-template-hash"
SCHEDULER_NAME: Final = "grove.io/scheduler-name"
MNNVL_GROUP: Final = "grove.io/mnnvl-group"
DISABLE_PROTECTION: Final = "grove.io/disable-managed-resource-protection"
TOPOLOGY_NAME: Final = "grove.io/topology-name"
POD_GANG_GATE: Final = "grove.io/podgang-pending-creation"
POD_CLIQUE_SET_FINALIZER: Final = "grove.io/podcliqueset.grove.io"
POD_CLIQUE_FINALIZER: Final = "grove.io/podclique.grove.io"
SCALING_GROUP_FINALIZER: Final = "grove.io/podcliquescalinggroup.grove.io"

# Grove: what a pod that waits for others waits with
INIT_CONTAINER: Final = "grove-initc"
TOKEN_VOLUME: Final = "sa-token-secret-vol"  # noqa: S105 - the name of a volume
POD_INFO_VOLUME: Final = "pod-info-vol"

# KAI
KAI_QUEUE: Final = "kai.scheduler/queue"
KAI_NODE_POOL: Final = "kai.scheduler/node-pool"
KAI_POD_GROUP: Final = "pod-group-name"
KAI_SUB_GROUP: Final = "kai.scheduler/subgroup-name"
KAI_SKIP_POD_GROUPER: Final = "kai.scheduler/skip-podgrouper"
KAI_TOPOLOGY: Final = "kai.scheduler/topology"
KAI_PREEMPTIBILITY: Final = "kai.scheduler/preemptibility"
KAI_PRIORITY_CLASS: Final = "priorityClassName"
KAI_LAST_START: Final = "kai.scheduler/last-start-timestamp"
KAI_LAST_EVICTION: Final = "kai.scheduler/last-eviction-timestamp"
KAI_PREEMPTION_DELAY: Final = "kai.scheduler/preemption-delay"
KAI_STALENESS_GRACE: Final = "kai.scheduler/staleness-grace-period"
KAI_STALE_SINCE: Final = "kai.scheduler/stale-podgroup-timestamp"
GPU_FRACTION: Final = "gpu-fraction"
GPU_MEMORY: Final = "gpu-memory"

# Volcano
VOLCANO_QUEUE: Final = "scheduling.grove.io/volcano-queue"
VOLCANO_GROUP: Final = "scheduling.volcano.sh/group-name"
LEGACY_GROUP: Final = "scheduling.k8s.io/group-name"

# Spinney
EXPECTED_DURATION: Final = "spinney.dev/expected-duration"
"""How long a pod, or the gang it is in, is expected to run, such as 90m: an annotation of pods."""
GANG: Final = "spinney.dev/gang"
GROUPED: Final = "spinney.dev/grouped"
MIN_GROUPS: Final = "spinney.dev/min-groups"
CHECKPOINT_GRACE: Final = "spinney.dev/checkpoint-grace"
LAST_CHECKPOINT: Final = "spinney.dev/last-checkpoint"
MIN_RUNTIME: Final = "spinney.dev/min-runtime"
CHECKPOINT_BY: Final = "spinney.dev/checkpoint-by"
CHECKPOINT_READY: Final = "spinney.dev/checkpoint-ready"
EVICTION_REQUEST: Final = "spinney.dev/eviction-request"
ORIGINAL_NAMES: Final = "spinney.dev/original-names"
ADMISSION: Final = "spinney.dev/admission"
QUEUED: Final = "queue"
"""The value of ADMISSION by which a suspended workload asks to wait in a queue."""
FINISHED_AND_GONE: Final = "spinney.dev/finished-and-gone"
"""How many pods of each group of a PodGang have finished well and were deleted since, in JSON."""
WAITING_SINCE: Final = "spinney.dev/waiting-since"
INHERITED: Final = "spinney.dev/inherited"
"""What a PodGang, or a pod on its own, has from its owners: keys on a PodGang, ``key=value`` on a pod."""
TOP_OWNER: Final = "kai.scheduler/top-owner-metadata"
ABOVE: Final = "spinney.dev/above"
"""What owns the workload that a PodGang was made for, nearest first, such as ``CronJob/nightly``."""

# Kueue
KUEUE_QUEUE: Final = "kueue.x-k8s.io/queue-name"
KUEUE_WORKLOAD: Final = "kueue.x-k8s.io/workload"
KUEUE_POD_GROUP: Final = "kueue.x-k8s.io/pod-group-name"
KUEUE_PREFIX: Final = "kueue.x-k8s.io/"
KUEUE_CLUSTER_QUEUE: Final = "kueue.x-k8s.io/cluster-queue-name"

# scheduler-plugins
COSCHEDULING_GROUP: Final = "scheduling.x-k8s.io/pod-group"
