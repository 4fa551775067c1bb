"""The garbage collector's settings."""

import gc

from spinney.runtime import settle_garbage_collector


def test_collections_become_rare_and_spare_what_is_alive() -> None:
    """After settling, what was alive is exempt and a collection takes many more new objects to start."""
    before = gc.get_threshold()
    gc.set_threshold(700)
    try:
        settle_garbage_collector()
        assert gc.get_freeze_count() > 0
        assert gc.get_threshold()[0] > 700
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
