"""Where objects live: records, the history of their changes, and the one revision counter."""

from spinney.server.store.collection import Collection
from spinney.server.store.history import EventType, StoreEvent, TooOld
from spinney.server.store.journal import ChangeNotKept, Journal, JournalUnusable
from spinney.server.store.record import Record
from spinney.server.store.store import Store

__all__ = [
    "ChangeNotKept",
    "Collection",
    "EventType",
    "Journal",
    "JournalUnusable",
    "Record",
    "Store",
    "StoreEvent",
    "TooOld",
]
