"""The roles that every cluster with role-based access control has, and to whom they are bound.

Only those are here that people and components refer to by name. A role is written as lines of ``groups; resources;
verbs`` (the core group is ``core``), or ``paths; verbs`` for what is no resource.
"""

from collections.abc import Iterator, Mapping

from spinney.api.rbac import GROUP
from spinney.api.struct import JSON

_AGGREGATE = "rbac.authorization.k8s.io/aggregate-to-"
_READ = "get list watch"
_CHANGE = "create delete deletecollection patch update"
_ALL = "create delete deletecollection get list patch update watch"
_SCALED = "daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale"
_OLD_SEEN = (
    "daemonsets daemonsets/status deployments deployments/scale deployments/status ingresses ingresses/status"
    " networkpolicies replicasets replicasets/scale replicasets/status replicationcontrollers/scale"
)
_CONNECT = "pods/attach pods/exec pods/portforward pods/proxy"

_EDIT = f"""
core; {_CONNECT} secrets services/proxy; {_READ}
core; serviceaccounts; impersonate
core; pods {_CONNECT}; {_CHANGE}
core; pods/eviction; create
core; configmaps persistentvolumeclaims replicationcontrollers replicationcontrollers/scale secrets serviceaccounts \
services services/proxy; {_CHANGE}
core; serviceaccounts/token; create
core events.k8s.io; events; {_CHANGE}
apps; {_SCALED} statefulsets statefulsets/scale; {_CHANGE}
autoscaling; horizontalpodautoscalers; {_CHANGE}
batch; cronjobs jobs; {_CHANGE}
extensions; daemonsets deployments deployments/rollback deployments/scale ingresses networkpolicies replicasets \
replicasets/scale replicationcontrollers/scale; {_CHANGE}
policy; poddisruptionbudgets; {_CHANGE}
networking.k8s.io; ingresses networkpolicies; {_CHANGE}
coordination.k8s.io; leases; {_ALL}
resource.k8s.io; resourceclaims resourceclaimtemplates; {_CHANGE}
scheduling.k8s.io; podgroups workloads; {_CHANGE}
scheduling.k8s.io; compositepodgroups; {_CHANGE}
"""
_VIEW = f"""
core; configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods replicationcontrollers \
replicationcontrollers/scale serviceaccounts services services/status; {_READ}
core; bindings limitranges namespaces/status pods/log pods/status replicationcontrollers/status resourcequotas \
resourcequotas/status; {_READ}
core; namespaces; {_READ}
core events.k8s.io; events; {_READ}
discovery.k8s.io; endpointslices; {_READ}
apps; controllerrevisions daemonsets daemonsets/status deployments deployments/scale deployments/status replicasets \
replicasets/scale replicasets/status statefulsets statefulsets/scale statefulsets/status; {_READ}
autoscaling; horizontalpodautoscalers horizontalpodautoscalers/status; {_READ}
batch; cronjobs cronjobs/status jobs jobs/status; {_READ}
extensions; {_OLD_SEEN}; {_READ}
policy; poddisruptionbudgets poddisruptionbudgets/status; {_READ}
networking.k8s.io; ingresses ingresses/status networkpolicies; {_READ}
resource.k8s.io; resourceclaims resourceclaims/status resourceclaimtemplates; {_READ}
scheduling.k8s.io; podgroups podgroups/status workloads; {_READ}
scheduling.k8s.io; compositepodgroups compositepodgroups/status; {_READ}
"""
_REVIEWS = """
authentication.k8s.io; tokenreviews; create
authorization.k8s.io; subjectaccessreviews; create
"""
_HEALTH = "/healthz /livez"
_ROLES: Mapping[str, str] = {
    "cluster-admin": "*; *; *\n*; *",
    "system:aggregate-to-admin": f"""
authorization.k8s.io; localsubjectaccessreviews; create
rbac.authorization.k8s.io; rolebindings roles; {_ALL}
""",
    "system:aggregate-to-edit": _EDIT,
    "system:aggregate-to-view": _VIEW,
    "system:auth-delegator": _REVIEWS,
    "system:basic-user": """
authorization.k8s.io; selfsubjectaccessreviews selfsubjectrulesreviews; create
authentication.k8s.io; selfsubjectreviews; create
""",
    "system:discovery": f"/api /api/* /apis /apis/* {_HEALTH} /openapi /openapi/* /readyz /version /version/; get",
    "system:public-info-viewer": f"{_HEALTH} /readyz /version /version/; get",
    "system:monitoring": """
/flagz /healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz /readyz/* /statusz; get
core; nodes/metrics; get
""",
    "system:service-account-issuer-discovery": "/.well-known/openid-configuration /.well-known/openid-configuration/"
    " /openid/v1/jwks /openid/v1/jwks/; get",
    "system:volume-scheduler": f"""
core; persistentvolumes; get list patch update watch
storage.k8s.io; storageclasses; {_READ}
core; persistentvolumeclaims; get list patch update watch
""",
    "system:kube-scheduler": f"""
core events.k8s.io; events; create patch update
coordination.k8s.io; leases; create
coordination.k8s.io; leases; get list update watch; kube-scheduler
coordination.k8s.io; leasecandidates; {_ALL}
core; nodes; {_READ}
core; pods; delete {_READ}
core; bindings pods/binding; create
core; pods/status; patch update
core; replicationcontrollers services; {_READ}
apps extensions; replicasets; {_READ}
apps; statefulsets; {_READ}
policy; poddisruptionbudgets; {_READ}
core; persistentvolumeclaims persistentvolumes; {_READ}
{_REVIEWS.strip()}
storage.k8s.io; csinodes; {_READ}
storage.k8s.io; volumeattachments; {_READ}
core; namespaces; {_READ}
storage.k8s.io; csidrivers; {_READ}
storage.k8s.io; csistoragecapacities; {_READ}
resource.k8s.io; deviceclasses; {_READ}
resource.k8s.io; resourceclaims; get list patch update watch
resource.k8s.io; resourceclaims/status; get list patch update watch
core; pods/finalizers; update
resource.k8s.io; resourceslices; {_READ}
resource.k8s.io; resourceclaims; create delete
resource.k8s.io; devicetaintrules; {_READ}
resource.k8s.io; resourceclaims/binding; patch update
scheduling.k8s.io; podgroups; {_READ}
scheduling.k8s.io; podgroups/status; patch update
scheduling.k8s.io; compositepodgroups; {_READ}
scheduling.k8s.io; compositepodgroups/status; patch update
""",
    "system:kube-controller-manager": f"""
core events.k8s.io; events; create patch update
coordination.k8s.io; leases; create
coordination.k8s.io; leases; get update; kube-controller-manager
core; secrets serviceaccounts; create
core; secrets; delete
core; configmaps namespaces secrets serviceaccounts; get
core; secrets serviceaccounts; update
{_REVIEWS.strip()}
*; *; list watch
core; serviceaccounts/token; create
""",
}
_SUMS = {"admin": (), "edit": ("admin",), "view": ("edit",)}  # what each is part of itself
_PARTS = {"system:aggregate-to-admin": "admin", "system:aggregate-to-edit": "edit", "system:aggregate-to-view": "view"}
_BOUND: Mapping[str, tuple[tuple[str, str], ...]] = {
    "cluster-admin": (("Group", "system:masters"),),
    "system:basic-user": (("Group", "system:authenticated"),),
    "system:discovery": (("Group", "system:authenticated"),),
    "system:kube-controller-manager": (("User", "system:kube-controller-manager"),),
    "system:kube-scheduler": (("User", "system:kube-scheduler"),),
    "system:monitoring": (("Group", "system:monitoring"),),
    "system:public-info-viewer": (("Group", "system:authenticated"), ("Group", "system:unauthenticated")),
    "system:service-account-issuer-discovery": (("Group", "system:serviceaccounts"),),
    "system:volume-scheduler": (("User", "system:kube-scheduler"),),
}


