"""A policy in one file is tried on a snapshot, and what it changes is shown, run after run."""

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from spinney.cli import main
from spinney.sim import Cluster
from spinney.sim.policies.faults import PluginFailed
from spinney.sim.policies.files import InvalidPolicy, plugins_in
from spinney.sim.snapshots.files import write_snapshot

POLICY = """
from spinney.scheduler import Plugin


class KeepFree(Plugin):
    name = "keep-free"

    def on_session_open(self, session):
        session.add_predicate_fn(self.allowed)

    def allowed(self, task, job, node):
        return "kept free" if node.name == "{node}" else None
"""


@pytest.fixture
def last_night(tmp_path: Path) -> Path:
    """A snapshot of two nodes and two gangs of a node each."""
    cluster = Cluster("2x8")
    cluster.gang("first", pods=1, gpus=8)
    cluster.gang("second", pods=1, gpus=8)
    file = tmp_path / "last-night.json.gz"
    write_snapshot(cluster.snapshot(), file)
    return file


def test_edit_and_run_again(last_night: Path, tmp_path: Path) -> None:
    """The loop of a scheduler author: an edit of the file changes the difference that the next run shows."""
    policy = tmp_path / "policy.py"

    def changes(node: str) -> str:
        policy.write_text(POLICY.format(node=node))
        answer = CliRunner().invoke(main, ["simulate", str(last_night), "--plugin", str(policy)])
        assert answer.exit_code == 0, answer.output
        return answer.output

    assert "default/second   1 placed on gpu-001   1 pending" in changes("gpu-001")
    assert "default/first    1 placed on gpu-000   1 placed on gpu-001" in changes("gpu-000")
    assert "both configurations decide the same" in changes("no-such-node")


def test_the_same_in_the_library(last_night: Path, tmp_path: Path) -> None:
    """Two clusters from one snapshot, one with the policy, are compared gang by gang."""
    policy = tmp_path / "policy.py"
    policy.write_text(POLICY.format(node="gpu-001"))
    before, after = Cluster.load(last_night), Cluster.load(last_night, plugins=plugins_in(policy))
    before.run()
    after.run()

    (difference,) = after.differences(before)
    assert difference.gang.name == "second"
    assert (difference.before, difference.after) == ("1 placed on gpu-001", "1 pending")
    assert before.differences(before) == []


TWO_OF_ONE_NAME = """
from spinney.scheduler import Plugin


class First(Plugin):
    name = "mine"

    def on_session_open(self, session):
        pass


class Second(First):
    pass
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = (", "policy.py:1: '(' was never closed"),
        ("\n1 / 0", "policy.py:2: ZeroDivisionError: division by zero"),
        ("import nowhere_at_all", "policy.py:1: ModuleNotFoundError"),
        ("x = 1", "defines no class that extends spinney.scheduler.Plugin"),
        ("from spinney.scheduler import Plugin", "defines no class that extends"),
        ("from spinney.scheduler import Plugin\nclass P(Plugin):\n    name = ''", "P has no name"),
        ("import sys\nsys.exit(0)", "policy.py:2: SystemExit: 0"),
        (TWO_OF_ONE_NAME, "policy.py: First and Second are both named 'mine'; give each a name of its own"),
    ],
)
def test_a_file_without_a_policy_is_named(tmp_path: Path, text: str, expected: str) -> None:
    """What is wrong with the file is one sentence with its line."""
    path = tmp_path / "policy.py"
    path.write_text(text)

    with pytest.raises(InvalidPolicy) as refused:
        plugins_in(path)

    assert expected in str(refused.value)


FAULTY = """
from spinney.scheduler import Plugin


class Faulty(Plugin):
    name = "faulty"

    def on_session_open(self, session):
        {hook}

    def asked(self, task, job, node):
        {body}
