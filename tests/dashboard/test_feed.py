"""Who was away is sent exactly what they missed, or is told that it is no longer known."""

from spinney.dashboard.feed import Feed


def a_feed(events: int, **bounds: int) -> Feed:
    """Return a feed with events whose data is their number, from 1."""
    feed = Feed("epoch", **bounds)
    for number in range(1, events + 1):
        feed.publish(str(number).encode())
    return feed


def missed(feed: Feed, last: str) -> list[str] | None:
    """Return the data of what came after an event."""
    found = feed.since(last)
    if found is None:
        return None
    events, newest = found
    assert newest == feed.id
    return [line.removeprefix("data: ") for event in events for line in event.decode().split("\n") if "data" in line]


def test_what_was_missed_is_sent_once_and_in_order() -> None:
    """After event 2 of 5 come 3, 4 and 5."""
    assert missed(a_feed(5), "epoch-2") == ["3", "4", "5"]


def test_nothing_is_sent_to_who_missed_nothing() -> None:
    """After the last event there is none."""
    assert missed(a_feed(5), "epoch-5") == []


def test_who_was_away_too_long_has_to_read_everything() -> None:
    """Events that the feed no longer keeps cannot be sent."""
    feed = a_feed(5, kept=2)

    assert missed(feed, "epoch-2") is None
    assert missed(feed, "epoch-3") == ["4", "5"]


def test_the_bytes_of_what_is_kept_are_bounded() -> None:
    """A few large events are kept instead of many, the newest always."""
    feed = Feed("epoch", kept_bytes=100)
    for _ in range(3):
        feed.publish(b"x" * 80)

    assert missed(feed, "epoch-1") is None
    assert missed(feed, "epoch-2") == ["x" * 80]


def test_ids_of_another_life_or_of_nobody_are_not_taken_for_ours() -> None:
    """After a restart, and for text that is no id, the state has to be read afresh."""
    feed = a_feed(5)

    for last in ("earlier-2", "epoch-9", "epoch--1", "epoch-", "", "-", "2", "epoch-2e0", "epoch-٣"):
        assert missed(feed, last) is None, last


async def test_waiting_ends_with_the_next_event() -> None:
    """One who is up to date is told when something happens, and others at once."""
    feed = a_feed(1)

    assert await feed.more("epoch-0", within=0)
    assert not await feed.more("epoch-1", within=0)
    feed.publish(b"2")
    assert await feed.more("epoch-1", within=0)


async def test_waiting_ends_with_the_feed() -> None:
    """One who waits when a view starts anew is not left waiting."""
    feed = a_feed(1)
    feed.end()

    assert await feed.more("epoch-1", within=0)


def test_an_id_that_no_feed_gave_has_its_viewer_read_everything() -> None:
    """Python reads no numbers of 5000 digits, and the question was answered as a fault."""
    assert [missed(a_feed(5), f"epoch-{odd}") for odd in ("9" * 5000, "two", "")] == [None, None, None]
