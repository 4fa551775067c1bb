"""Merge shapes of the built-in kinds: the list keys and patch keys that Kubernetes' types declare."""

from spinney.server.kinds.shape import ATOMIC, ATOMIC_ITEMS, MergeShape, fields, items_by, values

METADATA = fields(
    labels=MergeShape(),
    ownerReferences=MergeShape(merge="map", keys=("uid",), items=ATOMIC),
    finalizers=values(),
)
CONDITIONS = items_by("type")
_MAPPING = fields(**{"": MergeShape()})  # an object with any fields

_ENV = items_by(
    "name", valueFrom=fields(secretKeyRef=ATOMIC, configMapKeyRef=ATOMIC, fieldRef=ATOMIC, resourceFieldRef=ATOMIC)
)
_PORTS = items_by("containerPort", "protocol", key_defaults={"protocol": "TCP"})
_CONTAINERS = items_by(
    "name",
    env=_ENV,
    ports=_PORTS,
    volumeMounts=items_by("mountPath"),
    volumeDevices=items_by("devicePath"),
    resources=fields(claims=items_by("name"), requests=_MAPPING, limits=_MAPPING),
)

POD_SPEC = fields(
    containers=_CONTAINERS,
    initContainers=_CONTAINERS,
    ephemeralContainers=_CONTAINERS,
    volumes=items_by("name"),
    imagePullSecrets=items_by("name"),
    hostAliases=items_by("ip"),
    topologySpreadConstraints=items_by(
        "topologyKey", "whenUnsatisfiable", merge_key="topologyKey", labelSelector=ATOMIC, matchLabelKeys=ATOMIC
    ),
    schedulingGates=items_by("name"),
    resourceClaims=items_by("name"),
    tolerations=ATOMIC_ITEMS,
    nodeSelector=ATOMIC,
    affinity=fields(nodeAffinity=fields(requiredDuringSchedulingIgnoredDuringExecution=ATOMIC)),
)
_POD_TEMPLATE = fields(metadata=METADATA, spec=POD_SPEC)

CRON_JOB = fields(
    metadata=METADATA,
    spec=fields(jobTemplate=fields(metadata=METADATA, spec=fields(template=_POD_TEMPLATE, selector=ATOMIC))),
    status=fields(active=ATOMIC_ITEMS),
)
INGRESS = fields(
    metadata=METADATA,
    spec=fields(
        defaultBackend=fields(resource=ATOMIC, service=fields(port=ATOMIC)), rules=ATOMIC_ITEMS, tls=ATOMIC_ITEMS
    ),
)
POD = fields(
    metadata=METADATA,
    spec=POD_SPEC,
    status=fields(
        conditions=CONDITIONS,
        podIPs=items_by("ip"),
        hostIPs=ATOMIC,
        resourceClaimStatuses=items_by("name"),
        containerStatuses=ATOMIC_ITEMS,
        initContainerStatuses=ATOMIC_ITEMS,
    ),
)
NODE = fields(
    metadata=METADATA,
    spec=fields(podCIDRs=values()),
    status=fields(conditions=CONDITIONS, addresses=items_by("type"), capacity=_MAPPING, allocatable=_MAPPING),
)
SERVICE = fields(
    metadata=METADATA,
    spec=fields(
        ports=items_by("port", "protocol", merge_key="port", key_defaults={"protocol": "TCP"}), selector=ATOMIC
    ),
    status=fields(conditions=CONDITIONS),
)
SERVICE_ACCOUNT = fields(metadata=METADATA, secrets=items_by("name"), imagePullSecrets=ATOMIC)
WORKLOAD_CONTROLLER = fields(
    metadata=METADATA,
    spec=fields(template=_POD_TEMPLATE, selector=ATOMIC),
    status=fields(conditions=CONDITIONS),
)
POD_TEMPLATE = fields(metadata=METADATA, template=_POD_TEMPLATE)
BUDGET = fields(metadata=METADATA, spec=fields(selector=ATOMIC), status=fields(conditions=CONDITIONS))
PERSISTENT_VOLUME = fields(metadata=METADATA, spec=fields(nodeAffinity=ATOMIC, claimRef=fields()))
CLAIM = fields(
    metadata=METADATA,
    spec=fields(selector=ATOMIC, accessModes=ATOMIC, dataSource=ATOMIC),
    status=fields(conditions=CONDITIONS, accessModes=ATOMIC),
)
STORAGE_CLASS = fields(metadata=METADATA, parameters=MergeShape(), allowedTopologies=ATOMIC)
CSI_NODE = fields(metadata=METADATA, spec=fields(drivers=items_by("name")))
RESOURCE_CLAIM = fields(
    metadata=METADATA,
    spec=fields(devices=fields(requests=ATOMIC, constraints=ATOMIC, config=ATOMIC)),
    status=fields(reservedFor=items_by("uid"), devices=items_by("driver", "device", "pool")),
)
_MATCHED = fields(
    namespaceSelector=_MAPPING, objectSelector=_MAPPING, resourceRules=ATOMIC_ITEMS, excludeResourceRules=ATOMIC_ITEMS
)
POLICY = fields(
    metadata=METADATA,
    spec=fields(
        paramKind=_MAPPING,
        matchConstraints=_MATCHED,
        validations=ATOMIC_ITEMS,
        auditAnnotations=ATOMIC_ITEMS,
        matchConditions=items_by("name"),
        variables=items_by("name"),
    ),
    status=fields(conditions=items_by("type")),
)
POLICY_BINDING = fields(
    metadata=METADATA,
    spec=fields(paramRef=_MAPPING, matchResources=_MATCHED, validationActions=values()),
)
WEBHOOKS = fields(
    metadata=METADATA,
    webhooks=items_by(
        "name",
        clientConfig=fields(service=_MAPPING),
        rules=ATOMIC_ITEMS,
        namespaceSelector=_MAPPING,
        objectSelector=_MAPPING,
        matchConditions=items_by("name"),
    ),
)
CLUSTER_ROLE = fields(metadata=METADATA, aggregationRule=ATOMIC)
NAMESPACE = fields(metadata=METADATA, spec=fields(finalizers=ATOMIC), status=fields(conditions=CONDITIONS))
AUTOSCALER = fields(
    metadata=METADATA,
    spec=fields(scaleTargetRef=fields()),
    status=fields(conditions=CONDITIONS),
)
CUSTOM_RESOURCE_DEFINITION = fields(
    metadata=METADATA,
    status=fields(conditions=CONDITIONS),
)
NATIVE_WORKLOAD = fields(
    metadata=METADATA,
    spec=fields(
        podGroups=items_by("name", policy=fields(basic=_MAPPING, gang=_MAPPING)),
        podGroupTemplates=items_by("name", schedulingPolicy=fields(basic=_MAPPING, gang=_MAPPING)),
        compositePodGroupTemplates=items_by("name"),
    ),
)
NATIVE_POD_GROUP = fields(
    metadata=METADATA,
    spec=fields(
        resourceClaims=items_by("name"),
        schedulingPolicy=fields(basic=_MAPPING, gang=_MAPPING),
        schedulingConstraints=fields(topology=ATOMIC_ITEMS),
    ),
    status=fields(conditions=CONDITIONS, resourceClaimStatuses=items_by("name")),
)
PLAIN = fields(metadata=METADATA, spec=_MAPPING, status=_MAPPING)
SECRET = fields(metadata=METADATA, data=_MAPPING, stringData=_MAPPING)