def first_roles() -> Iterator[JSON]:
    """Return the cluster roles."""
    for name, text in _ROLES.items():
        labels = {f"{_AGGREGATE}{_PARTS[name]}": "true"} if name in _PARTS else {}
        yield {"metadata": _metadata(name, labels), "rules": _rules(text)}
    for name, wholes in _SUMS.items():
        labels = {f"{_AGGREGATE}{whole}": "true" for whole in wholes}
        selector = {"matchLabels": {f"{_AGGREGATE}{name}": "true"}}
        yield {
            "metadata": _metadata(name, labels),
            "aggregationRule": {"clusterRoleSelectors": [selector]},
            "rules": [],
        }


def first_bindings() -> Iterator[JSON]:
    """Return the cluster role bindings."""
    for name, subjects in _BOUND.items():
        yield {
            "metadata": _metadata(name, {}),
            "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": name},
            "subjects": [{"apiGroup": GROUP, "kind": kind, "name": subject} for kind, subject in subjects],
        }


def _metadata(name: str, labels: Mapping[str, str]) -> JSON:
    return {
        "name": name,
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults", **labels},
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
    }


def _rules(text: str) -> list[JSON]:
    rules = []
    for line in text.strip().splitlines():
        parts = [part.split() for part in line.split(";")]
        if len(parts) == 2:
            rules.append({"nonResourceURLs": parts[0], "verbs": parts[1]})
            continue
        groups, resources, verbs, *names = parts
        rule: JSON = {
            "apiGroups": ["" if group == "core" else group for group in groups],
            "resources": resources,
            "verbs": verbs,
        }
        if names:
            rule["resourceNames"] = names[0]
        rules.append(rule)
    return rules
