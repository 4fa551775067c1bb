"""Texts about what all objects have."""

from collections.abc import Mapping
from typing import Final

from spinney.server.about.descriptions.texts import ITSELF, Texts

TYPES: Final[Mapping[str, Texts]] = {
    "meta.ObjectMeta": {
        ITSELF: "What every stored object has: who it is, how it is found, and who may let it go.",
        "name": "Names the object among those of its kind, within its namespace if the kind has namespaces. Fixed.",
        "generateName": "Begin of a name: the server completes it with random characters if no name is given.",
        "namespace": "Where the object lives. Objects without namespaces leave it empty. Fixed.",
        "selfLink": "No longer filled in.",
        "uid": "Tells this object from all others, also from later ones of the same name. Given by the server.",
        "resourceVersion": "Changes with every write. Sent back with an update, it makes sure nobody wrote meanwhile.",
        "generation": "Counts the changes of what is wanted. Given by the server.",
        "creationTimestamp": "When the server stored the object first.",
        "deletionTimestamp": "Set once deletion was asked for: when the object is to be gone, or may go.",
        "deletionGracePeriodSeconds": "How long the object has to end by itself after deletion was asked for.",
        "labels": "Short key-value pairs by which objects are selected.",
        "annotations": "Key-value pairs for tools and people; nothing selects by them.",
        "ownerReferences": "Objects this one belongs to. It is collected when the last of them is gone.",
        "finalizers": "Who still has to clean up. A deleted object stays until this list is empty.",
        "managedFields": "Who last wrote which field: what conflicts of server-side apply are found by.",
    }
}
