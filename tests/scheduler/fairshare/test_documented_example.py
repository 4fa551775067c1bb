"""The worked example of docs/fairness.md is what the code computes."""

import re
from collections.abc import Mapping
from pathlib import Path

import yaml

from spinney.api import kai
from spinney.api.struct import convert
from spinney.scheduler.fairshare import GPU, QueueBooks, QueueTree
from spinney.scheduler.fairshare.sources import queue_of
from tests.scheduler.fairshare.strategies import gpus

PAGE = Path(__file__).parents[3] / "docs" / "fairness.md"


def shares(requested: Mapping[str, float]) -> dict[str, float]:
    """Divide 12 GPUs among the queues that the page configures."""
    found = re.search(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found is not None
    objects = [convert(kai.Queue, each) for each in yaml.safe_load_all(found[1])]
    books = QueueBooks(QueueTree(map(queue_of, objects)), gpus(12))
    for name, count in requested.items():
        books.request(name, gpus(count))
    books.set_fair_shares()
    return {page.queue.name: page.fair_share.gpu / GPU for page in books.pages}


def test_the_table_is_right() -> None:
    """The shares in the table are those of the configured queues."""
    rows = re.findall(r"^\| (\w+)[^|]*\|(?:[^|]*\|){5} (\d+) \|$", PAGE.read_text(), re.MULTILINE)
    documented = {name: float(share) for name, share in rows}
    assert documented == shares({"vision": 9, "speech": 5, "production": 3})
    assert len(documented) == 4


def test_the_continuation_is_right() -> None:
    """With production requesting 6 the two departments share 7 to 5."""
    divided = shares({"vision": 9, "speech": 5, "production": 6})
    assert (divided["research"], divided["production"]) == (7, 5)
