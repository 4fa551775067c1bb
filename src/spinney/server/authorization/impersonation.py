"""Acting as another user: the ``Impersonate-*`` headers, and the rights that needs."""

from collections.abc import Iterator, Mapping
from urllib.parse import unquote

from spinney.server.authorization.action import AccessRequest
from spinney.server.exchange.message import (
    ACCOUNT_PREFIX,
    ANONYMOUS,
    AUTHENTICATED,
    User,
    account_groups,
)
from spinney.server.exchange.status import bad_request

SEPARATOR = "\n"  # between the values of a header that stands there several times
_USER, _GROUP, _UID, _EXTRA = "impersonate-user", "impersonate-group", "impersonate-uid", "impersonate-extra-"


def impersonated(headers: Mapping[str, str]) -> User | None:
    """Return whom the request wants to speak for; ``None`` for nobody."""
    asked = [name for name in headers if name.startswith("impersonate-")]
    if not asked:
        return None
    name, uid = headers.get(_USER, ""), headers.get(_UID, "")
    groups = tuple(headers[_GROUP].split(SEPARATOR)) if _GROUP in headers else ()
    extra = {
        unquote(each.removeprefix(_EXTRA)): tuple(headers[each].split(SEPARATOR))
        for each in sorted(asked)
        if each.startswith(_EXTRA)
    }
    if not name:
        raise bad_request(f"requested to impersonate uid {uid!r}, groups {list(groups)} without a user name")
    return User(name, uid, groups, extra)


def needed(user: User, wanted: User) -> Iterator[AccessRequest]:
    """Return every right that ``user`` needs to speak for ``wanted``."""
    if wanted.name.startswith(ACCOUNT_PREFIX) and wanted.name.count(":") == 3:
        namespace, name = wanted.name.removeprefix(ACCOUNT_PREFIX).split(":")
        yield AccessRequest(
            user, "impersonate", version="v1", resource="serviceaccounts", namespace=namespace, name=name
        )
    else:
        yield AccessRequest(user, "impersonate", version="v1", resource="users", name=wanted.name)
    for group in wanted.groups:
        yield AccessRequest(user, "impersonate", version="v1", resource="groups", name=group)
    grouped = {"group": "authentication.k8s.io", "version": "v1"}
    for key, values in wanted.extra.items():
        for value in values:
            yield AccessRequest(user, "impersonate", **grouped, resource="userextras", subresource=key, name=value)
    if wanted.uid:
        yield AccessRequest(user, "impersonate", **grouped, resource="uids", name=wanted.uid)


def mode(wanted: User) -> str:
    """Return the name under which Kubernetes knows this kind of impersonation."""
    return "serviceaccount" if wanted.name.startswith(ACCOUNT_PREFIX) else "user-info"


def completed(wanted: User) -> User:
    """Return the user with the groups that every user of that kind is in."""
    groups = wanted.groups
    if wanted.name.startswith(ACCOUNT_PREFIX) and not groups and wanted.name.count(":") == 3:
        groups = account_groups(wanted.name.split(":")[2])
    implied = ANONYMOUS.groups[0] if wanted.name == ANONYMOUS.name else AUTHENTICATED
    if implied not in groups:
        groups = (*groups, implied)
    return User(wanted.name, wanted.uid, groups, wanted.extra)
