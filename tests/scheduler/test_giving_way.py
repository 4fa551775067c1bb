"""Jobs of equal priority that give way because a plugin says so."""

import pytest

from spinney.scheduler import Plugin, Session
from spinney.scheduler.framework.jobs import PodGroupInfo
from tests.scheduler.building import a_gang, a_node, a_pod, a_scheduler, an_inventory, put_gang


class Polite(Plugin):
    """Has every job give way, without a say in who comes first."""

    name = "polite"

    def on_session_open(self, session: Session) -> None:
        session.add_gives_way_fn(lambda _job, _victim: True)


class LastFirst(Polite):
    """Has every job give way, and those come first whose names are last."""

    name = "lastfirst"

    def on_session_open(self, session: Session) -> None:
        super().on_session_open(session)
        session.add_job_order_key(lambda job: -ord(job.key.name[0]))


class Raising(Plugin):
    """Fails where it is asked."""

    name = "raising"

    def on_session_open(self, session: Session) -> None:
        def fail(_job: PodGroupInfo, _victim: PodGroupInfo) -> bool:
            raise RuntimeError("no idea")

        session.add_gives_way_fn(fail)


class Vague(Plugin):
    """Answers with what is neither true nor false."""

    name = "vague"

    def on_session_open(self, session: Session) -> None:
        session.add_gives_way_fn(lambda _job, _victim: "perhaps")  # type: ignore[arg-type,return-value]


CASES = [
    pytest.param(LastFirst, ["running-0"], [], id="the job comes first"),
    pytest.param(Polite, [], [], id="the victim comes first"),
    pytest.param(Raising, [], ["raising"], id="the plugin fails"),
    pytest.param(Vague, [], ["vague"], id="the plugin says neither"),
]


@pytest.mark.parametrize(("plugin", "evicted", "failed"), CASES)
def test_a_job_gives_way_only_where_a_plugin_says_so(
    plugin: type[Plugin], evicted: list[str], failed: list[str]
) -> None:
    """A plugin that fails or says nothing has no job evicted, and the failure is counted as its own."""
    inventory = an_inventory(a_node("n1"))
    put_gang(inventory, a_gang("running"), [a_pod("running-0", gang="running", gpus=8, node="n1")])
    put_gang(inventory, a_gang("waiting"), [a_pod("waiting-0", gang="waiting", gpus=8)])
    result = a_scheduler(inventory, plugin).run_cycle()
    assert [each.pod.name for each in result.evictions] == evicted
    assert [name for name, _ in result.failures] == failed
