"""Whatever is wrong with what a command is given, it answers in one sentence that says what to do, and no traceback."""

import base64
import io
import os
import signal
import ssl
import subprocess
import sys
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from spinney.cli import main
from tests.cli.clusters import ServedCluster

TEXTS = {
    "empty": b"",
    "binary": bytes(range(256)),
    "prose": b"just text\n",
    "cut-short": b"[1, 2",
    "a-number": b"kind: 5\napiVersion: v1\n",
}
COMMANDS = {
    "why": ["why", "x", "--from"],
    "queues": ["queues", "--from"],
    "get": ["get", "gangs", "--from"],
    "top": ["top", "--from"],
    "simulate": ["simulate"],
    "workload": ["simulate", "cluster.yaml", "-f"],
    "kubeconfig": ["snapshot", "--kubeconfig"],
    "validate": ["validate", "-f"],
    "apply": ["apply", "-f"],
    "delete": ["delete", "-f"],
    "cases": ["cases"],
    "up": ["up", "-f"],
    "up-config": ["up", "--config"],
    "node-groups": ["simulate", "cluster.yaml", "--node-groups"],
    "plugin": ["why", "x", "--plugin"],
}
HARMLESS = {("workload", "empty"), ("up-config", "a-number")}
"""Nothing to add is nothing wrong; a scheduler's configuration needs no kind."""


def sentence(answer: Result) -> str:
    """Return the one sentence a command failed with."""
    assert answer.exit_code in (1, 2), answer.output
    assert isinstance(answer.exception, SystemExit), repr(answer.exception)
    assert "Traceback" not in answer.output
    assert "this should not have happened" not in answer.output
    lines = [line for line in answer.output.splitlines() if not line.startswith(("Usage:", "Try ")) and line]
    assert len(lines) == 1, answer.output
    return lines[0].removeprefix("Error: ")


def spinney(*arguments: str) -> Result:
    """Run a command in process."""
    return CliRunner().invoke(main, arguments)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run in a directory of its own, with no cluster to be found."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "cluster.yaml").write_text("apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n")
    return tmp_path


@pytest.mark.parametrize(
    ("command", "text"), [each for each in product(COMMANDS, TEXTS) if each not in HARMLESS], ids=lambda word: word
)
def test_a_file_that_is_something_else(command: str, text: str) -> None:
    """A file that does not hold what a command expects is named, with what was expected."""
    Path("given").write_bytes(TEXTS[text])

    said = sentence(spinney(*COMMANDS[command], "given"))

    assert "given" in said or "kubeconfig" in said


@pytest.mark.parametrize("named", ["--kubeconfig", "--context", "KUBECONFIG", ""])
def test_in_a_pod_the_cluster_that_is_named_is_meant(named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process in a pod asks the cluster that it runs in, unless it is told of another by option or environment."""
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
    Path(".kube").mkdir()
    cluster = {"name": "far", "cluster": {"server": "http://127.0.0.1:1"}}
    written = {"clusters": [cluster], "contexts": [{"name": "far", "context": {"cluster": "far"}}]}
    Path(".kube/config").write_text(yaml.safe_dump({**written, "current-context": "far"}))
    options = {"--kubeconfig": [named, ".kube/config"], "--context": [named, "far"]}.get(named, [])
    if named == "KUBECONFIG":
        monkeypatch.setenv(named, str(Path(".kube/config").absolute()))
    said = sentence(spinney("get", "gangs", *options))
    assert ("http://127.0.0.1:1" in said) is bool(named)
    assert ("is the service account token mounted?" in said) is not bool(named)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_that_is_not_there(command: str) -> None:
    """A file that does not exist is named."""
    assert "missing.yaml" in sentence(spinney(*COMMANDS[command], "missing.yaml"))


@pytest.mark.parametrize("command", [each for each in COMMANDS if each not in ("validate", "apply", "delete", "cases")])
def test_a_directory(command: str) -> None:
    """A directory where a file is expected is said to be one."""
    Path("given").mkdir()

    assert "directory" in sentence(spinney(*COMMANDS[command], "given"))


@pytest.mark.parametrize("content", [b"[]", b"{", b'{"rawObjects": {"pods": [{"metadata": 5}]}}'])
def test_a_zip_that_is_no_snapshot(content: bytes) -> None:
    """A zip that KAI did not write is named as that."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as writing:
        writing.writestr("snapshot.json", content)
    Path("kai.zip").write_bytes(archive.getvalue())

    assert "kai.zip" in sentence(spinney("why", "x", "--from", "kai.zip"))


def test_no_cluster_at_all() -> None:
    """Without a kubeconfig it says where it looked and how to name one."""
    said = sentence(spinney("why", "train"))

    assert ".kube/config" in said
    assert "KUBECONFIG" in said


def kubeconfig(change: Callable[[dict[str, dict[str, str]]], None], server: str = "https://127.0.0.1:1") -> str:
    """Write a kubeconfig with one context, and return its path."""
    parts: dict[str, dict[str, str]] = {"cluster": {"server": server}, "user": {"token": "t"}}
    change(parts)
    written = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": parts["cluster"]}],
        "users": [{"name": "u", "user": parts["user"]}],
    }
    Path("kubeconfig.yaml").write_text(yaml.safe_dump(written))
    return "kubeconfig.yaml"


