"""The training loop of the examples: it saves and answers when it is asked, once per request, and goes on later."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "examples" / "checkpointing" / "train.py"


@pytest.fixture(name="example")
def _example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("train", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_saves_before_it_answers_and_goes_on_from_there(example: ModuleType, tmp_path: Path) -> None:
    """A loop that is killed right after its answer has lost nothing up to it."""
    asked, folder = tmp_path / "checkpoint-by", tmp_path / "checkpoints"
    folder.mkdir()
    answers: list[tuple[str, int]] = []

    def compute(step: int) -> None:
        if step == 4:
            asked.write_text("2026-01-01T00:05:00Z")
        if step == 8:
            raise KeyboardInterrupt

    def say(by: str) -> None:
        answers.append((by, example.load(folder)))

    with pytest.raises(KeyboardInterrupt):
        example.train(asked, folder, steps=100, compute=compute, say=say)
    assert answers == [("2026-01-01T00:05:00Z", 5)]

    asked.unlink()
    assert example.train(asked, folder, steps=10, compute=lambda step: None, say=say) == 10
    assert len(answers) == 1
