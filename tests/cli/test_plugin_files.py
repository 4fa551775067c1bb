"""One file with a plugin runs in every command: ``--plugin FILE[:CLASS][,KEY=VALUE]``."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from spinney.cli import main
from spinney.cli.settings.session import policies_of
from spinney.cli.settings.stack import embedded_settings
from spinney.nodes import ClusterSpec
from spinney.sim import Cluster
from spinney.sim.snapshots.files import write_snapshot

POLICIES = """
from spinney.coscheduling.framework import SUCCESS, NodeFilter
from spinney.scheduler import Plugin


class KeepFree(Plugin):
    name = "keep-free"

    def on_session_open(self, session):
        kept = self.arguments.get("node", "nothing")
        session.add_predicate_fn(lambda task, job, node: "kept free" if node.name == kept else None)


class Never(Plugin):
    name = "never"

    def on_session_open(self, session):
        session.add_predicate_fn(lambda task, job, node: "not today")


class Quiet(NodeFilter):
    name = "Quiet"

    def __init__(self, handle, arguments):
        self.arguments = arguments

    def filter_node(self, state, pod, node):
        return SUCCESS
"""


@pytest.fixture
def policies(tmp_path: Path) -> Path:
    """A file with plugins of both schedulers."""
    path = tmp_path / "policies.py"
    path.write_text(POLICIES)
    return path


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    """Two nodes, and a gang that needs both."""
    cluster = Cluster("2x8")
    cluster.gang("train", pods=2, gpus=8)
    file = tmp_path / "cluster.json.gz"
    write_snapshot(cluster.snapshot(), file)
    return file


def spinney(*arguments: object) -> Result:
    """Run a command."""
    return CliRunner().invoke(main, [str(each) for each in arguments])


def test_the_class_and_its_arguments_are_given_with_the_file(policies: Path, snapshot: Path) -> None:
    """Only the class that is named is loaded, with the arguments behind it."""
    answer = spinney("simulate", snapshot, "--plugin", f"{policies}:KeepFree,node=gpu-001")

    assert answer.exit_code == 0, answer.output
    assert "2 placed on gpu-000, gpu-001   2 pending" in answer.output


def test_why_asks_the_plugin(policies: Path, snapshot: Path) -> None:
    """A reason of a plugin in a file stands in the answer with the plugin's name and words."""
    answer = spinney("why", "train", "--from", snapshot, "--plugin", f"{policies}:Never")

    assert answer.exit_code == 0, answer.output
    assert "refused by plugin never" in answer.output
    assert "not today" in answer.output


@pytest.mark.parametrize("options", [[], ["--verbose"]])
def test_why_ends_with_what_failed_in_a_plugin(tmp_path: Path, snapshot: Path, options: list[str]) -> None:
    """A fault is said once, with its line and without tracebacks, however many clusters were tried."""
    policy = tmp_path / "policy.py"
    policy.write_text(POLICIES.replace('"not today"', "node.nmae"))
    answer = spinney("why", "train", "--from", snapshot, "--plugin", f"{policy}:Never", *options)
    data = spinney("why", "train", "--from", snapshot, "--plugin", f"{policy}:Never", "-o", "json")

    assert answer.exit_code == data.exit_code == 1
    assert "podgang default/train: pending" in answer.output
    assert answer.output.count("has no attribute 'nmae'; did you mean name?") == 1
    assert "Traceback" not in answer.output
    assert [fault["plugin"] for fault in json.loads(data.stdout)["faults"]] == ["never"]


def test_wrong_arguments_are_told_with_the_file_that_they_were_given_with(tmp_path: Path, snapshot: Path) -> None:
    """They stand on the command line; they were told as those of a configuration that nobody wrote."""
    policy = tmp_path / "policy.py"
    policy.write_text(
        "import msgspec\n\nfrom spinney.scheduler import Plugin\n\n\nclass Takes(msgspec.Struct, frozen=True):\n"
        "    key: str = ''\n    most: int = 3\n\nclass Keen(Plugin):\n    name = 'keen'\n    arguments_type = Takes\n\n"
        "    def on_session_open(self, session): ...\n"
    )
    answer = spinney("simulate", snapshot, "--plugin", f"{policy}:Keen,kye=a,most=some")

    assert answer.exit_code == 1
    assert f"{policy}:Keen: argument kye: unknown argument; did you mean 'key'?" in answer.output
    assert "argument most: found 'some', expected a whole number" in answer.output


