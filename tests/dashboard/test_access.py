"""Nobody is shown a cluster without being asked who they are, and other sites are shown nothing."""

import pytest

from spinney.dashboard.access import NAMESPACES, Access, NotAllowed, RefusedExposure, Visitor

LOCAL = Access(host="127.0.0.1", mode="kubeconfig", tls=False)
REMOTE = Access(host="0.0.0.0", mode="token", tls=True)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.7", "dashboard.example"])
def test_the_kubeconfig_is_for_loopback_only(host: str) -> None:
    """Served elsewhere, everybody there would read the cluster as its owner."""
    with pytest.raises(RefusedExposure, match="--authentication token"):
        Access(host=host, mode="kubeconfig", tls=True)


def test_tokens_do_not_cross_a_network_in_the_clear() -> None:
    """Off loopback TLS is needed, or a proxy that has it."""
    with pytest.raises(RefusedExposure, match="--tls-cert-file"):
        Access(host="0.0.0.0", mode="token", tls=False)
    Access(host="0.0.0.0", mode="token", tls=False, behind_proxy=True)


@pytest.mark.parametrize("name", ["localhost", "localhost:8090", "127.0.0.1:8090", "[::1]:8090", "[::1]"])
def test_loopback_answers_to_its_own_names(name: str) -> None:
    """The names of this machine are served with the kubeconfig."""
    assert LOCAL.visitor({"host": name}) == Visitor(None)


def test_loopback_answers_to_the_address_it_is_served_on() -> None:
    """127.0.0.2 is this machine, too: the page is served to those who open the address that was printed."""
    assert Access(host="127.0.0.2", mode="kubeconfig", tls=False).visitor({"host": "127.0.0.2:8090"}) == Visitor(None)


@pytest.mark.parametrize("name", ["evil.example", "evil.example:8090", "127.0.0.1.evil.example:8090", "", "[::2]:1"])
def test_a_name_that_somebody_points_at_loopback_is_refused(name: str) -> None:
    """A site cannot read the cluster by having its name resolve to 127.0.0.1."""
    with pytest.raises(NotAllowed) as refused:
        LOCAL.visitor({"host": name})
    assert refused.value.status == 421
    assert str(refused.value).endswith("only these are served: 127.0.0.1, [::1], localhost")


@pytest.mark.parametrize("access", [LOCAL, REMOTE])
def test_another_site_is_refused(access: Access) -> None:
    """What a browser sends for the page of another site is not answered."""
    with pytest.raises(NotAllowed) as refused:
        access.visitor({"host": "localhost", "authorization": "Bearer t", "sec-fetch-site": "cross-site"})
    assert refused.value.status == 403


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "Basic dTpw", "token", "Bearer a b", "Bearer a\tb", "Bearer é"]
)
def test_without_a_bearer_token_nothing_is_shown(header: str) -> None:
    """A request from elsewhere that has no token is 401."""
    with pytest.raises(NotAllowed) as refused:
        REMOTE.visitor({"authorization": header})
    assert refused.value.status == 401


def test_visitors_are_told_apart_by_token_and_namespaces() -> None:
    """Two tokens never share a view, and a key does not give the token away."""
    one, other = (REMOTE.visitor({"authorization": f"Bearer {token}"}) for token in ("one", "other"))
    named = REMOTE.visitor({"authorization": "bearer one", NAMESPACES: "team-a, team-b"})

    assert named == Visitor("one", ("team-a", "team-b"))
    assert len({one.key, other.key, named.key}) == 3
    assert "one" not in one.key


@pytest.mark.parametrize("names", ["../kube-system", "a b", "A", ",".join(f"n{number}" for number in range(51))])
def test_namespaces_are_names(names: str) -> None:
    """What is no name of a namespace never becomes part of a request."""
    with pytest.raises(NotAllowed) as refused:
        REMOTE.visitor({"authorization": "Bearer one", NAMESPACES: names})
    assert refused.value.status == 400
