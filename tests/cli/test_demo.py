"""The demo tells its whole story, without a terminal, and ends well."""

from click.testing import CliRunner

from spinney.cli import main


def test_the_demo_runs_to_its_end() -> None:
    """It brings an inference service up, shows a refused gang's reason, lets it in, and says what to do next."""
    answer = CliRunner().invoke(main, ["demo", "--plain"])

    assert answer.exit_code == 0, answer.output
    assert "chat-0 running: 7 pods, 7 bound, 7 ready" in answer.output
    assert "4 of 6 pods fit in rack" in answer.output
    assert "require a block instead" in answer.output
    assert "train-0 running: 6 pods, 6 bound, 6 ready" in answer.output
    assert "spinney up" in answer.output
