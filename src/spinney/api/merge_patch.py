"""JSON merge patches (RFC 7386), from the object that is there and the one that is wanted."""

from spinney.api.struct import JSON


def merge_patch(found: JSON, wanted: JSON) -> JSON:
    """Return the smallest merge patch that turns one object into the other; lists are replaced whole."""
    patch: JSON = {name: None for name in found if name not in wanted}
    for name, value in wanted.items():
        present = found.get(name)
        if isinstance(present, dict) and isinstance(value, dict):
            if inner := merge_patch(present, value):
                patch[name] = inner
        elif present != value or name not in found:
            patch[name] = value
    return patch