@pytest.mark.parametrize("command", [["why", "x"], ["queues"], ["snapshot"], ["get", "nodes"], ["top"], ["simulate"]])
def test_a_server_that_is_not_there(command: list[str]) -> None:
    """A server that cannot be reached is named, with what to try."""
    said = sentence(spinney(*command, "--kubeconfig", kubeconfig(lambda _: None)))

    assert "https://127.0.0.1:1" in said
    assert "is the cluster up? --kubeconfig and --context choose another" in said


def test_a_server_without_a_name() -> None:
    """A host that no name server knows is named."""
    said = sentence(spinney("queues", "--kubeconfig", kubeconfig(lambda _: None, "https://nowhere.invalid:6443")))

    assert "nowhere.invalid" in said


def test_a_context_that_is_not_there(served: ServedCluster) -> None:
    """A context with a typo is answered with those there are."""
    said = sentence(served.spinney("queues", "--context", "prodution"))

    assert "prodution" in said
    assert "spinney" in said


def test_somebody_the_cluster_does_not_know(served: ServedCluster) -> None:
    """A token the cluster does not take is told apart from a missing right."""
    written = yaml.safe_load(served.kubeconfig.read_text())
    written["users"][0]["user"] = {"token": "expired"}
    Path("kubeconfig.yaml").write_text(yaml.safe_dump(written))

    said = sentence(spinney("queues", "--kubeconfig", "kubeconfig.yaml"))

    assert "does not know who is asking" in said
    assert "log in again" in said


def test_a_server_that_is_not_to_be_trusted(served: ServedCluster) -> None:
    """A certificate of another authority is said to be that."""
    written = yaml.safe_load(served.kubeconfig.read_text())
    written["clusters"][0]["cluster"]["certificate-authority-data"] = base64.b64encode(_certificate()).decode()
    Path("kubeconfig.yaml").write_text(yaml.safe_dump(written))

    said = sentence(spinney("queues", "--kubeconfig", "kubeconfig.yaml"))

    assert "the kubeconfig does not name the authority of that server's certificate" in said
    assert "is the cluster up?" not in said


def test_a_terminal_that_lacks_the_letters() -> None:
    """What an encoding cannot say is replaced, and the picture is drawn to its end."""
    Path("cluster.yaml").write_text("{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {capacity: {cpu: 4}}}")
    answer = CliRunner(charset="ascii").invoke(main, ["top", "--once", "--from", "cluster.yaml"])

    assert answer.exit_code == 0, answer.output
    assert "n1" in answer.output


def test_a_client_certificate_that_has_expired(served: ServedCluster) -> None:
    """A client certificate past its time ends in a sentence, whatever the server says to it."""
    written = yaml.safe_load(served.kubeconfig.read_text())
    pem = _certificate(expired=True, with_key=True)
    coded = base64.b64encode(pem).decode()
    written["users"][0]["user"] = {"client-certificate-data": coded, "client-key-data": coded}
    Path("kubeconfig.yaml").write_text(yaml.safe_dump(written))

    assert sentence(spinney("queues", "--kubeconfig", "kubeconfig.yaml"))


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["why", "podgnag/train"], "did you mean podgang?"),
        (["why", "quue/default"], "did you mean queue?"),
        (["why", "PodGroup.scheduling.run.ai/absent"], "nothing called"),
    ],
)
def test_a_typo_in_a_kind(served: ServedCluster, arguments: list[str], hint: str) -> None:
    """A kind with a typo is answered with the nearest."""
    assert hint in sentence(served.spinney(*arguments))


