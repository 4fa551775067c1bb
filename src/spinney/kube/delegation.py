"""Whether a client may read a path of a process: the API server is asked, as kubelets and kube-rbac-proxy ask it.

Who asks is found by a TokenReview of the bearer token; what they may is found by a SubjectAccessReview of ``get`` on
the path, which a ClusterRole grants with ``nonResourceURLs``.
"""

from typing import Final

from spinney.api.resource import Resource
from spinney.kube.client import Client

TOKEN_REVIEW: Final = Resource("authentication.k8s.io", "v1", "TokenReview", "tokenreviews", namespaced=False)
ACCESS_REVIEW: Final = Resource(
    "authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", namespaced=False
)


class Delegation:
    """Asks an API server about clients of this process."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def refusal(self, authorization: str, path: str) -> tuple[int, str] | None:
        """Return the HTTP status and the reason why a request is refused, or None."""
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token:
            return 401, "a bearer token is needed from another host; kubectl port-forward needs none"
        review = await self._client.create(TOKEN_REVIEW, {"spec": {"token": token}})
        status = review.get("status") or {}
        if not status.get("authenticated"):
            return 401, "the API server does not know this bearer token"
        user = status.get("user") or {}
        spec = {
            "user": user.get("username", ""),
            **{key: user[key] for key in ("groups", "uid", "extra") if key in user},
            "nonResourceAttributes": {"path": path, "verb": "get"},
        }
        access = await self._client.create(ACCESS_REVIEW, {"spec": spec})
        if (access.get("status") or {}).get("allowed"):
            return None
        return 403, f"{spec['user']} may not get {path}; grant it with nonResourceURLs of a ClusterRole"
