"""Texts about leases, and events in their newer form."""

from collections.abc import Mapping
from typing import Final

from spinney.server.about.descriptions.texts import ITSELF, Texts

TYPES: Final[Mapping[str, Texts]] = {
    "coordination.Lease": {
        ITSELF: "Says who holds something for a while: the leader of a controller, a node's sign of life."
    },
    "coordination.LeaseSpec": {
        ITSELF: "Who holds a lease, and until when.",
        "holderIdentity": "Who holds it.",
        "leaseDurationSeconds": "How long after the last renewal others have to wait before they may take it.",
        "acquireTime": "When the holder got it.",
        "renewTime": "When the holder last renewed it.",
        "leaseTransitions": "How often it went to another holder.",
        "strategy": "How the holder is chosen among several candidates.",
        "preferredHolder": "Who should get it next.",
    },
    "events.Event": {
        ITSELF: "Something that happened to an object. Events are kept for about an hour.",
        "eventTime": "When it was seen first, precisely.",
        "series": "How the repetitions went on.",
        "reportingController": "Who saw it: a controller's name.",
        "reportingInstance": "Which process of that controller.",
        "action": "What the reporter did, or tried.",
        "reason": "What happened, in one word.",
        "regarding": "What it happened to.",
        "related": "Another object that has to do with it.",
        "note": "What happened, for people.",
        "type": "Normal or Warning.",
        "deprecatedSource": "Who saw it, as older clients say it.",
        "deprecatedFirstTimestamp": "When it was seen first, as older clients say it.",
        "deprecatedLastTimestamp": "When it was seen last, as older clients say it.",
        "deprecatedCount": "How often it was seen, as older clients say it.",
    },
}