@pytest.mark.parametrize("names", [("first", "second"), ("one/mine", "two/mine")])
def test_two_files_with_plugins_of_one_name_are_both_named(
    names: tuple[str, str], tmp_path: Path, snapshot: Path
) -> None:
    """The one to be changed may be either."""
    files = [tmp_path / f"{name}.py" for name in names]
    for file in files:
        file.parent.mkdir(exist_ok=True)
        file.write_text(POLICIES)
    answer = spinney("simulate", snapshot, "--plugin", files[0], "--plugin", files[1])

    assert answer.exit_code == 1
    assert f"{names[1]}.py: KeepFree of {files[0]} and KeepFree are both named 'keep-free'" in answer.output


def test_a_scheduler_is_checked_with_the_plugin(policies: Path) -> None:
    """``--check`` prints the configuration in force: the defaults, then the plugin with its arguments."""
    answer = spinney("scheduler", "--check", "--plugin", f"{policies}:KeepFree,node=n1")

    assert answer.exit_code == 0, answer.output
    assert "- name: predicates" in answer.output
    assert answer.output.rindex("- name: keep-free") > answer.output.index("- name: predicates")
    assert "node: n1" in answer.output


def test_the_coscheduler_is_checked_with_the_plugin(policies: Path, tmp_path: Path) -> None:
    """Every profile gets the plugin at the points it serves; what cannot be built is said."""
    config = tmp_path / "coscheduler.yaml"
    config.write_text("profiles: [{schedulerName: a}, {schedulerName: b}]")
    answer = spinney("coscheduler", "--check", "--config", str(config), "--plugin", f"{policies}:Quiet,loud=no")

    assert answer.exit_code == 0, answer.output
    assert answer.output.count("name: Quiet") == 4  # enabled and configured, in two profiles


@pytest.mark.parametrize(
    ("command", "plugin", "expected"),
    [
        ("scheduler", ":KeepFre", "has no plugin class KeepFre; did you mean 'KeepFree'?"),
        ("scheduler", ":KeepFree,node", "'node' is no argument; expected KEY=VALUE"),
        ("scheduler", ",node=n1", "so say which one the arguments are for"),
        ("scheduler", ":Quiet", "Quiet is a plugin of the coscheduler"),
        ("coscheduler", ":KeepFree", "KeepFree is a plugin of the session scheduler"),
    ],
)
def test_mistakes_are_one_sentence(policies: Path, command: str, plugin: str, expected: str) -> None:
    """A misspelt class, a broken argument and a plugin of the other scheduler are answered with what to write."""
    answer = spinney(command, "--check", "--plugin", f"{policies}{plugin}")

    assert answer.exit_code != 0
    assert expected in " ".join(answer.output.split())


@pytest.fixture
def naming(tmp_path: Path) -> Path:
    """A configuration that names a plugin of the file, with an argument."""
    path = tmp_path / "scheduler.yaml"
    path.write_text("extraPlugins:\n- name: keep-free\n  arguments: {node: gpu-001}\n")
    return path


@pytest.mark.parametrize("command", ["why podgang/train --from {snapshot}", "simulate {snapshot}"])
def test_a_configuration_may_name_a_plugin_of_the_file(
    command: str, policies: Path, snapshot: Path, naming: Path
) -> None:
    """The plugin runs once, with the arguments of the configuration, and nothing runs without it."""
    words = command.format(snapshot=snapshot).split()

    answer = spinney(*words, "--plugin", f"{policies}:KeepFree", "--config", str(naming))

    assert answer.exit_code == 0, answer.output
    assert "1 of 2 pods" in answer.output