def test_a_kind_the_cluster_does_not_serve(served: ServedCluster) -> None:
    """A manifest of a kind the cluster has no CRD for is answered with what it serves, and where CRDs come from."""
    manifest = {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqeSet", "metadata": {"name": "x"}}
    Path("typo.yaml").write_text(yaml.safe_dump(manifest))

    said = sentence(served.spinney("apply", "-f", "typo.yaml"))

    assert "typo.yaml:1: PodCliqeSet x" in said
    assert "did you mean 'PodCliqueSet'?" in said


@pytest.mark.parametrize("port", ["70000", "-1", "http"])
def test_a_port_that_is_none(port: str) -> None:
    """A port out of range is refused before anything starts."""
    assert "port" in sentence(spinney("up", "--port", port))


def test_a_port_that_is_taken(served: ServedCluster) -> None:
    """A port that somebody listens on is named."""
    port = yaml.safe_load(served.kubeconfig.read_text())["clusters"][0]["cluster"]["server"].rpartition(":")[2]

    assert port in sentence(spinney("up", "--port", port, "--kubeconfig", "mine"))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["get"], "Write what to list: gangs, sets or nodes."),
        (["up", "--nodes", "99999999x8"], "at most 50000 nodes can be simulated"),
        (["up", "--nodes", "8x99999999"], "at most 1000 GPUs can be simulated on a node"),
        (["crds", "--output", "/proc/nowhere"], "/proc/nowhere: cannot be written"),
        (["get", "queues"], "'queues' cannot be listed; 'spinney queues' does that."),
        (["get", "Pods"], "'Pods' cannot be listed; 'kubectl get pods' does that."),
        (["why", "pcs", "train"], "one thing is asked about at a time: write pcs/train."),
        (["why", "a", "b", "c"], "one thing is asked about at a time: write KIND/NAME."),
        (["why", "--from", "cluster.yaml", "node/n"], "'node' is no kind that can be asked about"),
        (["why", "--from", "cluster.yaml", "deploymet/n"], "did you mean deployment? Known are pod,"),
        (["why", "--from", "cluster.yaml", "nobody"], "'spinney get gangs -A'"),
        (["why", "--from", "cluster.yaml", "nobody", "--patience", "nan"], "nan is no number of seconds"),
        (["why", "--from", "cluster.yaml", "job/nobody"], "it does not exist, asks for none, or is suspended"),
    ],
)
def test_what_cannot_be_done(arguments: list[str], expected: str) -> None:
    """What is missing, too much or not there is said with what would do."""
    Path("cluster.yaml").write_text("apiVersion: v1\nkind: Node\nmetadata: {name: n}\n")

    assert expected in sentence(spinney(*arguments))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["why", "job/trian"], "job/trian has no pods: it does not exist (did you mean train?), asks for none"),
        (["why", "trian", "-n", "a"], "nothing called 'trian' was found in namespace a; did you mean train"),
        (["why", "job/train", "-n", "b"], "job/train has no pods in namespace b, but in namespace a: pass -n a"),
        (["why", "train", "-n", "b"], "nothing called 'train' was found in namespace b; there is job/train in names"),
        (["get", "gangs", "g", "-n", "b"], "no gang 'g' in namespace b; there is one in namespace a: pass -n a, or -A"),
        (["get", "sets", "s", "-n", "b"], "no set 's' in namespace b; there is one in namespace a: pass -n a, or -A"),
        (["get", "gangs", "gg", "-n", "a"], "there is no gang 'gg' in namespace a; did you mean g?"),
        (["get", "gangs", "gg", "-n", "b"], "there is no gang 'gg' in namespace b. 'spinney get gangs -A' lists all."),
    ],
)
def test_a_name_that_is_somewhere_else(arguments: list[str], expected: str) -> None:
    """A name that is nearly right, or in another namespace, is answered with the right one, of workloads too."""
    Path("cluster.yaml").write_text(
        "apiVersion: scheduler.grove.io/v1alpha1\nkind: PodGang\nmetadata: {name: g, namespace: a}\n"
        "spec: {podgroups: []}\n---\n"
        "apiVersion: v1\nkind: Pod\nspec: {containers: [{name: main, image: x}]}\n"
        "metadata:\n  {name: train-x, namespace: a,\n"
        "   ownerReferences: [{apiVersion: batch/v1, kind: Job, name: train, uid: u, controller: true}]}\n---\n"
        "apiVersion: grove.io/v1alpha1\nkind: PodCliqueSet\nmetadata: {name: s, namespace: a}\n"
        "spec: {replicas: 0, template: {cliques: []}}\n"
    )

    assert expected in sentence(spinney(*arguments, "--from", "cluster.yaml"))


def test_an_empty_list_names_the_namespaces_that_are_not_empty() -> None:
    """A list without rows says in which namespace there are none, and where there are some."""
    Path("cluster.yaml").write_text(
        "apiVersion: scheduler.grove.io/v1alpha1\nkind: PodGang\nmetadata: {name: g, namespace: a}\n"
        "spec: {podgroups: []}\n"
    )

    listed = spinney("get", "gangs", "-n", "b", "--from", "cluster.yaml")

    assert listed.exit_code == 0
    assert "no gangs found in namespace b; gangs are in namespace a: pass -n a, or -A for all" in listed.output
    assert spinney("get", "sets", "-n", "b", "--from", "cluster.yaml").output == "no sets found in namespace b\n"