"""


@pytest.mark.parametrize(
    ("hook", "body", "expected"),
    [
        ("1 / 0", "return None", "policy.py:9 in Faulty.on_session_open: ZeroDivisionError: division by zero"),
        ("session.add_predicat_fn(self.asked)", "return None", "'add_predicat_fn'; did you mean add_predicate_fn?"),
        ("session.add_predicate_fn(self.asked)", "return task.nam", "policy.py:12 in Faulty.asked: AttributeError"),
        (
            "session.add_predicate_fn(self.asked)",
            "return 42",
            "policy.py:11 in Faulty.asked: InvalidAnswer: returned 42 (int), expected None or True where a pod fits",
        ),
        (
            "session.add_predicate_fn(lambda task: None)",
            "pass",
            "policy.py:9 in Faulty.on_session_open.<locals>.<lambda>",
        ),
        ("session.add_node_order_fn(lambda task, node: 'x')", "pass", "returned 'x' (str), expected a finite number"),
        (
            "session.add_job_order_fn(lambda a, b: None)",
            "pass",
            "policy.py:9 in Faulty.on_session_open.<locals>.<lambda>: InvalidAnswer: returned None, expected a whole "
            "number: negative, 0 or positive (at job_order: order failed",
        ),
        (
            "session.add_job_order_key(lambda job: object())",
            "pass",
            "  in Faulty.on_session_open.<lambda>: TypeError: '<' not supported",
        ),
        (
            "session.add_job_order_key(lambda job: float('nan'))",
            "pass",
            "policy.py:9 in Faulty.on_session_open.<locals>.<lambda>: InvalidAnswer: returned nan",
        ),
        (
            "session.add_predicate_fn(self.asked(1, 2, 3))",
            "return None",
            "policy.py:9 in Faulty.on_session_open: TypeError: None was registered, expected a function",
        ),
        (
            "session.add_event_handler(self.asked)",
            "return None",
            "was registered, expected an EventHandler(allocate=..., deallocate=...)",
        ),
    ],
    ids=[
        "opening",
        "no such hook",
        "raises",
        "wrong type",
        "wrong signature",
        "no score",
        "no order",
        "no comparison",
        "no key",
        "called too early",
        "no handler",
    ],
)
def test_a_fault_is_named_with_its_line(last_night: Path, tmp_path: Path, hook: str, body: str, expected: str) -> None:
    """A policy that fails while it is asked ends the command with plugin, function, line and what came of it."""
    policy = tmp_path / "policy.py"
    policy.write_text(FAULTY.format(hook=hook, body=body))
    answer = CliRunner().invoke(main, ["simulate", str(last_night), "--plugin", str(policy)])

    assert answer.exit_code == 1
    assert "Error: plugin faulty failed" in answer.output
    assert expected in answer.output
    assert "Traceback" not in answer.output


@pytest.mark.parametrize(
    "fault",
    [
        ("return json.loads('{')", "mine.py:12 in Faulty.asked: JSONDecodeError"),
        ("exit(3)", "mine.py:12 in Faulty.asked: SystemExit: 3"),
        ("return functools.partial(int, 'x')()", "mine.py:12 in Faulty.asked: ValueError"),
        ("return 42", "mine.py:11 in Faulty.asked: InvalidAnswer: returned 42 (int)"),
    ],
)
@pytest.mark.parametrize("folder", [".", "lib", "site-packages"])
def test_the_line_is_that_of_the_plugin_wherever_it_is_kept(
    last_night: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, fault: tuple[str, str]
) -> None:
    """What Python's own modules raise is the fault of the line that called them, in an installed plugin as well."""
    body, expected = fault
    packages = tmp_path / folder
    packages.mkdir(exist_ok=True)
    hook = "session.add_predicate_fn(functools.partial(Faulty.asked, self))"
    (packages / "mine.py").write_text("import functools, json" + FAULTY.format(hook=hook, body=body))
    monkeypatch.syspath_prepend(str(packages))
    installed = packages / "mine-1.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1\n")
    (installed / "entry_points.txt").write_text("[spinney.plugins]\nfaulty = mine:Faulty\n")
    config = tmp_path / "scheduler.yaml"
    config.write_text("extraPlugins: [{name: faulty}]")
    monkeypatch.delitem(sys.modules, "mine", raising=False)

    answers = [
        CliRunner().invoke(main, ["simulate", str(last_night), *how]).output
        for how in (["--plugin", str(packages / "mine.py")], ["--config", str(config)])
    ]

    for answer in answers:
        assert expected in answer


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("x = 1", "policy.py:3: Half: it has no on_session_open(self, session)"),
        ("def __init__(self): ...\n    def on_session_open(self, session): ...", "policy.py:3: Half cannot be built"),
        (
            "def __init__(self, arguments): raise SystemExit(3)\n    def on_session_open(self, session): ...",
            "policy.py:3: Half cannot be built: SystemExit: 3",
        ),
    ],
)
def test_a_class_that_cannot_be_built_is_named(tmp_path: Path, body: str, expected: str) -> None:
    """A class that no session could build is refused before anything is simulated."""
    path = tmp_path / "policy.py"
    path.write_text(f"from spinney.scheduler import Plugin\n\nclass Half(Plugin):\n    name = 'half'\n    {body}\n")

    with pytest.raises(InvalidPolicy) as refused:
        plugins_in(path)

    assert expected in str(refused.value)


def test_in_the_library_a_fault_is_raised(tmp_path: Path) -> None:
    """In a notebook a cluster does not go on as if the policy had refused: the cell fails, with the line."""
    policy = tmp_path / "policy.py"
    policy.write_text(FAULTY.format(hook="session.add_predicate_fn(self.asked)", body="return task.nam"))
    cluster = Cluster("2x8", plugins=plugins_in(policy))
    cluster.gang("first", pods=1, gpus=8)

    with pytest.raises(PluginFailed) as failed:
        cluster.step()

    assert f"plugin faulty: {policy}:12 in Faulty.asked: AttributeError" in str(failed.value)


def test_a_misspelt_key_of_the_configuration_is_named(last_night: Path, tmp_path: Path) -> None:
    """A configuration with a typo is answered with file, key and the nearest key."""
    config = tmp_path / "config.yaml"
    config.write_text("plgins: []")
    answer = CliRunner().invoke(main, ["simulate", str(last_night), "--config", str(config)])

    assert answer.exit_code == 1
    assert f"{config}:1: plgins: unknown key; did you mean 'plugins'?" in answer.output
    assert "plugins" in answer.output.partition("plgins")[2]


def test_a_plugin_is_not_compared_with_two_configurations(last_night: Path, tmp_path: Path) -> None:
    """Two configurations and a plugin are more than one difference, and are refused."""
    config = tmp_path / "config.yaml"
    config.write_text("{}")
    twice = ["--config", str(config), "--config", str(config), "--plugin", str(config)]
    answer = CliRunner().invoke(main, ["simulate", str(last_night), *twice])

    assert answer.exit_code == 2
    assert "not with two" in answer.output