def test_a_scheduler_is_checked_with_a_configuration_that_names_the_plugin(policies: Path, naming: Path) -> None:
    """``--check`` prints the plugin where the configuration has it, once."""
    answer = spinney("scheduler", "--check", "--plugin", f"{policies}:KeepFree", "--config", str(naming))

    assert answer.exit_code == 0, answer.output
    assert answer.output.count("name: keep-free") == 1
    assert "node: gpu-001" in answer.output


def test_a_profile_has_a_plugin_of_the_file_where_it_enables_it(policies: Path, tmp_path: Path) -> None:
    """A plugin that a profile enables at one extension point is not enabled at all of them too."""
    config = tmp_path / "coscheduler.yaml"
    config.write_text("profiles:\n- schedulerName: s\n  plugins: {filter: {enabled: [{name: Quiet}]}}\n")

    answer = spinney("coscheduler", "--check", "--plugin", f"{policies}:Quiet", "--config", str(config))

    assert answer.exit_code == 0, answer.output
    assert answer.output.count("name: Quiet") == 1


def test_a_replay_takes_a_plugin_and_a_configuration_that_names_it(
    policies: Path, naming: Path, tmp_path: Path
) -> None:
    """A trace is replayed once, with the plugin that the configuration names."""
    trace = tmp_path / "two.swf"
    trace.write_text(
        "; MaxProcs: 8\n1 0 0 60 4 -1 -1 4 60 -1 1 1 1 1 1 1 -1 -1\n2 1 0 60 4 -1 -1 4 60 -1 1 1 1 1 1 1 -1 -1\n"
    )

    answer = spinney("replay", str(trace), "--plugin", f"{policies}:KeepFree", "--config", str(naming))

    assert answer.exit_code == 0, answer.output
    assert f"{naming} + {policies}" in "".join(answer.output.split("\n"))


def test_an_embedded_cluster_takes_a_configuration_that_names_the_plugin(policies: Path, naming: Path) -> None:
    """``up`` runs the plugin with the arguments of the configuration."""
    options = embedded_settings(ClusterSpec(), (naming,), policies_of([(policies, "KeepFree", {})]))

    assert [each.arguments for each in options.scheduler.plugins if each.name == "keep-free"] == [{"node": "gpu-001"}]
    assert options.plugins is not None
    assert "keep-free" in options.plugins


@pytest.mark.parametrize("command", ["up", "why x", "simulate", "scheduler --check", "coscheduler --check"])
def test_a_directory_without_plugins_is_refused(command: str, tmp_path: Path) -> None:
    """Whoever names a directory wants what is in it: with nothing in it the command does not go on without."""
    (tmp_path / "README.md").write_text("plugins go here")

    answer = CliRunner().invoke(main, [*command.split(), "--plugin", str(tmp_path)])

    assert answer.exit_code == 1
    assert f"Error: {tmp_path}: this directory has no .py file" in answer.output


@pytest.mark.parametrize("command", [["simulate"], ["why", "pod/web", "--from"]])
def test_what_a_plugin_prints_is_not_part_of_the_answer(command: list[str], tmp_path: Path) -> None:
    """A plugin may print while it is loaded and while it decides: standard output is still one JSON document."""
    cluster, policy = tmp_path / "cluster.yaml", tmp_path / "policy.py"
    cluster.write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: default}\n"
        "spec: {schedulerName: spinney-scheduler, containers: [{name: main, image: pause}]}\n"
    )
    policy.write_text(
        "from spinney.scheduler import Plugin\nprint('loaded')\n\n\nclass Loud(Plugin):\n    name = 'loud'\n\n"
        "    def on_session_open(self, session):\n        print('opened')\n"
    )
    answer = CliRunner().invoke(main, [*command, str(cluster), "--plugin", str(policy), "-o", "json"])

    assert answer.exit_code == 0, answer.output
    assert json.loads(answer.stdout)
    assert "loaded" in answer.stderr
    assert "opened" in answer.stderr