def test_a_newcomer_is_led_to_the_cluster_that_is_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has no kubeconfig is told of the one that ``spinney up`` has written, or else of ``spinney up``."""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert "'spinney up' starts a cluster to try things on" in sentence(spinney("queues"))

    (tmp_path / ".spinney").mkdir()
    (tmp_path / ".spinney" / "kubeconfig").write_text("{}")
    assert "export KUBECONFIG=~/.spinney/kubeconfig" in sentence(spinney("queues"))


def test_ctrl_c_ends_quietly() -> None:
    """Ctrl-C while a command computes or reads ends it with the status shells expect, and without a word."""
    os.mkfifo("slow.yaml")
    command = [sys.executable, "-c", "from spinney.cli import main; main()", "validate", "-f", "slow.yaml"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    with Path("slow.yaml").open("w"):  # as soon as the command has begun to read
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)

    assert (process.returncode, said.strip()) == (130, "")


def test_a_reader_that_has_had_enough() -> None:
    """Piping into head is no fault: the command ends without a word."""
    command = [sys.executable, "-c", "from spinney.cli import main; main()", "crds"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr is not None

    assert process.stderr.read() == ""
    process.stderr.close()
    process.wait(timeout=60)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
@pytest.mark.parametrize("arguments", [["--help"], ["why", "--help"], ["completion", "bash"], ["crds"]])
def test_a_disk_without_room_is_no_fault_of_ours(arguments: list[str]) -> None:
    """Whatever a command prints, help included, it says in a sentence that this cannot be written."""
    command = [sys.executable, "-c", "from spinney.cli import main; main()", *arguments]
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)

    assert ended.stderr == "Error: standard output cannot be written: No space left on device\n"
    assert ended.returncode == 1


@pytest.mark.parametrize("closed", ["1", "2"])
def test_a_stream_that_is_closed_is_no_fault_of_ours(closed: str) -> None:
    """A program that closes standard output or standard error is not told of a fault."""
    command = f'"{sys.executable}" -c "from spinney.cli import main; main()" get nodes --from cluster.yaml {closed}>&-'
    ended = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)

    assert (ended.returncode, ended.stderr) == (0, "")
    assert ("n1" in ended.stdout) == (closed == "2")


def test_a_fault_of_ours_is_one_sentence_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception nobody foresaw is one sentence with how to report it; on request, the traceback."""

    def broken(**_: object) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr("spinney.cli.bodies.validate.validate", broken)
    hidden = spinney("validate", "-f", "cluster.yaml")
    monkeypatch.setenv("SPINNEY_TRACEBACK", "1")
    shown = spinney("validate", "-f", "cluster.yaml")

    assert "ZeroDivisionError: division by zero" in hidden.output
    assert "SPINNEY_TRACEBACK=1" in hidden.output
    assert isinstance(shown.exception, ZeroDivisionError)


def _certificate(*, expired: bool = False, with_key: bool = False) -> bytes:
    """Return a certificate that nobody trusts."""
    from cryptography import x509  # noqa: PLC0415 - only here
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "somebody")])
    end = datetime.now(UTC) + timedelta(days=-1 if expired else 1)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(end - timedelta(days=2))
        .not_valid_after(end)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    if not with_key:
        ssl.create_default_context(cadata=pem.decode())
        return pem
    return pem + key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def test_an_operator_outside_a_cluster_is_told_to_say_where_its_lease_is(tmp_path: Path) -> None:
    """Inside a pod it is the pod's namespace; elsewhere there is none to take."""
    config = tmp_path / "operator.yaml"
    config.write_text("leaderElection: {enabled: true}\n")
    answer = CliRunner().invoke(main, ["operator", "--config", str(config), "--kubeconfig", str(config)])
    assert answer.exit_code == 2
    assert "leaderElection.resourceNamespace: outside a cluster" in answer.output


@pytest.mark.parametrize("arguments", ["manifests --replicas -1", "manifests --replicas 2147483648", "scheduler -v -1"])
def test_numbers_out_of_range(arguments: str) -> None:
    """A number that no process can have is refused with the range there is."""
    assert "is not in the range" in sentence(spinney(*arguments.split()))


def test_python_is_expected_of_a_plugin() -> None:
    """A binary file that is given for a plugin is not asked to be YAML."""
    Path("policy.py").write_bytes(TEXTS["binary"])

    assert "policy.py is not a text file; Python is expected" in sentence(spinney("simulate", "--plugin", "policy.py"))
